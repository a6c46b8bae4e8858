"""Experiments, their assignments and observations in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import (
    Connection,
    Integer,
    Select,
    Table,
    case,
    cast,
    delete,
    func,
    select,
)

from mneme_server.common.stored import reads
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import latest_after, upsert
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.causal.model import (
    Assignment,
    Experiment,
    ExperimentResult,
    ExperimentStatus,
    Observation,
    Outcomes,
)
from mneme_server.features.causal.store.tables import (
    causal_assignments,
    causal_experiments,
    causal_observations,
)

_EXPERIMENTS = "causal_experiments"


class SqlExperiments:
    """The tenant's experiments."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, experiment_id: str) -> Experiment | None:
        """Return an experiment, or None."""
        query = self._experiments(select(causal_experiments)).where(
            causal_experiments.c.id == experiment_id
        )
        found = read_rows(self._connection, query, _experiment, kind="experiment")
        return found[0] if found else None

    def save(self, experiment: Experiment) -> None:
        """Insert or replace an experiment, but for what is counted of it."""
        ids = {experiment.id}
        before = known(self._connection, self._tenant_id, causal_experiments.c.id, ids)
        counted = ("assigned", "observed")
        row = _experiment_row(experiment, self._tenant_id)
        self._connection.execute(upsert(causal_experiments, keep=counted), row)
        add_to_total(self._connection, self._tenant_id, _EXPERIMENTS, 1 - before)

    def remove(self, experiment_id: str) -> None:
        """Remove an experiment with its assignments and observations."""
        gone = self._connection.execute(
            delete(causal_experiments).where(
                causal_experiments.c.tenant_id == self._tenant_id,
                causal_experiments.c.id == experiment_id,
            )
        )
        add_to_total(self._connection, self._tenant_id, _EXPERIMENTS, -gone.rowcount)

    def page(
        self, status: ExperimentStatus | None, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Experiment]:
        """Return experiments, latest first, that come after the key (created_us, id)."""
        columns = causal_experiments.c
        query = self._having(select(causal_experiments), status)
        query = latest_after(query, columns.created_at, columns.id, after, limit)
        return read_rows(self._connection, query, _experiment, kind="experiment")

    def count(self, status: ExperimentStatus | None) -> int:
        """Return how many have this status, or any."""
        if status is None:
            return total(self._connection, self._tenant_id, _EXPERIMENTS)
        query = self._having(select(func.count()).select_from(causal_experiments), status)
        return int(self._connection.execute(query).scalar_one())

    def _having(self, query: Select[Any], status: ExperimentStatus | None) -> Select[Any]:
        query = self._experiments(query)
        if status is None:
            return query
        return query.where(causal_experiments.c.status == int(status))

    def _experiments(self, query: Select[Any]) -> Select[Any]:
        return query.where(causal_experiments.c.tenant_id == self._tenant_id)

    def assignment(self, experiment_id: str, subject: str) -> Assignment | None:
        """Return a subject's assignment, or None."""
        query = self._of(causal_assignments, experiment_id).where(
            causal_assignments.c.subject == subject
        )
        found = read_rows(self._connection, query, _assignment, kind="assignment", key="subject")
        return found[0] if found else None

    def assigned_in(self, experiment_id: str, stratum: str) -> int:
        """Return how many subjects of a stratum were assigned."""
        columns = causal_assignments.c
        query = select(func.max(columns.place)).where(
            columns.tenant_id == self._tenant_id,
            columns.experiment_id == experiment_id,
            columns.stratum == stratum,
        )
        last = self._connection.execute(query).scalar_one()
        return 0 if last is None else int(last) + 1

    def assign(self, experiment_id: str, assignment: Assignment) -> None:
        """Insert an assignment, and count it."""
        row = {
            "tenant_id": self._tenant_id,
            "experiment_id": experiment_id,
            "subject": assignment.subject,
            "treatment": assignment.treatment,
            "stratum": assignment.stratum,
            "place": assignment.place,
            "assigned_at": assignment.assigned_us,
        }
        self._connection.execute(causal_assignments.insert(), row)
        self._count_one(experiment_id, "assigned")

    def observation(self, experiment_id: str, observation_id: str) -> Observation | None:
        """Return an observation, or None."""
        query = self._of(causal_observations, experiment_id).where(
            causal_observations.c.id == observation_id
        )
        found = read_rows(self._connection, query, _observation, kind="observation")
        return found[0] if found else None

    def observe(self, experiment_id: str, observation: Observation) -> None:
        """Insert an observation, and count it."""
        row = {
            "tenant_id": self._tenant_id,
            "experiment_id": experiment_id,
            "id": observation.id,
            "subject": observation.subject,
            "treatment": observation.treatment,
            "assigned": observation.assigned,
            "outcome": observation.outcome,
            "context": observation.context_json,
            "observed_at": observation.observed_us,
        }
        self._connection.execute(causal_observations.insert(), row)
        self._count_one(experiment_id, "observed")

    def _count_one(self, experiment_id: str, column: str) -> None:
        self._connection.execute(
            causal_experiments.update()
            .where(
                causal_experiments.c.tenant_id == self._tenant_id,
                causal_experiments.c.id == experiment_id,
            )
            .values({column: causal_experiments.c[column] + 1})
        )

    def outcomes(self, experiment_id: str) -> Outcomes:
        """Return all observations, by subject."""
        columns = causal_observations.c
        treated, assigned = (cast(one, Integer) for one in (columns.treatment, columns.assigned))
        # One without a subject is a subject of its own, told by its id.
        query = (
            select(
                func.min(treated),
                func.max(treated),
                func.avg(columns.outcome),
                func.max(assigned),
                func.count(),
            )
            .where(columns.tenant_id == self._tenant_id, columns.experiment_id == experiment_id)
            .group_by(columns.subject, case((columns.subject == "", columns.id), else_=""))
        )
        rows = self._connection.execute(query).all()
        of_one_arm = [row for row in rows if row[0] == row[1]]
        return Outcomes(
            values=np.array([row[2] for row in of_one_arm], np.float64),
            treated=np.array([row[0] for row in of_one_arm], np.bool_),
            assigned=np.array([row[3] for row in of_one_arm], np.bool_),
            repeated=sum(row[4] > 1 for row in of_one_arm),
            in_both=len(rows) - len(of_one_arm),
        )

    def _of(self, table: Table, experiment_id: str) -> Select[Any]:
        return select(table).where(
            table.c.tenant_id == self._tenant_id, table.c.experiment_id == experiment_id
        )


def _result(text: str) -> ExperimentResult | None:
    result = json.loads(text)
    return ExperimentResult.of(result) if result else None


def _result_json(experiment: Experiment) -> str:
    result = {} if experiment.result is None else asdict(experiment.result)
    return json.dumps(result, ensure_ascii=False)


_experiment = reads("experiment")(
    row_reader(
        causal_experiments,
        Experiment,
        spelled={"observations": "observed"},
        parts={"result": _result},
    )
)
_experiment_row = row_writer(
    Experiment,
    causal_experiments,
    spelled={"observations": "observed"},
    made={"result": _result_json},
)
_assignment = reads("assignment", "subject")(row_reader(causal_assignments, Assignment))
_observation = reads("observation")(row_reader(causal_observations, Observation))
