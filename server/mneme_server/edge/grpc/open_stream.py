"""A stream that stays open: its messages are sent as they come, and it holds no thread meanwhile.

gRPC's synchronous server hands a handler with `experimental_non_blocking` a function that sends,
and lets its thread go when the handler returns. Sending waits until gRPC has taken the message, so
it is done by `Steps`, and one that a peer does not take in time is the stream's last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol, TypeVar

from mneme_server.common.watchdog import Watchdog
from mneme_server.engine.scheduling.steps import Steps

SEND_S = 1.0
"""How long a peer may take to let a message in. It can resume, and others wait for the thread."""

Send = Callable[[Any], None]
"""gRPC's: sends a message, or the status when it is None."""


class _StreamState(Enum):
    IDLE = "nothing to send"
    DUE = "a step waits for its turn"
    AT_WORK = "a step is at work"
    AGAIN = "a step is at work, and there is more"
    OVER = "nothing is sent any more"


class Sending:
    """What open streams share: who does their steps, and who watches over them."""

    __slots__ = ("steps", "watchdog")

    def __init__(self, steps: Steps, watchdog: Watchdog) -> None:
        self.steps = steps
        self.watchdog = watchdog


class OpenStream:
    """Sends what a source has, for as long as the stream is wanted.

    Args:
        source: where the messages come from.
        send: sends one.
        sending: who does it.
        tenant_id: in whose turn.
        is_over: tells whether the peer has left or the stream was told to end; `wake` says when.
        cut_off: ends the stream of a peer that does not read.
        finish: called once, at the end, with the error that ended it, if one did.
    """

    __slots__ = (
        "_cut_off", "_finish", "_is_over", "_lock", "_send", "_sending", "_source", "_state",
        "_tenant_id",
    )  # fmt: skip

    def __init__(
        self,
        source: Source[Any],
        send: Send,
        sending: Sending,
        *,
        tenant_id: str,
        is_over: Callable[[], bool],
        cut_off: Callable[[], object],
        finish: Callable[[BaseException | None], None],
    ) -> None:
        self._source = source
        self._send = send
        self._sending = sending
        self._tenant_id = tenant_id
        self._is_over = is_over
        self._cut_off = cut_off
        self._finish = finish
        self._lock = threading.Lock()
        self._state = _StreamState.IDLE

    def start(self) -> None:
        """Begin to send."""
        self._source.on_ready(self.wake)
        try:
            self.wake()
        except RuntimeError as error:  # No thread can be had for its steps: it has no room.
            self._end(MemoryError(str(error)))

    def wake(self) -> None:
        """Say that there may be something to send, or that the stream is over."""
        with self._lock:
            if self._state is _StreamState.AT_WORK:
                self._state = _StreamState.AGAIN
            if self._state is not _StreamState.IDLE:
                return
            self._state = _StreamState.DUE
        self._sending.steps.run(self._tenant_id, self._step)

    def _step(self) -> None:
        with self._lock:
            self._state = _StreamState.AT_WORK
        error: BaseException | None = None
        try:
            if not self._is_over() and (messages := self._source.take()) is not None:
                self._send_all(messages)
                self._idle_unless(bool(messages))
                return
        except BaseException as raised:  # Whatever it is, it is the stream's end.
            error = raised
        try:
            self._end(error)
        finally:
            del error  # Its traceback holds this frame.

    def _send_all(self, messages: Sequence[Any]) -> None:
        for message in messages:
            if self._is_over():
                return
            with self._sending.watchdog.limit(SEND_S, self._cut_off):
                self._send(message)

    def _idle_unless(self, more: bool) -> None:
        with self._lock:
            if not more and self._state is _StreamState.AT_WORK:
                self._state = _StreamState.IDLE
                return
            self._state = _StreamState.DUE
        # In turn with other streams.
        self._sending.steps.run(self._tenant_id, self._step)

    def _end(self, error: BaseException | None) -> None:
        with self._lock:
            self._state = _StreamState.OVER
        source, finish = self._source, self._finish
        # Whoever still holds `wake` must not hold the call: it would never be freed.
        del self._source, self._send, self._is_over, self._cut_off, self._finish
        try:
            source.close()
        finally:
            finish(error)


M_co = TypeVar("M_co", covariant=True)


class Source(Protocol[M_co]):
    """What a servicer returns for an RPC that is `long_lived` and answers with a stream.

    It is asked for messages when there may be some, by one thread at a time, and holds none while
    there are none. What was taken is sent before more is asked for, so a peer that reads slowly is
    waited for: a source keeps little, and can find again what it did not keep.
    """

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have `wake` called whenever there may be messages, from any thread; it returns at once.

        Called once, before anything is taken.
        """
        ...

    def take(self) -> Sequence[M_co] | None:
        """Return the next messages, a few at a time: an empty list when there are none now, and
        None when there will be none any more.

        It may read, but must not wait for messages.

        Raises:
            MnemeError: the stream ends so; or anything, as a servicer may.
        """
        ...

    def close(self) -> None:
        """Nobody listens any more. Nothing is taken after this."""
        ...
