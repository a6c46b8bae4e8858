"""Who was cancelled: gRPC raises the same when a task is, and when its client was closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mneme.errors import CancelledError

CLOSED = "the client was closed"


def is_leaving() -> bool:
    """Whether the task that runs was cancelled itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def closed() -> CancelledError:
    """The error of a call that was under way when its client was closed."""
    return CancelledError(CLOSED)


@contextmanager
def told_of_closing() -> Iterator[None]:
    """Wait for a call; when the client is closed meanwhile, nobody's task counts as cancelled.

    Raises:
        CancelledError: of `mneme.errors`, the client was closed.
    """
    try:
        yield
    except asyncio.CancelledError:
        if is_leaving():
            raise
        raise closed() from None
