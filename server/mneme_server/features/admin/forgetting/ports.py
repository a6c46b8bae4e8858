"""Ports to what forgetting needs from storage and from the server."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
