"""Experiments: subjects assigned by chance, what came of them, and what that says."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mneme_server.common import turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    Reason,
)
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.causal.edges import refuse_circle, require_stored
from mneme_server.features.causal.model import (
    Assignment,
    CausalEdge,
    Experiment,
    ExperimentArm,
    ExperimentResult,
    ExperimentStatus,
    Observation,
    Origin,
    Outcomes,
)
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.causal.store.experiments import SqlExperiments
from mneme_server.statistics.inference import Floats, welch
from mneme_server.statistics.looking import difference_at_any_look

_SEED_BYTES = 16
_CONTENT = (
    "name", "cause", "effect", "description", "block_size", "treated_per_block", "metadata_json",
)  # fmt: skip
_FEW = 30
ONE_LOOK = (
    "The p-value and its interval hold for one look, at an end that was decided before. Whoever"
    " looks more often, or stops when it looks good, reads the sequential interval."
)


@dataclass(frozen=True, slots=True)
class Experiments:
    """The use cases of experiments."""

    tenants: OpenTenants

    def create(self, tenant_id: str, given: Experiment) -> Experiment:
        """Create the experiment; an empty id and an empty seed are made. The same again changes
        nothing.

        Raises:
            InvalidArgument: a block would have no treated or no untreated subject, or cause and
                effect are the same.
            NotFound: the cause or the effect is stored here, and does not exist.
            AlreadyExists: the id is taken by other content.
        """
        if not 0 < given.treated_per_block < given.block_size:
            raise InvalidArgument(
                f"of a block of {given.block_size} at least 1 must be treated and at most"
                f" {given.block_size - 1}, not {given.treated_per_block}",
                reason=Reason.OUT_OF_RANGE,
                field="treated_per_block",
            )
        if given.cause == given.effect:
            raise InvalidArgument("cause and effect are the same", field="effect")
        seed = given.seed or secrets.token_hex(_SEED_BYTES)
        made = replace(given, id=given.id or new_id(), seed=seed, created_us=now_us())
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            known = unit.get(SqlExperiments).get(made.id)
            if known is not None:
                return _unchanged(known, given)
            for name in ("cause", "effect"):
                require_stored(unit, getattr(made, name), name)
            unit.get(SqlExperiments).save(made)
        return made

    def get(self, tenant_id: str, experiment_id: str) -> Experiment:
        """Return the experiment.

        Raises:
            NotFound: there is no such experiment.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, experiment_id)

    def page(
        self,
        tenant_id: str,
        status: ExperimentStatus | None,
        after: tuple[int, str] | None,
        limit: int,
    ) -> tuple[Sequence[Experiment], int]:
        """Return experiments, latest first, after that key; and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlExperiments).page, status),
                after,
                limit,
                lambda one: (one.created_us, one.id),
            )
            return page, unit.get(SqlExperiments).count(status)

    def assign(
        self, tenant_id: str, experiment_id: str, subject: str, stratum: str
    ) -> tuple[Assignment, bool]:
        """Return the subject's arm, and whether it was assigned before.

        Raises:
            NotFound: there is no such experiment.
            FailedPrecondition: it is completed, and the subject was not assigned before.
        """
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                _existing(unit, experiment_id)
                known = unit.get(SqlExperiments).assignment(experiment_id, subject)
            if known is not None:
                return known, True
            with tenant.write() as unit:
                experiments = unit.get(SqlExperiments)
                experiment = _existing(unit, experiment_id)
                known = experiments.assignment(experiment_id, subject)
                if known is not None:
                    return known, True
                _require_running(experiment)
                place = experiments.assigned_in(experiment_id, stratum)
                treatment = experiment.treats(stratum, place)
                made = Assignment(subject, treatment, stratum, place, now_us())
                experiments.assign(experiment_id, made)
            return made, False

    def record(
        self, tenant_id: str, experiment_id: str, given: Observation
    ) -> tuple[Observation, int]:
        """Record an observation; return it as it counts, and how many there are now.

        Raises:
            NotFound: there is no such experiment.
            InvalidArgument: nobody says the arm.
            AlreadyExists: the id is taken by another observation.
            FailedPrecondition: the experiment is completed, or the subject is in the other arm.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            experiment = _existing(unit, experiment_id)
            made = _in_its_arm(unit, experiment_id, given)
            known = unit.get(SqlExperiments).observation(experiment_id, made.id)
            if known is not None:
                _require_same(known, made, timed=bool(given.observed_us))
                return known, experiment.observations
            _require_running(experiment)
            made = replace(made, observed_us=made.observed_us or now_us())
            unit.get(SqlExperiments).observe(experiment_id, made)
        return made, experiment.observations + 1

    def analyze(self, tenant_id: str, experiment_id: str) -> tuple[Experiment, ExperimentResult]:
        """Return the experiment and what its observations say.

        Raises:
            NotFound: there is no such experiment.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            experiment = _existing(unit, experiment_id)
            return experiment, experiment.result or self._analyzed(unit, experiment_id)

    def _analyzed(self, unit: CorpusUnit, experiment_id: str) -> ExperimentResult:
        with turns.computing():
            return analyzed(unit.get(SqlExperiments).outcomes(experiment_id))

    def conclude(
        self, tenant_id: str, experiment_id: str, *, with_edge: bool
    ) -> tuple[Experiment, CausalEdge | None]:
        """End the experiment; return it with its result, and the edge that it made.

        Raises:
            NotFound: there is no such experiment.
            FailedPrecondition: the edge would close a circle; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            experiment = _existing(unit, experiment_id)
            if experiment.status is ExperimentStatus.COMPLETED:
                edge = unit.get(SqlEdges).get_many([experiment.edge_id]).get(experiment.edge_id)
                return experiment, edge
            result = analyzed(unit.get(SqlExperiments).outcomes(experiment_id))
            edge = _edge(unit, experiment, result) if with_edge else None
            done = replace(
                experiment,
                status=ExperimentStatus.COMPLETED,
                result=result,
                edge_id=edge.id if edge else "",
                completed_us=now_us(),
            )
            unit.get(SqlExperiments).save(done)
        return done, edge

    def update(
        self, tenant_id: str, experiment_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Experiment:
        """Change the given fields, none of which says what is compared or how subjects are drawn.

        Raises:
            NotFound: there is no such experiment.
            Aborted: `etag` is given and is not the experiment's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            before = _existing(unit, experiment_id, etag)
            after = replace(before, **changes)
            if after != before:
                unit.get(SqlExperiments).save(after)
        return after

    def delete(self, tenant_id: str, experiment_id: str, *, etag: str = "") -> Experiment:
        """Delete the experiment with its observations, and return it as it was.

        Raises:
            NotFound: there is no such experiment.
            Aborted: `etag` is given and is not the experiment's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            experiment = _existing(unit, experiment_id, etag)
            unit.get(SqlExperiments).remove(experiment_id)
        return experiment


def _existing(unit: CorpusUnit, experiment_id: str, etag: str = "") -> Experiment:
    """Return the experiment, which must still have this etag, if one is given."""
    found = unit.get(SqlExperiments).get(experiment_id)
    return existing("experiment", found, experiment_id, etag)


def _unchanged(known: Experiment, given: Experiment) -> Experiment:
    names = [*_CONTENT, *(["seed"] if given.seed else [])]
    differing = [name for name in names if getattr(known, name) != getattr(given, name)]
    require_unchanged("experiment", known, differing)
    return known


def _require_running(experiment: Experiment) -> None:
    if experiment.status is not ExperimentStatus.RUNNING:
        raise FailedPrecondition(f"experiment {experiment.id!r} is completed", field="id")


def _in_its_arm(unit: CorpusUnit, experiment_id: str, given: Observation) -> Observation:
    assigned = (
        unit.get(SqlExperiments).assignment(experiment_id, given.subject) if given.subject else None
    )
    made = replace(given, id=given.id or new_id(), assigned=assigned is not None)
    if assigned is not None:
        if given.treatment not in (None, assigned.treatment):
            arm = "treated" if assigned.treatment else "untreated"
            raise FailedPrecondition(
                f"subject {given.subject!r} was assigned to be {arm}", field="treatment"
            )
        return replace(made, treatment=assigned.treatment)
    if given.treatment is None:
        who = f"subject {given.subject!r} was not assigned" if given.subject else "no subject"
        raise InvalidArgument(
            f"{who}: say whether it was treated",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="treatment",
        )
    return made


def _require_same(known: Observation, given: Observation, *, timed: bool) -> None:
    if not timed:
        given = replace(given, observed_us=known.observed_us)
    if replace(given, assigned=known.assigned) != known:
        raise AlreadyExists(
            f"observation {known.id!r} was recorded with other content", field="observation_id"
        )


def _edge(unit: CorpusUnit, experiment: Experiment, result: ExperimentResult) -> CausalEdge | None:
    """Save the edge that an experiment ends with, and return it; None if nothing could be tested,
    or a caller has stated another."""
    if result.uplift is None or result.p_value is None:
        return None
    known = unit.get(SqlEdges).between(experiment.cause, experiment.effect)
    if known is not None and known.origin is Origin.STATED:
        return None
    now = now_us()
    if known is None:
        refuse_circle(unit, experiment.cause, experiment.effect)
        known = CausalEdge(new_id(), experiment.cause, experiment.effect, 0, 0, created_us=now)
    elif known.origin is Origin.DISCOVERED:
        # These say what Discover's figures rest on.
        known = replace(known, evidence_ids=(), metadata_json="{}")
    edge = replace(
        known,
        uplift=result.uplift,
        confidence=1 - result.p_value,
        sample_size=result.treatment.count + result.control.count,
        experiment_ids=tuple(dict.fromkeys([*known.experiment_ids, experiment.id])),
        confounder_score=None if result.not_assigned else 0.0,
        origin=Origin.EXPERIMENT,
        low=result.low,
        high=result.high,
        scope="",
        updated_us=later_us(known.updated_us),
    )
    unit.get(SqlEdges).save(edge)
    return edge


def analyzed(outcomes: Outcomes) -> ExperimentResult:
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
        return ExperimentResult(
            treatment, control, uplift, not_assigned=not_assigned, notes=tuple(notes)
        )
    test = welch(*arms, spread=float(np.ptp(outcomes.values)))
    ever = difference_at_any_look(*arms)
    return ExperimentResult(
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


def _arm(values: Floats) -> ExperimentArm:
    return ExperimentArm(
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
