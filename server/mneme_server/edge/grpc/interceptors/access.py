"""Access by keys: callers told by them, how often each may call, and the end of calls whose key is
good no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mneme_server.common import fairness
from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import (
    MnemeError,
    PermissionDenied,
    Reason,
    ResourceExhausted,
    Unauthenticated,
)
from mneme_server.common.identity import ALL_SCOPES, DEFAULT_TENANT, Caller, KeyScope
from mneme_server.edge.grpc.call import Authenticator, Call, bearer
from mneme_server.edge.grpc.methods import AnyScope, Method
from mneme_server.edge.grpc.pipeline import Layer

ANYONE = Caller(DEFAULT_TENANT, key_id="", scopes=ALL_SCOPES, rate_limit=0)
"""Who calls without a key where keys are not asked."""

_SWEPT_FROM = 10_000
_MINUTE_S = 60.0
_TOLD_FOR_S = 120.0

GRACE_S = 0.25
"""How long a stream that was told to end may take for it before it is cut off."""


class Identification:
    """Tells who is calling by the key in `authorization: Bearer mn_…`.

    Where keys are not `required`, a call without one acts as `ANYONE`; a key that is sent counts
    all the same, so that several tenants can be used on a machine without access control.
    """

    def __init__(self, authenticator: Authenticator, *, required: bool) -> None:
        self._authenticator = authenticator
        self._required = required

    def caller(self, method: Method, authorizations: Sequence[str]) -> Caller | None:
        """Return who is calling; None where the method is open to everyone.

        Args:
            method: what is called.
            authorizations: the call's headers of that name.

        Raises:
            Unauthenticated: nobody who is known.
            PermissionDenied: the key may not call it.
        """
        if method.scope is None:
            return None
        secret = self._secret(authorizations)
        caller = ANYONE if secret is None else self._authenticator.authenticate(secret)
        missing = missing_scope(method, caller)
        if missing is not None:
            raise missing
        return caller

    def takes_no_time(self, authorizations: Sequence[str]) -> bool:
        """Tell whether `caller` answers from memory: keys that were used before, and what is none
        at all."""
        try:
            secret = self._secret(authorizations)
        except Unauthenticated:
            return True
        return secret is None or self._authenticator.known(secret) is not None

    def _secret(self, authorizations: Sequence[str]) -> str | None:
        """Return the key; None where none was sent, and none is needed."""
        if len(authorizations) > 1:
            # Whatever stands between may have looked at another of them than the server would.
            raise Unauthenticated(
                "there is more than one authorization; send one API key, once",
                reason=Reason.API_KEY_INVALID,
            )
        if authorizations:
            secret = bearer(authorizations[0])
            if not secret:
                raise Unauthenticated(
                    "the metadata authorization must be: Bearer mn_…",
                    reason=Reason.API_KEY_MISSING,
                )
            return secret
        if self._required:
            raise Unauthenticated(
                "no API key; send it as authorization: Bearer mn_…",
                reason=Reason.API_KEY_MISSING,
            )
        return None


def authentication(identification: Identification, *, is_of: Callable[[str], None]) -> Layer:
    """Return the layer that sets `call.caller`. `is_of` is told whose call it is."""

    def authenticate(call: Call) -> None:
        caller = identification.caller(call.method, call.authorizations)
        if caller is not None:
            call.caller = caller
            fairness.enter(caller.tenant_id)
            is_of(caller.tenant_id)

    return authenticate


def missing_scope(method: Method, caller: Caller) -> PermissionDenied | None:
    """Return why a caller may not call a method; None where it may."""
    needed = [method.scope] if isinstance(method.scope, KeyScope) else []
    if method.also_reads:
        needed.append(KeyScope.READ)
    for scope in needed:
        if scope not in caller.scopes:
            return PermissionDenied(
                f"{method.name} needs scope {scope.name.lower()}; the API key has "
                + ", ".join(s.name.lower() for s in sorted(caller.scopes)),
                metadata={"required_scope": scope.name.lower()},
            )
    return None


@dataclass(slots=True)
class _Bucket:
    """A key's tokens, when it was filled last, its limit, and what was taken from it here since it
    was last quiet for so long that others are told of it no more."""

    tokens: float
    filled_at: float
    per_minute: int
    taken: int = 0
    taken_at: float = float("-inf")

    def fill(self, now: float, per_minute: int) -> None:
        """Let what the time has brought in."""
        rate = per_minute / _MINUTE_S
        self.tokens = min(float(per_minute), self.tokens + (now - self.filled_at) * rate)
        self.filled_at, self.per_minute = now, per_minute

    def is_as_new(self, now: float) -> bool:
        """Tell whether it is full, and nothing was taken from it for a minute."""
        full_in_s = (self.per_minute - self.tokens) * _MINUTE_S / self.per_minute
        return now - max(self.filled_at + full_in_s, self.taken_at + _MINUTE_S) >= 0


class TokenBuckets:
    """A token bucket per key: it holds a minute's calls and fills evenly.

    A key that was quiet for a minute may spend its calls at once; in the long run it makes no more
    than its limit a minute. Buckets live in memory, so a restart fills them. What other servers let
    through is taken from them, too, when it is heard of: then a bucket may lack tokens for a while.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}
        self._sweep_at = _SWEPT_FROM

    def take(self, key_id: str, per_minute: int) -> float:
        """Take one token; return 0, or the seconds until there is one."""
        now = self._clock()
        with self._lock:
            bucket = self._filled(key_id, per_minute, now)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) * _MINUTE_S / per_minute
            bucket.tokens -= 1
            if now - bucket.taken_at >= _TOLD_FOR_S:
                bucket.taken = 0  # Nobody was told of it lately: all of it would count again.
            bucket.taken += 1
            bucket.taken_at = now
            return 0.0

    def spent_elsewhere(self, key_id: str, per_minute: int, calls: int) -> None:
        """Take the tokens of calls that another server has let through."""
        with self._lock:
            self._filled(key_id, per_minute, self._clock()).tokens -= calls

    def counted(self) -> Mapping[str, tuple[int, int]]:
        """Return, of keys that called here in the last two minutes or so, how many calls were let
        through since they were last quiet for longer, and their limits."""
        now = self._clock()
        with self._lock:
            return {
                key: (bucket.taken, bucket.per_minute)
                for key, bucket in self._buckets.items()
                if now - bucket.taken_at < _TOLD_FOR_S
            }

    def _filled(self, key_id: str, per_minute: int, now: float) -> _Bucket:
        bucket = self._buckets.get(key_id)
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._sweep(now)
            bucket = self._buckets[key_id] = _Bucket(float(per_minute), now, per_minute)
        bucket.fill(now, per_minute)
        return bucket

    def _sweep(self, now: float) -> None:
        """Forget the buckets that are as new ones are.

        The next sweep waits until there are twice as many as are left, so that however many keys
        are in use, sweeping costs a constant time a call.
        """
        self._buckets = {k: b for k, b in self._buckets.items() if not b.is_as_new(now)}
        self._sweep_at = max(_SWEPT_FROM, 2 * len(self._buckets))


def rate_limit(buckets: TokenBuckets) -> Layer:
    """Return the layer that refuses calls beyond the key's limit. A stream counts as one call."""

    def limit(call: Call) -> None:
        if call.method.scope is not None and call.caller.rate_limit:
            wait = buckets.take(call.caller.key_id, call.caller.rate_limit)
            if wait:
                raise ResourceExhausted(
                    f"the API key may make {call.caller.rate_limit} calls a minute; try again in"
                    f" {wait:.1f} s",
                    reason=Reason.RATE_LIMITED,
                    retry_after_s=wait,
                )

    return limit


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
