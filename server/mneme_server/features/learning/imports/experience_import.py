"""The import of what was recorded before into a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    MnemeError,
)
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.catalogue import find_algorithm
from mneme_server.features.learning.imports.mapping import Mapper, UnfitRecord
from mneme_server.features.learning.imports.records import (
    ActionSource,
    ExperienceRecord,
    ExperienceRecords,
    ImportPlan,
)
from mneme_server.features.learning.model import (
    Definition,
    LearningStatus,
    RecordedStep,
    TrajectoryInput,
)
from mneme_server.features.learning.sessions.experience import RecordExperience
from mneme_server.features.learning.sessions.live_session import unknown
from mneme_server.features.learning.spaces import Box, Dict, OpenObject
from mneme_server.features.learning.store.sessions import SqlLearningSessions

_PART = 100
"""Records that are imported in a transaction."""
_MOST_REASONS = 50
_MOST_EXAMPLES = 5
_MOST_ACTIONS = 100
_OTHER = "for other reasons"


@dataclass(slots=True)
class SkippedRecords:
    """Records that were left out for one reason: how many, and some of their ids."""

    reason: str
    count: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportExample:
    """A record as a trajectory."""

    record_id: str
    steps: Sequence[RecordedStep]


@dataclass(slots=True)
class ActionCount:
    """How often an action was done, and the sum of the rewards of the records in which it was."""

    action: Json
    count: int = 0
    records: int = 0
    reward: float = 0.0


@dataclass(slots=True)
class ExperienceImportReport:
    """How far an import is: counts of the whole call so far.

    `is_last` says that it is over; `examples` and `actions` are told then.
    """

    records: int = 0
    read: int = 0
    imported: int = 0
    known: int = 0
    steps: int = 0
    transitions: int = 0
    dry_run: bool = False
    is_last: bool = False
    skipped: dict[str, SkippedRecords] = field(default_factory=dict)
    examples: list[ImportExample] = field(default_factory=list)
    actions: dict[str, ActionCount] = field(default_factory=dict)

    def skip(self, record_id: str, reason: str) -> None:
        """Count a record that is left out."""
        if reason not in self.skipped and len(self.skipped) >= _MOST_REASONS:
            reason = _OTHER
        skipped = self.skipped.setdefault(reason, SkippedRecords(reason))
        skipped.count += 1
        if len(skipped.examples) < _MOST_EXAMPLES:
            skipped.examples.append(record_id)

    def take(self, record_id: str, steps: Sequence[RecordedStep], examples: int) -> None:
        """Count a record that is imported."""
        self.imported += 1
        self.steps += len(steps)
        if len(self.examples) < examples:
            self.examples.append(ImportExample(record_id, steps))
        reward = sum(step.reward for step in steps)
        in_record = {canonical_json(step.action): step.action for step in steps}
        for key, action in in_record.items():
            done = self.actions.setdefault(key, ActionCount(action))
            done.records += 1
            done.reward += reward
        for step in steps:
            self.actions[canonical_json(step.action)].count += 1

    def most_done(self) -> list[ActionCount]:
        """Return the actions, the most frequent first."""
        return sorted(self.actions.values(), key=lambda one: -one.count)[:_MOST_ACTIONS]

    def most_skipped(self) -> list[SkippedRecords]:
        """Return what was left out, the most frequent reason first."""
        return sorted(self.skipped.values(), key=lambda one: -one.count)


class ImportExperience:
    """The use case: fill a session with what was recorded before.

    Args:
        tenants: where tenants are.
        record: records steps.
    """

    def __init__(self, tenants: OpenTenants, record: RecordExperience) -> None:
        self._tenants = tenants
        self._record = record

    def import_records(
        self, tenant_id: str, session_id: str, plan: ImportPlan
    ) -> Iterator[ExperienceImportReport]:
        """Import records, oldest first; yield how far it is, at the end with all that is to say.

        Raises:
            InvalidArgument: the plan does not say all, or does not fit the session.
            NotFound: there is no such session.
            FailedPrecondition: it has ended, or cannot learn from what others did.
            ResourceExhausted: the tenant's steps take as many bytes as they may.
        """
        with self._tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                session = unit.get(SqlLearningSessions).get(session_id)
            if session is None:
                raise unknown(session_id)
            if session.status is LearningStatus.ENDED:
                raise FailedPrecondition(
                    f"the learning session {session_id!r} has ended; start it again to resume it"
                )
            _require_fit(plan, session.definition)
            records = ExperienceRecords(tenant, plan.kind, plan.selection)
            mapper = Mapper(plan, session.definition.states)
            report = ExperienceImportReport(
                records=len(records),
                dry_run=plan.dry_run,
                transitions=session.counts.transitions,
            )
            for part in records.parts(_PART, with_calls=plan.source is ActionSource.TOOL):
                deadline.check()
                self._import((tenant_id, session_id), part, mapper, plan, report)
                yield report
        report.is_last = True
        yield report

    def _import(
        self,
        session: tuple[str, str],
        part: Sequence[ExperienceRecord],
        mapper: Mapper,
        plan: ImportPlan,
        report: ExperienceImportReport,
    ) -> None:
        """Import some records into a session, which is named by its tenant and its id."""
        told: list[TrajectoryInput] = []
        ids: list[str] = []
        for record in part:
            try:
                told.append(mapper.trajectory(record))
                ids.append(record.id)
            except UnfitRecord as unfit:
                report.skip(record.id, str(unfit))
        report.read += len(part)
        done = self._record.trajectories(
            *session,
            told,
            lambda place, error: report.skip(ids[place], _reason(error)),
            dry_run=plan.dry_run,
        )
        report.known += len(done.known)
        report.transitions = done.counts.transitions
        for place, steps in sorted(done.recorded.items()):
            report.take(ids[place], steps, plan.examples)


def _require_fit(plan: ImportPlan, definition: Definition) -> None:
    algorithm = find_algorithm(definition.algorithm)
    if algorithm is not None and algorithm.on_policy:
        raise FailedPrecondition(
            f"{definition.algorithm} learns only from its own behaviour, and with which"
            " probability recorded actions were chosen is not known; import into a session of"
            " another algorithm (linucb, thompson, q_learning, dqn)"
        )
    if isinstance(definition.actions, Box):
        raise FailedPrecondition(
            "the session's actions are numbers in a box, and those of records are names"
        )
    if plan.source is not ActionSource.TOOL and not plan.action_name:
        raise InvalidArgument(
            "action_name: say how the label begins, or which field the action is",
            field="action_name",
        )
    if plan.source is ActionSource.TOOL and plan.action_name:
        raise InvalidArgument(
            "action_name: is not for actions that are tools; set action_source", field="action_name"
        )
    if not isinstance(definition.states, Dict | OpenObject) and len(plan.fields) > 1:
        raise InvalidArgument(
            "state_fields: the session's states are no objects, so give one field",
            field="state_fields",
        )


def _reason(error: MnemeError) -> str:
    if isinstance(error, AlreadyExists):
        return "it was imported before, with other fields or before it changed"
    return error.message
