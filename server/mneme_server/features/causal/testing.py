"""Which of the effects that were estimated are discoveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.causal.discovery_model import (
    OUTCOMES,
    Change,
    Correction,
    Finding,
    Question,
    Refusal,
    Refused,
)
from mneme_server.features.causal.estimating import Estimate
from mneme_server.features.causal.model import SUCCESS
from mneme_server.statistics.inference import benjamini_hochberg, benjamini_yekutieli

Rows = NDArray[np.int64]


def testable(
    causes: Mapping[str, Rows], count: int, question: Question
) -> tuple[list[str], list[Refused]]:
    """Return the causes that enough of `count` episodes had and enough had not, and those of which
    either were too few."""
    chosen: list[str] = []
    refused: list[Refused] = []
    for cause, rows in causes.items():
        having, lacking = len(rows), count - len(rows)
        if having < question.min_attempts:
            continue
        if min(having, lacking) < question.min_sample_size:
            refused.append(Refused(cause, Refusal.TOO_FEW, having, lacking))
        else:
            chosen.append(cause)
    return chosen, refused


def tested(
    causes: Sequence[str], estimated: Sequence[Sequence[Any]], question: Question, success: float
) -> tuple[list[Finding], list[Refused]]:
    """Return the effects that were estimated, the surest first, and what was not estimated.

    The q-values are adjusted for all effects together. What is sure and successful enough has the
    change CREATED for now.

    Args:
        causes: the causes.
        estimated: of each, what `estimating_apart.run` returns.
        question: how sure, and how successful.
        success: the share of episodes that succeeded.
    """
    found: list[tuple[Finding, float]] = []
    refused: list[Refused] = []
    for cause, (overlap, treated, control, estimates) in zip(causes, estimated, strict=True):
        if estimates is None or min(treated, control) < question.min_sample_size:
            refused.append(Refused(cause, Refusal.NO_OVERLAP, treated, control, overlap))
            continue
        each = {
            outcome: None if values is None else Estimate(*values)
            for outcome, values in zip(OUTCOMES, estimates, strict=True)
        }
        for outcome, one in each.items():
            if one is None:
                never = Refused(cause, Refusal.NEVER_DIFFERS, treated, control, overlap, outcome)
                refused.append(never)
                continue
            finding = _finding(cause, outcome, one, overlap, (treated, control))
            found.append((finding, _success_with(each[SUCCESS], finding.uplift, success)))
    return _sorted_out(found, question), refused


def _finding(
    cause: str, outcome: str, one: Estimate, overlap: float, arms: tuple[int, int]
) -> Finding:
    return Finding(
        cause=cause,
        outcome=outcome,
        uplift=one.uplift,
        low=one.low,
        high=one.high,
        p_value=one.p_value,
        q_value=1.0,
        with_cause=one.with_cause,
        without=one.without,
        plain=one.plain,
        overlap=overlap,
        treated=arms[0],
        control=arms[1],
        change=Change.NOT_SURE,
    )


def _success_with(estimate: Estimate | None, uplift: float, usual: float) -> float:
    """Return the success rate on the better side of a cause: with it, or without what does harm."""
    if estimate is None:
        return usual
    return estimate.with_cause if uplift > 0 else estimate.without


def _sorted_out(found: Sequence[tuple[Finding, float]], question: Question) -> list[Finding]:
    by_yekutieli = question.correction is Correction.BENJAMINI_YEKUTIELI
    adjust = benjamini_yekutieli if by_yekutieli else benjamini_hochberg
    q_values = adjust(np.array([finding.p_value for finding, _ in found], np.float64)).tolist()
    findings = []
    for (finding, success), q_value in zip(found, q_values, strict=True):
        sure = q_value <= question.fdr and 1 - q_value >= question.min_confidence
        change = Change.NOT_SURE
        if sure:
            often = success >= question.min_success_rate
            change = Change.CREATED if often else Change.RARELY_SUCCEEDS
        findings.append(replace(finding, q_value=q_value, change=change))
    return sorted(findings, key=lambda one: (one.q_value, -abs(one.uplift), one.cause, one.outcome))
