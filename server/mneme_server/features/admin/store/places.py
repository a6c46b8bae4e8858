"""Where the rows of tenants are that were moved while they were served, in the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Column, String, Table, delete, insert, select

from mneme_server.engine.cluster.placed import HOME, Placement
from mneme_server.engine.store.database import Database
from mneme_server.engine.store.rows import chunks
from mneme_server.features.admin.store.catalog import metadata

places = Table(
    "tenant_places",
    metadata,
    Column("tenant_id", String, primary_key=True),
    # The name of the database that its rows are in; empty: beside the catalog.
    Column("place", String, nullable=False),
    # Where others of it may lie that are not its own; none where there are none.
    Column("other", String),
    # The move that it came by, or goes by.
    Column("move", String, nullable=False),
)


class SqlPlacements:
    """Implements `engine.cluster.placed.Placements`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str) -> Placement:
        query = select(places).where(places.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return Placement() if row is None else Placement(row.place, row.other, row.move)

    def places_of(self, tenant_ids: Collection[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        with self._database.read() as connection:
            for some in chunks(tenant_ids):
                query = select(places.c.tenant_id, places.c.place).where(
                    places.c.tenant_id.in_(some), places.c.place != HOME
                )
                found |= {row.tenant_id: row.place for row in connection.execute(query)}
        return found

    def put(self, tenant_id: str, placement: Placement) -> None:
        """See `Placements`; what it says of who is at home, and nowhere else, needs no row."""
        row = {"place": placement.place, "other": placement.other, "move": placement.move}
        with self._database.write() as connection:
            connection.execute(delete(places).where(places.c.tenant_id == tenant_id))
            if placement.place != HOME or placement.other is not None:
                connection.execute(insert(places), row | {"tenant_id": tenant_id})

    def unsettled(self) -> Sequence[str]:
        query = select(places.c.tenant_id).where(places.c.other.is_not(None))
        with self._database.read() as connection:
            return connection.execute(query.order_by(places.c.tenant_id)).scalars().all()
