"""Ports to what forgetting needs from storage and from the server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.forgetting import Forgetter
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.admin.forgetting.model import Forgetting


class ForgettingRepository(Protocol):
    """What a tenant knows of what it forgot."""

    def get(self, forgetting_id: str) -> Forgetting | None:
        """Return a forgetting, or None."""
        ...

    def save(self, forgetting: Forgetting) -> None:
        """Insert or replace a forgetting."""
        ...

    def all(self) -> Sequence[Forgetting]:
        """Return all of them."""
        ...

    def ids(self) -> set[str]:
        """Return the ids of all of them."""
        ...


class ForgottenLeaf(Protocol):
    """A leaf of the tenant's log."""

    @property
    def index(self) -> int:
        """Its place in the log, from 0."""
        ...


class ForgettableLog(Protocol):
    """The tenant's log, as far as forgetting is concerned."""

    def forget(
        self, kind: str, source_ids: Collection[str], now_us: int
    ) -> Mapping[str, Sequence[ForgottenLeaf]]:
        """Erase salts, contents and ids of all versions of these, before their documents are
        removed; return their leaves. Commitments and hashes stay."""
        ...


class ForgettingUnit(CorpusUnit, Protocol):
    """One transaction, as far as forgetting is concerned."""

    @property
    def forgetters(self) -> Sequence[Forgetter]:
        """How each capability forgets, in the order in which they build on each other."""
        ...

    @property
    def forgettings(self) -> ForgettingRepository:
        """What was forgotten."""
        ...

    @property
    def log(self) -> ForgettableLog:
        """The tenant's log."""
        ...

    def require_overwriting(self) -> None:
        """See that what is deleted can be overwritten where it lies.

        Raises:
            FailedPrecondition: the database does not do that.
        """
        ...

    def overwrite(self) -> None:
        """Have what is deleted in this transaction overwritten where it lies."""
        ...


class ForgettingStore(Protocol):
    """A store of a tenant, opened alone."""

    def read(self) -> AbstractContextManager[ForgettingUnit]:
        """Open a read transaction."""
        ...

    def write(self) -> AbstractContextManager[ForgettingUnit]:
        """Open a write transaction."""
        ...

    def scrub(self) -> None:
        """Leave nothing in its files of what was deleted."""
        ...


class ForgettingCatalog(Protocol):
    """What the server knows of what its tenants were asked to forget: it outlives their databases,
    so that a backup that is put back forgets again."""

    def salt(self, tenant_id: str) -> bytes:
        """Return what is hashed with the names of a tenant, made at first."""
        ...

    def add(self, tenant_id: str, forgetting_id: str, asked: JsonObject, now_us: int) -> None:
        """Note what is asked for; nothing when the id is known."""
        ...

    def get(self, tenant_id: str, forgetting_id: str) -> JsonObject | None:
        """Return what was asked for, or None."""
        ...

    def all_of(self, tenant_id: str) -> Mapping[str, JsonObject]:
        """Return what a tenant was asked to forget, by id, in its order."""
        ...

    def unfinished(self) -> Sequence[tuple[str, str, JsonObject]]:
        """Return what is not erased yet: the tenant, the id, what was asked for."""
        ...

    def erased(self, tenant_id: str, forgetting_id: str) -> None:
        """Note that a forgetting is done."""
        ...

    def drop(self, tenant_id: str) -> None:
        """Drop what is known of a tenant that is deleted."""
        ...

    def scrub(self) -> None:
        """Leave nothing in the catalog's files of what was deleted."""
        ...


class EarlierBackups(Protocol):
    """The backups of tenants."""

    def made_before(self, tenant_id: str, time_us: int) -> Sequence[str]:
        """Return the names of the backups that may hold what there was at a time."""
        ...


class Signer(Protocol):
    """Signs for a tenant."""

    def sign(self, tenant_id: str, statement: str) -> JsonObject:
        """Return what is added to a receipt that is signed: fields of its message, as JSON."""
        ...


class OtherServers(Protocol):
    """The other servers that have the tenants, too: their memories, indexes and disks."""

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Have them know that something is going to be erased."""
        ...

    def settle(self, tenant_id: str, erasure_id: str, waiting: Callable[[], object]) -> None:
        """Wait until the calls have ended, of those that live, that may have read it before; call
        `waiting` now and then, which may raise."""
        ...

    def erase(
        self, tenant_id: str, erasure_id: str, number: int, waiting: Callable[[], object]
    ) -> Sequence[str]:
        """Wait until those that live have left nothing of what is erased from the store as of a row
        of the feed; return the names of those that are away, and may have it on their disks."""
        ...

    def absent(self, tenant_id: str, erasure_id: str) -> Sequence[str]:
        """Return the names of those that have yet to leave nothing of it."""
        ...


class NoOtherServers:
    """Implements `OtherServers` for a server that is the only one."""

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Ask nobody."""

    def settle(self, tenant_id: str, erasure_id: str, waiting: Callable[[], object]) -> None:
        """Wait for nobody."""

    def erase(
        self, tenant_id: str, erasure_id: str, number: int, waiting: Callable[[], object]
    ) -> Sequence[str]:
        """Return no names."""
        return ()

    def absent(self, tenant_id: str, erasure_id: str) -> Sequence[str]:
        """Return no names."""
        return ()
