"""The use cases of grades: recorded at any time, listed, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from mneme_server.common import turns
from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, InvalidArgument, Reason
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.model import GRADE, Grade, GradeFilter, NewGrade, Outcome, Session
from mneme_server.features.events.outcomes import judged_by_grades, outcome_of_reward
from mneme_server.features.events.recording import SessionListeners
from mneme_server.features.events.sessions import session_not_found
from mneme_server.features.events.store.grades import SqlGrades
from mneme_server.features.events.store.sessions import SqlSessions


class GradeLog(Protocol):
    """The tenant's log, as far as grades are concerned."""

    def add_leaves(self, kind: str, contents: Mapping[str, str]) -> None:
        """Append a leaf for each of these, by their ids; each is there once, and never changes."""
        ...


Follower: TypeAlias = Callable[[CorpusUnit, Sequence[Session]], object]
"""Writes what follows elsewhere from how sessions turned out."""


class Graded(NamedTuple):
    """What became of a grade, and whether it had been recorded before."""

    grade: Grade
    duplicate: bool


@dataclass(frozen=True, slots=True)
class GradeSessions:
    """Records grades, and tells all who listen what sessions turn out to be."""

    tenants: OpenTenants
    listeners: SessionListeners = field(default_factory=SessionListeners)
    _followers: list[Follower] = field(default_factory=list)

    def follow(self, follower: Follower) -> None:
        """Call one more with the sessions that were graded, in the transaction that does so."""
        self._followers.append(follower)

    def one(self, tenant_id: str, given: NewGrade) -> tuple[Grade, Session]:
        """Grade a session; return the grade and the session as it is then.

        Raises:
            InvalidArgument: MISSING_REQUIRED_FIELD, it has neither an outcome nor a reward.
            NotFound: there is no such session.
            AlreadyExists: the id is taken by another grade.
        """
        graded, sessions = self._record(tenant_id, [given])
        return graded[0].grade, sessions[given.session_id]

    def many(self, tenant_id: str, given: Sequence[NewGrade]) -> Sequence[Graded]:
        """Record all of these grades or none; the errors are those of `one`."""
        return self._record(tenant_id, given)[0]

    def _record(
        self, tenant_id: str, given: Sequence[NewGrade]
    ) -> tuple[Sequence[Graded], Mapping[str, Session]]:
        now = now_us()
        wanted = [_grade(new, item, now) for item, new in enumerate(given)]
        with self.tenants.open(tenant_id) as tenant, turns.active(), tenant.write() as unit:
            sessions = unit.get(SqlSessions).get_many({one.session_id for one in wanted})
            for item, one in enumerate(wanted):
                if one.session_id not in sessions:
                    missing = session_not_found(one.session_id)
                    missing.item = item
                    raise missing
            graded = _against_known(unit, wanted, given)
            fresh = [one.grade for one in graded if not one.duplicate]
            if not fresh:
                return graded, sessions
            unit.get(SqlGrades).add(fresh)
            unit.get(GradeLog).add_leaves(GRADE, {one.id: content_of(one) for one in fresh})
            changed = _judged(unit, sessions, {one.session_id for one in fresh})
            unit.get(SqlSessions).save(changed)
            for follower in self._followers:
                follower(unit, changed)
            committed = self.listeners.changed(unit, changed, now)
        committed(tenant_id)
        return graded, {**sessions, **{one.id: one for one in changed}}


@dataclass(frozen=True, slots=True)
class ReadGrades:
    """Answers who said how sessions turned out."""

    tenants: OpenTenants

    def page(
        self, tenant_id: str, filter_: GradeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Grade]:
        """Return grades, latest first, after (graded_us, id)."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return turns.read_page(
                partial(unit.get(SqlGrades).page, filter_),
                after,
                limit,
                lambda one: (one.graded_us, one.id),
            )


def content_of(grade: Grade) -> str:
    """Return what the log commits to of a grade: canonical JSON; times are texts, as in the hash
    chain."""
    said = {
        "id": grade.id,
        "kind": GRADE,
        "session": grade.session_id,
        "outcome": grade.outcome.name.lower(),
        "reward": grade.reward,
        "source": grade.source.name.lower(),
        "grader": grade.grader,
        "comment": grade.comment,
        "graded_at": str(grade.graded_us),
        "recorded_at": str(grade.recorded_us),
    }
    return canonical_json({name: value for name, value in said.items() if value not in ("", None)})


def _grade(new: NewGrade, item: int, now: int) -> Grade:
    outcome = new.outcome
    if outcome == Outcome.UNKNOWN:
        if new.reward is None:
            raise InvalidArgument(
                "a grade needs an outcome or a reward",
                reason=Reason.MISSING_REQUIRED_FIELD,
                field="outcome",
                item=item,
            )
        outcome = outcome_of_reward(new.reward)
    return Grade(
        id=new.id or new_id(),
        session_id=new.session_id,
        outcome=outcome,
        reward=new.reward,
        source=new.source,
        grader=new.grader,
        comment=new.comment,
        graded_us=now if new.graded_us is None else new.graded_us,
        recorded_us=now,
    )


def _against_known(
    unit: CorpusUnit, wanted: Sequence[Grade], given: Sequence[NewGrade]
) -> Sequence[Graded]:
    """Return what becomes of each: one whose id is known with the same content is a duplicate."""
    known = dict(unit.get(SqlGrades).by_ids([new.id for new in given if new.id]))
    graded: list[Graded] = []
    for item, (one, new) in enumerate(zip(wanted, given, strict=True)):
        before = known.get(one.id)
        if before is None:
            known[one.id] = one
            graded.append(Graded(one, False))
            continue
        # A time that was not given is the server's, and does not count as content.
        graded_us = before.graded_us if new.graded_us is None else one.graded_us
        if replace(one, graded_us=graded_us, recorded_us=before.recorded_us) != before:
            raise AlreadyExists(
                f"grade {one.id} is already recorded with different content; grades never change,"
                " choose a new id",
                field="id",
                item=item,
            )
        graded.append(Graded(before, True))
    return graded


def _judged(
    unit: CorpusUnit, sessions: Mapping[str, Session], graded: Collection[str]
) -> Sequence[Session]:
    grades = unit.get(SqlGrades).of_sessions(graded)
    return [judged_by_grades(sessions[one], grades[one]) for one in sorted(graded)]
