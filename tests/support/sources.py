"""What streams that stay open are fed with in tests, and who does their steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.open_stream import Sending
from mneme_server.engine.scheduling.steps import Steps


class Given:
    """A source of the messages that a test gives it."""

    def __init__(self, *messages: Any, ends: bool = False) -> None:
        self._messages = deque(messages)
        self._over = ends
        self._wake: Callable[[], None] = lambda: None
        self.closed = threading.Event()

    def give(self, *messages: Any) -> None:
        """Have these sent next."""
        self._messages.extend(messages)
        self._wake()

    def end(self) -> None:
        """Have the stream end after what was given."""
        self._over = True
        self._wake()

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def take(self) -> Sequence[Any] | None:
        if self._messages:
            return [self._messages.popleft()]
        return None if self._over else ()

    def close(self) -> None:
        self.closed.set()


class _AtOnce:
    """Does each step as soon as it is asked for, on the thread that asks."""

    def run(self, tenant_id: str, step: Callable[[], object]) -> None:
        step()


def sending_at_once() -> Sending:
    """Return what sends before `wake` returns."""
    return Sending(cast(Steps, _AtOnce()), Watchdog())
