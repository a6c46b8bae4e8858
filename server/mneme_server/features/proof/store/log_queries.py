"""The log's statements, each compiled once."""

from __future__ import annotations

from functools import cache

from sqlalchemy import BindParameter, ColumnElement, ScalarSelect, Table, bindparam, func, select

from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import json_items, listed
from mneme_server.engine.store.rows import upsert
from mneme_server.engine.store.tables import documents
from mneme_server.features.proof.store.tables import log_leaves, log_runs, log_state, log_tiles


@cache
def last_tile() -> Prepared:
    """Select the last tile of leaves."""
    return Prepared(
        select(log_tiles.c.number, log_tiles.c.hashes)
        .where(log_tiles.c.tenant_id == bindparam("tenant"), log_tiles.c.level == 0)
        .order_by(log_tiles.c.number.desc())
        .limit(1)
    )


@cache
def tile() -> Prepared:
    """Select a tile."""
    return Prepared(
        select(log_tiles.c.hashes).where(
            log_tiles.c.tenant_id == bindparam("tenant"),
            log_tiles.c.level == bindparam("level"),
            log_tiles.c.number == bindparam("number"),
        )
    )


@cache
def put_tile() -> Prepared:
    """Insert or replace tiles."""
    return Prepared(upsert(log_tiles), ("tenant_id", "level", "number", "hashes"))


@cache
def state() -> Prepared:
    """Select what is known of the log."""
    return Prepared(
        select(log_state.c.key, log_state.c.value).where(
            log_state.c.tenant_id == bindparam("tenant")
        )
    )


@cache
def newest() -> Prepared:
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
def in_runs() -> Prepared:
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
def accounts() -> Prepared:
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
def events_of() -> Prepared:
    """Count the events of a session that can be recalled."""
    return Prepared(
        select(func.count().label("events")).where(
            documents.c.tenant_id == bindparam("tenant"),
            documents.c.kind == bindparam("event"),
            documents.c.session_id == bindparam("session"),
        )
    )


@cache
def forgotten() -> Prepared:
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
