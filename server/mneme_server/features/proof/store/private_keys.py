"""Private keys in the catalog, where servers share it: a file would be one server's."""

from __future__ import annotations

from sqlalchemy import Column, Integer, LargeBinary, String, Table, delete, select

from mneme_server.engine.store.database import Database
from mneme_server.engine.store.portable import insert
from mneme_server.features.proof.store.catalog import metadata

private_keys = Table(
    "log_private_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    # PKCS #8 in PEM.
    Column("pem", LargeBinary, nullable=False),
)


class SqlKeyPlaces:
    """Implements `sealed_keys.KeyPlaces`.

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
