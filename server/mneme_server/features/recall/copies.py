"""Near-copies: what is stored again and again is one result, and does not crowd out the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mneme_server.engine.corpus.ports import CorpusColumns, CorpusIndex, Rows, Selection
from mneme_server.features.recall.hybrid import Ranked
from mneme_server.features.recall.ranking import Ints, firsts

_MIX = np.int64(-7046029254386353131)
"""An odd number of 64 bits: what it multiplies is spread over all of them."""
_CROWDED = 0.5
_FEWEST = 20
_TIMES_CROWDED = 3
"""How often what is found is looked at for copies; each time but the first costs a search."""


@dataclass(frozen=True, slots=True)
class Copies:
    """How many memories a result stands for, and when the first and the last of them were."""

    count: int
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True)
class CopyKeys:
    """What tells copies among what was found: a number for each, which they share, (n,).

    `best` are the places of the first of each number, in order; `repeated` the numbers that come
    more than once.
    """

    numbers: Ints
    best: Ints
    repeated: Ints

    @classmethod
    def of(cls, numbers: Ints) -> CopyKeys:
        """Return the keys that these numbers are."""
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        first = firsts(ordered)
        return cls(numbers, np.sort(order[first]), ordered[~first])


class Crowding:
    """The near-copies among what is found, and the room that they leave for the rest.

    Args:
        index: the tenant's.
        every_copy: copies are results like any other.

    Attributes:
        keys: of what was found last, with the numbers that were repeated at any time; None where
            every copy is wanted.
    """

    def __init__(self, index: CorpusIndex, *, every_copy: bool) -> None:
        self._index = index
        self._every_copy = every_copy
        self._repeated: list[Ints] = []
        self.keys: CopyKeys | None = None

    def rest_of(self, selection: Selection, found: Ranked) -> Selection | None:
        """Return what is to be searched next, a selection without the copies of what was found in
        it; None where they leave room for the rest."""
        if self._every_copy:
            return None
        keys = CopyKeys.of(keys_of(self._index.columns, found.rows))
        self._repeated.append(keys.repeated)
        self.keys = replace(keys, repeated=np.concatenate(self._repeated))
        if not found.capped or len(self._repeated) == _TIMES_CROWDED:
            return None
        return uncrowded(self._index, found.rows, keys, selection)


def keys_of(columns: CorpusColumns, rows: Rows) -> Ints:
    """Return a number for each row (n,) that copies share.

    Copies are of what happened: events with the same text; failures of the same shape; and, within
    a session, other events of the same shape. What has no place in a session, such as a lesson or
    a session's summary, is one of its kind.
    """
    key, shape = columns.fingerprint[rows], columns.shape[rows]
    if shape.any():
        session = columns.session[rows].astype(np.int64)
        formed = (shape + np.where(columns.failed[rows], -1, session) * _MIX) * _MIX + 1
        key = np.where(shape == 0, key, formed)
    keys: Ints = key * _MIX + columns.kind[rows]
    return np.where(columns.position[rows] > 0, keys, (rows + 1) * _MIX)


def uncrowded(
    index: CorpusIndex, rows: Rows, keys: CopyKeys, selection: Selection
) -> Selection | None:
    """Return the selection without the copies of what is found, each time but the best.

    None where they are few: then there is room for the rest.

    Args:
        index: the tenant's.
        rows: what was found in the selection, the best first, (n,).
        keys: their keys.
        selection: what was searched.
    """
    best = keys.best
    if len(rows) < _FEWEST or len(best) > _CROWDED * len(rows):
        return None
    mask = selection.mask.copy()
    repeated = best[np.isin(keys.numbers[best], keys.repeated)]
    for place in repeated.tolist():
        mask[_copies(index, rows[place], selection)] = False
    mask[rows[best]] = True
    return Selection(mask, int(np.count_nonzero(mask)), everything=False)


def copies_of(index: CorpusIndex, row: int, selection: Selection) -> Copies:
    """Return how many copies of a row are selected, itself among them."""
    rows = _copies(index, row, selection)
    times = index.columns.timestamp_us[rows]
    return Copies(len(rows), int(times.min()), int(times.max()))


def _copies(index: CorpusIndex, row: int, selection: Selection) -> Rows:
    columns = index.columns
    rows = index.alike(row)
    rows = rows[rows < len(selection.mask)]
    rows = rows[selection.mask[rows]]
    same: Rows = rows[keys_of(columns, rows) == keys_of(columns, np.array([row], np.int64))]
    return same
