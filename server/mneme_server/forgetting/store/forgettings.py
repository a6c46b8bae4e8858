"""What was forgotten, in a tenant's database."""

from __future__ import annotations

import json

from sqlalchemy import Connection, select

from mneme_server.common.canonical import canonical_json
from mneme_server.forgetting.model import Forgetting, Outcome
from mneme_server.forgetting.store.tables import forgettings
from mneme_server.storage.forgetting import Forgets, SqlForgetter
from mneme_server.storage.rows import upsert

_c = forgettings.c


class SqlForgettings:
    """Implements `ForgettingRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, forgetting_id: str) -> Forgetting | None:
        query = select(forgettings).where(_c.tenant_id == self._tenant_id, _c.id == forgetting_id)
        row = self._connection.execute(query).first()
        if row is None:
            return None
        return Forgetting(
            id=row.id,
            outcome=Outcome(json.loads(row.counts), tuple(json.loads(row.policies))),
            leaves=tuple((first, last) for first, last in json.loads(row.leaves)),
            hidden_us=row.hidden_at,
            erased_us=row.erased_at,
            receipt=None if row.receipt is None else json.loads(row.receipt),
        )

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
        }
        self._connection.execute(upsert(forgettings), row)

    def ids(self) -> set[str]:
        query = select(_c.id).where(_c.tenant_id == self._tenant_id)
        return set(self._connection.execute(query).scalars())


FORGETS = Forgets(SqlForgetter, {forgettings: "says what was forgotten: counts, no content"})
