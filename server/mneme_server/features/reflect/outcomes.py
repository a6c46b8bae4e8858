"""Outcomes of sessions that have something in common, compared with those of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect.history import History, Ints, SessionColumns
from mneme_server.features.reflect.model import OutcomeBy, OutcomeGroup, OutcomeSplit
from mneme_server.features.reflect.wording import plural
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import (
    benjamini_hochberg,
    fisher_exact,
    rate_difference,
    wilson,
)

MIN_GROUP = 3
"""Sessions with a known outcome that a group needs to be shown and tested."""
_SAYS_THE_OUTCOME = frozenset({"reward", "success", "outcome", "status", "result", "score"})
"""Labels such as "reward:1" say how a session ended; that it ended so is no finding."""
_DRAWN_BY = 4
"""As many are added to a share in Agresti and Coull's interval (1998)."""
_DRAWS = 1_999
_MOST_DRAWN = 2_000_000
_SEED = 20_261


def split(sessions: SessionColumns, chosen: NDArray[np.bool_]) -> OutcomeSplit:
    """Compare the outcome of the chosen sessions (s,) with that of the others.

    `q_value` holds the p-value of Fisher's exact test, NaN where either side has fewer than
    `MIN_GROUP` sessions with a known outcome.
    """
    known = sessions.outcome != Outcome.UNKNOWN
    won = sessions.outcome == Outcome.SUCCESS
    n, x = int((chosen & known).sum()), int((chosen & won).sum())
    (found,) = _splits(np.array([n]), np.array([x]), int(known.sum()), int(won.sum()))
    return found


def adjusted_splits(found: list[OutcomeSplit]) -> list[OutcomeSplit]:
    """Return the comparisons with q-values, adjusted for all of them, in place of p-values."""
    q_values = iter(benjamini_hochberg(np.array([s.q_value for s in found if s.tested], float)))
    return [replace(s, q_value=float(next(q_values))) if s.tested else s for s in found]


def untold(sessions: SessionColumns) -> list[str]:
    """Return the note that some sessions do not count where outcomes are compared; none where all
    count, or none does."""
    unknown = int((sessions.outcome == Outcome.UNKNOWN).sum())
    if not 0 < unknown < len(sessions):
        return []
    return [
        f"{plural(unknown, 'session')} without a known outcome"
        f" {'does' if unknown == 1 else 'do'} not count for how sessions ended"
    ]


def _splits(n: Ints, x: Ints, total: int, won: int) -> list[OutcomeSplit]:
    """Compare groups of n (g,) sessions, x (g,) of which succeeded, with the rest of `total`."""
    m, y = total - n, won - x
    every = np.ones(len(n), np.int64)
    p_values = np.where(
        np.minimum(n, m) >= MIN_GROUP, fisher_exact(x, n, won * every, total * every), np.nan
    )
    mine, others = (x.astype(float), n.astype(float)), (y.astype(float), m.astype(float))
    low, high = wilson(*mine)
    other_low, other_high = wilson(*others)
    below, above = rate_difference(*mine, *others)
    return [
        OutcomeSplit(
            sessions=int(n[i]),
            successes=int(x[i]),
            interval=Interval(float(low[i]), float(high[i])),
            other_sessions=int(m[i]),
            other_successes=int(y[i]),
            other_interval=Interval(float(other_low[i]), float(other_high[i])),
            difference=Interval(float(below[i]), float(above[i])),
            q_value=float(p_values[i]),
        )
        for i in range(len(n))
    ]


class Dimension(NamedTuple):
    """Something that tells sessions apart. `groups` are all of those that are large enough; of
    their splits, and here, `q_value` holds the p-value (NaN: not tested)."""

    name: str
    groups: list[OutcomeGroup]
    p_value: float
    excess: float


def outcomes_by(history: History, limit: int) -> tuple[OutcomeBy, ...]:
    """Compare the outcomes by task, label, project, agent and user: of each the groups that differ
    most from the others, at most `limit`. The q-values are adjusted for all of these tests."""
    found = _dimensions(history)
    p_values = np.array([p for dimension in found for p in _tests(dimension)], float)
    left = iter(benjamini_hochberg(p_values).tolist())
    results = []
    for name, groups, p_value, excess in found:
        q_value = float("nan") if np.isnan(p_value) else next(left)
        judged = [replace(g, split=replace(g.split, q_value=next(left))) for g in groups]
        judged.sort(key=lambda g: (-g.split.strength, g.split.q_value, g.split.rate, g.key))
        cautious = _cautious_rate(judged)
        results.append(
            OutcomeBy(
                dimension=name,
                groups=tuple(judged[:limit]),
                group_count=len(judged),
                q_value=q_value,
                excess=excess,
                best=max(judged, key=cautious),
                worst=min(judged, key=cautious),
            )
        )
    return tuple(results)


def _dimensions(history: History) -> list[Dimension]:
    sessions = history.sessions
    traits = sessions.traits
    every = np.arange(len(sessions))
    found = [
        _dimension(name, sessions, every, [trait[i] for trait in traits], apart=True)
        for name, i in (("task", 0), ("project", 1), ("agent", 2), ("user", 3))
    ]
    labelled, labels = _labels(sessions)
    found.insert(1, _dimension("tag", sessions, labelled, labels, apart=False))
    return [dimension for dimension in found if dimension.groups]


def _labels(sessions: SessionColumns) -> tuple[Ints, list[str]]:
    places, labels = [], []
    for place, tags in enumerate(sessions.tags):
        for tag in tags:
            key = tag.replace("=", ":").partition(":")[0].strip().lower()
            if key not in _SAYS_THE_OUTCOME and key != "task":
                places.append(place)
                labels.append(tag)
    return np.array(places, np.int64), labels


def _dimension(
    name: str, sessions: SessionColumns, places: Ints, keys: Sequence[str], *, apart: bool
) -> Dimension:
    """Compare the sessions (k,) with each key (k,) with all others; `apart`: no session has two
    keys, so that one test can tell whether the outcome differs by them at all."""
    known = sessions.outcome != Outcome.UNKNOWN
    won = sessions.outcome == Outcome.SUCCESS
    named = np.array([bool(key) for key in keys], bool) & known[places]
    texts, codes = np.unique(np.array(keys, object)[named], return_inverse=True)
    of = places[named]
    n = np.bincount(codes, minlength=len(texts))
    x = np.bincount(codes, won[of], minlength=len(texts)).astype(np.int64)
    total, wins = int(known.sum()), int(won.sum())
    large = np.flatnonzero((n >= MIN_GROUP) & (total - n >= MIN_GROUP))
    testable = apart and len(large) > 1
    p_value, excess = _spread(n[large], x[large]) if testable else (float("nan"), 0.0)
    by_code = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[by_code], large)
    groups = [
        OutcomeGroup(
            key=str(texts[code]),
            split=compared,
            session_ids=sessions.newest(of[by_code[start : start + compared.sessions]]),
        )
        for code, start, compared in zip(
            large, starts, _splits(n[large], x[large], total, wins), strict=True
        )
    ]
    return Dimension(name, groups, p_value, excess)


def _spread(n: Ints, x: Ints) -> tuple[float, float]:
    """Return the p-value of the groups' (g,) shares being as far apart as they are by chance, and
    how many more sessions than by chance (its 97.5 % point) lie off the common share.

    The statistic is that of the chi-squared test, its distribution drawn with the groups' sizes and
    the successes in all given (fixed seed): groups of three or four are too small for the table.
    """
    total, wins = int(n.sum()), int(x.sum())
    if wins in (0, total):
        return 1.0, 0.0
    draws = max(min(_DRAWS, _MOST_DRAWN // len(n)), 199)
    rng = np.random.default_rng(_SEED)
    drawn = rng.multivariate_hypergeometric(n, wins, size=draws, method="marginals")
    seen = float((x**2 / n).sum())
    as_far = (drawn.astype(float) ** 2 / n).sum(axis=1) >= seen * (1 - 1e-12)
    expected = n * (wins / total)
    off = float(
        np.abs(x - expected).sum() - np.quantile(np.abs(drawn - expected).sum(axis=1), 0.975)
    )
    return float((1 + as_far.sum()) / (1 + draws)), off


def _tests(dimension: Dimension) -> Iterator[float]:
    if not np.isnan(dimension.p_value):
        yield dimension.p_value
    yield from (group.split.q_value for group in dimension.groups)


def _cautious_rate(groups: Sequence[OutcomeGroup]) -> Callable[[OutcomeGroup], float]:
    """Return what tells how good a group is: its share, drawn to that of all by a few sessions.

    It stays on its side of that share. Ends of intervals would not: those of a large group in the
    middle are both better and worse than those of small ones beside it.
    """
    total = sum(group.split.sessions for group in groups)
    common = sum(group.split.successes for group in groups) / total

    def rate(group: OutcomeGroup) -> float:
        split = group.split
        return (split.successes + _DRAWN_BY * common) / (split.sessions + _DRAWN_BY)

    return rate
