"""Forgettings in tenants' databases, and what was asked for in the catalog."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.stored import reads
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.forgetting import Forgets, SqlForgetter
from mneme_server.engine.store.portable import insert
from mneme_server.engine.store.rows import upsert
from mneme_server.engine.store.schema import (
    json_column,
    metadata,
    rows_are,
    tenant_key,
    time_column,
)
from mneme_server.features.admin.forgetting.model import Forgetting, ForgettingOutcome

forgettings = Table(
    "forgettings",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    json_column("counts"),
    json_column("policies"),
    json_column("leaves"),
    time_column("hidden_at"),
    time_column("erased_at", nullable=True),
    Column("receipt", Text, info={"json": True}),
    # Places in chains of events, by their sessions' digests, as runs.
    Column("places", Text, nullable=False, server_default="{}", info={"json": True}),
    # Who signed `leaves` and `places`.
    Column("mark", Text, info={"json": True}),
    info=rows_are("forgetting", "id"),
)

asked_metadata = MetaData()
salts = Table(
    "forgetting_salts",
    asked_metadata,
    Column("tenant_id", String, primary_key=True),
    Column("salt", LargeBinary, nullable=False),
)
asked_to_forget = Table(
    "asked_to_forget",
    asked_metadata,
    Column("number", Integer, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("id", String, nullable=False),
    Column("asked", Text, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("erased", Boolean, nullable=False),
    Index("ix_asked_to_forget", "tenant_id", "id", unique=True),
    sqlite_autoincrement=True,
)

FORGETS = Forgets(SqlForgetter, {forgettings: "says what was forgotten: counts, no content"})
_done = forgettings.c
_requests = asked_to_forget.c
_SALT_BYTES = 32


class SqlForgettings:
    """What a tenant knows of what it forgot."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, forgetting_id: str) -> Forgetting | None:
        """Return a forgetting, or None."""
        query = select(forgettings).where(
            _done.tenant_id == self._tenant_id, _done.id == forgetting_id
        )
        row = self._connection.execute(query).first()
        return None if row is None else _forgetting(row)

    def all(self) -> Sequence[Forgetting]:
        """Return all of them."""
        query = select(forgettings).where(_done.tenant_id == self._tenant_id)
        return [_forgetting(row) for row in self._connection.execute(query.order_by(_done.id))]

    def save(self, forgetting: Forgetting) -> None:
        """Insert or replace a forgetting."""
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
        """Return the ids of all of them."""
        query = select(_done.id).where(_done.tenant_id == self._tenant_id)
        return set(self._connection.execute(query).scalars())


@reads("forgetting", "id")
def _forgetting(row: Row[Any]) -> Forgetting:
    return Forgetting(
        id=row.id,
        outcome=ForgettingOutcome(json.loads(row.counts), tuple(json.loads(row.policies))),
        leaves=_runs(json.loads(row.leaves)),
        hidden_us=row.hidden_at,
        erased_us=row.erased_at,
        receipt=None if row.receipt is None else json.loads(row.receipt),
        places={name: list(_runs(runs)) for name, runs in json.loads(row.places).items()},
        mark=None if row.mark is None else json.loads(row.mark),
    )


def _runs(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last) for first, last in runs)


class SqlForgettingCatalog:
    """What the server knows of what its tenants were asked to forget: it outlives their databases,
    so that a backup that is put back forgets again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def salt(self, tenant_id: str) -> bytes:
        """Return what is hashed with the names of a tenant, made at first."""
        query = select(salts.c.salt).where(salts.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            known = connection.execute(query).scalar()
        if known is None:
            made = {"tenant_id": tenant_id, "salt": secrets.token_bytes(_SALT_BYTES)}
            with self._database.write() as connection:
                connection.execute(insert(salts).on_conflict_do_nothing(), made)
                known = connection.execute(query).scalar_one()
        return bytes(known)

    def add(self, tenant_id: str, forgetting_id: str, asked: JsonObject, now_us: int) -> None:
        """Note what is asked for; nothing when the id is known."""
        row = {
            "tenant_id": tenant_id,
            "id": forgetting_id,
            "asked": canonical_json(asked),
            "asked_at": now_us,
            "erased": False,
        }
        with self._database.write() as connection:
            connection.execute(insert(asked_to_forget).on_conflict_do_nothing(), row)

    def get(self, tenant_id: str, forgetting_id: str) -> JsonObject | None:
        """Return what was asked for, or None."""
        query = select(_requests.asked).where(
            _requests.tenant_id == tenant_id, _requests.id == forgetting_id
        )
        with self._database.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else json.loads(found)

    def all_of(self, tenant_id: str) -> Mapping[str, JsonObject]:
        """Return what a tenant was asked to forget, by id, in its order."""
        query = (
            select(_requests.id, _requests.asked)
            .where(_requests.tenant_id == tenant_id)
            .order_by(_requests.number)
        )
        with self._database.read() as connection:
            return {row.id: json.loads(row.asked) for row in connection.execute(query)}

    def unfinished(self) -> Sequence[tuple[str, str, JsonObject]]:
        """Return what is not erased yet: the tenant, the id, what was asked for."""
        query = select(_requests.tenant_id, _requests.id, _requests.asked).where(
            _requests.erased.is_(False)
        )
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_requests.number)).all()
        return [(row.tenant_id, row.id, json.loads(row.asked)) for row in rows]

    def erased(self, tenant_id: str, forgetting_id: str) -> None:
        """Note that a forgetting is done."""
        mine = (_requests.tenant_id == tenant_id, _requests.id == forgetting_id)
        with self._database.write() as connection:
            connection.execute(update(asked_to_forget).where(*mine).values(erased=True))

    def drop(self, tenant_id: str) -> None:
        """Drop what is known of a tenant that is deleted."""
        with self._database.write() as connection:
            for table in (asked_to_forget, salts):
                connection.execute(delete(table).where(table.c.tenant_id == tenant_id))

    def scrub(self) -> None:
        """Leave nothing in the catalog's files of what was deleted."""
        self._database.scrub()
