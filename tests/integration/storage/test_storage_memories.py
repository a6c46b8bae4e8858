"""Memories as they are shown: documents, and the details that their kinds bring."""

from __future__ import annotations

from pathlib import Path

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.engine.store.unit import TenantSchema
from mneme_server.features.events.store.tables import agents
from sqlalchemy import insert, update

NOTE, MARK = MemoryKind("note", spoken=frozenset({"aside"})), MemoryKind("mark")
SOUND = MemoryKind("sound")


def _shown(name: str, calls: int) -> JsonObject:
    if calls < 0:
        raise ValueError(calls)
    return {"name": name, "calls": calls}


def _told(document: Document) -> JsonObject:
    return {"name": {"alarm": "loud", "whisper": "soft"}[document.type]}


def _opened(folder: Path, tenant: str = "t") -> SqliteTenantStore:
    details = Details(
        key=agents.c.id, columns=(agents.c.name, agents.c.tool_call_count), decode=_shown
    )
    return SqliteTenantStore(
        folder, tenant, TenantSchema.of(kinds=[{NOTE: details}, {MARK: None, SOUND: _told}])
    )


def _agent(tenant: str, agent_id: str, name: str) -> dict[str, object]:
    empty = {c.name: 0 if "INT" in str(c.type) else "" for c in agents.columns}
    said = {"tenant_id": tenant, "id": agent_id, "name": name}
    return empty | said | {"tool_call_count": 3, "total_cost_usd": 0.0}


def test_a_memory_is_shown_with_the_details_of_its_kind(tmp_path: Path) -> None:
    database = _opened(tmp_path)
    with database.write() as unit:
        unit.documents.add([Document(0, NOTE, f"n{n}", f"note {n}", 1) for n in range(3)])
        unit.documents.add([Document(0, MARK, "n0", "a mark", 1)])
        unit._connection.execute(
            insert(agents), [_agent("t", "n0", "zero"), _agent("t", "n1", "one")]
        )
    other = _opened(tmp_path, "u")  # As where tenants share a database.
    with other.write() as unit:
        unit._connection.execute(insert(agents), [_agent("u", "n2", "two")])
    other.close()
    with database.read() as unit:
        shown = unit.memories.get_many([4, 1, 2, 3, 99])
        assert {i: (m.document.kind, m.details) for i, m in shown.items()} == {
            1: (NOTE, {"name": "zero", "calls": 3}),
            2: (NOTE, {"name": "one", "calls": 3}),
            3: (NOTE, {}),
            4: (MARK, {}),
        }
        assert unit.memories.lost == 0
    with database.write() as unit:
        unit._connection.execute(
            update(agents)
            .where(agents.c.tenant_id == "t", agents.c.id == "n1")
            .values(tool_call_count=-1)
        )
    with database.read() as unit:
        shown = unit.memories.get_many([1, 2])
        assert shown[1].details == {"name": "zero", "calls": 3}
        assert unit.memories.lost == 1
    database.close()


def test_details_that_the_document_tells_are_shown_and_one_that_cannot_be_told_is_left_out(
    tmp_path: Path,
) -> None:
    database = _opened(tmp_path)
    with database.write() as unit:
        unit.documents.add(
            [Document(0, SOUND, kind, kind, 1, type=kind) for kind in ("alarm", "noise", "whisper")]
        )
    with database.read() as unit:
        shown = unit.memories.get_many([1, 2, 3])
        assert {i: m.details for i, m in shown.items()} == {
            1: {"name": "loud"},
            3: {"name": "soft"},
        }
        assert unit.memories.lost == 1
    database.close()


def test_what_is_said_before_is_of_the_same_kind(tmp_path: Path) -> None:
    database = _opened(tmp_path)

    def said(kind: MemoryKind, position: int, text: str) -> Document:
        return Document(0, kind, text, text, 1, session_id="s", position=position, category="aside")

    with database.write() as unit:
        unit.documents.add([said(NOTE, 1, "first"), said(MARK, 2, "between")])
    with database.write() as unit:
        (later,) = unit.documents.add([said(NOTE, 3, "later")])
    assert later.context == "first"
    database.close()


def test_a_memory_of_a_kind_that_nobody_brings_is_left_alone(tmp_path: Path) -> None:
    database = _opened(tmp_path)
    with database.write() as unit:
        unit.documents.add([Document(0, NOTE, "n", "a note", 1), Document(0, MARK, "m", "mark", 1)])
    database.close()
    fewer = SqliteTenantStore(tmp_path, "t", TenantSchema.of(kinds=[{MARK: None}]))
    assert [document.kind for document in fewer.source.documents_after(0, 10)] == [MARK]
    fewer.close()
    again = _opened(tmp_path)
    assert [document.kind for document in again.source.documents_after(0, 10)] == [NOTE, MARK]
    again.close()
