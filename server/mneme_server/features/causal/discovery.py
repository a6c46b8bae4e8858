"""Discovery: estimates, from episodes, of what changes how they end, those of them that count as
discoveries, and the operation that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import turns
from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import FailedPrecondition, InvalidArgument
from mneme_server.common.identity import new_id
from mneme_server.common.progress import Step
from mneme_server.engine.corpus.ports import WHOLE, Matrix
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.index.scratch import new_folder, remove
from mneme_server.features.causal.edges import refuse_circle
from mneme_server.features.causal.episode_table import EpisodeTable
from mneme_server.features.causal.estimation import EffectEstimate, Problem, write_problem
from mneme_server.features.causal.model import (
    OUTCOMES,
    SUCCESS,
    TAG,
    TOOL,
    CausalEdge,
    Correction,
    DiscoveryChange,
    DiscoveryQuestion,
    DiscoveryReport,
    EffectFinding,
    Origin,
    Refusal,
    RefusedCause,
)
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.operations.model import OperationTask
from mneme_server.features.skills.comparison import says_the_outcome
from mneme_server.features.skills.model import Episode
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills
from mneme_server.statistics.inference import benjamini_hochberg, benjamini_yekutieli

Rows = NDArray[np.int64]

MOST_EPISODES = 200_000
"""Episodes that are looked at, the latest."""
MOST_CAUSES = 1_000
"""Causes that are estimated, the most frequent."""
MOST_LISTED = 2_000
"""Findings, and refused causes, that an answer lists."""
_LOOKS = 4.0
"""What p-values are multiplied by, since the question is asked night after night."""
_PAGE = 500
_KEPT_DIGITS = 6
_AFTER = frozenset(("latency_ms", "tokens_used", "output", "critique"))


@dataclass(frozen=True, slots=True)
class Discovery:
    """The use case: estimate what tags, tools and skills change of reward and success."""

    tenants: OpenTenants

    def run(self, tenant_id: str, question: DiscoveryQuestion, step: Step) -> DiscoveryReport:
        """Estimate the effects, and keep those that are sure as edges.

        Args:
            tenant_id: whose episodes.
            question: what is asked.
            step: told how far it is; does the heavy part in a process of its own.

        Raises:
            InvalidArgument: what is to be adjusted for comes after the attempt, or is in none.
        """
        require_known_before(question)
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                total = unit.get(SqlEpisodes).count(question.filter)
            gathered = self._gathered(tenant, question, min(total, MOST_EPISODES), step)
            _require_in_some(question, gathered)
            with turns.computing():
                causes, refused = testable(gathered.causes(), gathered.count, question)
                features, names = gathered.features()
            chosen = causes[:MOST_CAUSES]
            problem = Problem(features, gathered.outcomes(), gathered.tasks()) if chosen else None
            estimated = _estimated(gathered, chosen, problem, step)
            success = float(gathered.outcomes()[:, 1].mean()) if gathered.count else 0.0
            findings, not_estimated = tested(chosen, estimated, question, success)
            found = DiscoveryReport(
                findings=findings,
                refused=[*not_estimated, *refused],
                episodes=gathered.count,
                not_embedded=gathered.not_embedded,
                adjusted_for=names,
                not_adjusted_for=gathered.not_in(names),
                truncated=total > MOST_EPISODES or len(causes) > MOST_CAUSES,
            )
            return _kept(tenant, question, found, gathered)

    def _gathered(
        self, tenant: OpenTenant, question: DiscoveryQuestion, most: int, step: Step
    ) -> EpisodeTable:
        """Read the latest episodes, page by page, with the vectors that their tasks have."""
        gathered = EpisodeTable(
            question.adjust_for, _SkillIds(tenant).named, with_tools=question.include_tools
        )
        last = None
        while gathered.count < most:
            step.report("reading", gathered.count, most)
            wanted = min(_PAGE, most - gathered.count)
            with turns.computing(), tenant.read() as unit:
                page = unit.get(SqlEpisodes).digests(question.filter, last, wanted)
                gathered.add(page, _vectors(unit, page))
            if len(page) < wanted:
                break
            last = (page[-1].occurred_us, page[-1].id)
        return gathered


def require_known_before(question: DiscoveryQuestion) -> None:
    """Check that what is adjusted for is nothing that comes after the attempt.

    Raises:
        InvalidArgument: it is.
    """
    for place, name in enumerate(question.adjust_for):
        label = name.removeprefix(f"{TAG}:")
        if name in _AFTER or (says_the_outcome(label) and label != "task"):
            raise InvalidArgument(
                f"{name!r} says how the attempt went: to adjust for it would hide what the cause"
                " changed; name what was known before",
                field=f"question.adjust_for[{place}]",
            )


def _require_in_some(question: DiscoveryQuestion, gathered: EpisodeTable) -> None:
    """Check that some episode has each thing that is adjusted for: a mistyped name has none."""
    for name in gathered.in_none:
        raise InvalidArgument(
            f"no episode that matches has {name!r}, so nothing would be adjusted for; give the name"
            f" of a number, a text or a truth value in their metadata, or a label as {TAG}:NAME",
            field=f"question.adjust_for[{question.adjust_for.index(name)}]",
        )


def _vectors(unit: CorpusUnit, page: Sequence[Episode]) -> Mapping[str, Matrix]:
    known = {**unit.get(SqlEpisodes).task_vectors([one.id for one in page])}
    plain = unit.queue.known_vectors([one.text for one in page if not one.critique])
    return known | {one.id: plain[one.text][WHOLE] for one in page if one.text in plain}


class _SkillIds:
    """The ids of skills, by what episodes call them."""

    def __init__(self, tenant: OpenTenant) -> None:
        self._tenant = tenant
        self._known: dict[str, str | None] = {}

    def named(self, names: Iterable[str]) -> Mapping[str, str]:
        new = [name for name in names if name not in self._known]
        if new:
            with self._tenant.read() as unit:
                named = unit.get(SqlSkills).ids_named(new)
                ids = unit.get(SqlSkills).get_many(new)
            for name in new:
                self._known[name] = name if name in ids else named.get(name)
        return {name: found for name, found in self._known.items() if found is not None}


def _estimated(
    gathered: EpisodeTable, chosen: Sequence[str], problem: Problem | None, step: Step
) -> Sequence[Sequence[object]]:
    if problem is None:
        return []
    causes = gathered.causes()
    folder = new_folder(problem.features.nbytes)
    try:
        path = folder / "problem.npz"
        write_problem(path, problem, [causes[cause] for cause in chosen])
        step.report("estimating", 0, len(chosen))
        found: Sequence[Sequence[object]] = step.apart(
            "mneme_server.features.causal.estimation:run", path=str(path)
        )
        return found
    finally:
        remove(folder)


def _kept(
    tenant: OpenTenant,
    question: DiscoveryQuestion,
    found: DiscoveryReport,
    gathered: EpisodeTable,
) -> DiscoveryReport:
    """Keep what was discovered as edges, unless it is a dry run; return what became of it."""
    if question.dry_run:
        with tenant.read() as unit:
            return _changed(unit, question, found, gathered)[0]
    with tenant.write() as unit:
        done, edges, gone = _changed(unit, question, found, gathered)
        for edge in edges:
            unit.get(SqlEdges).save(edge)
        unit.get(SqlEdges).remove(gone)
        return done


def _changed(
    unit: CorpusUnit, question: DiscoveryQuestion, found: DiscoveryReport, gathered: EpisodeTable
) -> tuple[DiscoveryReport, list[CausalEdge], list[str]]:
    """Return what becomes of each finding, the edges to save, and the ids of those to remove."""
    edges: list[CausalEdge] = []
    findings: list[EffectFinding] = []
    for finding in found.findings:
        if finding.change is not DiscoveryChange.CREATED:
            findings.append(finding)
            continue
        known = unit.get(SqlEdges).between(finding.cause, finding.outcome)
        new_edge = _edge(finding, question, gathered, found.adjusted_for)
        change, edge = _change(unit, known, new_edge, edges)
        if edge is not None and change in (DiscoveryChange.CREATED, DiscoveryChange.UPDATED):
            edges.append(edge)
        new = change is DiscoveryChange.CREATED and question.dry_run
        edge_id = "" if edge is None or new else edge.id
        findings.append(replace(finding, change=change, edge_id=edge_id))
    lost = {
        (one.cause, one.outcome)
        for one in findings
        if one.change in (DiscoveryChange.NOT_SURE, DiscoveryChange.RARELY_SUCCEEDS)
    }
    before = unit.get(SqlEdges).of_scope(question.scope)
    gone = [
        edge.id
        for edge in before
        if (edge.cause, edge.effect) in lost
        or (edge.cause.startswith(f"{TOOL}:") and not question.include_tools)
    ]
    return replace(found, findings=findings, removed=len(gone)), edges, gone


def _change(
    unit: CorpusUnit, known: CausalEdge | None, edge: CausalEdge, unsaved: Sequence[CausalEdge]
) -> tuple[DiscoveryChange, CausalEdge | None]:
    """Return what becomes of an edge that was discovered, beside others that are to be saved, and
    the edge that there is then."""
    if known is None:
        try:
            refuse_circle(unit, edge.cause, edge.effect, unsaved)
        except FailedPrecondition:
            return DiscoveryChange.CIRCLE, None
        return DiscoveryChange.CREATED, edge
    if known.origin is not Origin.DISCOVERED:
        return DiscoveryChange.KEPT, known
    again = replace(edge, id=known.id, mechanism=known.mechanism, created_us=known.created_us)
    if replace(again, updated_us=known.updated_us) == known:
        return DiscoveryChange.UNCHANGED, known
    return DiscoveryChange.UPDATED, replace(again, updated_us=later_us(known.updated_us))


def _edge(
    finding: EffectFinding,
    question: DiscoveryQuestion,
    gathered: EpisodeTable,
    adjusted_for: Sequence[str],
) -> CausalEdge:
    now = now_us()
    details: JsonObject = {
        "adjusted_for": list(adjusted_for),
        "overlap": round(finding.overlap, _KEPT_DIGITS),
        "plain_difference": round(finding.plain, _KEPT_DIGITS),
    }
    return CausalEdge(
        id=new_id(),
        cause=finding.cause,
        effect=finding.outcome,
        uplift=finding.uplift,
        confidence=finding.confidence,
        sample_size=finding.treated + finding.control,
        evidence_ids=tuple(gathered.evidence(finding.cause)),
        confounder_score=finding.confounder_score,
        metadata_json=canonical_json(details),
        origin=Origin.DISCOVERED,
        low=finding.low,
        high=finding.high,
        scope=question.scope,
        created_us=now,
        updated_us=now,
    )


def testable(
    causes: Mapping[str, Rows], count: int, question: DiscoveryQuestion
) -> tuple[list[str], list[RefusedCause]]:
    """Return the causes that enough of `count` episodes had and enough had not, and those of which
    either were too few."""
    chosen: list[str] = []
    refused: list[RefusedCause] = []
    for cause, rows in causes.items():
        having, lacking = len(rows), count - len(rows)
        if having < question.min_attempts:
            continue
        if min(having, lacking) < question.min_sample_size:
            refused.append(RefusedCause(cause, Refusal.TOO_FEW, having, lacking))
        else:
            chosen.append(cause)
    return chosen, refused


def tested(
    causes: Sequence[str],
    estimated: Sequence[Sequence[Any]],
    question: DiscoveryQuestion,
    success: float,
) -> tuple[list[EffectFinding], list[RefusedCause]]:
    """Return the effects that were estimated, the surest first, and what was not estimated.

    The q-values are adjusted for all effects together. What is sure and successful enough has the
    change CREATED for now.

    Args:
        causes: the causes.
        estimated: of each, what `estimation.run` returns.
        question: how sure, and how successful.
        success: the share of episodes that succeeded.
    """
    found: list[tuple[EffectFinding, float]] = []
    refused: list[RefusedCause] = []
    for cause, (overlap, treated, control, estimates) in zip(causes, estimated, strict=True):
        if estimates is None or min(treated, control) < question.min_sample_size:
            refused.append(RefusedCause(cause, Refusal.NO_OVERLAP, treated, control, overlap))
            continue
        each = {
            outcome: None if values is None else EffectEstimate(*values)
            for outcome, values in zip(OUTCOMES, estimates, strict=True)
        }
        for outcome, one in each.items():
            if one is None:
                never = RefusedCause(
                    cause, Refusal.NEVER_DIFFERS, treated, control, overlap, outcome
                )
                refused.append(never)
                continue
            finding = _finding(cause, outcome, one, overlap, (treated, control))
            found.append((finding, _success_with(each[SUCCESS], finding.uplift, success)))
    return _sorted_out(found, question), refused


def _finding(
    cause: str, outcome: str, one: EffectEstimate, overlap: float, arms: tuple[int, int]
) -> EffectFinding:
    return EffectFinding(
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
        change=DiscoveryChange.NOT_SURE,
    )


def _success_with(estimate: EffectEstimate | None, uplift: float, usual: float) -> float:
    """Return the success rate on the better side of a cause: with it, or without what does harm."""
    if estimate is None:
        return usual
    return estimate.with_cause if uplift > 0 else estimate.without


def _sorted_out(
    found: Sequence[tuple[EffectFinding, float]], question: DiscoveryQuestion
) -> list[EffectFinding]:
    by_yekutieli = question.correction is Correction.BENJAMINI_YEKUTIELI
    adjust = benjamini_yekutieli if by_yekutieli else benjamini_hochberg
    p_values = np.array([finding.p_value for finding, _ in found], np.float64)
    # Who asks again as episodes come in looks at chance more than once.
    q_values = adjust(np.minimum(1.0, _LOOKS * p_values)).tolist()
    findings = []
    for (finding, success), q_value in zip(found, q_values, strict=True):
        sure = q_value <= question.fdr and 1 - q_value >= question.min_confidence
        change = DiscoveryChange.NOT_SURE
        if sure:
            often = success >= question.min_success_rate
            change = DiscoveryChange.CREATED if often else DiscoveryChange.RARELY_SUCCEEDS
        findings.append(replace(finding, q_value=q_value, change=change))
    return sorted(findings, key=lambda one: (one.q_value, -abs(one.uplift), one.cause, one.outcome))


@dataclass(frozen=True, slots=True)
class DiscoveryOperation:
    """The work of the operation."""

    discovery: Discovery

    def run(self, task: OperationTask) -> JsonObject:
        """Discover. Run again, it finds and keeps the same."""
        question = DiscoveryQuestion.of(task.request["question"])
        return as_fields(self.discovery.run(task.tenant_id, question, task))

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: edges are written at once, or not at all."""


def as_fields(found: DiscoveryReport) -> JsonObject:
    """Return the fields of `mneme.v1.DiscoverResult`."""
    findings: list[JsonObject] = [
        {
            "cause": one.cause,
            "outcome": one.outcome,
            "uplift": one.uplift,
            "low": one.low,
            "high": one.high,
            "p_value": one.p_value,
            "q_value": one.q_value,
            "confidence": one.confidence,
            "mean_with": one.with_cause,
            "mean_without": one.without,
            "plain_difference": one.plain,
            "confounder_score": one.confounder_score,
            "treated_count": one.treated,
            "control_count": one.control,
            "overlap": one.overlap,
            "change": int(one.change),
            "edge_id": one.edge_id,
        }
        for one in found.findings
    ]
    refused: list[JsonObject] = [
        {
            "cause": one.cause,
            "outcome": one.outcome,
            "why": int(one.why),
            "treated_count": one.treated,
            "control_count": one.control,
            "overlap": one.overlap,
        }
        for one in found.refused
    ]
    return {
        "findings": findings[:MOST_LISTED],
        "refused_causes": refused[:MOST_LISTED],
        "tested_count": len(findings),
        "refused_count": len(refused),
        "removed_count": found.removed,
        "episode_count": found.episodes,
        "not_embedded_count": found.not_embedded,
        "adjusted_for": list(found.adjusted_for),
        "not_adjusted_for": [
            {"name": name, "why": int(why)} for name, why in found.not_adjusted_for.items()
        ],
        "truncated": found.truncated,
    }
