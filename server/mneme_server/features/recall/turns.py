"""What a session holds just before and after a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.document import Document, Memory
from mneme_server.engine.corpus.ports import CorpusColumns, Selection

_NOBODY = -1
_SKIPPED = 100
"""Documents of other kinds, users or projects that are passed over on the way to a turn."""


@dataclass(slots=True)
class Turns:
    """The turns around rows, by row: ids of documents before it and after it, each in order."""

    before: dict[int, list[int]] = field(default_factory=dict)
    after: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around_rows(
        cls,
        columns: CorpusColumns,
        rows: Sequence[int],
        count: int,
        allowed: Selection,
        *,
        whole: bool = True,
    ) -> Turns:
        """Return up to `count` on each side of these rows.

        They are of the row's own kind, and `allowed`. What has no session has none. Where the
        columns are not of the `whole` tenant, only what was recorded without a gap is known to
        follow.
        """
        turns = cls()
        for row in rows:
            before, after = (
                _walk(columns, step, row, count, allowed, whole=whole)
                for step in (columns.previous, columns.next)
            )
            turns.before[row], turns.after[row] = before[::-1], after
        return turns

    @property
    def doc_ids(self) -> list[int]:
        """The documents, each once."""
        sides = (*self.before.values(), *self.after.values())
        return list(dict.fromkeys(doc_id for side in sides for doc_id in side))

    def around(
        self, row: int, memories: Mapping[int, Memory]
    ) -> tuple[Sequence[Document], Sequence[Document]]:
        """Return what is before and after a row; what was removed meanwhile is left out."""
        before, after = (
            [memories[doc_id].document for doc_id in side.get(row, ()) if doc_id in memories]
            for side in (self.before, self.after)
        )
        return before, after


def _walk(
    columns: CorpusColumns,
    step: NDArray[np.int32],
    row: int,
    count: int,
    allowed: Selection,
    *,
    whole: bool,
) -> list[int]:
    """Return the ids of the documents that follow one another from a row on."""
    found: list[int] = []
    kind, session, at = columns.kind[row], columns.session[row], row
    for _ in range(count + _SKIPPED):
        last, at = at, int(step[at])
        # What came after the search is left out, with what is behind it.
        if at == _NOBODY or at >= len(allowed.mask) or columns.session[at] != session:
            break
        if not whole and abs(int(columns.position[at]) - int(columns.position[last])) > 1:
            break
        if columns.kind[at] == kind and allowed.mask[at]:
            found.append(int(columns.doc_id[at]))
            if len(found) == count:
                break
    return found
