"""Where the messages of a stream that stays open come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

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
