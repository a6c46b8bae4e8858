"""Memories as they are shown, as rows: what a copy of them keeps, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, bindparam

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import UNREADABLE, reads
from mneme_server.engine.corpus.document import Document, MemoryView
from mneme_server.engine.store.documents import (
    COLUMNS,
    document_reader,
    document_row,
    select_documents,
)
from mneme_server.engine.store.memories import MemoryKinds, select_details
from mneme_server.engine.store.portable import array_of, listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.schema import documents

_TENANT: BindParameter[Any] = bindparam("tenant")
_DOC_IDS = listed(bindparam("ids"), numbers=True)
_NAMES = [column.name for column in COLUMNS]
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ShownRow(NamedTuple):
    """A memory as its rows have it: `text` holds the values of its document's columns, and those
    of its kind's details, as JSON. `source` is what its successors are looked up by; None for a
    kind that has none."""

    doc_id: int
    source: str | None
    text: str


def source_of(kind: str, source_id: str) -> str:
    """Return what a memory is looked up by besides its number."""
    return f"{kind}:{source_id}"


class ShownRows:
    """Between memories and such rows.

    Args:
        kinds: all kinds of memory.
    """

    def __init__(self, kinds: MemoryKinds) -> None:
        self._kinds = kinds
        self._document_of = document_reader(kinds.by_name)

    @property
    def layout(self) -> str:
        """Names what rows hold: those of another layout cannot be read."""
        details = (
            f"{name}({','.join(column.name for column in kept.columns)})"
            for name, kind in sorted(self._kinds.by_name.items())
            if (kept := self._kinds.details(kind)) is not None and kept.followed
        )
        return f"1; {','.join(_NAMES)}; {' '.join(details)}"

    def tells_all(self, document: Document) -> bool:
        """Whether nothing of a memory need be read to make its row."""
        return self._kinds.details(document.kind) is None

    def is_kept(self, kind: str) -> bool:
        """Whether memories of a kind have rows: not where details change that no feed names."""
        details = self._kinds.details(self._kinds.by_name[kind])
        return details is None or details.followed

    def of_document(self, document: Document) -> ShownRow:
        """Return the row of a memory whose document tells all."""
        row = document_row(document, "")
        return self.row([row[name] for name in _NAMES], None)

    def row(self, values: Sequence[Any], details: Sequence[Any] | None) -> ShownRow:
        """Return the row of these values."""
        doc_id, kind, source_id = values[:3]
        succeeded = self._kinds.by_name[kind].successor
        text = _ENCODE([[*values], None if details is None else [*details]])
        return ShownRow(doc_id, source_of(kind, source_id) if succeeded else None, text)

    def memory(self, text: str, *, bare: bool = False) -> MemoryView:
        """Return the memory that a row holds; a `bare` one without its kind's details.

        Raises:
            DataLoss: it is not what was written.
        """
        try:
            values, columns = json.loads(text)
        except ValueError as error:
            raise DataLoss("a memory's copy is no JSON") from error
        document = self._document_of(values)
        if columns is None:
            return MemoryView(document, self._kinds.told(document))
        details = self._kinds.details(document.kind)
        if bare or details is None:
            return MemoryView(document, {})
        return MemoryView(document, _decoded(details.decode, columns))


class SqlShown:
    """Reads such rows from the store. What cannot be read is left out, and told by the store."""

    def __init__(self, connection: Connection, tenant_id: str, kinds: MemoryKinds) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._kinds = kinds
        self._rows = ShownRows(kinds)

    def of(self, doc_ids: Sequence[int]) -> list[ShownRow]:
        """Return the rows of these documents; those that are gone are left out."""
        query = select_documents(_TENANT).where(documents.c.doc_id.in_(_DOC_IDS))
        wanted = {"tenant": self._tenant_id, "ids": json.dumps(list(doc_ids))}
        return self._with_details(self._connection.execute(query, wanted).all())

    def after(self, doc_id: int, limit: int) -> tuple[list[ShownRow], int | None]:
        """Return the rows of up to `limit` documents with a larger id, and the last one's id; None
        when there is none."""
        query = (
            select_documents(self._tenant_id)
            .where(documents.c.doc_id > doc_id)
            .order_by(documents.c.doc_id)
            .limit(limit)
        )
        found = self._connection.execute(query).all()
        return self._with_details(found), int(found[-1].doc_id) if found else None

    def _with_details(self, found: Sequence[Row[Any]]) -> list[ShownRow]:
        by_kind: dict[str, list[str]] = {}
        for row in found:
            kind = self._kinds.by_name.get(row.kind)
            if kind is not None and self._kinds.details(kind) is not None:
                by_kind.setdefault(row.kind, []).append(row.source_id)
        details = {
            kind: self._details(kind, ids)
            for kind, ids in by_kind.items()
            if self._rows.is_kept(kind)
        }
        made = []
        for row in found:
            columns = None
            if row.kind in by_kind:
                columns = details.get(row.kind, {}).get(row.source_id)
                if columns is None:
                    continue  # Not followed, or damaged.
            try:
                shown = self._rows.row(row, columns)
                self._rows.memory(shown.text)
            except (DataLoss, *UNREADABLE):
                continue
            made.append(shown)
        return made

    def _details(self, kind: str, source_ids: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        details = self._kinds.details(self._kinds.by_name[kind])
        assert details is not None

        @reads(kind)
        def columns(row: Row[Any]) -> tuple[str, Sequence[Any]]:
            return row.id, row[1:]

        wanted = {"tenant": self._tenant_id, "ids": array_of(source_ids)}
        return dict(
            read_rows(
                self._connection, select_details(details), columns, wanted, kind=kind,
                lost=lambda _loss: None,
            )
        )  # fmt: skip


def _decoded(decode: Callable[..., Any], columns: Sequence[Any]) -> Any:
    @reads("memory")
    def decoded(values: Sequence[Any]) -> Any:
        return decode(*values)

    return decoded(columns)
