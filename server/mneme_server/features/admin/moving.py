"""Moving tenants between the databases of a server, as the administrator's operation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.cluster.moving_served import MoveServed
from mneme_server.features.operations.model import Task


@dataclass(frozen=True, slots=True)
class Moving:
    """Moves tenants; `served` is None where the server has no databases to move them between."""

    served: MoveServed | None

    def place_of(self, tenant_id: str) -> str:
        """Return the name of the database that a tenant is in; empty: the server's own."""
        return "" if self.served is None else self.served.stores.place_of(tenant_id)

    def places_of(self, tenant_ids: Collection[str]) -> Mapping[str, str]:
        """Return the names of the databases that tenants are in; those in the server's own are left
        out."""
        return {} if self.served is None else self.served.stores.places_of(tenant_ids)

    def settle(self) -> None:
        """Remove what moves left that earlier runs of the server began."""
        if self.served is not None:
            self.served.settle_all()

    def require(self, tenant_id: str, database: str) -> None:
        """Check that a tenant can be moved.

        Raises:
            FailedPrecondition: all tenants of this server are in PostgreSQL.
            As `MoveServed.require_room`.
        """
        if self.served is None:
            if not database:
                return  # It is there.
            raise FailedPrecondition(
                "where PostgreSQL keeps the tenants of several servers, they are moved by"
                " mneme-server migrate, while no server runs",
                reason=Reason.DATABASE_ERROR,
            )
        self.served.require_room(tenant_id, database)


@dataclass(frozen=True, slots=True)
class Move:
    """Moves a tenant to another database while it is served."""

    moving: Moving

    def run(self, task: Task) -> JsonObject:
        """Move it, unless it is there, e.g. by a run before: one that was cut short is begun
        anew."""
        database, served = task.request["database"], self.moving.served
        self.moving.require(task.tenant_id, database)
        if served is None or self.moving.place_of(task.tenant_id) == database:
            return {"database": database}
        arrived = served(task.tenant_id, database, task, lambda: task.commit(begun=True))
        return {
            "database": database,
            "row_count": arrived.rows,
            "caught_up_count": arrived.caught_up,
            "refused": f"{arrived.refused_s:.6f}s",
        }

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: each start of the server removes what a move left."""
