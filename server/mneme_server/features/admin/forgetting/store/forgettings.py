"""What was forgotten, in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.engine.store.forgetting import Forgets, SqlForgetter
from mneme_server.engine.store.rows import upsert
from mneme_server.features.admin.forgetting.model import Forgetting, Outcome
from mneme_server.features.admin.forgetting.store.tables import forgettings

_c = forgettings.c


class SqlForgettings:
    """Implements `ForgettingRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, forgetting_id: str) -> Forgetting | None:
        query = select(forgettings).where(_c.tenant_id == self._tenant_id, _c.id == forgetting_id)
        row = self._connection.execute(query).first()
        return None if row is None else _forgetting(row)

    def all(self) -> Sequence[Forgetting]:
        query = select(forgettings).where(_c.tenant_id == self._tenant_id)
        return [_forgetting(row) for row in self._connection.execute(query.order_by(_c.id))]

    def save(self, forgetting: Forgetting) -> None:
        receipt = forgetting.receipt
        row = {
            "tenant_id": self._tenant_id,
            "id": forgetting.id,
            "counts": canonical_json(dict(forgetting.outcome.counts)),
            "policies": canonical_json(list(forgetting.outcome.policies)),
            "leaves": canonical_json([list(run) for run in forgetting.leaves]),
            "hidden_at": forgetting.hidden_us,
            "erased_at": forgetting.erased_us,
            "receipt": None if receipt is None else canonical_json(receipt),
            "places": canonical_json(forgetting.places),
            "mark": None if forgetting.mark is None else canonical_json(forgetting.mark),
        }
        self._connection.execute(upsert(forgettings), row)

    def ids(self) -> set[str]:
        query = select(_c.id).where(_c.tenant_id == self._tenant_id)
        return set(self._connection.execute(query).scalars())


@reads("forgetting", "id")
def _forgetting(row: Row[Any]) -> Forgetting:
    return Forgetting(
        id=row.id,
        outcome=Outcome(json.loads(row.counts), tuple(json.loads(row.policies))),
        leaves=_runs(json.loads(row.leaves)),
        hidden_us=row.hidden_at,
        erased_us=row.erased_at,
        receipt=None if row.receipt is None else json.loads(row.receipt),
        places={name: list(_runs(runs)) for name, runs in json.loads(row.places).items()},
        mark=None if row.mark is None else json.loads(row.mark),
    )


def _runs(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last) for first, last in runs)


FORGETS = Forgets(SqlForgetter, {forgettings: "says what was forgotten: counts, no content"})
