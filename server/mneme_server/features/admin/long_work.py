"""What takes long, as operations: it may be interrupted anywhere, and nothing is left half done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import NotFound, Unavailable
from mneme_server.common.identity import new_id
from mneme_server.features.admin.ports import Backup, TenantBackups
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.model import Task

_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class BackUp:
    """Copies a tenant's database."""

    backups: TenantBackups

    def run(self, task: Task) -> JsonObject:
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
class PutBack:
    """Replaces what a tenant holds with a backup."""

    backups: TenantBackups

    def run(self, task: Task) -> JsonObject:
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
class Delete:
    """Deletes a tenant. From its first step on nobody can open it."""

    tenants: Tenants

    def run(self, task: Task) -> JsonObject:
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


class TenantEmbedding(Protocol):
    """Embeds a tenant's memories again."""

    def begin(self, tenant_id: str, commit: Callable[[], None]) -> None:
        """Queue all memories for the model that runs, and drop the indexes of the former one.
        `commit` is called before anything is changed, and may raise to stop it.

        Raises:
            Unavailable: calls of the tenant went on for too long; nothing was changed.
        """
        ...

    def left(self, tenant_id: str) -> int:
        """Return how many memories wait to be embedded; wait a moment for some of them."""
        ...

    def count(self, tenant_id: str) -> tuple[int, str]:
        """Return how many memories the tenant has, and the model that embeds them."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedAgain:
    """Makes a tenant's vectors anew."""

    embedding: TenantEmbedding

    def run(self, task: Task) -> JsonObject:
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
