"""Whether a change over time is one of the work, or of who did which work: other agents, models,
projects or tasks than before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from mneme_server.features.events.history import Column
from mneme_server.features.reflect.circumstances import Circumstances, groups_of
from mneme_server.features.reflect.history import Ints
from mneme_server.features.reflect.model import MixEffect, MixVerdict
from mneme_server.features.reflect.wording import percent
from mneme_server.statistics.distributions import Z95, Interval
from mneme_server.statistics.inference import Floats, sum_by

_LIKE_BEFORE = 0.1
"""Up to this share of a change, what the mix makes of it is not worth telling."""
_LEFT = 0.2
"""Of when sessions were, the share that who ran must leave open: else the two are one."""
_SURELY = 3.0
"""Standard errors that a change of the same agents is off 0, where the mix makes some of it, too:
what was found by its size is smaller than it looks."""
_NAMED = 3


def said(mix: MixEffect, amount: Callable[[float], str]) -> str:
    """Return what is said of a change that is one of the mix, or may be."""
    ran = f"other {mix.dimension} ran ({mix.told})"
    if mix.verdict is MixVerdict.EITHER:
        return f"{ran}, and whether these or the time made it cannot be told apart"
    low, high = (f"{'-' if end < 0 else '+'}{amount(abs(end))}" for end in mix.interval)
    return f"{ran}; of the same ones it changed by between {low} and {high}"


class Mix:
    """Who did which work.

    Args:
        known: what is known of the sessions.
    """

    def __init__(self, known: Circumstances) -> None:
        traits = known.sessions.traits
        keys: list[tuple[str, Sequence[Hashable]]] = [
            ("agents", [trait.agent for trait in traits]),
            ("models", _models(known)),
            ("projects", [trait.project for trait in traits]),
        ]
        if known.repeats:
            keys.append(("tasks", known.task.tolist()))
        self._names = {name: list(dict.fromkeys(values)) for name, values in keys}
        self._codes = {name: groups_of(values) for name, values in keys}

    def effect(self, values: Floats, when: Floats) -> MixEffect:
        """Tell whether values (s,), NaN where they are not known, change with `when` (s,), a time
        or 0 and 1, of the same agents, models, projects and tasks."""
        rows = np.flatnonzero(~np.isnan(values))
        came, time = values[rows], when[rows]
        codes = {name: groups_of(all_[rows].tolist()) for name, all_ in self._codes.items()}
        codes = {name: one for name, one in codes.items() if one.max(initial=0) > 0}
        raw, _ = _slope(came, time, [])
        if not codes or raw is None or raw == 0:
            return MixEffect(MixVerdict.WORK)
        held, error = _slope(came, time, list(codes.values()))
        if held is not None and abs(raw - held) <= _LIKE_BEFORE * abs(raw):
            return MixEffect(MixVerdict.WORK)
        span = float(np.ptp(time))
        dimension = _of_most_weight(came, time, codes, raw)
        told = self._told(dimension, rows, time)
        if held is None:
            return MixEffect(MixVerdict.EITHER, dimension, told)
        low, high = held - Z95 * error, held + Z95 * error
        change, interval = held * span, Interval(low * span, high * span)
        if held * raw > 0 and abs(held) > _SURELY * error:
            return MixEffect(MixVerdict.WORK, dimension, told, change, interval)
        excludes_half = high < raw / 2 if raw > 0 else low > raw / 2
        verdict = MixVerdict.MIX if excludes_half else MixVerdict.EITHER
        return MixEffect(verdict, dimension, told, change, interval)

    def _told(self, dimension: str, rows: Ints, time: Floats) -> str:
        """Return which of a dimension ran more, and which less: "b: 0 % before, 80 % since"."""
        codes, names = self._codes[dimension][rows], self._names[dimension]
        late = time > (time.min() + time.max()) / 2
        before, since = (
            np.bincount(codes[side], minlength=len(names)) / max(int(side.sum()), 1)
            for side in (~late, late)
        )
        moved = np.argsort(-np.abs(since - before), kind="stable")[:_NAMED]
        return ", ".join(
            f"{names[i] if isinstance(names[i], str) and names[i] else 'others'}:"
            f" {percent(float(before[i]))}, then {percent(float(since[i]))}"
            for i in moved.tolist()
            if since[i] != before[i]
        )


def _models(known: Circumstances) -> list[str]:
    """Return the model of most events of each session; empty without any."""
    history = known.history
    if Column.MODEL not in history.columns:
        return [""] * len(known.sessions)
    names = np.array([bool(name) for name in history.models], bool)
    rows = np.flatnonzero(names[history[Column.MODEL]])
    span = max(len(history.models), 1)
    pairs, counts = np.unique(
        history.session[rows].astype(np.int64) * span + history[Column.MODEL][rows],
        return_counts=True,
    )
    found = [""] * len(known.sessions)
    for i in np.argsort(counts, kind="stable").tolist():
        found[int(pairs[i] // span)] = history.models[int(pairs[i] % span)]
    return found


def _of_most_weight(came: Floats, time: Floats, codes: dict[str, Ints], raw: float) -> str:
    """Return the dimension that alone leaves least of the change, the first of those that tell it
    from the time not at all."""

    def left(name: str) -> float:
        held, _ = _slope(came, time, [codes[name]])
        return 0.0 if held is None else abs(held / raw)

    return min(codes, key=left)


def _slope(came: Floats, time: Floats, codes: list[Ints]) -> tuple[float | None, float]:
    """Return how values (k,) change with time (k,) beside additive effects of each level, and the
    standard error, which may differ between them; None where these say when it was."""
    moment, value = _within(time, codes), _within(came, codes)
    weight = float(moment @ moment)
    if weight <= max(_LEFT * float(((time - time.mean()) ** 2).sum()), 1e-12):
        return None, float("nan")
    slope = float(moment @ value) / weight
    left = value - slope * moment
    # The larger of what holds whatever varies how, and of what few tell better.
    errors = ((moment * left) ** 2).sum(), weight * float((left**2).mean())
    return slope, float(np.sqrt(max(errors))) / weight


def _within(values: Floats, codes: list[Ints]) -> Floats:
    """Return values (k,) less additive effects of the levels, found in turns."""
    found: Floats = values - values.mean()
    for _ in range(1 if len(codes) < 2 else 50):
        moved = 0.0
        for code in codes:
            size = np.maximum(np.bincount(code), 1)
            means = (sum_by(code, found, len(size)) / size)[code]
            found, moved = found - means, max(moved, float(np.abs(means).max(initial=0.0)))
        if moved < 1e-9:
            break
    return found
