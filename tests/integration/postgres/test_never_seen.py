"""A server that has never seen a tenant answers at once, from PostgreSQL, and says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Question
from mneme_server.engine.index import cold_search
from mneme_server.engine.index.cold_search import ColdTenantIndex
from mneme_server.engine.store.postgres.scanning import PostgresScan
from mneme_server.engine.store.postgres.store import PostgresStores
from support.api import Api
from support.making import at, event, ids_of, recall, record
from support.nodes import PATIENCE_S, eventually
from support.operations import finished
from support.postgres import PostgresServer
from support.server import LocalServer, local_server

TOKEN, FRESH = "mneme-consistency-token", "mneme-at-least-as-fresh"
WORDS = recall_pb.RECALL_MODE_LEXICAL

POND = [
    event("the heron ate a carp at dawn", "pond", id="heron", at=0),
    event("Ann: the invoice was paid twice", "bills", id="invoice", at=100),
    event("the pump failed: no pressure", "pond", kind="tool_error", id="pump", at=200, severity=4),
    event("café Größe déjà vu", "bills", id="accents", at=300),
    event("the registry moved to port 5000", "net", id="registry", at=400),
    *(event(f"the weather of day {n} was fair", f"w{n % 7}", id=f"w{n}", at=n) for n in range(60)),
]


@pytest.fixture
def one(tmp_path: Path, url: str) -> Iterator[LocalServer]:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as server:
        yield server


@pytest.fixture
def here(one: LocalServer) -> Api:
    """A tenant with some memories, all of them embedded."""
    api = one.keys.tenant("acme")
    for session, fields in (
        ("pond", {"user_id": "ann"}),
        ("bills", {"tags": ["odd"]}),
        ("net", {"tags": ["net"]}),
    ):
        api.events.StartSession(events_pb.StartSessionRequest(session_id=session, **fields))
    record(api, *POND, wait=True)
    return api


@pytest.fixture
def building(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Has every tenant count as large; indexes are built once this is set."""
    go = threading.Event()
    build = ColdTenantIndex.rebuilt

    def later(index: ColdTenantIndex, *, clean: bool = False) -> Any:
        go.wait(PATIENCE_S)
        return build(index, clean=clean)

    monkeypatch.setattr(cold_search, "FEW", 0)
    monkeypatch.setattr(ColdTenantIndex, "rebuilt", later)
    yield go
    go.set()


@pytest.fixture
def other(tmp_path: Path, url: str, here: Api, building: threading.Event) -> Iterator[LocalServer]:
    """Another server, which has never seen the tenant."""
    with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as server:
        yield server
        building.set()


@pytest.fixture
def there(other: LocalServer) -> Api:
    return other.keys.key("acme-1")


def whole(api: Api, building: threading.Event) -> None:
    """Have the index built."""
    building.set()
    eventually(lambda: not recall(api, "heron").partial, "the index was not built")


def test_its_first_answer_has_the_right_memory_and_is_marked_until_the_index_is_built(
    here: Api, there: Api, building: threading.Event
) -> None:
    first = recall(there, "what did the heron eat")
    assert first.partial
    assert ids_of(first)[0] == "heron"
    assert first.searched_count == len(POND)
    assert not first.HasField("confidence")
    whole(there, building)
    assert recall(there, "what did the heron eat") == recall(here, "what did the heron eat")


def test_it_is_found_by_meaning_where_no_word_is_shared(there: Api) -> None:
    for question, found in (
        ("which bird caught a fish early in the morning", "heron"),
        ("somebody was charged double", "invoice"),
    ):
        answer = recall(there, question, mode=recall_pb.RECALL_MODE_DENSE)
        assert answer.partial
        assert ids_of(answer)[0] == found


def test_it_is_found_by_its_words_in_any_case_and_form(there: Api) -> None:
    for question, found in (
        ("registry", "registry"),
        ("registries", "registry"),
        ("PORT 5000", "registry"),
        ("CAFÉ", "accents"),
        ("größe", "accents"),
        ("paying the invoices", "invoice"),
    ):
        answer = recall(there, question, mode=WORDS)
        assert answer.partial
        assert ids_of(answer)[:1] == [found], question


FILTERS: list[dict[str, Any]] = [
    {},
    {"session_id": "pond"},
    {"session_id": "nowhere"},
    {"user_id": "ann"},
    {"tags": ["odd"]},
    {"tags": ["net", "odd"]},
    {"event_types": ["tool_error"]},
    {"min_severity": 4},
    {"author": "Ann"},
    {"scopes": ["event"]},
    {"scopes": ["lesson"]},
    {"start_time": at(150)},
    {"end_time": at(150)},
]


def test_filters_let_the_same_through_as_with_an_index(here: Api, there: Api) -> None:
    for asked in FILTERS:
        for question in ("the pump and the invoice of the heron", "weather"):
            before, after = (
                recall(api, question, limit=100, every_copy=True, **asked) for api in (there, here)
            )
            assert (before.partial, after.partial) == (True, False)
            assert sorted(ids_of(before)) == sorted(ids_of(after)), asked
            assert before.outcome == after.outcome, asked
            if "author" not in asked:
                assert before.searched_count == after.searched_count, asked


def test_of_what_is_less_alike_than_was_asked_for_nothing_is_shown(there: Api) -> None:
    """The scores themselves depend on how rare words are in all there is."""
    answer = recall(there, "weather", limit=3, min_score=0.2)
    assert answer.partial
    assert 0 < len(answer.results) <= 3
    assert min(result.score for result in answer.results) >= 0.2


def test_of_another_tenant_nothing_is_found(one: LocalServer, other: LocalServer) -> None:
    rival = one.keys.tenant("rival")
    record(rival, event("the heron of the rival eats frogs", id="theirs"), wait=True)
    for tenant, own in (("acme-1", "heron"), ("rival-2", "theirs")):
        found = recall(other.keys.key(tenant), "heron", limit=50)
        assert found.partial
        assert own in ids_of(found)
        assert ("theirs" in ids_of(found)) == (own == "theirs")


def test_without_the_filter_row_level_security_still_keeps_tenants_apart(
    one: LocalServer, here: Api, url: str
) -> None:
    """As if a statement named another tenant than the one whose transaction it is."""
    rival = one.keys.tenant("rival")
    record(rival, event("the heron of the rival eats frogs", id="theirs"), wait=True)
    stores = PostgresStores(url, one.application.runtime.schema)
    try:
        own = stores.open("rival-2").scan
        assert sum(page.doc_ids.size for page in own.texts(DocumentFilter(), 100)) == 1
        assert sum(batch.doc_ids.size for batch in own.vectors(384)) == 1
        database = stores.open("rival-2")._database
        scan = PostgresScan(database, "acme-1", one.application.runtime.schema.kinds.by_name)
        assert not sum(batch.doc_ids.size for batch in scan.vectors(384))
        with pytest.raises(Exception, match="tenant"):  # The guard, before the database.
            list(scan.texts(DocumentFilter(), 100))
    finally:
        stores.close()


def test_what_another_server_writes_meanwhile_is_found_under_its_token(
    here: Api, there: Api
) -> None:
    assert recall(there, "heron").partial
    for number in range(3):
        request = recall_pb.RecallRequest(query=f"otter{number}", mode=WORDS)
        made, call = here.events.RecordEvents.with_call(
            recording(event(f"an otter{number} came", id=f"o{number}"))
        )
        token = dict(call.trailing_metadata())[TOKEN]
        answer = there.recall.Recall(request, metadata=((FRESH, token),))
        assert answer.partial
        assert ids_of(answer) == [f"o{number}"]
    assert made.receipts


def test_what_is_written_by_it_meanwhile_is_in_the_index_that_is_built(
    there: Api, building: threading.Event
) -> None:
    assert recall(there, "heron").partial
    with ThreadPoolExecutor(1) as pool:  # Who writes waits for the index, as ever.
        written = pool.submit(record, there, event("a kingfisher dived", id="new"))
        whole(there, building)
        written.result(PATIENCE_S)
    assert ids_of(recall(there, "kingfisher", mode=WORDS)) == ["new"]


def test_what_is_deleted_meanwhile_is_found_no_more(here: Api, there: Api) -> None:
    here.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id="m", text="a bittern booms"))
    assert ids_of(recall(there, "bittern", mode=WORDS)) == ["m"]
    here.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["m"]))
    answer = recall(there, "bittern", mode=WORDS)
    assert (answer.partial, ids_of(answer)) == (True, [])


def test_what_is_forgotten_meanwhile_is_not_in_the_index_that_is_built(
    one: LocalServer, here: Api, there: Api, building: threading.Event
) -> None:
    record(here, event("a bittern booms", "reeds", id="bittern", agent_id="a"), wait=True)
    assert ids_of(recall(there, "bittern", mode=WORDS)) == ["bittern"]
    forget = admin_pb.ForgetRequest(tenant_id="acme-1", agent_id="a", operation_id="f")
    with ThreadPoolExecutor(1) as pool:  # It is answered when the other server has an index.
        forgotten = pool.submit(finished, one.keys.admin, forget)
        building.set()
        assert not forgotten.result(PATIENCE_S).nodes
    answer = recall(there, "bittern", mode=WORDS)
    assert (answer.partial, ids_of(answer)) == (False, [])


def test_whatever_else_is_asked_waits_for_the_index_and_is_answered_in_full(
    there: Api, building: threading.Event
) -> None:
    assert recall(there, "heron").partial
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(there.admin.GetStats, admin_pb.GetStatsRequest())
        building.set()
        stats = asked.result(PATIENCE_S).tenant
    assert stats.memory_count == stats.vector_count == len(POND)


def test_what_was_said_around_a_result_is_what_an_index_has_there(
    monkeypatch: pytest.MonkeyPatch, here: Api, there: Api
) -> None:
    """Also where but a few documents of a session are candidates, with others between them."""
    monkeypatch.setattr(cold_search, "CANDIDATES", 1)
    animals = ("ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay")
    said = [event(f"{one} was spoken of", "talk", id=f"t{one}") for one in animals]
    record(here, *said, wait=True)
    for question, turns in (("ant", 1), ("bee hen", 2), ("fox", 3), ("jay and ant", 3)):
        before, after = (
            {r.source_id: r for r in recall(api, question, context_turns=turns, limit=100).results}
            for api in (there, here)
        )
        shown = [name for name in before if name.startswith("t")]
        assert shown
        for name in shown:
            assert before[name].before == after[name].before
            assert before[name].after == after[name].after


def test_building_ends_though_questions_never_do(
    monkeypatch: pytest.MonkeyPatch, other: LocalServer, there: Api, building: threading.Event
) -> None:
    monkeypatch.setattr(cold_search, "_PATIENCE_S", 0.1)
    assert recall(there, "heron").partial
    memory = other.application.runtime.tenants.open_tenants()[0]
    with memory.searching(Question("heron", DocumentFilter(), lambda: None)) as search:
        assert not search.whole
        building.set()
        eventually(lambda: memory.cold_index is None, "the index was not built")
    assert not recall(there, "heron").partial


def test_what_was_superseded_stands_behind_what_replaced_it(here: Api, there: Api) -> None:
    old = memory_pb.CreateMemoryRequest(memory_id="old", text="Ann wants invoices by fax")
    here.memory.CreateMemory(old)
    new = memory_pb.CreateMemoryRequest(
        memory_id="new", text="Mail them from now on", supersedes=["old"]
    )
    here.memory.CreateMemory(new)
    answer = recall(there, "fax", mode=WORDS, include_superseded=True)
    assert answer.partial
    assert ids_of(answer) == ["new", "old"]
    assert ids_of(recall(there, "fax", mode=WORDS)) == ["new"]


def test_a_damaged_row_takes_nothing_but_itself_along(
    postgres: PostgresServer, database: str, here: Api, there: Api
) -> None:
    postgres.execute(
        "ALTER TABLE mneme.vectors NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE mneme.documents NO FORCE ROW LEVEL SECURITY",
        "UPDATE mneme.vectors SET vector = '\\x00' WHERE doc_id ="
        " (SELECT doc_id FROM mneme.documents WHERE source_id = 'heron')",
        "UPDATE mneme.documents SET importance = 999 WHERE source_id = 'pump'",
        database=database,
    )
    answer = recall(there, "the heron, the pump and the registry")
    assert answer.partial
    assert {"heron", "registry"} <= set(ids_of(answer))
    assert "pump" not in ids_of(answer)


def test_a_server_that_stops_meanwhile_leaves_no_index_and_begins_again(
    tmp_path: Path, url: str, here: Api, building: threading.Event
) -> None:
    for _ in range(2):
        with local_server(tmp_path / "third", database_url=url) as server:
            api = server.keys.key("acme-1")
            assert recall(api, "heron").partial
            index = server.application.runtime.tenants.open_tenants()[0].cold_index
            assert index is not None
            index.interrupt()  # As closing does, which waits for who builds.
            building.set()
        building.clear()
    building.set()
    with local_server(tmp_path / "third", database_url=url) as server:
        api = server.keys.key("acme-1")
        whole(api, building)
        assert ids_of(recall(api, "heron"))[0] == "heron"
    with local_server(tmp_path / "third", database_url=url) as server:
        assert not recall(server.keys.key("acme-1"), "heron").partial  # It has a copy now.


def recording(*events: Any) -> events_pb.RecordEventsRequest:
    return events_pb.RecordEventsRequest(events=events)
