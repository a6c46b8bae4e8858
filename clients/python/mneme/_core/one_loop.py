"""What belongs to one event loop."""

from __future__ import annotations

import asyncio

from mneme.errors import OtherLoopError


class OneLoop:
    """The loop in which something was first used. gRPC's channels, and asyncio's locks, wait for
    ever in another one, or fail with words that say nothing of it.

    Args:
        what: its name, for words.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.loop: asyncio.AbstractEventLoop | None = None

    def check(self) -> None:
        """Take the loop that runs for its own, or see that it is.

        Raises:
            OtherLoopError: it is another one.
        """
        running = asyncio.get_running_loop()
        if self.loop is None:
            self.loop = running
        elif self.loop is not running:
            raise OtherLoopError(self._what)
