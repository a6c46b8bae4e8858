"""Forgetting of recorded steps, and of what was learned of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    String,
    Table,
    cast,
    delete,
    func,
    or_,
    select,
    update,
)

from mneme_server.common.canonical import canonical_json
from mneme_server.engine.corpus.forgetting import (
    AGENT,
    SESSION,
    USER,
    ForgetSelection,
    Items,
    merged,
)
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, SqlForgetter, array
from mneme_server.engine.store.portable import listed
from mneme_server.engine.store.rows import chunks
from mneme_server.features.learning.export.learned_skills import skill_id
from mneme_server.features.learning.imports.mapping import trajectory_of
from mneme_server.features.learning.imports.records import RecordKind
from mneme_server.features.learning.model import (
    LearningMode,
    LearningProgress,
    RecordedStep,
    Trajectory,
)
from mneme_server.features.learning.sessions.experience import recounted, sum_of
from mneme_server.features.learning.sessions.policy import sources_of
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.store.tables import (
    checkpoints,
    export_chunks,
    exports,
    points,
    sessions,
    steps,
    trajectories,
    usage,
)
from mneme_server.features.skills.model import MADE

STEP, POLICY, LEARNING_SESSION = "learning_step", "policy", "learning_session"
_RECORDS = {SESSION: RecordKind.SESSIONS, "episode": RecordKind.EPISODES}
_PAGE = 500
_ALL = 2**31 - 1
_c, _t = steps.c, trajectories.c
_TEXTS = (_c.state, _c.action, _c.next_state, _c.allowed, _c.available)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LONGEST_NAME = 200
_ID = cast(_c.session, String) + ":" + cast(_c.number, String)


class LearningForgetter(SqlForgetter):
    """Forgets recorded steps, by "NUMBER:STEP", and sessions that learn.

    A step is of a user or an agent who acted in it, or whom its state or action names; it follows
    from a session or an episode that its trajectory is called after. A policy that learned from a
    step begins anew, with the steps that are left; so does one that took over what such a policy
    had learned. Where a session was deleted that a policy had taken over from, nobody can tell any
    more of whom that was: it begins anew when anybody is forgotten, or any session or episode.
    """

    renumbered = frozenset({STEP, POLICY})

    @property
    def kinds(self) -> frozenset[str]:
        """See `Forgetter`. A policy is not named itself: its session is."""
        return frozenset({STEP, LEARNING_SESSION})

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        names = {selection.user_id, selection.agent_id} - {""}
        found: list[Items] = [{STEP: self._naming(name)} for name in names]
        # Steps may be called after what nobody has recorded, or after a backup was made.
        found.append(self.derived({one: set(selection.items.get(one, ())) for one in _RECORDS}))
        if names:
            found.append({POLICY: self._of_deleted})
        if wanted := selection.items.get(LEARNING_SESSION):
            of_these = sessions.c.id.in_(listed(array(wanted)))
            found.append({LEARNING_SESSION: self.select(sessions.c.id, of_these)})
        if wanted := selection.items.get(STEP):
            found.append({STEP: self._steps_where(_ID.in_(listed(array(wanted))))})
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        follow: list[Items] = []
        named: set[str] = set()
        for what, kind in _RECORDS.items():
            for one in found.get(what, ()):
                named |= {one, trajectory_of(kind, one)}
        if named:
            trajectory = _c.trajectory_id.in_(listed(array(named)))
            follow.append({STEP: self._steps_where(trajectory), POLICY: self._of_deleted})
        if gone := found.get(LEARNING_SESSION):
            theirs = select(sessions.c.number).where(
                sessions.c.tenant_id == self._tenant_id, sessions.c.id.in_(listed(array(gone)))
            )
            follow.append({STEP: self._steps_where(_c.session.in_(theirs)), POLICY: gone})
        if lost := found.get(STEP):
            numbers = {int(step.partition(":")[0]) for step in lost}
            learned = or_(
                sessions.c.mode == LearningMode.INLINE,  # In memory it has, whatever was saved.
                sessions.c.learned > 0,
                sessions.c.number.in_(self._sessions_of(checkpoints)),
                sessions.c.number.in_(self._sessions_of(exports)),
            )
            of_these = sessions.c.number.in_(numbers)
            follow.append({POLICY: self.select(sessions.c.id, of_these, learned)})
            follow.append({POLICY: self._taken_over(lost)})
        if policies := found.get(POLICY):
            query = select(sessions.c.number).where(
                sessions.c.tenant_id == self._tenant_id, sessions.c.id.in_(listed(array(policies)))
            )
            made = map(skill_id, self._connection.execute(query).scalars())
            follow.append({MADE: set(made)})
        return merged(follow)

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        of_session: dict[int, list[int]] = defaultdict(list)
        for step in found.get(STEP, ()):
            session, _, place = step.partition(":")
            of_session[int(session)].append(int(place))
        gone = found.get(LEARNING_SESSION, set())
        for session_id in gone:
            session_number = self._number(session_id)
            if session_number is not None:
                of_session.pop(session_number, None)
                SqlLearningSessions(self._connection, self._tenant_id).delete(session_number)
        for number, places in sorted(of_session.items()):
            self._erase_steps(number, sorted(places))
        for session_id in found.get(POLICY, set()) - gone:
            session_number = self._number(session_id)
            if session_number is not None:
                self._begin_anew(session_number)

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`."""
        if what in (USER, AGENT):
            yield from self.distinct(_c.actor)
            yield from self._named_in_texts()
        if what in (LEARNING_SESSION, POLICY):
            yield from self.distinct(sessions.c.id)
        if what == STEP:
            yield from self._steps_where()
        if what in _RECORDS:
            for trajectory in self.select(_c.trajectory_id, _c.trajectory_id.is_not(None)):
                yield trajectory
                yield trajectory.removeprefix(trajectory_of(_RECORDS[what], ""))

    def _naming(self, name: str) -> set[str]:
        written = canonical_json(name)
        found = self._steps_where(_c.actor == name)
        for session, number in self._with(written, _TEXTS, _c.session, _c.number):
            found.add(f"{session}:{number}")
        noted: dict[int, list[str]] = defaultdict(list)
        for session, trajectory in self._with(written, (_t.metadata,), _t.session, _t.id):
            noted[session].append(trajectory)
        for session, ids in noted.items():
            theirs = _c.trajectory_id.in_(listed(array(ids)))
            found |= self._steps_where(_c.session == session, theirs)
        return found

    def _with(
        self, written: str, texts: Sequence[Column[str]], *wanted: Column[Any]
    ) -> Iterator[Sequence[Any]]:
        """Yield these columns of the rows with a string, as JSON writes it, in one of the texts.
        `","` may also stand between two strings: only reading them tells."""
        query = select(*wanted, *texts).where(
            wanted[0].table.c.tenant_id == self._tenant_id,
            or_(*(_holds(text, written) for text in texts)),
        )
        for row in self._connection.execute(query):
            if any(written in _STRING.findall(text) for text in row[len(wanted) :]):
                yield row[: len(wanted)]

    def _named_in_texts(self) -> set[str]:
        """Return all that `_naming` may find but actors."""
        found: set[str] = set()
        for text in (*_TEXTS, _t.metadata):
            query = select(text).where(text.table.c.tenant_id == self._tenant_id)
            for written in self._connection.execute(query).scalars():
                found |= {json.loads(string) for string in _STRING.findall(written)}
        return {name for name in found if len(name) <= _LONGEST_NAME}

    def _steps_where(self, *conditions: Any) -> set[str]:
        query = select(_c.session, _c.number).where(_c.tenant_id == self._tenant_id, *conditions)
        return {f"{session}:{number}" for session, number in self._connection.execute(query)}

    def _taken_over(self, lost: Collection[str]) -> set[str]:
        """Return the policies that took over what another session had learned from some steps."""
        first: dict[int, int] = {}
        for step in lost:
            session, _, place = step.partition(":")
            first[int(session)] = min(int(place), first.get(int(session), _ALL))
        return self._that_took_over(lambda number, steps: first.get(number, _ALL) <= steps)

    @cached_property
    def _of_deleted(self) -> set[str]:
        """The policies that took over what a session had learned that is deleted now."""
        query = select(sessions.c.number).where(sessions.c.tenant_id == self._tenant_id)
        there = set(self._connection.execute(query).scalars())
        return self._that_took_over(lambda number, steps: number not in there and steps > 0)

    def _that_took_over(self, wanted: Callable[[int, int], bool]) -> set[str]:
        """Return the policies with a wanted source, by its number and the number of steps that it
        had learned from; and those of which nobody can tell."""
        return {
            session_id
            for session_id, sources in self._sources.items()
            if sources is None or any(wanted(*source) for source in sources.items())
        }

    @cached_property
    def _sources(self) -> Mapping[str, Mapping[int, int] | None]:
        """What each policy took over; None where its checkpoint is damaged."""
        query = select(sessions.c.id, checkpoints.c.digest, checkpoints.c.data).where(
            sessions.c.tenant_id == self._tenant_id,
            checkpoints.c.tenant_id == self._tenant_id,
            checkpoints.c.session == sessions.c.number,
        )
        return {
            session_id: _sources_of(bytes(data), bytes(digest))
            for session_id, digest, data in self._connection.execute(query)
        }

    def _number(self, session_id: str) -> int | None:
        query = select(sessions.c.number).where(
            sessions.c.tenant_id == self._tenant_id, sessions.c.id == session_id
        )
        number: int | None = self._connection.execute(query).scalar()
        return number

    def _erase_steps(self, number: int, places: list[int]) -> None:
        """Delete steps of a session, number the others without gaps, and count them again."""
        mine = (_c.tenant_id == self._tenant_id, _c.session == number)
        for some in chunks(places):
            self._connection.execute(delete(steps).where(*mine, _c.number.in_(some)))
        place = func.row_number().over(order_by=_c.number) + (places[0] - 1)
        following = select(_c.number, place.label("place")).where(*mine, _c.number > places[0])
        left = following.subquery()
        # Below 0 first, where every place is free: statements change rows in any order.
        for which, moved in (
            (_c.number == left.c.number, -left.c.place),
            (_c.number < 0, -_c.number),
        ):
            again = {"number": moved, "episode_reward": None}
            self._connection.execute(update(steps).where(*mine, which).values(again))
        noted = self._note_again(number)
        self._delete_of(points, number)  # They are of episodes that are counted anew.
        session = self._session(number)
        counts, seen = recounted(session.definition.actions, self._left(number))
        values = {
            "seen": canonical_json(list(seen)),
            "transitions": counts.transitions,
            "episodes": counts.episodes,
            "total_reward": counts.total_reward,
            "ended_reward": counts.ended_reward,
            "lowest": counts.lowest,
            "highest": counts.highest,
            "bytes": counts.bytes + sum(len(one.metadata_json) for one in noted),
        }
        self._change(number, values)

    def _note_again(self, number: int) -> Sequence[Trajectory]:
        """Have what is noted of a session's trajectories fit the steps that are left of them, and
        return it."""
        repository = SqlLearningSteps(self._connection, self._tenant_id)
        noted = repository.trajectories(number, None, _ALL)
        self._delete_of(trajectories, number)
        query = (
            select(_c.trajectory_id, _c.number, _c.reward)
            .where(_c.tenant_id == self._tenant_id, _c.session == number)
            .order_by(_c.number)
        )
        left: dict[str | None, list[tuple[int, float]]] = defaultdict(list)
        for trajectory, place, reward in self._connection.execute(query):
            left[trajectory].append((place, reward))
        again = [
            replace(
                one,
                first=steps_left[0][0],
                steps=len(steps_left),
                total_reward=sum_of(reward for _, reward in steps_left),
            )
            for one in noted
            if (steps_left := left.get(one.id))
        ]
        repository.add_trajectories(number, again)
        return again

    def _sessions_of(self, table: Table) -> Any:
        return select(table.c.session).where(table.c.tenant_id == self._tenant_id)

    def _begin_anew(self, number: int) -> None:
        """Have a policy know nothing, so that it learns again what is left."""
        for table in (checkpoints, export_chunks, exports, points):
            self._delete_of(table, number)
        nothing = LearningProgress()
        self._change(
            number,
            {
                "learned": nothing.learned,
                "updates": nothing.updates,
                "training_us": nothing.training_us,
            },
        )

    def _delete_of(self, table: Table, number: int) -> None:
        self._connection.execute(
            delete(table).where(table.c.tenant_id == self._tenant_id, table.c.session == number)
        )

    def _change(self, number: int, values: dict[str, Any]) -> None:
        self._connection.execute(
            update(sessions)
            .where(sessions.c.tenant_id == self._tenant_id, sessions.c.number == number)
            .values(values)
        )

    def _session(self, number: int) -> Any:
        query = select(sessions.c.id).where(
            sessions.c.tenant_id == self._tenant_id, sessions.c.number == number
        )
        session_id = self._connection.execute(query).scalar_one()
        return SqlLearningSessions(self._connection, self._tenant_id).get(session_id)

    def _left(self, number: int) -> Iterator[RecordedStep]:
        repository = SqlLearningSteps(self._connection, self._tenant_id)
        after = 0
        while page := repository.after(number, after, _PAGE):
            yield from page
            after = page[-1].number


def _sources_of(checkpoint: bytes, digest: bytes) -> Mapping[int, int] | None:
    if hashlib.sha256(checkpoint).digest() != digest:
        return None
    try:
        return sources_of(checkpoint)
    except ValueError:
        return None


def _holds(text: Column[str], part: str) -> ColumnElement[bool]:
    """Whether a text holds another one. On SQLite, LIKE takes "Ann" for "ann"."""
    return func.replace(text, part, "") != text


FORGETS = Forgets(
    LearningForgetter,
    {
        sessions: "counted again; deleted when it is forgotten itself",
        steps: "deleted",
        trajectories: "deleted with their steps",
        usage: "kept: it names nobody",
        checkpoints: "deleted where something was learned of what is forgotten",
        exports: "deleted where something was learned of what is forgotten",
        export_chunks: "deleted with the model that they are parts of",
        points: "deleted where something was learned of what is forgotten",
    },
)
