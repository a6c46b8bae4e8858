"""The log in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    Table,
    bindparam,
    func,
    select,
    update,
)

from mneme_server.common.clock import now_us
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.ports import MemoryReader
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, json_items, listed
from mneme_server.engine.store.rows import chunks, insert_rows, upsert
from mneme_server.engine.store.schema import documents
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.proof.merkle import (
    TILE_WIDTH,
    Tile,
    Tree,
    appended,
    leaf_hash,
    width_of,
)
from mneme_server.features.proof.model import Leaf, LogName
from mneme_server.features.proof.store.tables import log_leaves, log_runs, log_state, log_tiles
from mneme_server.features.proof.versions import (
    ItemVersion,
    removal_of,
    salted_version,
    version_of,
)


class SqlLog:
    """The tenant's append-only log; gives what a transaction changed its leaves."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._forgotten: set[tuple[str, str]] = set()

    def seal(self, change: CorpusChange, memories: MemoryReader) -> None:
        """Log what a transaction changed, before it is committed.

        An event comes with its commitment. All else gets one here, by what is stored of it by now;
        the feed's row covers both.
        """
        gone = set(change.removed)
        events = [one for one in change.saved if one.commitment and one.doc_id not in gone]
        others = sorted(
            {
                one.doc_id
                for one in change.saved
                if not (one.commitment or one.kind.commits or one.doc_id in gone)
            }
        )
        versions = {
            doc_id: version_of(memory)
            for some in chunks(others)
            for doc_id, memory in sorted(memories.get_many(some).items())
        }
        if versions:
            change.saved[:] = [
                replace(one, commitment=versions[one.doc_id].commitment)
                if one.doc_id in versions
                else one
                for one in change.saved
            ]
        there = {(one.kind, one.source_id) for one in versions.values()}
        if events:
            first = self._append([one.commitment for one in events])
            self._add_runs(enumerate((one.doc_id for one in events), first))
        newer = [*versions.values(), *self._removals(change, there)]
        if newer:
            self._supersede(newer)
            self.add(newer)

    def _removals(
        self, change: CorpusChange, there: Collection[tuple[str, str]]
    ) -> Sequence[ItemVersion]:
        """Return a version for each item that was removed; what came and went in one transaction
        was never there."""
        if not change.gone:
            return []
        known, came = self._forgotten.union(there), {one.doc_id for one in change.saved}
        gone = {
            (kind, source_id): None
            for kind, doc_ids, source_ids in change.gone
            for doc_id, source_id in zip(doc_ids, source_ids, strict=False)  # Forgotten: no names.
            if doc_id not in came
        }
        now = now_us()
        return [removal_of(*item, now) for item in gone if item not in known]

    def add(self, versions: Sequence[ItemVersion]) -> None:
        """Append a leaf for each."""
        first = self._append([version.commitment for version in versions])
        insert_rows(self._connection, log_leaves, self._rows(versions, first))

    def add_leaves(self, kind: str, contents: Mapping[str, str]) -> None:
        """Append a leaf for each of these contents, by their ids; see `GradeLog`."""
        self.add([salted_version(kind, one, content) for one, content in contents.items()])

    def _append(self, commitments: Sequence[bytes]) -> int:
        """Append leaves to the tree; return the index of the first."""
        last = _last_tile_query().first(self._connection, {"tenant": self._tenant_id})
        tile, full = (b"", 0) if last is None else (bytes(last.hashes), last.number)
        size = full * TILE_WIDTH + width_of(tile)

        def read(level: int, number: int) -> Tile:
            return self._tile(level, number) if level else tile

        tiles = appended(size, [leaf_hash(one) for one in commitments], read)
        _put_tile_query().insert(
            self._connection,
            [
                {"tenant_id": self._tenant_id, "level": level, "number": number, "hashes": tile}
                for (level, number), tile in tiles.items()
            ],
        )
        return size

    def _add_runs(self, places: Iterable[tuple[int, int]]) -> None:
        runs = [{"tenant_id": self._tenant_id} | run for run in _runs(places)]
        if runs:
            insert_rows(self._connection, log_runs, runs)

    def _rows(self, versions: Sequence[ItemVersion], first: int) -> list[dict[str, Any]]:
        now = now_us()
        return [
            {
                "tenant_id": self._tenant_id,
                "leaf": leaf,
                "kind": version.kind,
                "source_id": version.source_id,
                "commitment": version.commitment,
                "salt": version.salt,
                "content": version.content,
                "logged_at": now,
            }
            for leaf, version in enumerate(versions, first)
        ]

    def _supersede(self, versions: Sequence[ItemVersion]) -> None:
        """Erase what is kept of the versions before these: only the newest can be shown."""
        for kind, source_ids in _by_kind(versions).items():
            self._erase(kind, source_ids, {"salt": None, "content": None})

    def _erase(self, kind: str, source_ids: Collection[str], values: Mapping[str, Any]) -> None:
        for some in chunks(source_ids):
            self._connection.execute(
                update(log_leaves)
                .where(
                    log_leaves.c.tenant_id == self._tenant_id,
                    log_leaves.c.kind == kind,
                    log_leaves.c.source_id.in_(some),
                )
                .values(values)
            )

    def name(self) -> LogName | None:
        """Return what names the log; None before its head is first asked for."""
        state = self._state()
        if "log" not in state:
            return None
        return LogName(state["log"], int(state["generation"], 16))

    def begin(self, name: LogName) -> None:
        """Give the log a name, in the place of the one it has."""
        self._set("log", name.id)
        self._set("generation", f"{name.generation:x}")

    def size(self) -> int:
        """Return how many leaves it has."""
        row = _last_tile_query().first(self._connection, {"tenant": self._tenant_id})
        return 0 if row is None else row.number * TILE_WIDTH + width_of(row.hashes)

    def end(self) -> tuple[object, ...]:
        """Return what tells two logs apart; see `RecordLog`."""
        return self.name(), self.size(), self.tree().root()

    def tree(self, size: int | None = None) -> Tree:
        """Return the tree of the first `size` leaves, or of all."""
        return Tree(self.size() if size is None else size, self._tile)

    def _tile(self, level: int, number: int) -> Tile:
        wanted = {"tenant": self._tenant_id, "level": level, "number": number}
        row = _tile_query().first(self._connection, wanted)
        return b"" if row is None else bytes(row.hashes)

    def at(self, index: int) -> Leaf | None:
        """Return the leaf of an index; None when there is none. Of an event, its document's
        number tells which: `source_id` is empty when that is gone."""
        tree = self.tree()
        if not 0 <= index < tree.size:
            return None
        mine = (log_leaves.c.tenant_id == self._tenant_id, log_leaves.c.leaf == index)
        row = self._connection.execute(select(log_leaves).where(*mine)).first()
        if row is not None:
            return self._leaf(row, tree)
        run = self._connection.execute(
            select(log_runs.c.first_leaf, log_runs.c.leaves, log_runs.c.first_doc)
            .where(log_runs.c.tenant_id == self._tenant_id, log_runs.c.first_leaf <= index)
            .order_by(log_runs.c.first_leaf.desc())
            .limit(1)
        ).first()
        if run is None or index >= run.first_leaf + run.leaves:
            return Leaf(index, tree.leaf(index), "", "")
        doc_id = run.first_doc + index - run.first_leaf
        document = self._connection.execute(
            select(documents.c.kind, documents.c.source_id).where(
                documents.c.tenant_id == self._tenant_id, documents.c.doc_id == doc_id
            )
        ).first()
        kind, source_id = ("", "") if document is None else document
        return Leaf(index, tree.leaf(index), kind, source_id)

    def leaves_of(self, kind: str, source_ids: Collection[str]) -> Mapping[str, Sequence[Leaf]]:
        """Return the leaves of items by their ids, oldest first. Items without any are left out.

        An event's are found by its document, for as long as that is there.
        """
        tree = self.tree()
        found: dict[str, list[Leaf]] = {}
        for some in chunks(source_ids):
            rows = self._connection.execute(
                select(log_leaves)
                .where(
                    log_leaves.c.tenant_id == self._tenant_id,
                    log_leaves.c.kind == kind,
                    log_leaves.c.source_id.in_(some),
                )
                .order_by(log_leaves.c.leaf)
            )
            for row in rows:
                found.setdefault(row.source_id, []).append(self._leaf(row, tree))
            for source_id, index in self._in_runs(kind, some):
                leaf = Leaf(index, tree.leaf(index), kind, source_id)
                found.setdefault(source_id, []).append(leaf)
        return found

    def newest(self, kind: str, source_ids: Collection[str]) -> Mapping[str, Leaf]:
        """Return the newest leaf of each item that has one, by the items' ids."""
        tree = self.tree()
        rows = _newest_query().all(self._connection, self._named(kind, source_ids))
        found = {row.source_id: self._leaf(row, tree) for row in rows}
        in_runs = self._in_runs(kind, [one for one in source_ids if one not in found])
        return found | {
            source_id: Leaf(index, tree.leaf(index), kind, source_id)
            for source_id, index in in_runs
        }

    def _in_runs(self, kind: str, source_ids: Collection[str]) -> Iterable[tuple[str, int]]:
        if source_ids:
            for row in _in_runs_query().all(self._connection, self._named(kind, source_ids)):
                if row.doc_id < row.first_doc + row.leaves:
                    yield row.source_id, row.first_leaf + row.doc_id - row.first_doc

    def _named(self, kind: str, source_ids: Collection[str]) -> Mapping[str, str]:
        ids = array_of(source_ids)
        return {"tenant": self._tenant_id, "kind": kind, "ids": ids}

    def unaccounted(self) -> int:
        """Return how many leaves are of nothing: of an event that is neither stored nor forgotten,
        or of no item at all; fewer than 0 where more is stored than has leaves."""
        wanted = {"tenant": self._tenant_id, "event": EVENT.name}
        counts = _accounts_query().first(self._connection, wanted)
        assert counts is not None
        of_nothing = self.size() - counts.in_runs - counts.in_rows
        return int(of_nothing + abs(counts.in_runs - counts.recallable - counts.forgotten))

    def count_of(self, kind: str) -> int:
        """Return how many leaves of a kind that keeps no salt itself were not forgotten."""
        query = select(func.count()).select_from(log_leaves)
        query = query.where(
            log_leaves.c.tenant_id == self._tenant_id,
            log_leaves.c.kind == kind,
            log_leaves.c.forgotten_at.is_(None),
        )
        return int(self._connection.execute(query).scalar_one())

    def events_of(self, session_id: str) -> int:
        """Return how many events of a session can be recalled."""
        wanted = {"tenant": self._tenant_id, "event": EVENT.name, "session": session_id}
        found = _events_of_query().first(self._connection, wanted)
        return 0 if found is None else int(found.events)

    def any_forgotten(self, indexes: Collection[int]) -> bool:
        """Return whether any of these leaves was forgotten."""
        given = {"tenant": self._tenant_id, "leaves": json.dumps(list(indexes))}
        return _forgotten_query().first(self._connection, given) is not None

    def forget(
        self, kind: str, source_ids: Collection[str], now_us: int
    ) -> Mapping[str, Sequence[Leaf]]:
        """Erase salts, contents and ids of all versions of these items, for good, and return their
        leaves as `leaves_of` did before. Commitments and hashes stay, and so every proof.

        To be called before their documents are removed, in the same transaction: that they were
        removed is then not logged, since it would name them. What keeps its own salt erases it
        itself.
        """
        found = self.leaves_of(kind, source_ids)
        self._forgotten |= {(kind, source_id) for source_id in source_ids}
        gone = {"salt": None, "content": None, "source_id": "", "forgotten_at": now_us}
        self._erase(kind, source_ids, gone)
        rows = [
            {
                "tenant_id": self._tenant_id,
                "leaf": leaf.index,
                "kind": kind,
                "source_id": "",
                "commitment": None,
                "salt": None,
                "content": None,
                "logged_at": now_us,
                "forgotten_at": now_us,
            }
            for leaves in found.values()
            for leaf in leaves
            if not leaf.commitment
        ]
        if rows:  # Of what keeps its own salt there was no row yet.
            insert_rows(self._connection, log_leaves, rows)
        return found

    def _state(self) -> Mapping[str, str]:
        rows = _state_query().all(self._connection, {"tenant": self._tenant_id})
        return {row.key: row.value for row in rows}

    def _set(self, key: str, value: str) -> None:
        row = {"tenant_id": self._tenant_id, "key": key, "value": value}
        self._connection.execute(upsert(log_state), row)

    def _leaf(self, row: Row[Any], tree: Tree) -> Leaf:
        return _decoded(row, tree.leaf(row.leaf))


def _decoded(row: Row[Any], hash_: bytes) -> Leaf:
    @reads("leaf of the log", "leaf")
    def leaf_of(row: Row[Any]) -> Leaf:
        return Leaf(
            row.leaf,
            hash_,
            row.kind,
            row.source_id,
            bytes(row.commitment or b""),
            bytes(row.salt or b""),
            row.content or "",
            row.forgotten_at,
        )

    return leaf_of(row)


def _runs(places: Iterable[tuple[int, int]]) -> Iterable[dict[str, int]]:
    """Yield the runs of leaves, each with its document, whose documents are numbered alike."""
    first_leaf = first_doc = leaves = 0
    for leaf, doc_id in places:
        if leaves and leaf == first_leaf + leaves and doc_id == first_doc + leaves:
            leaves += 1
            continue
        if leaves:
            yield {"first_leaf": first_leaf, "leaves": leaves, "first_doc": first_doc}
        first_leaf, first_doc, leaves = leaf, doc_id, 1
    if leaves:
        yield {"first_leaf": first_leaf, "leaves": leaves, "first_doc": first_doc}


def _by_kind(versions: Sequence[ItemVersion]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for version in versions:
        found.setdefault(version.kind, []).append(version.source_id)
    return found


@cache
def _last_tile_query() -> Prepared:
    """Select the last tile of leaves."""
    return Prepared(
        select(log_tiles.c.number, log_tiles.c.hashes)
        .where(log_tiles.c.tenant_id == bindparam("tenant"), log_tiles.c.level == 0)
        .order_by(log_tiles.c.number.desc())
        .limit(1)
    )


@cache
def _tile_query() -> Prepared:
    """Select a tile."""
    return Prepared(
        select(log_tiles.c.hashes).where(
            log_tiles.c.tenant_id == bindparam("tenant"),
            log_tiles.c.level == bindparam("level"),
            log_tiles.c.number == bindparam("number"),
        )
    )


@cache
def _put_tile_query() -> Prepared:
    """Insert or replace tiles."""
    return Prepared(upsert(log_tiles), ("tenant_id", "level", "number", "hashes"))


@cache
def _state_query() -> Prepared:
    """Select what is known of the log."""
    return Prepared(
        select(log_state.c.key, log_state.c.value).where(
            log_state.c.tenant_id == bindparam("tenant")
        )
    )


@cache
def _newest_query() -> Prepared:
    """Select the newest row of each item: one look into the index for each, however many there
    are."""
    each = json_items(bindparam("ids"))
    of_item = log_leaves.alias("of_item")
    newest = (
        select(func.max(of_item.c.leaf))
        .where(
            of_item.c.tenant_id == bindparam("tenant"),
            of_item.c.kind == bindparam("kind"),
            of_item.c.source_id == each.c.value,
        )
        .scalar_subquery()
    )
    return Prepared(
        select(log_leaves).where(
            log_leaves.c.tenant_id == bindparam("tenant"),
            log_leaves.c.leaf.in_(select(newest).select_from(each)),
        )
    )


@cache
def _in_runs_query() -> Prepared:
    """Select documents, each with the last run of leaves that begins with it or before it."""
    before = log_runs.alias("before")
    first = (
        select(before.c.first_leaf)
        .where(
            documents.c.tenant_id == bindparam("tenant"),  # Again: the guard reads each SELECT.
            before.c.tenant_id == bindparam("tenant"),
            before.c.first_doc <= documents.c.doc_id,
        )
        .order_by(before.c.first_doc.desc())
        .limit(1)
        .scalar_subquery()
    )
    run = log_runs.c
    return Prepared(
        select(
            documents.c.source_id, documents.c.doc_id, run.first_leaf, run.leaves, run.first_doc
        ).where(
            documents.c.tenant_id == bindparam("tenant"),
            documents.c.kind == bindparam("kind"),
            documents.c.source_id.in_(listed(bindparam("ids"))),
            run.tenant_id == bindparam("tenant"),
            run.first_leaf == first,
        )
    )


@cache
def _accounts_query() -> Prepared:
    """Count what leaves are of: runs and rows, and what of events these should be."""
    runs, rows, there = log_runs.c, log_leaves.c, documents.c
    tenant: BindParameter[str] = bindparam("tenant")

    def count(table: Table, condition: ColumnElement[bool]) -> ScalarSelect[int]:
        query = select(func.count()).select_from(table)
        return query.where(table.c.tenant_id == tenant, condition).scalar_subquery()

    in_runs = select(func.coalesce(func.sum(runs.leaves), 0)).where(runs.tenant_id == tenant)
    return Prepared(
        select(
            in_runs.scalar_subquery().label("in_runs"),
            count(log_leaves, rows.commitment.is_not(None)).label("in_rows"),
            count(log_leaves, rows.commitment.is_(None)).label("forgotten"),
            count(documents, there.kind == bindparam("event")).label("recallable"),
        )
    )


@cache
def _events_of_query() -> Prepared:
    """Count the events of a session that can be recalled."""
    return Prepared(
        select(func.count().label("events")).where(
            documents.c.tenant_id == bindparam("tenant"),
            documents.c.kind == bindparam("event"),
            documents.c.session_id == bindparam("session"),
        )
    )


@cache
def _forgotten_query() -> Prepared:
    """Select one of these leaves that was forgotten."""
    return Prepared(
        select(log_leaves.c.leaf)
        .where(
            log_leaves.c.tenant_id == bindparam("tenant"),
            log_leaves.c.leaf.in_(listed(bindparam("leaves"), numbers=True)),
            log_leaves.c.forgotten_at.is_not(None),
        )
        .limit(1)
    )
