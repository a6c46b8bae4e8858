"""What tenants were asked to forget, in the catalog."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.engine.store.database import Database
from mneme_server.engine.store.portable import insert

metadata = MetaData()

salts = Table(
    "forgetting_salts",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("salt", LargeBinary, nullable=False),
)

asked_to_forget = Table(
    "asked_to_forget",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("id", String, nullable=False),
    Column("asked", Text, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("erased", Boolean, nullable=False),
    Index("ix_asked_to_forget", "tenant_id", "id", unique=True),
    sqlite_autoincrement=True,
)

_c = asked_to_forget.c
_SALT_BYTES = 32


class SqlForgettingCatalog:
    """Implements `ForgettingCatalog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def salt(self, tenant_id: str) -> bytes:
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
        query = select(_c.asked).where(_c.tenant_id == tenant_id, _c.id == forgetting_id)
        with self._database.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else json.loads(found)

    def all_of(self, tenant_id: str) -> Mapping[str, JsonObject]:
        query = select(_c.id, _c.asked).where(_c.tenant_id == tenant_id).order_by(_c.number)
        with self._database.read() as connection:
            return {row.id: json.loads(row.asked) for row in connection.execute(query)}

    def unfinished(self) -> Sequence[tuple[str, str, JsonObject]]:
        query = select(_c.tenant_id, _c.id, _c.asked).where(_c.erased.is_(False))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_c.number)).all()
        return [(row.tenant_id, row.id, json.loads(row.asked)) for row in rows]

    def erased(self, tenant_id: str, forgetting_id: str) -> None:
        mine = (_c.tenant_id == tenant_id, _c.id == forgetting_id)
        with self._database.write() as connection:
            connection.execute(update(asked_to_forget).where(*mine).values(erased=True))

    def drop(self, tenant_id: str) -> None:
        with self._database.write() as connection:
            for table in (asked_to_forget, salts):
                connection.execute(delete(table).where(table.c.tenant_id == tenant_id))

    def scrub(self) -> None:
        self._database.scrub()
