"""Ports to what forgetting needs from storage and from the server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.forgetting import Forgetter
from mneme_server.engine.corpus.tenant_store import CorpusUnit


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
