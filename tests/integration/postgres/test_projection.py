"""What recall shows comes from a copy on the server's disk, and is what PostgreSQL would show."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.common.clock import END_US, now_us
from mneme_server.engine.corpus.document import MemoryView
from mneme_server.engine.corpus.projection import Projection, ShownMemories
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.store.memories import SqlMemoryReader
from mneme_server.engine.store.postgres.connections import Begin, Pool
from mneme_server.engine.store.projection_reader import ShownRows
from mneme_server.engine.tenants.local_disk import LocalDisk
from mneme_server.engine.tenants.opener import SHOWN_FOLDER as FOLDER
from mneme_server.features.context.store.summaries import SqlSummaryQueue
from mneme_server.features.skills.model import SKILL
from support.api import Api
from support.forgetting import forget
from support.making import episode, event, lesson, recall, record, skill, struct
from support.nodes import eventually
from support.operations import finished
from support.server import LocalServer, ServerProcess, local_server

_AT_WORK_US = 60_000_000
"""Sessions that are not over are summed up later than that."""
SCOPES = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_ADMIN)


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[LocalServer]:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as server:
        yield server


@pytest.fixture
def other(tmp_path: Path, url: str, server: LocalServer) -> Iterator[LocalServer]:
    """Another server on the same database."""
    with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
        yield other


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("acme", *SCOPES)


def is_warm(tenant: OpenTenant[Any]) -> bool:
    copy = tenant.shown.projection
    with tenant.read() as unit:
        summed_up = (unit.get(SqlSummaryQueue).next_due_us() or END_US) > now_us() + _AT_WORK_US
        if unit.queue.depth() or not summed_up:
            return False  # What is embedded or summed up later is found otherwise.
        newest = unit.feed.head()
    tenant.shown.learn_of(newest.number)  # What is searched seldom is copied now and then.
    return copy is not None and not copy.partial and copy.position == newest


def warm(server: LocalServer, tenant_id: str = "acme-1") -> Projection:
    """Wait until a tenant's copy holds all that there is, and return it."""
    with server.application.runtime.tenants.open(tenant_id) as tenant:
        eventually(lambda: is_warm(tenant), "the copy did not catch up")
        copy = tenant.shown.projection
    assert copy is not None
    return copy


def in_store(server: LocalServer, tenant_id: str = "acme-1") -> Mapping[int, MemoryView]:
    """Return everything that can be recalled, as PostgreSQL shows it."""
    with server.application.runtime.tenants.open(tenant_id) as tenant, tenant.read() as unit:
        ids = [one.doc_id for one in tenant._store.source.documents_after(0, 10_000)]
        found: Mapping[int, MemoryView] = unit.memories.get_many(ids)
    return found


def holds_all(server: LocalServer) -> set[str]:
    """Check that the copy holds what PostgreSQL does, and nothing else; return the kinds there."""
    copy = warm(server)
    stored = {n: one for n, one in in_store(server).items() if one.document.kind != SKILL}
    assert copy.get_many(list(stored)) == stored
    bare = copy.get_many(list(stored), bare=True)
    with server.application.runtime.tenants.open("acme-1") as tenant, tenant.read() as unit:
        assert bare == unit.memories.get_many(list(stored), bare=True)
    beyond = range(1, max(stored, default=0) + 10)
    assert [n for n in beyond if copy.get_many([n])] == sorted(stored)
    return {one.document.kind.name for one in stored.values()}


def fill(api: Api) -> None:
    """Store some of every kind, more than once changed."""
    started = events_pb.StartSessionRequest(session_id="s", agent_id="a", user_id="ann", tags=["x"])
    api.events.StartSession(started)
    record(api, *(event(f"the heron of day {n} eats fish", id=f"e{n}") for n in range(12)))
    record(api, event("the pump failed", kind="tool_error", id="failed", severity=4, name="pump"))
    slept = context_pb.SleepRequest(session_id="s", project="pond", progress=["Fed the herons"])
    api.context.Sleep(slept)
    lesson(api, "Herons", "they eat fish at dawn", lesson_id="l1", tags=["bird"])
    lesson(api, "Otters", "they sleep at noon", lesson_id="l2")
    changed = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="l1", title="Grey herons", importance="IMPORTANCE_HIGH"),
        update_mask=FieldMask(paths=["title", "importance"]),
    )
    api.learn.UpdateLesson(changed)
    api.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id="l2"))
    api.learn.CreateReflection(
        reflection_pb.CreateReflectionRequest(
            session_id="s",
            project="pond",
            task_description="feed the herons",
            outcome=reflection_pb.OUTCOME_FAILURE,
            what_did_not_work=["bread"],
            next_strategy="fish",
            attempt_number=2,
        )
    )
    api.learn.CreateKnowledge(
        knowledge_pb.CreateKnowledgeRequest(
            project="pond",
            type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
            context="the heron left",
            lesson="bring fish",
        )
    )
    for number in range(4):
        supersedes = [f"m{number - 1}"] if number else []
        api.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(
                memory_id=f"m{number}",
                text=f"the keeper of the herons is number {number}",
                metadata=struct(number=number),
                tags=["keeper"],
                supersedes=supersedes,
            )
        )
    # What superseded m1 goes; what m1 is superseded by is passed on.
    api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["m2"]))
    episode(api, "feed the herons", episode_id="ep1", reward=0.25, tags=["pond"], latency_ms=40)
    episode(api, "chase the herons", success=False, episode_id="ep2")
    api.skill.DeleteEpisode(episode_pb.DeleteEpisodeRequest(episode_id="ep2"))
    skill(api, "feeding", description="feeding herons with fish", skill_id="sk1")
    api.events.EndSession(events_pb.EndSessionRequest(session_id="s"))


def shown_in(answer: recall_pb.RecallResponse) -> list[recall_pb.RecallResult]:
    """Return what is shown of results, but for their scores: as words come to lie in other parts of
    the index, sums differ in their last digits."""
    for result in answer.results:
        for name in ("score", "similarity", "terms", "steps"):
            result.ClearField(name)  # type: ignore[arg-type]
    return sorted(answer.results, key=lambda result: (result.source_type, result.source_id))


def asked(api: Api) -> list[list[recall_pb.RecallResult]]:
    """Return the answers to some questions, of each kind of answer: all that there is, as which of
    almost equal ones come first differs with the words of what was changed, which an index counts
    until it is tidied up."""
    hybrid = {"query": "who feeds the herons with fish", "limit": 100}
    questions: list[dict[str, Any]] = [
        hybrid,
        hybrid | {"explain": True, "context_turns": 2},
        hybrid | {"scopes": ["memory"]},
        hybrid | {"scopes": ["lesson"], "tags": ["bird"]},
        hybrid | {"scopes": ["session", "episode"]},
        hybrid | {"user_id": "ann", "mode": recall_pb.RECALL_MODE_LEXICAL},
        hybrid | {"mode": recall_pb.RECALL_MODE_DENSE, "session_id": "s"},
    ]
    return [shown_in(recall(api, **question)) for question in questions]


def in_files(folder: Path, word: str) -> list[Path]:
    """Return the files of a folder that hold a word."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return [file for file in files if word.encode() in file.read_bytes()]


def test_the_copy_holds_what_the_database_shows_whatever_was_changed(
    server: LocalServer, api: Api
) -> None:
    fill(api)
    kinds = {"event", "lesson", "reflection", "knowledge", "memory", "episode", "session"}
    assert holds_all(server) == kinds


def test_a_copy_that_is_made_at_once_holds_the_same(
    server: LocalServer, other: LocalServer, api: Api
) -> None:
    fill(api)
    recall(other.keys.key("acme-1"), "herons")
    holds_all(other)


def test_another_servers_changes_reach_the_copy(
    server: LocalServer, other: LocalServer, api: Api
) -> None:
    there = other.keys.key("acme-1")
    recall(there, "herons")
    holds_all(other)
    fill(api)
    holds_all(other)
    holds_all(server)


def test_answers_are_the_same_with_the_copy_and_without(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(api)
    warm(server)
    with_it = asked(api)
    monkeypatch.setattr(ShownMemories, "_near", lambda _self, _number: None)
    without = asked(api)
    for one, another in zip(with_it, without, strict=True):
        assert one == another
    assert all(with_it)


def begun_by_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each transaction on PostgreSQL that a call begins adds its tenant."""
    begun: list[str] = []
    begin = Pool._begun

    def counted(self: Pool, beginning: Begin) -> Any:
        if threading.current_thread().name.startswith("grpc-"):  # Work goes on beside the calls.
            begun.append(beginning.tenant_id)
        return begin(self, beginning)

    monkeypatch.setattr(Pool, "_begun", counted)
    return begun


def read_by_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each reading of memories from the database by a call is added."""
    read: list[str] = []
    for name in ("get_many", "of_sources"):
        really = getattr(SqlMemoryReader, name)

        def noted(
            self: Any, *given: Any, really: Any = really, name: str = name, **more: Any
        ) -> Any:
            if threading.current_thread().name.startswith("grpc-"):
                read.append(name)
            return really(self, *given, **more)

        monkeypatch.setattr(SqlMemoryReader, name, noted)
    return read


def test_warm_recalls_ask_the_database_for_no_memory(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is searched again and again is told of what others wrote; until then, and where that
    comes late, a recall asks for the feed's head, and for nothing else. Its key is looked up in the
    catalog, once in half a second."""
    fill(api)
    api.skill.DeleteSkill(skill_pb.DeleteSkillRequest(skill_id="sk1"))
    warm(server)
    asked(api)
    begun = begun_by_calls(monkeypatch)
    read = read_by_calls(monkeypatch)
    recalls = sum(len(asked(api)) for _ in range(20))
    assert not read
    assert begun.count("acme-1") < recalls / 10
    begun.clear()
    # What is no search is read from it, and is counted here.
    api.events.GetSession(events_pb.GetSessionRequest(session_id="s"))
    assert "acme-1" in begun


def test_a_token_of_another_server_is_looked_up_once_at_most(
    server: LocalServer, other: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = other.keys.key("acme-1")
    recall(there, "herons")
    request = events_pb.RecordEventsRequest(events=[event("the heron eats fish", id="e1")])
    _, call = api.events.RecordEvents.with_call(request)
    record(api, event("the otter sleeps", id="e2"))  # So that it is not the newest.
    token = str(dict(call.trailing_metadata())["mneme-consistency-token"])
    warm(other)
    monkeypatch.setattr(OpenTenant, "_ask", lambda *_: None)  # Where the feed is it may ask again.
    begun = begun_by_calls(monkeypatch)
    question = recall_pb.RecallRequest(query="heron", mode=recall_pb.RECALL_MODE_LEXICAL)
    for _ in range(5):
        answer = there.recall.Recall(question, metadata=(("mneme-at-least-as-fresh", token),))
        assert [one.source_id for one in answer.results] == ["e1"]
    assert begun.count("acme-1") <= 1


def test_a_copy_that_is_behind_is_not_used(
    server: LocalServer, other: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = other.keys.key("acme-1")
    fill(api)
    recall(there, "herons")
    warm(server)
    copy = warm(other)
    monkeypatch.setattr(ShownMemories, "learn_of", lambda _self, _number: None)
    monkeypatch.setattr(ShownMemories, "know_of", lambda _self, _number: None)
    monkeypatch.setattr(ShownMemories, "apply", lambda _self, _change: None)
    changed = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="l1", content="they eat newts"),
        update_mask=FieldMask(paths=["content"]),
    )
    api.learn.UpdateLesson(changed)
    record(api, event("a newt was seen", id="newt"))
    eventually(lambda: len(_texts(there, "newt")) == 2, "the change was never found")
    assert copy.position.number < _number(other)
    monkeypatch.undo()
    warm(server)
    eventually(lambda: asked(there) == asked(api), "they answer otherwise")


def _texts(api: Api, query: str) -> list[str]:
    lexical = recall_pb.RECALL_MODE_LEXICAL
    return [found.text for found in recall(api, query, mode=lexical).results]


def _number(server: LocalServer) -> int:
    with server.application.runtime.tenants.open("acme-1") as tenant:
        number: int = tenant.index.position.number  # type: ignore[attr-defined]
    return number


@pytest.mark.parametrize("at", ["header", "rows"])
def test_a_damaged_copy_is_left_for_the_database_and_made_anew(
    server: LocalServer, api: Api, at: str
) -> None:
    fill(api)
    warm(server)
    answers = asked(api)
    with server.closed("acme-1"):
        (file,) = (server.data_dir / "tenants" / "acme-1" / FOLDER).glob("*.sqlite")
        content = file.read_bytes()
        if at == "header":
            file.write_bytes(b"no database" + content[11:])
        else:  # One letter of each text, where SQLite cannot see it.
            assert b"eats fish" in content
            file.write_bytes(content.replace(b"eats fish", b"eats dish"))
    assert asked(api) == answers
    eventually(lambda: not in_files(file.parent, "eats dish"), "the damage stayed")
    holds_all(server)
    assert asked(api) == answers


def test_a_copy_of_another_layout_is_made_anew(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(api)
    warm(server)
    server.close_tenant("acme-1")
    monkeypatch.setattr(ShownRows, "layout", "of the version before")
    answers = asked(api)
    holds_all(server)
    assert asked(api) == answers


def test_a_tenant_that_was_made_again_under_its_name_is_shown_nothing_of_before(
    tmp_path: Path, server: LocalServer, url: str
) -> None:
    """Its feed may be as long as that of the one before."""
    first = server.keys.tenant("acme", *SCOPES)
    record(first, event("the first heron", id="e1"), wait=True)
    with local_server(tmp_path / "other", database_url=url) as other:
        recall(other.keys.key("acme-1"), "heron")
        warm(other)
    finished(
        server.keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id="acme-1"),
    )
    assert not (server.data_dir / "tenants" / "acme-1").exists()
    server.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme-1"))
    again = server.keys.key("acme-1", *SCOPES)
    record(again, event("the second heron", id="e1"), wait=True)
    with local_server(tmp_path / "other", database_url=url) as other:
        there = other.keys.key("acme-1")
        assert [one.text for one in recall(there, "heron").results] == ["the second heron"]
        holds_all(other)
        assert not in_files(tmp_path / "other" / "tenants" / "acme-1" / FOLDER, "first heron")


def test_what_is_forgotten_is_in_no_file_of_the_copy(server: LocalServer, api: Api) -> None:
    admin = server.keys.key("acme-1", *SCOPES)
    record(api, *(event(f"quokka number {n} hops", "left", id=f"q{n}") for n in range(200)))
    record(api, event("the heron stays", "kept", id="h1"))
    lesson(api, "Marsupials", "a quokka hops", lesson_id="l1")
    warm(server)
    folder = server.data_dir / "tenants" / "acme-1"
    assert in_files(folder / FOLDER, "quokka")
    forget(admin, session_id="left")
    forget(admin, items=[("lesson", "l1")])
    eventually(lambda: not in_files(folder, "quokka"), "a file still holds it")
    holds_all(server)
    assert _texts(api, "heron") == ["the heron stays"]


def test_a_server_that_is_killed_while_it_writes_shows_the_same_afterwards(
    tmp_path: Path, url: str
) -> None:
    killed = ServerProcess(tmp_path / "data", database_url=url)
    api = killed.keys.tenant("acme", *SCOPES)
    fill(api)
    for batch in range(20):
        record(api, *(event(f"newt {batch} {n}", id=f"n{batch}-{n}") for n in range(20)))
    killed.kill()
    with local_server(tmp_path / "data", database_url=url) as server:
        again = server.keys.key("acme-1", *SCOPES)
        assert len(_texts(again, "newt")) == 10
        holds_all(server)


def test_on_sqlite_there_is_no_copy_nor_is_one_left_from_postgresql(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", database_url=None) as server:
        api = server.keys.tenant("acme")
        record(api, event("the heron eats fish", id="e1"), wait=True)
        left = tmp_path / "data" / "tenants" / "acme-1" / FOLDER
        with server.closed("acme-1"):
            left.mkdir()
            (left / "memories-1.sqlite").write_text("the heron eats fish")
        assert recall(api, "heron").results
        with server.application.runtime.tenants.open("acme-1") as tenant:
            assert tenant.shown.projection is None
        assert not left.exists()


def test_beyond_its_bound_the_disk_holds_no_copies_of_tenants_that_are_closed(
    server: LocalServer, api: Api
) -> None:
    fill(api)
    warm(server)
    answers = asked(api)
    runtime, root = server.application.runtime, server.data_dir / "tenants"
    disk = LocalDisk(root, runtime.tenants, 1_000_000)
    (root / "big" / FOLDER).mkdir(parents=True)
    (root / "big" / FOLDER / "memories-1.sqlite").write_bytes(bytes(2_000_000))
    os.utime(root / "big", (0, 0))  # It was used long ago.
    disk.keep_within_bounds()
    assert not (root / "big" / FOLDER).exists()
    assert (root / "acme-1" / FOLDER).exists()
    LocalDisk(root, runtime.tenants, 1).keep_within_bounds()
    assert (root / "acme-1" / FOLDER).exists(), "it is open"
    server.close_tenant("acme-1")
    LocalDisk(root, runtime.tenants, 1).keep_within_bounds()
    assert not (root / "acme-1" / FOLDER).exists()
    assert not (root / "acme-1" / "index").exists()
    assert asked(api) == answers
    holds_all(server)
