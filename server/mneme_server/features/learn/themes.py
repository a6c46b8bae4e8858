"""Grouping sayings by meaning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from mneme_server.common import deadline
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.features.learn.reflection_model import Saying, Theme

SAME_MEANING = 0.6
"""Cosine from which two sayings mean the same: under MiniLM, rewordings of one point lie above it,
different points on the same subject below."""
_BLOCK = 256
"""Wordings that are compared with all founders so far in one go: one by one, a vector's worth of
work would wait for megabytes of them to be read."""
_MAX_IDS = 20
_MAX_VARIANTS = 5


def themes_of(sayings: Sequence[Saying], vectors: Matrix, limit: int) -> list[Theme]:
    """Return the largest groups of sayings (n) that mean the same, by their vectors (n, d).

    The most frequent wordings found groups, and each later one joins the nearest founder that is
    near enough, so that the result does not depend on the order of the sayings.
    """
    if not sayings:
        return []
    wording: dict[str, list[int]] = defaultdict(list)
    for row, saying in enumerate(sayings):
        wording[" ".join(composed(saying.text).lower().split())].append(row)
    keys = sorted(wording, key=lambda key: (-len(wording[key]), key))
    distinct = vectors[[wording[key][0] for key in keys]]
    groups: dict[int, list[int]] = {}
    for place, founder in enumerate(_founders(distinct)):
        groups.setdefault(founder, []).extend(wording[keys[place]])
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_theme([sayings[row] for row in rows]) for _, rows in ranked[:limit]]


def _founders(vectors: Matrix) -> list[int]:
    """Return for each row the row that founded its group."""
    founders: list[int] = []
    result: list[int] = []
    found = np.empty_like(vectors)
    for start in range(0, len(vectors), _BLOCK):
        deadline.check()
        block, known = vectors[start : start + _BLOCK], len(founders)
        near = np.empty((len(block), known + len(block)), vectors.dtype)
        near[:, :known] = block @ found[:known].T
        for place, vector in enumerate(block):
            count = len(founders)
            near[place, known:count] = found[known:count] @ vector
            best = int(near[place, :count].argmax()) if count else -1
            if best >= 0 and near[place, best] >= SAME_MEANING:
                result.append(founders[best])
            else:
                found[count] = vector
                founders.append(start + place)
                result.append(start + place)
    return result


def _theme(group: Sequence[Saying]) -> Theme:
    newest = sorted(group, key=lambda saying: (-saying.created_us, saying.reflection_id))
    wordings = Counter(saying.text for saying in newest)
    ordered = [text for text, _ in wordings.most_common()]
    return Theme(
        text=ordered[0],
        count=len(group),
        reflection_ids=list(dict.fromkeys(s.reflection_id for s in newest))[:_MAX_IDS],
        variants=ordered[1 : 1 + _MAX_VARIANTS],
    )
