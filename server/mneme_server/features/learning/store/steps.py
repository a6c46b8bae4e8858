"""The steps that sessions were told, in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, select

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader
from mneme_server.engine.store.rows import insert_rows
from mneme_server.features.learning.model import RecordedStep, Trajectory
from mneme_server.features.learning.store.tables import steps, trajectories

_c = steps.c
_KIND = "recorded step"


class SqlLearningSteps:
    """The steps that the tenant's sessions were told."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def add(self, number: int, added: Sequence[RecordedStep]) -> None:
        """Insert steps of a session."""
        rows = [
            {
                "tenant_id": self._tenant_id,
                "session": number,
                "number": step.number,
                "trajectory_id": step.trajectory_id,
                "place": step.place,
                "episode": step.episode,
                "actor": step.actor,
                "state": canonical_json(step.state),
                "action": canonical_json(step.action),
                "reward": step.reward,
                "next_state": canonical_json(step.next_state),
                "terminated": step.terminated,
                "truncated": step.truncated,
                "probability": step.probability,
                "allowed": canonical_json(list(step.allowed)) if step.allowed else "[]",
                "available": canonical_json(list(step.available)) if step.available else "[]",
                "prediction": step.prediction,
                "recorded_at": step.recorded_us,
                "episode_reward": step.episode_reward,
            }
            for step in added
        ]
        insert_rows(self._connection, steps, rows)

    def after(self, number: int, step: int, limit: int) -> Sequence[RecordedStep]:
        """Return the session's steps behind the one with this number, in their order."""
        given = {"tenant": self._tenant_id, "which": number, "after": step, "most": limit}
        return self._read(_after(), given)

    def numbered(self, number: int, chosen: Sequence[int]) -> Sequence[RecordedStep]:
        """Return the session's steps with these numbers, in the order given."""
        values = json.dumps(list(chosen))
        given = {"tenant": self._tenant_id, "which": number, "values": values}
        found = {step.number: step for step in self._read(_numbered(), given)}
        return [found[one] for one in chosen if one in found]

    def of_trajectory(self, number: int, trajectory_id: str) -> Sequence[RecordedStep]:
        """Return the steps that were told with this id, in their order."""
        given = {"tenant": self._tenant_id, "which": number, "told": trajectory_id}
        return self._read(_of_trajectory(), given)

    def add_trajectories(self, number: int, added: Sequence[Trajectory]) -> None:
        """Insert what is noted of trajectories of a session."""
        if not added:
            return
        rows = [
            {
                "tenant_id": self._tenant_id,
                "session": number,
                "first": one.first,
                "id": one.id,
                "metadata": one.metadata_json,
                "steps": one.steps,
                "total_reward": one.total_reward,
                "recorded_at": one.recorded_us,
            }
            for one in added
        ]
        insert_rows(self._connection, trajectories, rows)

    def trajectories(self, number: int, before: int | None, limit: int) -> Sequence[Trajectory]:
        """Return a session's trajectories, the last recorded first, whose first steps have numbers
        below `before`."""
        query = select(trajectories).where(
            trajectories.c.tenant_id == self._tenant_id, trajectories.c.session == number
        )
        if before is not None:
            query = query.where(trajectories.c.first < before)
        query = query.order_by(trajectories.c.first.desc()).limit(limit)
        return read_rows(self._connection, query, _trajectory, kind="trajectory")

    def used(self, number: int, predictions: Sequence[str]) -> Sequence[str]:
        """Return those of these predictions of which it was told what came of them."""
        values = json.dumps(list(predictions))
        given = {"tenant": self._tenant_id, "which": number, "values": values}
        return [str(row.prediction) for row in _used().all(self._connection, given)]

    def _read(self, query: Prepared, given: dict[str, Any]) -> list[RecordedStep]:
        return read_rows(self._connection, query, _step, given, kind=_KIND, key="number")


_step = reads(_KIND, "number")(
    row_reader(
        steps,
        RecordedStep,
        parts=dict.fromkeys(("state", "action", "next_state", "allowed", "available"), json.loads),
    )
)
_trajectory = reads("trajectory")(row_reader(trajectories, Trajectory))
_mine = (_c.tenant_id == bindparam("tenant"), _c.session == bindparam("which"))


@cache
def _after() -> Prepared:
    later = select(steps).where(*_mine, _c.number > bindparam("after"))
    return Prepared(later.order_by(_c.number).limit(bindparam("most")))


@cache
def _of_trajectory() -> Prepared:
    told = select(steps).where(*_mine, _c.trajectory_id == bindparam("told"))
    return Prepared(told.order_by(_c.place))


@cache
def _numbered() -> Prepared:
    return Prepared(
        select(steps).where(*_mine, _c.number.in_(listed(bindparam("values"), numbers=True)))
    )


@cache
def _used() -> Prepared:
    return Prepared(
        select(_c.prediction).where(*_mine, _c.prediction.in_(listed(bindparam("values"))))
    )
