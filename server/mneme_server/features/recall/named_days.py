"""The days that a query names: whether they are meant, and what is of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US, today
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Hits, Rows, Selection
from mneme_server.features.recall.dates import EPOCH_ORDINAL
from mneme_server.features.recall.reading import Reading, read

_DAYS_AROUND_A_DATE = 3
_MOST_DAYS = 8
"""The first days that a query names are searched once more; the lines of a log name hundreds."""


def understood(index: CorpusIndex, query: str, selection: Selection) -> Reading:
    """Read a query as of today.

    "Last week" counts as a date only if something selected is of that week: in a question about a
    talk of years ago it means another.
    """
    reading = read(query, today())
    days = _days(reading) if reading.relative else []
    some = any(_then(index, selection, day, around=0).any() for day in days)
    return read(query) if days and not some else reading


def by_named_day(
    index: CorpusIndex,
    reading: Reading,
    selection: Selection,
    search: Callable[[Selection, int], Hits],
    count: int,
) -> Iterator[Hits]:
    """Search the days that the query names once more, so that what happened then is looked at: up
    to `count` by its words, and of a query that asks for days alone, what is nearest in time."""
    for day in _days(reading)[:_MOST_DAYS]:
        mask = _then(index, selection, day, around=_DAYS_AROUND_A_DATE)
        some = int(np.count_nonzero(mask))
        if some:
            yield search(Selection(mask, some, everything=False), count)
        if some and reading.days_alone:
            noon_us = (day - EPOCH_ORDINAL) * DAY_US + DAY_US // 2
            yield _nearest(index, np.flatnonzero(mask), noon_us, count)


def _days(reading: Reading) -> list[int]:
    """Return the ordinals of the days that a query names in full."""
    return [day for named in reading.dates if (day := named.ordinal()) is not None]


def _then(index: CorpusIndex, selection: Selection, day: int, *, around: int) -> NDArray[np.bool_]:
    """Return which of the selected memories are of a day, or of `around` days beside it."""
    start_us = (day - EPOCH_ORDINAL) * DAY_US
    then = DocumentFilter(
        start_us=start_us - around * DAY_US,
        end_us=start_us + (around + 1) * DAY_US,
        include_archived=True,
    )
    mask: NDArray[np.bool_] = selection.mask & index.select(then).mask[: len(selection.mask)]
    return mask


def _nearest(index: CorpusIndex, rows: Rows, time_us: int, count: int) -> Hits:
    """Return the rows that are nearest to a time, whatever their words."""
    apart_us = np.abs(index.columns.timestamp_us[rows] - time_us)
    nearest = rows[np.argsort(apart_us, kind="stable")[:count]]
    return Hits(nearest, np.zeros(len(nearest), np.float32))
