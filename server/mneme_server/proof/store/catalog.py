"""Public keys and signed heads in the catalog: they outlive what a backup puts back."""

from __future__ import annotations

from collections.abc import Sequence

from mneme.proof.notes import VerifierKey
from sqlalchemy import (
    BigInteger,
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

from mneme_server.proof.keys import LogKey, SignedHead
from mneme_server.storage.database import Database
from mneme_server.storage.portable import insert

metadata = MetaData()

log_keys = Table(
    "log_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("retired_at", BigInteger),
    Column("introduction", Text, nullable=False),
)

# Of each log the newest; in the order in which the logs were begun.
log_heads = Table(
    "log_heads",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("note", Text, nullable=False),
    Index("ix_log_heads_origin", "tenant_id", "origin", unique=True),
    sqlite_autoincrement=True,
)


class SqlLogCatalog:
    """Implements `proof.keys.LogCatalog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keys(self, tenant_id: str) -> Sequence[LogKey]:
        query = select(log_keys).where(log_keys.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            return [
                LogKey(
                    row.number,
                    VerifierKey(row.name, bytes(row.public_key)),
                    row.created_at,
                    row.retired_at,
                    row.introduction,
                )
                for row in connection.execute(query.order_by(log_keys.c.number))
            ]

    def add_key(self, tenant_id: str, key: LogKey) -> None:
        row = {
            "tenant_id": tenant_id,
            "number": key.number,
            "name": key.verifier.name,
            "public_key": key.verifier.public,
            "created_at": key.created_us,
            "introduction": key.introduction,
        }
        before = (log_keys.c.tenant_id == tenant_id, log_keys.c.number == key.number - 1)
        with self._database.write() as connection:
            connection.execute(insert(log_keys).values(row).on_conflict_do_nothing())
            connection.execute(
                update(log_keys)
                .where(*before, log_keys.c.retired_at.is_(None))
                .values(retired_at=key.created_us)
            )

    def heads(self, tenant_id: str) -> Sequence[SignedHead]:
        query = select(log_heads).where(log_heads.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            return [
                SignedHead(row.origin, row.size, bytes(row.root), row.note)
                for row in connection.execute(query.order_by(log_heads.c.number))
            ]

    def signed(self, tenant_id: str, head: SignedHead) -> None:
        values = {"size": head.size, "root": head.root, "note": head.note}
        row = {"tenant_id": tenant_id, "origin": head.origin} | values
        statement = insert(log_heads).values(row)
        statement = statement.on_conflict_do_update(
            index_elements=["tenant_id", "origin"], set_=values
        )
        with self._database.write() as connection:
            connection.execute(statement)

    def forget(self, tenant_id: str) -> None:
        with self._database.write() as connection:
            for table in (log_keys, log_heads):
                connection.execute(delete(table).where(table.c.tenant_id == tenant_id))
