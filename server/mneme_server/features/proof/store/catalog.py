"""Keys and signed heads in the catalog: they outlive what a backup puts back."""

from __future__ import annotations

from collections.abc import Callable

from mneme.proof.notes import VerifierKey
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    select,
    update,
)

from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.portable import insert
from mneme_server.features.proof.model import KnownLog, LogKey, SignedHead

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
private_keys = Table(
    "log_private_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    # PKCS #8 in PEM.
    Column("pem", LargeBinary, nullable=False),
)


class SqlLogCatalog:
    """What outlives a tenant's database: public keys, and the heads that were signed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, tenant_id: str) -> KnownLog:
        """Return what is known of a tenant's log."""
        with self._database.read() as connection:
            return KnownLog(_keys(connection, tenant_id), _heads(connection, tenant_id))

    def add_key(self, tenant_id: str, key: LogKey) -> None:
        """Insert the first key; nothing if the tenant has one of its number."""
        with self._database.write() as connection:
            _add_key(connection, tenant_id, key)

    def rotated(
        self,
        tenant_id: str,
        key: LogKey,
        signed_anew: Callable[[SignedHead], SignedHead | None],
    ) -> None:
        """Insert a key, note that the one before is retired from its making on, and replace each
        head by what is returned for it, if anything, all at once; nothing if the tenant has a key
        of its number."""
        with self._database.write() as connection:
            if _newest_key(connection, tenant_id) >= key.number:
                return
            _add_key(connection, tenant_id, key)
            connection.execute(
                update(log_keys)
                .where(
                    log_keys.c.tenant_id == tenant_id,
                    log_keys.c.number == key.number - 1,
                    log_keys.c.retired_at.is_(None),
                )
                .values(retired_at=key.created_us)
            )
            for head in map(signed_anew, _heads(connection, tenant_id)):
                if head is not None:
                    _put_head(connection, tenant_id, head)

    def signed(self, tenant_id: str, head: SignedHead, key_number: int) -> bool:
        """Insert or replace the newest head of a log, which a key of that number signed; a larger
        one stays. Return False, and keep nothing, if the tenant has a newer key."""
        with self._database.write() as connection:
            if _newest_key(connection, tenant_id) > key_number:
                return False
            _put_head(connection, tenant_id, head)
        return True

    def forget(self, tenant_id: str) -> None:
        """Remove all of a tenant's."""
        with self._database.write() as connection:
            for table in (log_keys, log_heads):
                connection.execute(delete(table).where(table.c.tenant_id == tenant_id))


class SqlKeyPlaces:
    """Private keys in the catalog, where servers share it: a file would be one server's. Implements
    `private_keys.KeyPlaces`.

    Args:
        database: the catalog's.
    """

    put_back = "the row of the catalog's table log_private_keys"

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, tenant_id: str, number: int, pem: bytes) -> bytes:
        """Keep a key, unless another server was faster; return the one that is kept."""
        row = {"tenant_id": tenant_id, "number": number, "pem": pem}
        with self._database.write() as connection:
            connection.execute(insert(private_keys).values(row).on_conflict_do_nothing())
        return self.read(tenant_id, number)

    def replace(self, tenant_id: str, number: int, pem: bytes) -> None:
        """See `KeyPlaces`."""
        row = {"tenant_id": tenant_id, "number": number, "pem": pem}
        statement = insert(private_keys).values(row)
        statement = statement.on_conflict_do_update(
            index_elements=["tenant_id", "number"], set_={"pem": pem}
        )
        with self._database.write() as connection:
            connection.execute(statement)

    def read(self, tenant_id: str, number: int) -> bytes:
        """See `KeyPlaces`."""
        query = select(private_keys.c.pem).where(
            private_keys.c.tenant_id == tenant_id, private_keys.c.number == number
        )
        with self._database.read() as connection:
            found = connection.execute(query).scalar()
        if found is None:
            raise LookupError("it is not in the catalog")
        return bytes(found)

    def remove(self, tenant_id: str, number: int | None) -> None:
        """See `KeyPlaces`."""
        mine = [private_keys.c.tenant_id == tenant_id]
        if number is not None:
            mine.append(private_keys.c.number == number)
        with self._database.write() as connection:
            connection.execute(delete(private_keys).where(*mine))


def _keys(connection: Connection, tenant_id: str) -> list[LogKey]:
    query = select(log_keys).where(log_keys.c.tenant_id == tenant_id).order_by(log_keys.c.number)
    return [
        LogKey(
            row.number,
            VerifierKey(row.name, bytes(row.public_key)),
            row.created_at,
            row.retired_at,
            row.introduction,
        )
        for row in connection.execute(query)
    ]


def _newest_key(connection: Connection, tenant_id: str) -> int:
    query = select(func.max(log_keys.c.number)).where(log_keys.c.tenant_id == tenant_id)
    return int(connection.execute(query).scalar() or 0)


def _add_key(connection: Connection, tenant_id: str, key: LogKey) -> None:
    row = {
        "tenant_id": tenant_id,
        "number": key.number,
        "name": key.verifier.name,
        "public_key": key.verifier.public,
        "created_at": key.created_us,
        "introduction": key.introduction,
    }
    connection.execute(insert(log_keys).values(row).on_conflict_do_nothing())


def _heads(connection: Connection, tenant_id: str) -> list[SignedHead]:
    query = select(log_heads).where(log_heads.c.tenant_id == tenant_id)
    return [
        SignedHead(row.origin, row.size, bytes(row.root), row.note)
        for row in connection.execute(query.order_by(log_heads.c.number))
    ]


def _put_head(connection: Connection, tenant_id: str, head: SignedHead) -> None:
    values = {"size": head.size, "root": head.root, "note": head.note}
    statement = insert(log_heads).values({"tenant_id": tenant_id, "origin": head.origin} | values)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["tenant_id", "origin"],
            set_=values,
            where=log_heads.c.size <= head.size,  # Another server may have signed more meanwhile.
        )
    )
