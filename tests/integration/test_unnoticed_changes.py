"""Whoever checks a certificate, or the chains of events, is told what was changed where it lies."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from support.api import Api, grpc, refused
from support.behind import Behind
from support.making import event, record, struct, verify
from support.operations import finished
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    made = server.keys.tenant("unnoticed")
    for number in range(3):
        made.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(
                memory_id=f"m{number}", text=f"Ann wants invoice {number} by post",
                metadata=struct(approved=False),
            )
        )  # fmt: skip
    record(made, *[event(f"Ann wants invoice {n}", "s", id=f"e{n}", at=n) for n in range(1, 6)])
    record(made, *[event(f"other words {n}", "other", id=f"o{n}", at=n) for n in range(1, 4)])
    assert verify(made).valid
    return made


@pytest.fixture
def behind(server: LocalServer, api: Api) -> Behind:
    return Behind(server, api.tenant_id)


def certify(api: Api, *scopes: str) -> Any:
    request = cert_pb.RecallWithCertificateRequest(query="Ann's invoice", scopes=scopes, limit=5)
    return api.recall.RecallWithCertificate(request)


def check(api: Api, certificate: Any) -> Any:
    return api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=certificate))


def forget(server: LocalServer, api: Api, **what: Any) -> None:
    finished(
        server.keys.admin,
        admin_pb.ForgetRequest(tenant_id=api.tenant_id, **what),
    )


MEMORY_CHANGES = {
    "metadata": "UPDATE memories SET metadata = '{\"approved\":true}' WHERE {mine} AND id = 'm1'",
    "another field of it": 'UPDATE memories SET metadata = \'{"approved":false,"by":"Eve"}\''
    " WHERE {mine} AND id = 'm1'",
    "since when it holds": "UPDATE memories SET since = since - 60000000"
    " WHERE {mine} AND id = 'm1'",
    "what replaced it": "UPDATE memories SET superseded_by = 'm2' WHERE {mine} AND id = 'm1'",
    "how important it is": "UPDATE memories SET importance = importance - 1"
    " WHERE {mine} AND id = 'm1'",
}


@pytest.mark.parametrize("what", sorted(MEMORY_CHANGES))
def test_what_is_shown_beside_a_memorys_text_is_checked(
    what: str, api: Api, behind: Behind
) -> None:
    text = certify(api, "memory").certificate.json
    assert check(api, text).valid
    behind.tenant(MEMORY_CHANGES[what].replace("{mine}", "tenant_id = ?"), api.tenant_id)
    found = check(api, text)
    assert [one.part for one in found.problems] == ["rows"]
    assert "memory 'm1' is not what was logged of it" in found.problems[0].message
    with refused() as failure:
        certify(api, "memory")
    assert failure.code == grpc.StatusCode.DATA_LOSS


def cut_with_its_end(behind: Behind, tenant: str) -> None:
    """Remove the session's last event, and have the session end before it."""
    ((before,),) = behind.tenant(
        "SELECT hash FROM events WHERE tenant_id = ? AND id = 'e4'", tenant
    )
    behind.tenant("DELETE FROM events WHERE tenant_id = ? AND id = 'e5'", tenant)
    behind.tenant(
        "UPDATE sessions SET event_count = 4, head_hash = ? WHERE tenant_id = ? AND id = 's'",
        before, tenant,
    )  # fmt: skip


def cut_with_its_document(behind: Behind, tenant: str) -> None:
    cut_with_its_end(behind, tenant)
    for table, column in (("vectors", "doc_id"), ("embedding_queue", "doc_id")):
        there = f"{table} WHERE tenant_id = ? AND {column} IN (SELECT doc_id FROM documents"
        there += " WHERE tenant_id = ? AND source_id = 'e5')"
        if behind.tenant(f"SELECT 1 FROM {there}", tenant, tenant):
            behind.tenant(f"DELETE FROM {there}", tenant, tenant)
    behind.tenant("DELETE FROM documents WHERE tenant_id = ? AND source_id = 'e5'", tenant)


def cut_with_its_leaf(behind: Behind, tenant: str) -> None:
    cut_with_its_document(behind, tenant)
    ((first, leaves),) = behind.tenant(
        "SELECT first_leaf, leaves FROM log_runs WHERE tenant_id = ? ORDER BY first_leaf LIMIT 1",
        tenant,
    )
    behind.tenant(
        "UPDATE log_runs SET leaves = ? WHERE tenant_id = ? AND first_leaf = ?",
        leaves - 1, tenant, first,
    )  # fmt: skip


def false_place(behind: Behind, tenant: str) -> None:
    """Have an event be forgotten, as it is when the server forgets it."""
    from mneme_server.features.events.chain import digest_of

    ((sequence, before, hash_, version, commitment),) = behind.tenant(
        "SELECT sequence, prev_hash, hash, hash_version, commitment FROM events"
        " WHERE tenant_id = ? AND id = 'e5'",
        tenant,
    )
    ((run, doc),) = behind.tenant(
        "SELECT first_leaf, doc_id - first_doc FROM log_runs AS r JOIN documents AS d"
        " ON d.tenant_id = r.tenant_id WHERE r.tenant_id = ? AND source_id = 'e5'"
        " ORDER BY first_leaf LIMIT 1",
        tenant,
    )
    cut_with_its_document(behind, tenant)
    behind.tenant(
        "INSERT INTO forgotten_events (tenant_id, session, sequence, event, prev_hash, hash,"
        " hash_version, commitment, forgotten_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1000000)",
        tenant, digest_of("s"), sequence, digest_of("e5"), before, hash_, version, commitment,
    )  # fmt: skip
    behind.tenant(
        "INSERT INTO log_leaves (tenant_id, leaf, kind, source_id, logged_at, forgotten_at)"
        " VALUES (?, ?, 'event', '', 1000000, 1000000)",
        tenant, run + doc,
    )  # fmt: skip
    behind.tenant(
        "UPDATE sessions SET event_count = 5, head_hash = ? WHERE tenant_id = ? AND id = 's'",
        hash_, tenant,
    )  # fmt: skip


def statement(sql: str) -> Callable[[Behind, str], object]:
    return lambda behind, tenant: behind.tenant(sql.format(mine="tenant_id = ?"), tenant)


CHAIN_CHANGES = {
    "its last event is cut": cut_with_its_end,
    "its last event is cut, with its document": cut_with_its_document,
    "its last event is cut, with its document and its leaf": cut_with_its_leaf,
    "an event is marked as forgotten": false_place,
    "its document is of another session": statement(
        "UPDATE documents SET session_id = 'other' WHERE {mine} AND source_id = 'e5'"
    ),
    "its document has another place": statement(
        "UPDATE documents SET position = 9 WHERE {mine} AND source_id = 'e5'"
    ),
    "its document has another name": statement(
        "UPDATE documents SET name = 'pay' WHERE {mine} AND source_id = 'e5'"
    ),
    "its document says something else": statement(
        "UPDATE documents SET text = 'Eve wants it all' WHERE {mine} AND source_id = 'e5'"
    ),
}


@pytest.mark.parametrize("what", sorted(CHAIN_CHANGES))
def test_a_chain_that_was_changed_with_its_end_does_not_verify(
    what: str, api: Api, behind: Behind
) -> None:
    CHAIN_CHANGES[what](behind, api.tenant_id)
    found = verify(api)
    assert not found.valid, "all chains"
    assert found.broken_chains[0].reason
    assert not verify(api, "s").valid, "the session's chain"


def test_a_chain_that_was_written_anew_does_not_verify(api: Api, behind: Behind) -> None:
    from mneme_server.features.events.chain import chain
    from mneme_server.features.events.store.events import event_of

    names = [
        "cursor", "tenant_id", "id", "session_id", "sequence", "agent_id", "event_type", "severity",
        "timestamp", "text", "name", "call_id", "error", "model", "input_tokens", "output_tokens",
        "cost_usd", "duration", "payload", "metadata", "searchable", "recorded_at", "prev_hash",
        "hash", "hash_version", "salt", "commitment",
    ]  # fmt: skip
    (values,) = behind.tenant(
        f"SELECT {', '.join(names)} FROM events WHERE tenant_id = ? AND id = 'e5'", api.tenant_id
    )
    row = type("Row", (), dict(zip(names, values, strict=True)))
    found = event_of(row)  # type: ignore[arg-type]
    found.text = "Eve wants it all"
    chain(found, found.prev_hash, b"0123456789abcdef")
    mine = "WHERE tenant_id = ? AND"
    behind.tenant(
        f"UPDATE events SET text = ?, salt = ?, commitment = ?, hash = ? {mine} id = 'e5'",
        found.text, found.salt, found.commitment, found.hash, api.tenant_id,
    )  # fmt: skip
    behind.tenant(
        f"UPDATE documents SET text = ? {mine} source_id = 'e5'", found.text, api.tenant_id
    )
    behind.tenant(f"UPDATE sessions SET head_hash = ? {mine} id = 's'", found.hash, api.tenant_id)
    broken = verify(api, "s").broken_chains
    assert [(one.event_id, one.sequence) for one in broken] == [("e5", 5)]
    assert "is not that in the log" in broken[0].reason


@contextmanager
def without_an_index(server: LocalServer, api: Api) -> Iterator[None]:
    """Have the database not know of the index of events' places while the block changes rows."""
    file = server.data_dir / "tenants" / api.tenant_id / "mneme.db"
    named = "WHERE name = 'events' OR (tbl_name = 'events' AND type = 'index')"

    def edited(statement: str, *rows: Any) -> list[Any]:
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")
            found = database.execute(f"SELECT rowid, * FROM sqlite_master {named}").fetchall()
            database.executemany(statement, rows)
            return found

    kept = edited("DELETE FROM sqlite_master WHERE false")
    plain = next(row for row in kept if row[2] == "events")
    constraint = re.search(r",\s*CONSTRAINT events_chain UNIQUE \([^)]*\)", plain[5])
    assert constraint is not None
    index = next(row for row in kept if row[2].startswith("sqlite_autoindex_events_2"))
    edited("DELETE FROM sqlite_master WHERE rowid = ?", [index[0]])
    edited(
        "UPDATE sqlite_master SET sql = ? WHERE rowid = ?",
        [plain[5].replace(constraint[0], ""), plain[0]],
    )
    yield
    edited("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", [plain[5], plain[0]])
    edited(
        "INSERT INTO sqlite_master (rowid, type, name, tbl_name, rootpage, sql)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        index,
    )


@pytest.mark.on_sqlite("PostgreSQL reads a row's places from the row")
@pytest.mark.parametrize("what", ["session_id = 'other', sequence = 4", "sequence = 9"])
def test_a_place_that_an_index_of_the_database_has_otherwise_is_noticed(
    what: str, server: LocalServer, api: Api
) -> None:
    """As a flipped bit leaves it, or an editor of bytes: a row and its index differ."""
    with server.closed(api.tenant_id), without_an_index(server, api):
        file = server.data_dir / "tenants" / api.tenant_id / "mneme.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            changed = database.execute(f"UPDATE events SET {what} WHERE id = 'e5'")
            assert changed.rowcount == 1
    assert verify(api, "s").broken_chains[0].event_id == "e5"
    assert not verify(api).valid


def test_a_mark_that_something_was_forgotten_is_believed_only_when_it_was(
    server: LocalServer, api: Api, behind: Behind
) -> None:
    text = certify(api, "memory").certificate.json
    forget(server, api, items=[{"kind": "memory", "id": "m1"}])
    told = check(api, text)
    assert told.valid
    states = {one.source_id: one.state for one in told.results}
    assert states["m1"] == cert_pb.CERTIFIED_STATE_KIND_FORGOTTEN
    behind.tenant(
        "UPDATE log_leaves SET forgotten_at = 1000000, source_id = '', salt = NULL, content = NULL"
        " WHERE tenant_id = ? AND source_id = 'm2'",
        api.tenant_id,
    )
    found = check(api, text)
    assert [one.part for one in found.problems] == ["rows"]
    assert (
        "is marked as forgotten, and nothing that was signed says so" in found.problems[0].message
    )


def test_that_something_was_removed_is_believed_only_when_it_was(api: Api, behind: Behind) -> None:
    text = certify(api, "memory").certificate.json
    said = json.dumps({"id": "m2", "kind": "memory", "removed_at": "1"}, separators=(",", ":"))
    behind.tenant(
        "UPDATE log_leaves SET source_id = 'm2', content = ?"
        " WHERE tenant_id = ? AND source_id = 'm0'",
        said, api.tenant_id,
    )  # fmt: skip
    assert not check(api, text).valid


def test_what_is_forgotten_leaves_chains_that_verify(server: LocalServer, api: Api) -> None:
    forget(server, api, session_id="other")
    forget(server, api, items=[{"kind": "event", "id": one} for one in ("e2", "e5")])
    found = verify(api)
    assert (found.valid, found.events_forgotten) == (True, 5), found.broken_chains
    record(api, event("and more", "s", id="e6"), event("anew", "other", id="o9"))
    assert verify(api).valid
