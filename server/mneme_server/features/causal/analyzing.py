"""What an experiment's observations say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.causal.experiment_model import Arm, Result
from mneme_server.statistics.inference import Floats, welch
from mneme_server.statistics.looking import difference_at_any_look

_FEW = 30
ONE_LOOK = (
    "The p-value and its interval hold for one look, at an end that was decided before. Whoever"
    " looks more often, or stops when it looks good, reads the sequential interval."
)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Observations by subject, each with the mean of its outcomes, of those in one arm.

    Args:
        values: the means, shape (n,).
        treated: whether the subject got the cause, shape (n,).
        assigned: whether chance said so, shape (n,).
        repeated: subjects that were observed more than once.
        in_both: subjects that were observed in both arms, which are left out: they belong to
            neither, and to count in both would take them for two.
    """

    values: Floats
    treated: NDArray[np.bool_]
    assigned: NDArray[np.bool_]
    repeated: int
    in_both: int = 0


def analyzed(outcomes: Outcomes) -> Result:
    """Return what the observations say."""
    arms = outcomes.values[outcomes.treated], outcomes.values[~outcomes.treated]
    treatment, control = map(_arm, arms)
    not_assigned = int((~outcomes.assigned).sum())
    notes = _notes(outcomes, not_assigned, arms)
    uplift = None
    if treatment.mean is not None and control.mean is not None:
        uplift = treatment.mean - control.mean
    varied = len(outcomes.values) > 0 and np.ptp(outcomes.values) > 0
    if min(treatment.count, control.count) < 2 or not varied:
        return Result(treatment, control, uplift, not_assigned=not_assigned, notes=tuple(notes))
    test = welch(*arms, spread=float(np.ptp(outcomes.values)))
    ever = difference_at_any_look(*arms)
    return Result(
        treatment=treatment,
        control=control,
        uplift=uplift,
        p_value=test.p_value,
        low=test.interval.low,
        high=test.interval.high,
        sequential_low=None if ever is None else ever.low,
        sequential_high=None if ever is None else ever.high,
        not_assigned=not_assigned,
        notes=(*notes, ONE_LOOK),
    )


def _arm(values: Floats) -> Arm:
    return Arm(
        count=len(values),
        mean=float(values.mean()) if len(values) else None,
        deviation=float(values.std(ddof=1)) if len(values) > 1 else None,
    )


def _notes(outcomes: Outcomes, not_assigned: int, arms: Sequence[Floats]) -> list[str]:
    notes = []
    fewest = min(map(len, arms))
    if fewest < 2:
        notes.append("An arm has fewer than two subjects: nothing can be tested yet.")
    elif np.ptp(outcomes.values) == 0:
        notes.append("All outcomes are the same: nothing can be tested yet.")
    elif fewest < _FEW:
        notes.append(
            f"An arm has only {fewest} subjects: the intervals take for granted that means of so"
            " few are about normal."
        )
    if not_assigned:
        notes.append(
            f"Of {not_assigned} subjects a caller said the arm, not chance: what they differ in"
            " otherwise is in the uplift."
        )
    if outcomes.in_both == 1:
        notes.append("1 subject was observed in both arms: it counts in neither.")
    elif outcomes.in_both:
        notes.append(
            f"{outcomes.in_both} subjects were observed in both arms: they count in neither."
        )
    if outcomes.repeated:
        notes.append(
            f"{outcomes.repeated} subjects were observed more than once: each counts once, with its"
            " mean. The sequential interval takes for granted that means do not change with that."
        )
    return notes
