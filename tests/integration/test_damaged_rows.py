"""Rows that were changed on the disk: each call says what is lost, and the others go on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflection_pb2
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.engine.store.examination import first_damage
from mneme_server.features.events.store.sessions import SqlAgents
from structlog.testing import capture_logs
from support.api import Api, grpc, refused
from support.making import (
    episode,
    event,
    ids_of,
    lesson,
    list_events,
    recall,
    record,
    session_of,
    skill,
    verify,
)
from support.server import LocalServer, local_server

pytestmark = pytest.mark.on_sqlite("it damages a tenant's file")

NO_UTF8 = "CAST(x'66fe6f' AS TEXT)"
EVENT_DAMAGES = {
    "a text is no UTF-8": f"text = {NO_UTF8}",
    "an error is no UTF-8": f"error = {NO_UTF8}",
    "a payload is no UTF-8": f"payload = {NO_UTF8}",
    "a payload is no JSON": "payload = '{\"a\":'",
    "a payload is no object": "payload = '[1]'",
    "metadata are no JSON": "metadata = 'x'",
    "a type is no name": "event_type = 'no seats!'",
    "a type is a number": "event_type = x'05'",
    "a severity is unknown": "severity = 77",
    "a time is a text": "timestamp = 'noon'",
    "a time is out of range": "timestamp = 9000000000000000000",
    "a cost is a text": "cost_usd = 'much'",
    "tokens are a text": "input_tokens = 'many'",
    "a duration is a text": "duration = 'long'",
    "a hash is no UTF-8": f"hash = {NO_UTF8}",
}


Tamper = Callable[[str], None]


@pytest.fixture
def tamper(server: LocalServer, api: Api) -> Tamper:
    """Return what changes the tenant's database behind the server's back."""

    return lambda sql: _execute(server, api, sql)


def _execute(server: LocalServer, api: Api, sql: str) -> None:
    path = Path(server.data_dir) / "tenants" / api.tenant_id / "mneme.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(sql).rowcount > 0


@pytest.mark.parametrize("what", sorted(EVENT_DAMAGES))
def test_a_damaged_event_is_named_and_hides_no_other(what: str, api: Api, tamper: Tamper) -> None:
    record(
        api,
        *[event(f"the heron number {n} stood in the reeds", "s", id=f"e{n}", at=n)
          for n in range(1, 6)],
        event("another session", "other", id="o1", at=9),
        wait=True,
    )  # fmt: skip
    tamper(f"UPDATE events SET {EVENT_DAMAGES[what]} WHERE id = 'e3'")

    with refused() as failure:
        list_events(api, session_id="s")
    assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
    assert (failure.metadata["kind"], failure.metadata["id"]) == ("event", "e3")
    assert "e3" in failure.message
    assert "Traceback" not in failure.message

    verified = verify(api)
    (broken,) = verified.broken_chains
    assert (broken.session_id, broken.event_id, broken.sequence) == ("s", "e3", 3)
    assert verified.sessions_checked == 2
    assert verify(api, "other").valid
    assert [found.id for found in list_events(api, session_id="other")] == ["o1"]
    assert session_of(api, "s").event_count == 5
    found = ids_of(recall(api, "heron in the reeds", limit=10))
    assert {"e1", "e2", "e4", "e5"} <= set(found)
    record(api, event("it goes on", "s", id="e6"), wait=True)
    assert ids_of(recall(api, "it goes on"))[0] == "e6"


def test_recall_leaves_a_damaged_memory_out_and_says_so(
    server: LocalServer, api: Api, tamper: Tamper
) -> None:
    record(api, *[event(f"the heron number {n}", id=f"e{n}") for n in range(3)], wait=True)
    assert not recall(api, "heron").partial
    tamper(f"UPDATE documents SET text = {NO_UTF8} WHERE source_id = 'e1'")
    found = recall(api, "heron")
    assert (set(ids_of(found)), found.partial) == ({"e0", "e2"}, True)
    # And opened anew, with the damaged one in what the index is made from.
    server.close_tenant(api.tenant_id)
    for mode in (recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE):
        assert set(ids_of(recall(api, "heron", mode=mode))) == {"e0", "e2"}
    record(api, event("said after the damaged one", id="e3"), wait=True)


@pytest.mark.parametrize("damage", [f"text = {NO_UTF8}", "importance = 4200"])
def test_a_damaged_memory_keeps_its_session_from_nothing(
    damage: str, api: Api, tamper: Tamper
) -> None:
    record(api, *[event(f"the heron number {n}", "s", id=f"e{n}") for n in range(3)], wait=True)
    tamper(f"UPDATE documents SET {damage} WHERE source_id = 'e1'")
    api.events.StartSession(events_pb.StartSessionRequest(session_id="s", project="birds"))
    record(api, event("one more heron", "s", id="e3"), wait=True)
    assert set(ids_of(recall(api, "heron", project="birds"))) == {"e0", "e2", "e3"}


OTHER_DAMAGES = {
    "session": ("UPDATE sessions SET status = 42 WHERE id = 's'", lambda api: session_of(api, "s")),
    "lesson": (
        "UPDATE lessons SET importance = 42",
        lambda api: api.learn.ListLessons(learn_pb.ListLessonsRequest()),
    ),
    "reflection": (
        "UPDATE reflections SET what_worked = '[' ",
        lambda api: api.learn.ListReflections(reflection_pb2.ListReflectionsRequest()),
    ),
    "episode": (
        "UPDATE episodes SET tools = '['",
        lambda api: api.skill.ListEpisodes(episode_pb.ListEpisodesRequest()),
    ),
    "skill": (
        "UPDATE skills SET reported = '[1'",
        lambda api: api.skill.GetSkill(skill_pb.GetSkillRequest(skill_id="cook")),
    ),
    "handover": (
        "UPDATE handovers SET content = '{}'",
        lambda api: api.context.WakeUp(context_pb.WakeUpRequest(project="p")),
    ),
}


@pytest.mark.parametrize("kind", sorted(OTHER_DAMAGES))
def test_other_damaged_rows_are_named_too(kind: str, api: Api, tamper: Tamper) -> None:
    api.events.StartSession(events_pb.StartSessionRequest(session_id="s", project="p"))
    record(api, event("words", "s"), wait=True)
    lesson(api, "Cooking", "rice needs water", lesson_id="rice")
    api.learn.CreateReflection(
        reflection_pb2.CreateReflectionRequest(
            session_id="s", task_description="cook",
            outcome=reflection_pb2.OUTCOME_SUCCESS,
            what_worked=["boiling"], next_strategy="less water",
        )
    )  # fmt: skip
    api.context.Sleep(context_pb.SleepRequest(session_id="s", progress=["cooked"]))
    episode(api, "cook rice", tools=["boil"])
    skill(api, "cook rice", skill_id="cook")
    sql, call = OTHER_DAMAGES[kind]
    tamper(sql)
    with refused() as failure:
        call(api)
    assert (failure.code, failure.metadata["kind"]) == (grpc.StatusCode.DATA_LOSS, kind)
    assert failure.metadata["id"]


def test_a_damaged_vector_is_found_by_its_words(
    server: LocalServer, api: Api, tamper: Tamper
) -> None:
    record(api, *[event(f"the heron number {n}", id=f"e{n}") for n in range(3)], wait=True)
    with server.closed(api.tenant_id):
        tamper("UPDATE vectors SET vector = x'00' WHERE doc_id = 2")
        shutil.rmtree(Path(server.data_dir) / "tenants" / api.tenant_id / "index")
    found = recall(api, "heron", mode=recall_pb.RECALL_MODE_LEXICAL)
    assert set(ids_of(found)) == {"e0", "e1", "e2"}
    assert len(ids_of(recall(api, "heron", mode=recall_pb.RECALL_MODE_DENSE))) == 2


DAMAGED_VECTORS = {"too short": "x'00'", "too long": "zeroblob(2000)", "a text": "'x'"}


@pytest.mark.parametrize("vector", DAMAGED_VECTORS)
def test_the_only_vector_of_a_page_may_be_damaged(
    vector: str, server: LocalServer, api: Api, tamper: Tamper
) -> None:
    record(api, event("the heron stood in the reeds", id="e1"), wait=True)
    with server.closed(api.tenant_id):
        tamper(f"UPDATE vectors SET vector = {DAMAGED_VECTORS[vector]}")
        shutil.rmtree(Path(server.data_dir) / "tenants" / api.tenant_id / "index")
    assert ids_of(recall(api, "heron", mode=recall_pb.RECALL_MODE_LEXICAL)) == ["e1"]
    assert not recall(api, "heron", mode=recall_pb.RECALL_MODE_DENSE).results
    record(api, event("the bittern stood in the reeds", id="e2"), wait=True)
    assert ids_of(recall(api, "bittern", mode=recall_pb.RECALL_MODE_DENSE)) == ["e2"]


@pytest.mark.parametrize("vector", DAMAGED_VECTORS)
def test_a_text_whose_vector_is_damaged_is_embedded_again_and_holds_nobody_up(
    vector: str, tmp_path: Path
) -> None:
    said = "the heron stood in the reeds"
    with local_server(tmp_path / "data") as server:
        api, pipeline = server.keys.tenant(), server.application.runtime.pipeline
        record(api, event(said, id="e1"), wait=True)
        pipeline.stop()
        _execute(server, api, f"UPDATE vectors SET vector = {DAMAGED_VECTORS[vector]}")
        record(api, event(said, id="e2"), event("the bittern", id="e3"), event("the grebe"))
        while pipeline.step(api.tenant_id) is not None:
            pass
        found = recall(api, said, mode=recall_pb.RECALL_MODE_DENSE, every_copy=True)
        assert {"e2", "e3"} <= set(ids_of(found))


def test_a_damaged_text_in_the_queue_holds_nobody_up(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api, pipeline = server.keys.tenant(), server.application.runtime.pipeline
        pipeline.stop()
        record(api, *[event(f"the heron number {n}", id=f"e{n}") for n in range(3)])
        _execute(server, api, f"UPDATE documents SET text = {NO_UTF8} WHERE source_id = 'e1'")
        pipeline.step(api.tenant_id)
        assert pipeline.step(api.tenant_id) is None
        assert set(ids_of(recall(api, "heron"))) == {"e0", "e2"}


SLIPPED_THROUGH = {
    "a count is a text": ("UPDATE agents SET event_count = 'many'", "agent", "ann"),
    "a payload is no JSON": ("UPDATE events SET payload = '{' WHERE id = 'e1'", "event", "e1"),
    "a label is no UTF-8": (f"UPDATE sessions SET tags = {NO_UTF8}", "session", "s"),
    "a vector is a text": ("UPDATE vectors SET vector = 'x'", "vector of memory", "1"),
    "a table is gone": ("DROP TABLE counters", "", ""),
}


@pytest.mark.parametrize("what", sorted(SLIPPED_THROUGH))
def test_damage_that_nobody_noticed_is_found_when_something_fails(
    what: str, server: LocalServer, api: Api, tamper: Tamper
) -> None:
    record(api, event("words", "s", id="e1", agent_id="ann"), wait=True)
    path = Path(server.data_dir) / "tenants" / api.tenant_id / "mneme.db"
    assert first_damage(path) is None
    sql, kind, item_id = SLIPPED_THROUGH[what]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)
    loss = first_damage(path)
    assert loss is not None
    assert (loss.metadata.get("kind", ""), loss.metadata.get("id", "")) == (kind, item_id)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_unexpected_error_is_a_bug_only_where_the_data_are_sound(
    is_damaged: bool, tmp_path: Path
) -> None:
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant()
        record(api, event("words", "s", id="e1"), wait=True)
        if is_damaged:
            _execute(server, api, "UPDATE events SET duration = 'long' WHERE id = 'e1'")
        bug = mock.patch.object(SqlAgents, "page", side_effect=ZeroDivisionError)
        with capture_logs(), bug, refused() as failure:
            api.events.ListAgents(events_pb.ListAgentsRequest())
    if is_damaged:
        assert (failure.code, failure.metadata["id"]) == (grpc.StatusCode.DATA_LOSS, "e1")
    else:
        assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL_ERROR")
