"""Calls end soon after the keys that let them in are good no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import MnemeError, Reason, Unauthenticated
from mneme_server.common.identity import Caller, KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.interceptors.authentication import missing_scope
from mneme_server.edge.grpc.methods import AnyScope

GRACE_S = 0.25
"""How long a stream that was told to end may take for it before it is cut off."""


class KeyedCalls:
    """The calls that keys let in and that are being served. Thread-safe.

    A call whose key is good no longer has no time left: what works or waits on its behalf ends as
    when its caller leaves. A stream is told to end, and cut off if it does not. A call that reads
    is answered nothing any more; one that has written is told what it did.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # Guards what follows.
        self._calls: dict[str, set[Call]] = {}
        self._told: dict[Call, float] = {}

    @contextmanager
    def layer(self, call: Call) -> Iterator[None]:
        """Note the call while it is served. It must be inside the authentication."""
        key_id = call.key_id
        if not key_id:
            yield
            return
        with self._lock:
            self._calls.setdefault(key_id, set()).add(call)
        try:
            yield
        except Abandoned as error:
            if call.lost is None:
                raise
            call.lost.metadata.update(error.metadata)  # Such as how much of an upload is recorded.
            raise call.lost from error
        finally:
            self._leave(key_id, call)
        if call.lost is not None and _ends(call):
            raise call.lost

    def keys_in_use(self) -> Collection[str]:
        """Return the ids of the keys that let in what is being served."""
        with self._lock:
            return list(self._calls)

    def judge(self, keys: Mapping[str, Caller | None]) -> None:
        """End what keys let in that are good no longer.

        Args:
            keys: by id, whom they let in now; None: nobody. Of others nothing is known.
        """
        now = self._clock()
        with self._lock:
            lost = [
                (call, error)
                for key_id, caller in keys.items()
                for call in self._calls.get(key_id, ())
                if call not in self._told and (error := _refusal(call, caller)) is not None
            ]
            late = [call for call, told_s in self._told.items() if now - told_s >= GRACE_S]
            self._told |= {call: now for call, _ in lost}
        for call, error in lost:
            call.lose(error)
        for call in late:
            if call.method.stream is not None:
                call.cancel()

    def _leave(self, key_id: str, call: Call) -> None:
        with self._lock:
            self._told.pop(call, None)
            calls = self._calls[key_id]
            calls.discard(call)
            if not calls:
                del self._calls[key_id]


def _ends(call: Call) -> bool:
    return call.method.stream is not None or call.method.scope in (KeyScope.READ, AnyScope.ANY)


def _refusal(call: Call, caller: Caller | None) -> MnemeError | None:
    """Return what a new call would be refused with; None where it would be let in."""
    if caller is None or caller.tenant_id != call.tenant_id:
        return Unauthenticated(
            "the API key of this call was revoked while it went on; ask the server's operator for"
            " another one (mneme admin keys create)",
            reason=Reason.API_KEY_INVALID,
        )
    return missing_scope(call.method, caller)
