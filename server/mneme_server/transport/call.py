"""One call while it is served, and who is calling."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextvars import ContextVar

import grpc

from mneme_server.common.identity import Caller
from mneme_server.transport.methods import Method

_MAX_REQUEST_ID = 128
_NEVER_S = 100 * 365 * 86_400.0

_current: ContextVar[Call | None] = ContextVar("mneme_call", default=None)


class Call:
    """One call: what the layers learn of it, and its end.

    `request_id` is the caller's `x-request-id`, or one made here. `caller` is set by the
    authentication; `code` and `reason` once the outcome is known.
    """

    __slots__ = (
        "_caller",
        "_end_callbacks",
        "_lock",
        "authorization",
        "code",
        "context",
        "ended",
        "error_id",
        "method",
        "reason",
        "request_id",
    )

    def __init__(self, method: Method, context: grpc.ServicerContext) -> None:
        self.method = method
        self.context = context
        self.authorization: str | None = None
        self.request_id = ""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                self.authorization = value if isinstance(value, str) else value.decode("latin-1")
            elif key == "x-request-id" and isinstance(value, str):
                self.request_id = _clean(value)
        if not self.request_id:
            self.request_id = secrets.token_hex(8)
        self.code: grpc.StatusCode | None = None
        self.reason = ""
        self.error_id = ""
        self.ended = False
        self._caller: Caller | None = None
        self._end_callbacks: list[Callable[[], object]] | None = None
        self._lock = threading.Lock()

    @property
    def caller(self) -> Caller:
        """Who is calling.

        Raises:
            RuntimeError: nobody was authenticated: the method is public, or the server was built
                without the authentication.
        """
        if self._caller is None:
            raise RuntimeError(f"{self.method.path} was not authenticated")
        return self._caller

    @caller.setter
    def caller(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def tenant_id(self) -> str:
        """The caller's tenant for logs; empty when nobody was authenticated."""
        return "" if self._caller is None else self._caller.tenant_id

    def time_left(self) -> float | None:
        """Return the seconds until the caller stops waiting: 0 when it has left, None if never."""
        if not self.context.is_active():
            return 0.0
        left = self.context.time_remaining()
        return None if left > _NEVER_S else left  # gRPC's "no deadline" is centuries away.

    @property
    def abandoned_code(self) -> grpc.StatusCode:
        """Why the caller stopped waiting: DEADLINE_EXCEEDED, or CANCELLED when it left before."""
        remaining = self.context.time_remaining()
        late = remaining is not None and remaining <= 0
        return grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` run once when the stream must end: the client is gone, or the server
        shuts down. It runs on another thread, or right here when that has already happened.

        A servicer of a stream that stays open wakes its waiting loop with this and returns; the
        caller is told why by the layers.
        """
        with self._lock:
            if not self.ended:
                if self._end_callbacks is None:
                    self._end_callbacks = []
                    if not self.context.add_callback(self.end):
                        self.ended = True
                self._end_callbacks.append(callback)
            if not self.ended:
                return
        callback()

    @property
    def was_cut_short(self) -> bool:
        """Whether the servicer was told to end a stream that it would have gone on with."""
        return self.ended and self._end_callbacks is not None

    def end(self) -> None:
        """Tell the servicer that the stream must end."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            callbacks = self._end_callbacks or ()
        for callback in callbacks:
            callback()


def enter(call: Call) -> None:
    """Make `call` the current one; each call runs in a context of its own."""
    _current.set(call)


def leave() -> None:
    """Forget the current call. gRPC keeps the context with the call, so that they would keep each
    other, and the stream counted among its connection's, until the garbage is collected.
    """
    _current.set(None)


def current_call() -> Call:
    """Return the call that this thread is serving.

    Threads that a servicer starts do not inherit it: hand them what they need.

    Raises:
        LookupError: this thread serves no call.
    """
    call = _current.get()
    if call is None:
        raise LookupError("this thread serves no call")
    return call


def current_caller() -> Caller:
    """Return who is calling; `current_caller().tenant_id` is the tenant of everything it touches.

    Raises:
        LookupError: this thread serves no call.
        RuntimeError: the call was not authenticated.
    """
    return current_call().caller


def bearer(authorization: str) -> str:
    """Return the secret of the metadata `authorization: Bearer SECRET`; empty if it is not that."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _clean(request_id: str) -> str:
    """Return the part of a caller's id that is safe in logs: printable and not too long."""
    return request_id[:_MAX_REQUEST_ID] if request_id.isprintable() else ""
