"""The feed in a tenant's database: a row for each commit that changes what is searched."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from mneme_server.common.stored import reads
from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import (
    START,
    FeedRow,
    KindChange,
    LostPlace,
    Position,
    ranges,
)
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.rows import insert_rows, upsert
from mneme_server.engine.store.schema import feed, followers, settings

KEPT = 50_000
"""Rows that are kept at least; more only for durable followers that are behind."""
_TRIMMED_EVERY = 1_000
_TRIMMED_AT_ONCE = 5_000
_MARK_BITS = 63
_GENERATION = "generation"
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
# Every commit comes through here.
_HEAD = Prepared(
    select(feed.c.number, feed.c.mark)
    .where(feed.c.tenant_id == bindparam("tenant"))
    .order_by(feed.c.number.desc())
    .limit(1)
)
# And every opening of a tenant, several times.
_AFTER = Prepared(
    select(feed.c.number, feed.c.mark, feed.c.changes)
    .where(feed.c.tenant_id == bindparam("tenant"), feed.c.number >= bindparam("first"))
    .order_by(feed.c.number)
    .limit(bindparam("most"))
)


class SqlFeed:
    """Implements `engine.corpus.feed.Feed`, and writes its rows.

    Args:
        connection: the transaction's.
        tenant_id: whose feed it is.
        kept: how many rows are kept at least.
    """

    def __init__(self, connection: Connection, tenant_id: str, kept: int = KEPT) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._kept = kept
        self.renewed = ""  # The generation as it is stored, once this transaction has renewed it.

    def append(self, change: CorpusChange) -> Position:
        """Write the row of a transaction, as the last thing before it is committed."""
        number = self.head().number + 1
        position = Position(number, secrets.randbits(_MARK_BITS))
        row = {
            "tenant_id": self._tenant_id,
            "number": number,
            "mark": position.mark,
            "changes": _ENCODE(_encoded(change)),
        }
        insert_rows(self._connection, feed, [row])
        if number % _TRIMMED_EVERY == 0:
            self.trim()
        return position

    def head(self) -> Position:
        row = _HEAD.first(self._connection, {"tenant": self._tenant_id})
        return START if row is None else Position(row.number, row.mark)

    def holds(self, place: Position) -> bool:
        if place.number > self.head().number:
            return False
        mine = (feed.c.tenant_id == self._tenant_id, feed.c.number == place.number)
        mark = self._connection.execute(select(feed.c.mark).where(*mine)).scalar()
        return mark is None or mark == place.mark

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        wanted = {"tenant": self._tenant_id, "first": place.number, "most": limit + 1}
        rows: Sequence[Any] = _AFTER.all(self._connection, wanted)
        if place == START:
            if rows and rows[0].number != 1:
                raise LostPlace("the first rows of the feed are gone")
            return [_feed_row(row) for row in rows[:limit]]
        if not rows or (rows[0].number, rows[0].mark) != place:
            raise LostPlace(f"row {place.number} of the feed is gone, or another")
        return [_feed_row(row) for row in rows[1:]]

    def generation(self) -> int | None:
        """Return what names this store among all that hold the tenant, or held it before; None
        before the first was made."""
        mine = (settings.c.tenant_id == self._tenant_id, settings.c.key == _GENERATION)
        value = self._connection.execute(select(settings.c.value).where(*mine)).scalar()
        return None if value is None else int(value, 16)

    def renew_generation(self) -> int:
        """Give the store another name, since its rows are no longer those that were known."""
        made = secrets.randbits(_MARK_BITS)
        self.renewed = stored_generation(made)
        row = {"tenant_id": self._tenant_id, "key": _GENERATION, "value": self.renewed}
        self._connection.execute(upsert(settings), row)
        return made

    def trim(self) -> None:
        """Delete the rows that nobody needs: neither the newest nor those a follower has yet to
        read, with the one that it read last."""
        needed = select(func.min(followers.c.number)).where(
            followers.c.tenant_id == self._tenant_id
        )
        first = select(func.min(feed.c.number)).where(feed.c.tenant_id == self._tenant_id)
        oldest = self._connection.execute(first).scalar_one() or 0
        # A follower that was far behind lets go of many: some at a time, for others wait meanwhile.
        last = min(self.head().number - self._kept, oldest + _TRIMMED_AT_ONCE)
        held_back = self._connection.execute(needed).scalar_one()
        if held_back is not None:
            last = min(last, held_back - 1)
        self._connection.execute(
            delete(feed).where(feed.c.tenant_id == self._tenant_id, feed.c.number <= last)
        )

    def position_of(self, follower: str) -> Position | None:
        query = select(followers.c.number, followers.c.mark).where(
            followers.c.tenant_id == self._tenant_id, followers.c.name == follower
        )
        row = self._connection.execute(query).first()
        return None if row is None else Position(*row)

    def move(self, follower: str, before: Position | None, to: Position) -> bool:
        if self.position_of(follower) != before:
            return False
        values = {"number": to.number, "mark": to.mark}
        if before is None:
            key = {"tenant_id": self._tenant_id, "name": follower}
            self._connection.execute(insert(followers), key | values)
        else:
            mine = (followers.c.tenant_id == self._tenant_id, followers.c.name == follower)
            self._connection.execute(update(followers).where(*mine).values(values))
        return True

    def forget(self, follower: str) -> None:
        self._connection.execute(
            delete(followers).where(
                followers.c.tenant_id == self._tenant_id, followers.c.name == follower
            )
        )


def stored_generation(generation: int) -> str:
    """Return what names a store as it is kept."""
    return f"{generation:016x}"


def _encoded(change: CorpusChange) -> Mapping[str, Any]:
    if change.everything:
        return {"everything": True}
    encoded: dict[str, Any] = {}
    kinds = _by_kind(change)
    if kinds:
        encoded["kinds"] = kinds
    if change.vectors:
        encoded["embedded"] = ranges(
            doc_id for batch in change.vectors for doc_id in batch.doc_ids.tolist()
        )
    return encoded


def _by_kind(change: CorpusChange) -> dict[str, dict[str, Any]]:
    saved: dict[MemoryKind, list[Document]] = {}
    for document in change.saved:
        saved.setdefault(document.kind, []).append(document)
    kinds = {kind.name: _saved(kind, documents) for kind, documents in saved.items()}
    for name, doc_ids, source_ids in change.gone:
        kind = kinds.setdefault(name, {})
        kind["removed"] = ranges([*_listed(kind.get("removed", ())), *doc_ids])
        kind["removed_ids"] = sorted({*kind.get("removed_ids", ()), *source_ids})
    return kinds


def _saved(kind: MemoryKind, documents: Sequence[Document]) -> dict[str, Any]:
    encoded: dict[str, Any] = {"saved": ranges(document.doc_id for document in documents)}
    if not kind.lasting:
        encoded["saved_ids"] = sorted({document.source_id for document in documents})
    commitments = {document.doc_id: document.commitment for document in documents}
    if all(commitments.values()):
        joined = b"".join(commitments[doc_id] for doc_id in sorted(commitments))
        encoded["commitment"] = hashlib.sha256(joined).hexdigest()
    return encoded


def _listed(runs: Sequence[tuple[int, int]]) -> list[int]:
    return [number for first, last in runs for number in range(first, last + 1)]


@reads("row of the feed", "number")
def _feed_row(row: Row[Any]) -> FeedRow:
    changes = json.loads(row.changes)
    return FeedRow(
        Position(row.number, row.mark),
        kinds=tuple(
            KindChange(
                name,
                saved=_runs(kind.get("saved", ())),
                removed=_runs(kind.get("removed", ())),
                saved_ids=tuple(kind.get("saved_ids", ())),
                removed_ids=tuple(kind.get("removed_ids", ())),
                commitment=kind.get("commitment", ""),
            )
            for name, kind in changes.get("kinds", {}).items()
        ),
        embedded=_runs(changes.get("embedded", ())),
        everything=changes.get("everything", False),
    )


def _runs(encoded: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last) for first, last in encoded)
