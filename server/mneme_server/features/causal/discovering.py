"""Discovering from episodes what changes how they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import FailedPrecondition, InvalidArgument
from mneme_server.common.identity import new_id
from mneme_server.common.progress import Step
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.index.scratch import new_folder, remove
from mneme_server.engine.scheduling.foreground import Foreground, Size
from mneme_server.features.causal import estimating_apart
from mneme_server.features.causal.discovery_model import Change, Discovered, Finding, Question
from mneme_server.features.causal.edges import refuse_circle
from mneme_server.features.causal.estimating import Problem
from mneme_server.features.causal.gathering import Gathered
from mneme_server.features.causal.model import TAG, Edge, Origin
from mneme_server.features.causal.ports import CausalUnit
from mneme_server.features.causal.testing import testable, tested
from mneme_server.features.skills.comparing import says_the_outcome
from mneme_server.features.skills.episode_model import Episode

MOST_EPISODES = 200_000
"""Episodes that are looked at, the latest."""
MOST_CAUSES = 1_000
"""Causes that are estimated, the most frequent."""
MOST_AT_ONCE = 10_000
"""Episodes of one call; an operation takes more."""
MOST_WORK = 50 * MOST_AT_ONCE
"""Episodes times causes of one call."""
_PAGE = 500
_KEPT_DIGITS = 6
_AFTER = frozenset(("latency_ms", "tokens_used", "output", "critique"))


@dataclass(frozen=True, slots=True)
class Discover:
    """The use case: estimate what tags, tools and skills change of reward and success."""

    tenants: OpenTenants[CausalUnit]
    foreground: Foreground = field(default_factory=Foreground)

    def __call__(
        self, tenant_id: str, question: Question, step: Step, *, at_once: bool
    ) -> Discovered:
        """Estimate the effects, and keep those that are sure as edges.

        Args:
            tenant_id: whose episodes.
            question: what is asked.
            step: told how far it is; does the heavy part in a process of its own.
            at_once: refuse what takes longer than a call should.

        Raises:
            InvalidArgument: what is to be adjusted for comes after the attempt, or is in none.
            FailedPrecondition: it is too much for one call.
        """
        require_known_before(question)
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                total = unit.episodes.count(question.filter)
            if at_once and total > MOST_AT_ONCE:
                raise _too_much(f"{total} episodes, more than {MOST_AT_ONCE}")
            gathered = self._gathered(tenant, question, min(total, MOST_EPISODES), step)
            _require_in_some(question, gathered)
            with self.foreground.computing(Size.LARGE):
                causes, refused = testable(gathered.causes(), gathered.count, question)
                features, names = gathered.features()
            chosen = causes[:MOST_CAUSES]
            if at_once and len(chosen) * gathered.count > MOST_WORK:
                raise _too_much(f"{len(chosen)} causes in {gathered.count} episodes")
            problem = Problem(features, gathered.outcomes()) if chosen else None
            estimated = _estimated(gathered, chosen, problem, step)
            success = float(gathered.outcomes()[:, 1].mean()) if gathered.count else 0.0
            findings, not_estimated = tested(chosen, estimated, question, success)
            found = Discovered(
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
        self, tenant: OpenTenant[CausalUnit], question: Question, most: int, step: Step
    ) -> Gathered:
        """Read the latest episodes, page by page, with the vectors that their tasks have."""
        resolve = _Skills(tenant)
        gathered = Gathered(question.adjust_for, resolve)
        last = None
        while gathered.count < most:
            step.report("reading", gathered.count, most)
            wanted = min(_PAGE, most - gathered.count)
            with self.foreground.computing(Size.LARGE), tenant.read() as unit:
                page = unit.episodes.digests(question.filter, last, wanted)
                gathered.add(page, _vectors(unit, page))
            if len(page) < wanted:
                break
            last = (page[-1].occurred_us, page[-1].id)
        return gathered


def require_known_before(question: Question, path: str = "adjust_for") -> None:
    """Check that what is adjusted for, at `path` of the request, is nothing that comes after the
    attempt.

    Raises:
        InvalidArgument: it is.
    """
    for place, name in enumerate(question.adjust_for):
        label = name.removeprefix(f"{TAG}:")
        if name in _AFTER or (says_the_outcome(label) and label != "task"):
            raise InvalidArgument(
                f"{name!r} says how the attempt went: to adjust for it would hide what the cause"
                " changed; name what was known before",
                field=f"{path}[{place}]",
            )


def _require_in_some(question: Question, gathered: Gathered) -> None:
    """Check that some episode has each thing that is adjusted for: a mistyped name has none."""
    for name in gathered.in_none:
        raise InvalidArgument(
            f"no episode that matches has {name!r}, so nothing would be adjusted for; give the name"
            f" of a number, a text or a truth value in their metadata, or a label as {TAG}:NAME",
            field=f"adjust_for[{question.adjust_for.index(name)}]",
        )


def _too_much(what: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"{what} are too much for one call: start it as an operation (StartDiscover, mneme causal"
        " discover), or narrow the filter",
        field="filter",
    )


def _vectors(unit: CausalUnit, page: Sequence[Episode]) -> Mapping[str, Matrix]:
    known = {**unit.episodes.task_vectors([one.id for one in page])}
    plain = unit.queue.known_vectors([one.text for one in page if not one.critique])
    return known | {one.id: plain[one.text] for one in page if one.text in plain}


class _Skills:
    """The ids of skills, by what episodes call them."""

    def __init__(self, tenant: OpenTenant[CausalUnit]) -> None:
        self._memory = tenant
        self._known: dict[str, str | None] = {}

    def __call__(self, names: Iterable[str]) -> Mapping[str, str]:
        new = [name for name in names if name not in self._known]
        if new:
            with self._memory.read() as unit:
                named = unit.skills.ids_named(new)
                ids = unit.skills.get_many(new)
            for name in new:
                self._known[name] = name if name in ids else named.get(name)
        return {name: found for name, found in self._known.items() if found is not None}


def _estimated(
    gathered: Gathered, chosen: Sequence[str], problem: Problem | None, step: Step
) -> Sequence[Sequence[object]]:
    if problem is None:
        return []
    causes = gathered.causes()
    folder = new_folder(problem.features.nbytes)
    try:
        path = folder / "problem.npz"
        estimating_apart.write(path, problem, [causes[cause] for cause in chosen])
        step.report("estimating", 0, len(chosen))
        found: Sequence[Sequence[object]] = step.apart(
            "mneme_server.features.causal.estimating_apart:run", path=str(path)
        )
        return found
    finally:
        remove(folder)


def _kept(
    tenant: OpenTenant[CausalUnit], question: Question, found: Discovered, gathered: Gathered
) -> Discovered:
    """Keep what was discovered as edges, unless it is a dry run; return what became of it."""
    if question.dry_run:
        with tenant.read() as unit:
            return _changed(unit, question, found, gathered)[0]
    with tenant.write() as unit:
        done, edges, gone = _changed(unit, question, found, gathered)
        for edge in edges:
            unit.causal_edges.save(edge)
        unit.causal_edges.remove(gone)
        return done


def _changed(
    unit: CausalUnit, question: Question, found: Discovered, gathered: Gathered
) -> tuple[Discovered, list[Edge], list[str]]:
    """Return what becomes of each finding, the edges to save, and the ids of those to remove."""
    edges: list[Edge] = []
    findings: list[Finding] = []
    for finding in found.findings:
        if finding.change is not Change.CREATED:
            findings.append(finding)
            continue
        known = unit.causal_edges.between(finding.cause, finding.outcome)
        new_edge = _edge(finding, question, gathered, found.adjusted_for)
        change, edge = _change(unit, known, new_edge, edges)
        if edge is not None and change in (Change.CREATED, Change.UPDATED):
            edges.append(edge)
        new = change is Change.CREATED and question.dry_run
        edge_id = "" if edge is None or new else edge.id
        findings.append(replace(finding, change=change, edge_id=edge_id))
    lost = {
        (one.cause, one.outcome)
        for one in findings
        if one.change in (Change.NOT_SURE, Change.RARELY_SUCCEEDS)
    }
    before = unit.causal_edges.of_scope(question.scope)
    gone = [edge.id for edge in before if (edge.cause, edge.effect) in lost]
    return replace(found, findings=findings, removed=len(gone)), edges, gone


def _change(
    unit: CausalUnit, known: Edge | None, edge: Edge, unsaved: Sequence[Edge]
) -> tuple[Change, Edge | None]:
    """Return what becomes of an edge that was discovered, beside others that are to be saved, and
    the edge that there is then."""
    if known is None:
        try:
            refuse_circle(unit, edge.cause, edge.effect, unsaved)
        except FailedPrecondition:
            return Change.CIRCLE, None
        return Change.CREATED, edge
    if known.origin is not Origin.DISCOVERED:
        return Change.KEPT, known
    again = replace(edge, id=known.id, mechanism=known.mechanism, created_us=known.created_us)
    if replace(again, updated_us=known.updated_us) == known:
        return Change.UNCHANGED, known
    return Change.UPDATED, replace(again, updated_us=later_us(known.updated_us))


def _edge(
    finding: Finding, question: Question, gathered: Gathered, adjusted_for: Sequence[str]
) -> Edge:
    now = now_us()
    details: JsonObject = {
        "adjusted_for": list(adjusted_for),
        "overlap": round(finding.overlap, _KEPT_DIGITS),
        "plain_difference": round(finding.plain, _KEPT_DIGITS),
    }
    return Edge(
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
