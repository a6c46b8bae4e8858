"""Sessions, their checkpoints and how they did, in a tenant's database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)

from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import NotFound, Reason
from mneme_server.common.stored import damaged, reads, require_times
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import listed
from mneme_server.engine.store.reading import read_first, read_rows
from mneme_server.engine.store.records import row_reader
from mneme_server.engine.store.rows import insert_numbered, insert_rows, upsert
from mneme_server.features.learning.catalogue import completed
from mneme_server.features.learning.model import (
    Checkpoint,
    Definition,
    LearningMode,
    LearningProgress,
    LearningSession,
    LearningStatus,
    MetricPoint,
    SessionCounts,
)
from mneme_server.features.learning.ports import LearningSessionFilter
from mneme_server.features.learning.spaces import space_of_json, space_to_json
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

_c = sessions.c
_KIND = "learning session"


class SqlLearningSessions:
    """The tenant's learning sessions."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, session_id: str) -> LearningSession | None:
        """Return a session, or None."""
        given = {"tenant": self._tenant_id, "which": session_id}
        return read_first(self._connection, _by_id(), _session, given, kind=_KIND)

    def page(
        self, filter_: LearningSessionFilter, before: int | None, limit: int
    ) -> Sequence[LearningSession]:
        """Return sessions, the last started first, whose numbers are below `before`."""
        query = select(sessions).where(_c.tenant_id == self._tenant_id)
        if filter_.algorithm:
            query = query.where(_c.algorithm == filter_.algorithm)
        if filter_.status is not None:
            query = query.where(_c.status == int(filter_.status))
        if before is not None:
            query = query.where(_c.number < before)
        query = query.order_by(_c.number.desc()).limit(limit)
        return read_rows(self._connection, query, _session, kind=_KIND)

    def count(self, status: LearningStatus | None = None) -> int:
        """Return how many there are."""
        query = select(func.count()).where(_c.tenant_id == self._tenant_id)
        if status is not None:
            query = query.where(_c.status == int(status))
        return int(self._connection.execute(query).scalar_one())

    def transitions(self) -> int:
        """Return how many transitions they have been told, together."""
        query = select(func.coalesce(func.sum(_c.transitions), 0)).where(
            _c.tenant_id == self._tenant_id
        )
        return int(self._connection.execute(query).scalar_one())

    def behind(self) -> Sequence[str]:
        """Return the ids of those that learn in the background and have not saved all that they
        were told as learned."""
        query = select(_c.id).where(
            _c.tenant_id == self._tenant_id,
            _c.mode == int(LearningMode.BACKGROUND),
            _c.learned < _c.transitions,
        )
        return list(self._connection.execute(query).scalars())

    def taken_bytes(self) -> int:
        """Return how many bytes the recorded steps and the exported models of all take."""
        row = _bytes().first(self._connection, {"tenant": self._tenant_id})
        return int(row.taken) if row is not None else 0

    def add(self, session: LearningSession) -> LearningSession:
        """Insert a session; return it with its number."""
        definition = session.definition
        row = {
            "tenant_id": self._tenant_id,
            "id": session.id,
            "algorithm": definition.algorithm,
            "version": session.version,
            "config": canonical_json(dict(definition.config)),
            "state_space": canonical_json(space_to_json(definition.states)),
            "action_space": canonical_json(space_to_json(definition.actions)),
            "seed": definition.seed,
            "mode": int(definition.mode),
            "secret": session.secret,
            "created_at": session.created_us,
            **_progressed(session.progress),
            **_changing(session),
        }
        insert_numbered(self._connection, self._tenant_id, sessions, [row])
        added = self.get(session.id)
        assert added is not None
        return added

    def update(self, session: LearningSession) -> None:
        """Store what has changed of a session: its status, counts, labels and times."""
        given = {"mine": self._tenant_id, "which": session.number, **_changing(session)}
        if not self._connection.execute(_update(), given).rowcount:
            raise NotFound(
                f"there is no learning session {session.id!r}",
                reason=Reason.SESSION_NOT_FOUND,
                field="session_id",
            )

    def delete(self, number: int) -> None:
        """Delete a session with all that belongs to it."""
        for table, column in (
            (steps, "session"), (trajectories, "session"), (points, "session"),
            (checkpoints, "session"), (export_chunks, "session"), (exports, "session"),
            (sessions, "number"),
        ):  # fmt: skip
            self._connection.execute(
                delete(table).where(table.c.tenant_id == self._tenant_id, table.c[column] == number)
            )

    def checkpoint(self, number: int) -> Checkpoint | None:
        """Return what the session had learned when that was last saved.

        Raises:
            DataLoss: it is not as it was saved.
        """
        query = select(checkpoints.c.digest, checkpoints.c.data).where(
            checkpoints.c.tenant_id == self._tenant_id, checkpoints.c.session == number
        )
        row = self._connection.execute(query).first()
        if row is None:
            return None
        which = select(_c.id, _c.learned, _c.updates, _c.training_us).where(
            _c.tenant_id == self._tenant_id, _c.number == number
        )
        session = self._connection.execute(which).one()
        data = bytes(row.data)
        if hashlib.sha256(data).digest() != row.digest:
            raise damaged("checkpoint of the learning session", session.id, "its digest differs")
        return Checkpoint(
            LearningProgress(session.learned, session.updates, session.training_us), data
        )

    def save(self, number: int, checkpoint: Checkpoint) -> None:
        """Save what the session has learned."""
        mine = {"mine": self._tenant_id, "which": number}
        if not self._connection.execute(
            _progress(), {**mine, **_progressed(checkpoint.progress)}
        ).rowcount:
            return  # It was deleted.
        row = {
            "tenant_id": self._tenant_id,
            "session": number,
            "digest": hashlib.sha256(checkpoint.data).digest(),
            "data": checkpoint.data,
            "saved_at": now_us(),
        }
        self._connection.execute(upsert(checkpoints), row)

    def trained_us(self, day: int) -> int:
        """Return for how long all sessions learned on a day (since 1970), in microseconds, as far
        as it was saved."""
        row = _trained().first(self._connection, {"tenant": self._tenant_id, "which": day})
        return int(row.training_us) if row is not None else 0

    def add_trained(self, day: int, training_us: int) -> None:
        """Add to that."""
        total = self.trained_us(day) + training_us
        row = {"tenant_id": self._tenant_id, "day": day, "training_us": total}
        self._connection.execute(upsert(usage), row)

    def add_points(self, number: int, added: Sequence[MetricPoint]) -> None:
        """Insert how a session stood when episodes ended."""
        if not added:
            return
        rows = [
            {
                "tenant_id": self._tenant_id,
                "session": number,
                "episode": point.episode,
                "transitions": point.transitions,
                "episode_reward": point.reward,
                "moving_avg_reward": point.moving_average,
                "convergence_score": point.convergence,
                "loss": point.loss,
                "value_mean": point.value,
                "gradient_norm": point.gradient_norm,
                "exploration_rate": point.exploration,
                "recorded_at": point.recorded_us,
            }
            for point in added
        ]
        insert_rows(self._connection, points, rows)

    def last_points(self, number: int, limit: int) -> Sequence[MetricPoint]:
        """Return the newest points, oldest first."""
        given = {"tenant": self._tenant_id, "which": number, "most": limit}
        found = read_rows(
            self._connection, _last_points(), _point, given, kind="training metric", key="episode"
        )
        return found[::-1]

    def points(self, number: int, episodes: Sequence[int]) -> Sequence[MetricPoint]:
        """Return the points of these episodes, oldest first."""
        given = {"tenant": self._tenant_id, "which": number, "values": json.dumps(list(episodes))}
        return read_rows(
            self._connection, _points(), _point, given, kind="training metric", key="episode"
        )


def _changing(session: LearningSession) -> dict[str, Any]:
    counts = session.counts
    return {
        "status": int(session.status),
        "seen": canonical_json(list(session.seen)),
        "transitions": counts.transitions,
        "episodes": counts.episodes,
        "total_reward": counts.total_reward,
        "ended_reward": counts.ended_reward,
        "lowest": counts.lowest,
        "highest": counts.highest,
        "bytes": counts.bytes,
        "updated_at": session.updated_us,
        "ended_at": session.ended_us,
    }


def _progressed(progress: LearningProgress) -> dict[str, Any]:
    return {
        "learned": progress.learned,
        "updates": progress.updates,
        "training_us": progress.training_us,
    }


@reads(_KIND)
def _session(row: Row[Any]) -> LearningSession:
    require_times(row.created_at, row.updated_at, row.ended_at)
    config: Mapping[str, Any] = json.loads(row.config)
    return LearningSession(
        number=row.number,
        id=row.id,
        definition=Definition(
            algorithm=row.algorithm,
            config=completed(row.algorithm, config),
            states=space_of_json(json.loads(row.state_space)),
            actions=space_of_json(json.loads(row.action_space)),
            seed=row.seed,
            mode=LearningMode(row.mode),
        ),
        version=row.version,
        secret=bytes(row.secret),
        status=LearningStatus(row.status),
        seen=tuple(json.loads(row.seen)),
        counts=SessionCounts(
            transitions=row.transitions,
            episodes=row.episodes,
            total_reward=row.total_reward,
            ended_reward=row.ended_reward,
            lowest=row.lowest,
            highest=row.highest,
            bytes=row.bytes,
        ),
        progress=LearningProgress(row.learned, row.updates, row.training_us),
        created_us=row.created_at,
        updated_us=row.updated_at,
        ended_us=row.ended_at,
    )


_point = reads("training metric", "episode")(
    row_reader(
        points,
        MetricPoint,
        spelled={
            "reward": "episode_reward",
            "moving_average": "moving_avg_reward",
            "convergence": "convergence_score",
            "value": "value_mean",
            "exploration": "exploration_rate",
        },
    )
)


@cache
def _by_id() -> Prepared:
    return Prepared(
        select(sessions).where(_c.tenant_id == bindparam("tenant"), _c.id == bindparam("which"))
    )


@cache
def _bytes() -> Prepared:
    told = func.coalesce(func.sum(_c.bytes), 0)
    exported = select(func.coalesce(func.sum(exports.c.size), 0)).where(
        exports.c.tenant_id == bindparam("tenant")
    )
    taken = (told + exported.scalar_subquery()).label("taken")
    return Prepared(select(taken).where(_c.tenant_id == bindparam("tenant")))


@cache
def _trained() -> Prepared:
    mine = (usage.c.tenant_id == bindparam("tenant"), usage.c.day == bindparam("which"))
    return Prepared(select(usage.c.training_us).where(*mine))


def _of_session(table: Table) -> Select[Any]:
    return select(table).where(
        table.c.tenant_id == bindparam("tenant"), table.c.session == bindparam("which")
    )


@cache
def _last_points() -> Prepared:
    newest = points.c.episode.desc()
    return Prepared(_of_session(points).order_by(newest).limit(bindparam("most")))


@cache
def _points() -> Prepared:
    of_episodes = points.c.episode.in_(listed(bindparam("values"), numbers=True))
    return Prepared(_of_session(points).where(of_episodes).order_by(points.c.episode))


_mine = (_c.tenant_id == bindparam("mine"), _c.number == bindparam("which"))


@cache
def _update() -> Any:
    names = (
        "status", "seen", "transitions", "episodes", "total_reward", "ended_reward", "lowest",
        "highest", "bytes", "updated_at", "ended_at",
    )  # fmt: skip
    return update(sessions).where(*_mine).values({name: bindparam(name) for name in names})


@cache
def _progress() -> Any:
    names = ("learned", "updates", "training_us")
    return update(sessions).where(*_mine).values({name: bindparam(name) for name in names})
