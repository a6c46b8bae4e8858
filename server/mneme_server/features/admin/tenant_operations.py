"""Operations on whole tenants: backup, restore, deletion, another embedding, another database.

They take long: each may be interrupted anywhere, and nothing is left half done.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import FailedPrecondition, NotFound, Reason, Unavailable
from mneme_server.common.identity import new_id
from mneme_server.engine.cluster.moves import LiveMove
from mneme_server.engine.reindexing import Reindexer
from mneme_server.features.admin.ports import Backup, TenantBackups
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.model import OperationTask

_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class MakeBackup:
    """Copies a tenant's database."""

    backups: TenantBackups

    def run(self, task: OperationTask) -> JsonObject:
        """Copy it, to a file whose name is kept: a second run finds what the first one made."""
        if "name" not in task.kept:
            task.keep(name=f"{new_id()}.db")
        made = self.backups.backup(task.tenant_id, task, task.kept["name"])
        return {"path": made.path, "size_bytes": made.size_bytes, "sha256": made.sha256}

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Remove half a copy."""
        if "name" in kept:
            self.backups.discard_part(tenant_id, kept["name"])


@dataclass(frozen=True, slots=True)
class RestoreBackup:
    """Replaces what a tenant holds with a backup."""

    backups: TenantBackups

    def run(self, task: OperationTask) -> JsonObject:
        """Stage the backup and replace what is there, unless a run before has already."""
        if "before" in task.kept:
            return _replaced(task.kept["before"])
        if "staged" not in task.kept:
            task.keep(staged=new_id())
        staged = task.kept["staged"]
        self.backups.stage(task.tenant_id, task.request["backup"], staged, task)
        task.report("replacing")

        def commit(before: Backup) -> None:
            task.commit(
                before={
                    "path": before.path,
                    "size_bytes": before.size_bytes,
                    "sha256": before.sha256,
                }
            )

        self.backups.replace(task.tenant_id, staged, commit)
        return _replaced(task.kept["before"])

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Replace what was about to be, and was backed up; else remove what was staged."""
        if "before" in kept:
            self.backups.finish_replacing(tenant_id, kept["staged"])
        elif "staged" in kept:
            self.backups.discard(tenant_id, kept["staged"])


def _replaced(before: Mapping[str, Any]) -> JsonObject:
    return {f"replaced_{name}": value for name, value in before.items()}


@dataclass(frozen=True, slots=True)
class DeleteTenant:
    """Deletes a tenant. From its first step on nobody can open it."""

    tenants: Tenants

    def run(self, task: OperationTask) -> JsonObject:
        """Delete it, also when its last calls take their time."""
        created_us = task.kept["created_us"]
        if "begun" not in task.kept:
            task.commit(begun=True, created_us=created_us)
        while True:
            task.report("deleting")
            try:
                absent = self.tenants.delete(
                    task.request["caller_tenant"], task.tenant_id, created_us
                )
            except Unavailable:
                # Its calls are still running, which it takes no more of; or another deletes it.
                threading.Event().wait(_AGAIN_S)
            except NotFound:
                return {}  # Another deletion of it, or the start of a server, has ended it.
            else:
                return {"nodes": list(absent)} if absent else {}

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Leave it to the run that follows, which tells what came of it."""
        self.tenants.leave(tenant_id, kept["created_us"])


@dataclass(frozen=True, slots=True)
class EmbedTenant:
    """Makes a tenant's vectors anew."""

    embedding: Reindexer

    def run(self, task: OperationTask) -> JsonObject:
        """Queue everything, and see it embedded. What waits stays queued whatever happens."""
        if "queued" not in task.kept:
            task.report("queueing")
            self.embedding.begin(task.tenant_id, lambda: task.commit(begun=True))
            task.keep(queued=True)
        total, _ = self.embedding.count(task.tenant_id)
        while left := self.embedding.left(task.tenant_id):
            total = max(total, left)
            task.report("embedding", total - left, total)
        count, model = self.embedding.count(task.tenant_id)
        task.report("embedding", count, count)
        return {"memory_count": count, "embedding_model": model}

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: what is queued is embedded whenever the tenant is opened."""


@dataclass(frozen=True, slots=True)
class Moving:
    """Moves tenants; `served` is None where the server has no databases to move them between."""

    served: LiveMove | None

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
            As `LiveMove.require_room`.
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
class MoveTenant:
    """Moves a tenant to another database while it is served."""

    moving: Moving

    def run(self, task: OperationTask) -> JsonObject:
        """Move it, unless it is there, e.g. by a run before: one that was cut short is begun
        anew."""
        database, served = task.request["database"], self.moving.served
        self.moving.require(task.tenant_id, database)
        if served is None or self.moving.place_of(task.tenant_id) == database:
            return {"database": database}
        arrived = served.run(task.tenant_id, database, task, lambda: task.commit(begun=True))
        return {
            "database": database,
            "row_count": arrived.rows,
            "caught_up_count": arrived.caught_up,
            "refused": f"{arrived.refused_s:.6f}s",
        }

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: each start of the server removes what a move left."""
