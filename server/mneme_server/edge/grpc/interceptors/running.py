"""Calls that are being served, and those whose caller left before a worker was free."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import grpc

from mneme_server.edge.grpc.call import Call


class RunningCalls:
    """The calls that hold a worker now."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._calls: set[Call] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._calls)

    @contextmanager
    def layer(self, call: Call) -> Iterator[None]:
        """Count the call as running. It must be the outermost layer."""
        with self._state:
            self._calls.add(call)
        try:
            yield
        finally:
            with self._state:
                self._calls.discard(call)
                self._state.notify_all()

    def wait(self, seconds: float) -> Sequence[str]:
        """Wait until none of the calls that run now does, so long at most; return the methods of
        those that still do.
        """
        with self._state:
            begun = set(self._calls)
            self._state.wait_for(lambda: begun.isdisjoint(self._calls), seconds)
            return sorted(call.method.path for call in begun & self._calls)


def skip_abandoned(call: Call) -> None:
    """Do not begin a call that was cancelled, or whose deadline passed, while it was queued.

    gRPC hands such calls to their handlers; after a jam, answering them would prolong it.
    """
    if call.time_left() == 0:
        cast(grpc.ServicerContext, call.edge).abort(
            call.abandoned_code, "the caller left before the call began"
        )
