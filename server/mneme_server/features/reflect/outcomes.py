"""Outcomes of sessions that have something in common, compared with those of the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect.circumstances import (
    Circumstances,
    label_key,
    says_the_outcome,
)
from mneme_server.features.reflect.history import NONE, Ints, SessionColumns
from mneme_server.features.reflect.model import OutcomeBy, OutcomeGroup, OutcomeSplit
from mneme_server.features.reflect.wording import plural
from mneme_server.statistics.association import Associations, Likeness, Traits
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import Floats, benjamini_hochberg, wilson

MIN_GROUP = 3
"""Sessions with a known outcome that a group needs to be shown and tested."""
_DRAWN_BY = 4
"""As many are added to a share in Agresti and Coull's interval (1998)."""
_DRAWS = 1_999
_MOST_DRAWN = 2_000_000
_SEED = 20_261
_ALL = Interval(0.0, 1.0)
_NOTHING = OutcomeSplit(0, 0, _ALL, 0, 0, _ALL, Interval(-1.0, 1.0), math.nan)


def splits(known: Circumstances, having: Sequence[Ints]) -> list[OutcomeSplit]:
    """Compare how the sessions of each of some sets ended with how the others did that are alike
    otherwise: as long, of the same agents, with the same labels, at the same time.

    `q_value` holds the p-value, NaN where there are too few to be compared.
    """
    counted = np.flatnonzero(known.sessions.outcome != Outcome.UNKNOWN)
    place = np.full(len(known.sessions), NONE)
    place[counted] = np.arange(len(counted))
    units = [place[some][place[some] != NONE] for some in having]
    sizes = [len(some) for some in units]
    traits = Traits(
        np.concatenate([np.empty(0, np.int64), *units]),
        np.repeat(np.arange(len(units)), sizes),
        len(units),
    )
    return _splits(known, counted, traits, known.design(counted))


def adjusted_splits(found: list[OutcomeSplit], kinds: int = 1) -> list[OutcomeSplit]:
    """Return the comparisons with q-values, adjusted for all of them, in place of p-values, and for
    being one of so many kinds of tests."""
    p_values = np.array([s.q_value for s in found if s.tested], float)
    q_values = iter(np.minimum(1.0, kinds * benjamini_hochberg(p_values)))
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


def _splits(
    known: Circumstances, counted: Ints, traits: Traits, design: Floats, *, by_task: bool = True
) -> list[OutcomeSplit]:
    """Compare the counted sessions (k,) with each trait with the others; `by_task` tells that those
    of a task are alike."""
    won = (known.sessions.outcome[counted] == Outcome.SUCCESS).astype(np.float64)
    if not len(counted):
        return [_NOTHING] * traits.kinds
    likenesses = (
        known.likenesses(counted, MIN_GROUP)
        if by_task
        else [Likeness(np.arange(len(counted)), MIN_GROUP)]
    )
    found = Associations(traits, design, likenesses).of(won)
    n, x = found.count, found.hits
    m, y = len(counted) - n, won.sum() - x
    low, high = wilson(x, n.astype(float))
    other_low, other_high = wilson(y, m.astype(float))
    reach = found.reach()
    by_code = np.argsort(traits.code, kind="stable")
    of_code = np.split(counted[traits.unit[by_code]], np.cumsum(n)[:-1])
    return [
        OutcomeSplit(
            sessions=int(n[i]),
            successes=round(float(x[i])),
            interval=Interval(float(low[i]), float(high[i])),
            other_sessions=int(m[i]),
            other_successes=round(float(y[i])),
            other_interval=Interval(float(other_low[i]), float(other_high[i])),
            difference=Interval(
                max(-1.0, float(found.difference[i] - reach[i])),
                min(1.0, float(found.difference[i] + reach[i])),
            ),
            q_value=float(found.p_value[i]) if found.tested[i] else math.nan,
            expected=float(found.base[i]),
            tasks=known.tasks_if_repeated(of_code[i]),
        )
        for i in range(traits.kinds)
    ]


class Dimension(NamedTuple):
    """Something that tells sessions apart. `groups` are all of those that are large enough; of
    their splits, and here, `q_value` holds the p-value (NaN: not tested)."""

    name: str
    groups: list[OutcomeGroup]
    p_value: float
    excess: float


def outcomes_by(known: Circumstances, limit: int) -> tuple[OutcomeBy, ...]:
    """Compare the outcomes by task, label, project, agent and user: of each the groups that differ
    most from the others, at most `limit`. The q-values are adjusted for all of these tests."""
    found = _dimensions(known)
    p_values = np.array([p for dimension in found for p in _tests(dimension)], float)
    left = iter(benjamini_hochberg(p_values).tolist())
    results = []
    for name, groups, p_value, excess in found:
        q_value = float("nan") if np.isnan(p_value) else next(left)
        judged = [
            replace(g, split=replace(g.split, q_value=next(left))) if g.split.tested else g
            for g in groups
        ]
        judged.sort(
            key=lambda g: (
                -g.split.strength, g.split.q_value if g.split.tested else 1.0, g.split.rate, g.key,
            )
        )  # fmt: skip
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


def _dimensions(known: Circumstances) -> list[Dimension]:
    sessions = known.sessions
    traits = sessions.traits
    every = np.arange(len(sessions))
    found = [
        _dimension(name, known, every, [trait[i] for trait in traits], apart=True)
        for name, i in (("task", 0), ("project", 1), ("agent", 2), ("user", 3))
    ]
    labelled, labels = _labels(sessions)
    found.insert(1, _dimension("tag", known, labelled, labels, apart=False))
    return [dimension for dimension in found if dimension.groups]


def _labels(sessions: SessionColumns) -> tuple[Ints, list[str]]:
    places, labels = [], []
    for place, tags in enumerate(sessions.tags):
        for tag in tags:
            if not says_the_outcome(tag) and label_key(tag) != "task":
                places.append(place)
                labels.append(tag)
    return np.array(places, np.int64), labels


def _dimension(
    name: str, known: Circumstances, places: Ints, keys: Sequence[str], *, apart: bool
) -> Dimension:
    """Compare the sessions (k,) with each key (k,) with all others; `apart`: no session has two
    keys, so that one test can tell whether the outcome differs by them at all."""
    sessions = known.sessions
    counted = np.flatnonzero(sessions.outcome != Outcome.UNKNOWN)
    number = np.full(len(sessions), NONE)
    number[counted] = np.arange(len(counted))
    won = sessions.outcome == Outcome.SUCCESS
    named = np.array([bool(key) for key in keys], bool) & (number[places] != NONE)
    texts, codes = np.unique(np.array(keys, object)[named], return_inverse=True)
    of = places[named]
    n = np.bincount(codes, minlength=len(texts))
    x = np.bincount(codes, won[of], minlength=len(texts)).astype(np.int64)
    large = np.flatnonzero((n >= MIN_GROUP) & (len(counted) - n >= MIN_GROUP))
    dense = np.full(len(texts), NONE)
    dense[large] = np.arange(len(large))
    mine = dense[codes] != NONE
    pairs = np.unique(np.stack([dense[codes[mine]], number[of[mine]]]), axis=1)
    # What a task's name says of its sessions is all that is known of them.
    is_task = name == "task"
    design = known.design(counted, only_when=True) if name == "tag" else np.ones((len(counted), 1))
    compared = _splits(
        known, counted, Traits(pairs[1], pairs[0], len(large)), design, by_task=not is_task
    )
    p_value, excess = math.nan, 0.0
    if apart and len(large) > 1 and (is_task or not known.repeats):
        p_value, excess = _spread(n[large], x[large])
    elif apart and len(large) > 1:
        p_value, excess = _strongest_of(compared)
    by_code = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[by_code], large)
    groups = [
        OutcomeGroup(
            key=str(texts[code]),
            split=one,
            session_ids=sessions.newest(of[by_code[start : start + one.sessions]]),
        )
        for code, start, one in zip(large, starts, compared, strict=True)
    ]
    return Dimension(name, groups, p_value, excess)


def _strongest_of(compared: Sequence[OutcomeSplit]) -> tuple[float, float]:
    """Return the p-value of any of the groups differing from the others, for as many tests, and the
    strength of that one: where tasks repeat, sessions cannot be shuffled."""
    tested = [one for one in compared if one.tested]
    if not tested:
        return math.nan, 0.0
    best = min(tested, key=lambda one: one.q_value)
    return min(1.0, best.q_value * len(tested)), best.strength


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
    yield from (group.split.q_value for group in dimension.groups if group.split.tested)


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
