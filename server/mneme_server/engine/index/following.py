"""How an index follows the feed: by what is passed on, and by reading again what it missed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Protocol

from mneme_server.common.pages import parts
from mneme_server.engine.corpus.cache import AT_ONCE, Steps
from mneme_server.engine.corpus.change import CorpusChange
from mneme_server.engine.corpus.feed import FeedRow, Position, Touched
from mneme_server.engine.corpus.ports import CorpusIndex


class Following(CorpusIndex, Protocol):
    """An index that can be brought up to a row of the feed."""

    def advance(self, position: Position) -> None:
        """Note that everything up to this row was applied."""
        ...

    def read_again(self, doc_ids: Sequence[int], embedded: Collection[int]) -> None:
        """Make documents what they are in the store; of those `embedded`, the vectors too."""
        ...

    def keep_up(self) -> None:
        """Do what the background is behind with, if it is: whoever adds much waits for it."""
        ...


def applying(change: CorpusChange, index: Following) -> Steps:
    """Return what applies a change as it was committed."""
    steps = [
        *(partial(index.add_documents, part) for part in parts(change.saved, AT_ONCE)),
        *(partial(index.add_vectors, batch) for batch in change.vectors),
        # Last, so that what was replaced is there at every moment: as it was, or as it is.
        *(partial(index.remove, part) for part in parts(change.removed, AT_ONCE)),
    ]
    if change.position is not None:
        steps.append(partial(index.advance, change.position))
    return [*steps, index.keep_up]


def catching_up(rows: Sequence[FeedRow], index: Following) -> Steps:
    """Return what reads again, as it is by now, all that the rows name.

    Raises:
        LostPlace: they say that everything changed.
    """
    touched = Touched()
    touched.take(rows)
    return [
        *(
            partial(index.read_again, part, touched.embedded)
            for part in parts(sorted(touched.there), AT_ONCE)
        ),
        *(partial(index.remove, part) for part in parts(sorted(touched.removed), AT_ONCE)),
        partial(index.advance, rows[-1].position),
        index.keep_up,
    ]
