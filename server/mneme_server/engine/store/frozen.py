"""A tenant's store as it was at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection

from mneme_server.engine.corpus.ports import CorpusSource
from mneme_server.engine.store.corpus_source import SqlCorpusSource
from mneme_server.engine.store.database import Database
from mneme_server.engine.store.unit import TenantSchema, Unit


class FrozenStore:
    """Implements `engine.corpus.tenant_store.TenantStore[Unit]` on one transaction that reads,
    whatever is written meanwhile. It is for one thread, and ends with the transaction.

    Args:
        connection: in a transaction that reads.
        tenant_id: whose store it is.
        schema: what the database is made of.
    """

    memory_bytes = 0

    def __init__(self, connection: Connection, tenant_id: str, schema: TenantSchema) -> None:
        self._connection, self._tenant_id, self._schema = connection, tenant_id, schema
        kinds = schema.kinds.by_name
        self.source: CorpusSource = SqlCorpusSource(_OneMoment(connection), tenant_id, kinds)

    @contextmanager
    def read(self) -> Iterator[Unit]:
        """Read what there was."""
        yield Unit(self._connection, self._tenant_id, self._schema)

    def write(self) -> AbstractContextManager[Unit]:
        """Refuse: what was does not change."""
        raise TypeError("a frozen store cannot be written to")

    def compact(self, worth_rewriting: float) -> bool:
        """Do nothing."""
        return False

    def scrub(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: it ends with its transaction."""


class _OneMoment(Database):
    """Reads in one transaction that another opened and ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        yield self._connection

    def write(self) -> AbstractContextManager[Connection]:
        raise TypeError("a frozen store cannot be written to")

    def scrub(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
