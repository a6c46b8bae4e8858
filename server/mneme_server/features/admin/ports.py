"""Ports to what the administration needs from storage and from the tenants' runtimes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mneme_server.common.identity import Caller
from mneme_server.common.progress import Step
from mneme_server.features.admin.model import ApiKey


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Which keys are listed; `tenant_id` empty: of all tenants."""

    tenant_id: str = ""
    include_revoked: bool = False


class KeyCatalog(Protocol):
    """The API keys, known by their secrets' hashes."""

    def add(self, key: ApiKey, key_hash: bytes, *, bootstrap: bool = False) -> None:
        """Add a key. With `bootstrap` it takes the place of those that were added so before: they
        are revoked.

        Raises:
            NotFound: there is no such tenant.
            AlreadyExists: a key with this hash exists.
        """
        ...

    def get(self, key_id: str) -> ApiKey:
        """Return a key, revoked or not.

        Raises:
            NotFound: there is none.
        """
        ...

    def find(self, key_hash: bytes) -> ApiKey | None:
        """Return the key with this hash, revoked or not."""
        ...

    def list(
        self, filter_: KeyFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[ApiKey]:
        """Return up to `limit` keys whose (creation time, id) is greater, in that order."""
        ...

    def callers(self, key_ids: Collection[str]) -> Mapping[str, Caller]:
        """Return whom keys let in, by their ids; those that are revoked, or gone, let in nobody."""
        ...

    def revoke(self, key_id: str, now_us: int) -> ApiKey:
        """Revoke a key; one that is revoked keeps its time.

        Raises:
            NotFound: there is none.
        """
        ...

    def restore_admin(self, key_id: str, now_us: int) -> None:
        """Have a key be the one that lets the operator in: undo its revocation, and revoke those
        that were added with `bootstrap` before."""
        ...

    def has_admin(self) -> bool:
        """Tell whether a key with scope admin exists that is not revoked."""
        ...

    def touch(self, used_at_us: Mapping[str, int]) -> None:
        """Note when keys, by id, were last used."""
        ...


class TenantFolders(Protocol):
    """The tenants' runtimes and folders."""

    def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
        """Close what is open of the tenant and remove its folder with everything in it.

        Removing what is not there, or not any more, is fine: a removal that was cut short is
        done again at the next start. Closing takes its time: `require`, which is called after it,
        raises where another has the id by then, and nothing is removed.
        """
        ...


@dataclass(frozen=True, slots=True)
class TenantStats:
    """What a tenant holds; the meaning of each count is that of `mneme.v1.TenantStats`."""

    event_count: int
    session_count: int
    agent_count: int
    lesson_count: int
    memory_count: int
    vector_count: int
    pending_count: int
    failed_count: int
    disk_bytes: int
    dense_index: str


class TenantStatistics(Protocol):
    """Counts what tenants hold."""

    def stats(self, tenant_id: str) -> TenantStats:
        """Count what the tenant holds; the tenant exists."""
        ...


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a tenant's database: where it lies, its size in bytes, its SHA-256 in hex."""

    path: str
    size_bytes: int
    sha256: str


class TenantBackups(Protocol):
    """Copies tenants' databases, and puts copies back."""

    def require_file(self, tenant_id: str) -> None:
        """Check that the tenant has a database of its own, which can be copied.

        Raises:
            FailedPrecondition: it is in PostgreSQL.
        """
        ...

    def backup(self, tenant_id: str, step: Step, name: str) -> Backup:
        """Copy the tenant's database as it is now; the tenant exists.

        Args:
            tenant_id: the tenant.
            step: told how far it is; may call it off.
            name: the backup's file name. One that is there already is whole.

        Raises:
            FailedPrecondition: the tenant is in PostgreSQL.
            ResourceExhausted: QUOTA_EXCEEDED, the disk is full.
            Cancelled: `step` says so; nothing is left.
        """
        ...

    def discard_part(self, tenant_id: str, name: str) -> None:
        """Remove what was copied for a backup of this name that was cut short."""
        ...

    def require(self, tenant_id: str, name: str) -> None:
        """Check that the tenant has a backup of this file name, and can be restored.

        Raises:
            NotFound: it has none.
            FailedPrecondition: the tenant is in PostgreSQL.
        """
        ...

    def stage(self, tenant_id: str, name: str, staged: str, step: Step) -> None:
        """Copy the backup of this file name to a place called `staged`, and see that it can take
        the place of the tenant's database. The tenant exists.

        Raises:
            NotFound: the tenant has no such backup.
            DataLoss: the backup is damaged.
            FailedPrecondition: another model embedded it, or a newer version wrote it.
            ResourceExhausted: QUOTA_EXCEEDED, the disk is full.
            Cancelled: `step` says so. Nothing is staged after any of these.
        """
        ...

    def replace(self, tenant_id: str, staged: str, commit: Callable[[Backup], None]) -> Backup:
        """Put what was staged in the place of the tenant's database; the stage is gone afterwards.

        Returns a backup of what was there. `commit` is told of it before anything is replaced, and
        may raise to stop it.

        Raises:
            ResourceExhausted: QUOTA_EXCEEDED, the disk is full.
            Unavailable: calls of the tenant went on for too long; nothing was changed.
            What `commit` raises.
        """
        ...

    def finish_replacing(self, tenant_id: str, staged: str) -> None:
        """Do what a crash left undone after `commit`, before anybody opens the tenant: nothing, if
        all of it was done."""
        ...

    def discard(self, tenant_id: str, staged: str) -> None:
        """Remove what was staged."""
        ...


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """How the server is set up.

    `started_at_us` is in microseconds since 1970. `http_address` tells where HTTP is served, as a
    URL, "" where it is not: it is known once the server has its port.
    """

    version: str
    embedding_model: str
    embedding_dimensions: int
    started_at_us: int
    http_address: Callable[[], str] = str
