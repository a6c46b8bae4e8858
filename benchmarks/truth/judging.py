"""Which of the things that are said of a made record are so, and what a plain test would find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.reflect.analyses import Analyses
from mneme_server.features.reflect.model import (
    Analysis,
    CostAnalysisParams,
    ErrorPatternsParams,
    Insight,
    Params,
    PerformanceTrendsParams,
    SessionComparisonParams,
    ToolSequencesParams,
)
from mneme_server.statistics.distributions import two_sided
from mneme_server.statistics.inference import fisher_exact, welch

from benchmarks.truth.record import DAY, MadeRecord
from benchmarks.truth.shapes import START, Shape, made

LEVEL = 0.05
ANALYSES: Mapping[Analysis, Params] = {
    Analysis.ERROR_PATTERNS: ErrorPatternsParams(),
    Analysis.TOOL_SEQUENCES: ToolSequencesParams(),
    Analysis.COST_ANALYSIS: CostAnalysisParams(),
    Analysis.PERFORMANCE_TRENDS: PerformanceTrendsParams(),
    Analysis.SESSION_COMPARISON: SessionComparisonParams(),
}
_TESTS = {
    "one_tool": 16, "next_call": 16, "success_falls": 4, "cost_doubles": 2, "label": 7,
    "simpson": 4, "who_ran": 4, "mix_shifts": 4,
}  # fmt: skip
"""Tests of the same family that the plain one is adjusted for: each of eight tools before failing
calls and before failed sessions; a trend and a step of each measure that the record has; labels;
one tool before failed sessions, and three before failing calls."""


@dataclass(slots=True)
class Verdict:
    """What was said of one record: what is false, by analysis, and whether what was sought."""

    false: dict[Analysis, list[str]] = field(default_factory=dict)
    found: bool = False
    plain: bool = False


def judged(shape: Shape, seed: int, *only: Analysis) -> Verdict:
    """Run every analysis, or only some, on a record and judge what they say."""
    record = made(shape, seed)
    return judge(record, shape.__name__, *only)


def judge(record: MadeRecord, shape: str, *only: Analysis) -> Verdict:
    """Run every analysis, or only some, on a record of a shape."""
    verdict = Verdict()
    analyses = Analyses(record)  # type: ignore[arg-type]
    for analysis, params in ANALYSES.items():
        if only and analysis not in only:
            continue
        insights = analyses.run("t", params, HistoryFilter(), 10).insights
        claims = [one for one in insights if one.q_value is not None]
        told = _TRUE.get(shape, _nothing)
        verdict.false[analysis] = [one.summary for one in claims if not told(one)]
        sought = SOUGHT.get(shape)
        if sought and sought[0] is analysis and any(map(sought[1], claims)):
            verdict.found = True
    if shape in _PLAIN:
        verdict.plain = _PLAIN[shape](record) * _TESTS[shape] <= LEVEL
    return verdict


def plainly(shape: str) -> bool:
    """Tell whether a plain test looks for what a shape holds."""
    return shape in _PLAIN


def _nothing(_insight: Insight) -> bool:
    return False


def _is_of_task(insight: Insight) -> bool:
    return insight.type.startswith("outcome") and insight.data.get("dimension") == "task"


def _is_of_agent(insight: Insight) -> bool:
    return insight.data.get("dimension") == "agent"


def _is_of_weekday(insight: Insight) -> bool:
    return insight.type.endswith("_by_weekday")


def _names(word: str) -> Callable[[Insight], bool]:
    return lambda insight: word in insight.summary


def _is_of_success(insight: Insight) -> bool:
    return insight.type.startswith("success_rate")


def _is_of_cost(insight: Insight) -> bool:
    return insight.type.startswith("cost_")


def _tests_well(insight: Insight) -> bool:
    if not insight.type.startswith("sequence_before"):
        return _names("hard")(insight) or _names("easy")(insight)
    adds = (insight.type == "sequence_before_success") == (" more " in insight.summary)
    return "test" in insight.summary and adds


def _other_agents(insight: Insight) -> bool:
    return _is_of_agent(insight) or "agents ran" in insight.summary


_TRUE: Mapping[str, Callable[[Insight], bool]] = {
    "few_trials": _is_of_task,
    "trials": _is_of_task,
    "many_trials": _is_of_task,
    "weekends": _is_of_weekday,
    "crowd": _is_of_agent,
    "one_tool": _names("deploy"),
    "next_call": _names("deploy"),
    "success_falls": _is_of_success,
    "cost_doubles": _is_of_cost,
    "label": lambda one: _names("urgent")(one) or _names("calm")(one),
    "simpson": _tests_well,
    "who_ran": _other_agents,
    "mix_shifts": _other_agents,
}
SOUGHT: Mapping[str, tuple[Analysis, Callable[[Insight], bool]]] = {
    "one_tool": (Analysis.TOOL_SEQUENCES, _names("with deploy")),
    "next_call": (Analysis.TOOL_SEQUENCES, _names("After deploy")),
    "success_falls": (Analysis.PERFORMANCE_TRENDS, _is_of_success),
    "cost_doubles": (Analysis.COST_ANALYSIS, _is_of_cost),
    "label": (Analysis.SESSION_COMPARISON, _TRUE["label"]),
    "simpson": (
        Analysis.TOOL_SEQUENCES,
        lambda one: one.type.startswith("sequence_before") and _tests_well(one),
    ),
    "who_ran": (Analysis.PERFORMANCE_TRENDS, _names("agents ran")),
    "mix_shifts": (Analysis.PERFORMANCE_TRENDS, _names("agents ran")),
}


def _won(record: MadeRecord) -> dict[str, bool]:
    return {row.id: '"reward": 1.0' in row.metadata_json for row in record.rows.values()}


def _fisher(mine: list[bool], others: list[bool]) -> float:
    table = sum(mine), len(mine), sum(mine) + sum(others), len(mine) + len(others)
    return float(fisher_exact(*(np.array([n]) for n in table))[0])


def _with_deploy(record: MadeRecord) -> float:
    won = _won(record)
    having = {event.session for event in record.events if event.name == "deploy"}
    return _fisher(
        [won[one] for one in won if one in having], [won[one] for one in won if one not in having]
    )


def _after_deploy(record: MadeRecord) -> float:
    mine: list[bool] = []
    others: list[bool] = []
    before: tuple[str, str] | None = None
    failed = {event.call for event in record.events if event.kind == "tool_error"}
    for event in record.events:
        if event.kind != "tool_call":
            continue
        side = mine if before == (event.session, "deploy") else others
        side.append(event.call in failed)
        before = event.session, event.name
    return _fisher(mine, others)


def _falling(record: MadeRecord) -> float:
    won = _won(record)
    days = np.array([row.started_us / 1e6 for row in record.rows.values()])
    outcome = np.array([won[name] for name in record.rows], float)
    r = float(np.corrcoef(days, outcome)[0, 1])
    return two_sided(r * len(days) ** 0.5)


def _dearer(record: MadeRecord) -> float:
    costs = np.array([event.cost for event in record.events])
    since = np.array([event.time / 1e6 for event in record.events]) >= START + 30 * DAY
    return welch(np.log(costs[since]), np.log(costs[~since])).p_value


def _labelled(record: MadeRecord) -> float:
    won = _won(record)
    sides: tuple[list[bool], list[bool]] = ([], [])
    for row in record.rows.values():
        sides["urgent" in row.tags].append(won[row.id])
    return _fisher(sides[1], sides[0])


def _testing(record: MadeRecord) -> float:
    """Among hard and among easy tasks, added up (Mantel and Haenszel, 1959)."""
    won = _won(record)
    tests = {event.session for event in record.events if event.name == "test"}
    above, variance = 0.0, 0.0
    for tag in ("hard", "easy"):
        alike = [one for one in won if tag in record.rows[one].tags]
        n, wins = len(alike), sum(won[one] for one in alike)
        mine = [won[one] for one in alike if one in tests]
        above += sum(mine) - wins * len(mine) / n
        variance += wins * (n - wins) * len(mine) * (n - len(mine)) / (n * n * (n - 1))
    return two_sided(above / variance**0.5)


_PLAIN: Mapping[str, Callable[[MadeRecord], float]] = {
    "one_tool": _with_deploy,
    "next_call": _after_deploy,
    "success_falls": _falling,
    "cost_doubles": _dearer,
    "label": _labelled,
    "simpson": _testing,
    "who_ran": _falling,
    "mix_shifts": _falling,
}
