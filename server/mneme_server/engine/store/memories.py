"""Memories as they are shown: documents, and what the kinds of the capabilities tell of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import structlog
from sqlalchemy import BindParameter, Column, Connection, Row, bindparam, select

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.document import MAX_KINDS, Document, MemoryKind, MemoryView
from mneme_server.engine.store.documents import document_reader, select_documents
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.schema import documents

Told: TypeAlias = Callable[[Document], JsonObject]
"""Makes the details of a kind whose documents tell all that is shown; raises as `decode` does."""

_TENANT: BindParameter[Any] = bindparam("tenant")
_DOC_IDS = listed(bindparam("ids"), numbers=True)
_SOURCE_IDS = listed(bindparam("ids"))

_log = structlog.get_logger(__name__)


class SqlMemoryReader:
    """Implements `engine.corpus.ports.MemoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str, kinds: MemoryKinds) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._kinds = kinds
        self.lost = 0

    def get_many(self, doc_ids: Sequence[int], *, bare: bool = False) -> Mapping[int, MemoryView]:
        found: dict[int, MemoryView] = {}
        others: dict[MemoryKind, dict[str, Document]] = {}
        wanted = {"tenant": self._tenant_id, "ids": json.dumps(list(doc_ids))}
        query, read = _reading(self._kinds)
        for memory in read_rows(
            self._connection, query, read, wanted, kind="memory", key="source_id",
            lost=self._left_out,
        ):  # fmt: skip
            document = memory.document
            found[document.doc_id] = memory
            if bare or memory.details:
                continue
            if self._kinds.details(document.kind) is not None:
                others.setdefault(document.kind, {})[document.source_id] = document
        for kind, documents_of in others.items():
            details = self._details(kind, list(documents_of))
            for source_id, document in documents_of.items():
                found[document.doc_id] = MemoryView(document, details.get(source_id, {}))
        return found

    def of_sources(self, kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
        query = select(documents.c.doc_id).where(
            documents.c.tenant_id == self._tenant_id,
            documents.c.kind == kind.name,
            documents.c.source_id.in_(source_ids),
        )
        found = self.get_many(self._connection.execute(query).scalars().all())
        return {memory.document.source_id: memory for memory in found.values()}

    def _details(self, kind: MemoryKind, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        """Return the details by id; those that are damaged are left out."""
        details = self._kinds.details(kind)
        if details is None:
            return {}
        decode = details.decode

        @reads(kind.name)
        def decoded(row: Row[Any]) -> tuple[str, JsonObject]:
            return row.id, decode(*row[1:])

        wanted = {"tenant": self._tenant_id, "ids": array_of(source_ids)}
        return dict(
            read_rows(
                self._connection, select_details(details), decoded, wanted, kind=kind.name,
                lost=self._left_out,
            )
        )  # fmt: skip

    def _left_out(self, loss: DataLoss) -> None:
        self.lost += 1
        _log.warning("a memory was found and left out", tenant=self._tenant_id, error=str(loss))


@cache
def select_details(details: Details) -> Prepared:
    """Return what selects the details of memories of a kind, by the ids of their sources."""
    return Prepared(
        select(details.key.label("id"), *details.columns).where(
            details.key.table.c.tenant_id == _TENANT, details.key.in_(_SOURCE_IDS)
        )
    )


@cache
def _reading(kinds: MemoryKinds) -> tuple[Prepared, Callable[[Row[Any]], MemoryView]]:
    """Return what selects documents by id, and what makes memories of its rows.

    Recall runs it each time: building it anew would cost as much as running it.
    """
    document_of = document_reader(kinds.by_name)

    @reads("memory", "source_id")
    def memory_of(row: Row[Any]) -> MemoryView:
        document = document_of(row)
        return MemoryView(document, kinds.told(document))

    return Prepared(select_documents(_TENANT).where(documents.c.doc_id.in_(_DOC_IDS))), memory_of


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """What is shown of a kind's memories beside their documents: columns of one table.

    Args:
        key: the column that holds the documents' `source_id`s; its table has a `tenant_id`.
        columns: what `decode` reads.
        decode: makes the details of the values of `columns`, in their order. What it raises of
            `common.stored.UNREADABLE` says that the row is damaged.
        followed: whether each change of `columns` changes the memory's document, too, in the same
            transaction (`DocumentWriter.set_archived` with what it is does), so that the feed names
            it: then servers on PostgreSQL show these memories from copies of their own. The values
            are such as JSON has.
    """

    key: Column[str]
    columns: tuple[Column[Any], ...]
    decode: Callable[..., JsonObject]
    followed: bool = False


Shown: TypeAlias = Details | Told | None
"""What is shown of a kind's memories; None: nothing but their documents."""


class MemoryKinds:
    """All kinds of memory.

    Args:
        brought: what each capability brings.

    Raises:
        ValueError: two kinds have one name, or there are too many.
    """

    def __init__(self, brought: Iterable[Mapping[MemoryKind, Shown]]) -> None:
        self.by_name: dict[str, MemoryKind] = {}
        self._details: dict[str, Details] = {}
        self._told: dict[str, Told] = {}
        for kinds in brought:
            for kind, shown in kinds.items():
                self._add(kind, shown)

    def details(self, kind: MemoryKind) -> Details | None:
        """Return how the details of a kind are read; None: they are in no table."""
        return self._details.get(kind.name)

    def told(self, document: Document) -> JsonObject:
        """Return the details that a document tells."""
        told = self._told.get(document.kind.name)
        return {} if told is None else told(document)

    def _add(self, kind: MemoryKind, shown: Shown) -> None:
        if kind.name in self.by_name:
            raise ValueError(f"two kinds of memory are called {kind.name}")
        if len(self.by_name) == MAX_KINDS:
            raise ValueError(f"there may be {MAX_KINDS} kinds of memory at most")
        self.by_name[kind.name] = kind
        if isinstance(shown, Details):
            self._details[kind.name] = shown
        elif shown is not None:
            self._told[kind.name] = shown
