"""Tenants do not see, change or count each other's, wherever they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from mneme_server.engine.corpus.feed import START
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.context.store.summaries import SqlSummaries, SqlSummaryQueue
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.model import EventFilter, SessionFilter
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.learn.model import LessonFilter, ReflectionFilter, ReflectionLimits
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.store.reflections import SqlCounters, SqlReflections
from mneme_server.features.learning.ports import LearningSessionFilter
from mneme_server.features.learning.store.exports import SqlLearningExports
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.memory.model import MemoryFilter
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.memory.values import equal
from store_contract.conftest import Stores, document, fill
from store_contract.samples import (
    event,
    export_of,
    learning_session,
    lesson,
    memory,
    reflection,
    session,
)

Store = TenantStore[Any]
FOREVER = 2**60


def _seen(store: Store) -> dict[str, Any]:
    """Everything that can be read of a tenant, without the numbers that a database shares out."""
    with store.read() as unit:
        events, sessions = unit.get(SqlEvents), unit.get(SqlSessions)
        return {
            "sessions": sessions.page(SessionFilter(), None, 100),
            "session ids": list(sessions.ids()),
            "some sessions": sessions.get_many(["s1", "s2", "s3"]),
            "activity": unit.get(SqlActivity).page(ActivityFilter(), None, 100),
            "events": [e.id for e in events.page(EventFilter(), None, 100, descending=False)],
            "events since": [e.id for e in events.recorded_after(0, EventFilter(), 100)],
            "chain": [e.id for e in events.chain("s1", 0, 100)],
            "agents": unit.get(SqlAgents).page(None, 100),
            "lessons": unit.get(SqlLessons).by_id(LessonFilter(include_archived=True), "", 100),
            "memories": unit.get(SqlMemories).page(MemoryFilter(), None, 100),
            "memories that hold": unit.get(SqlMemories).holding([memory("m1").digest]),
            "memories that were superseded": unit.get(SqlMemories).superseded_by(["m1"]),
            "valued": unit.get(SqlMemories).doc_ids(equal("n", 1)),
            "reflections": unit.get(SqlReflections).page(ReflectionFilter(), None, 100),
            "attempts": unit.get(SqlReflections).attempts("s1", reflection("r1").task_key),
            "counters": unit.get(SqlCounters).all(),
            "summaries": unit.get(SqlSummaries).get_many(["s1"]),
            "what sessions take": unit.get(SqlLearningSessions).taken_bytes(),
            "models": _models(unit),
            "summary requests": unit.get(SqlSummaryQueue).due(FOREVER, 100),
            "queue": [queued.text for queued in unit.queue.due(FOREVER, 100)],
            "due": unit.queue.next_due_us(),
            "known vectors": list(unit.queue.known_vectors(["what d1 says"])),
            "feed": len(unit.feed.changes_after(START, 100)),
            "totals": (
                events.total(), sessions.total(), unit.get(SqlAgents).total(),
                unit.get(SqlLessons).total(), unit.queue.depth(), unit.queue.failed(),
            ),
            "documents": [d.source_id for d in store.source.documents_after(0, 100)],
            "vectors": len(store.source.vectors_after(0, 100).doc_ids),
        }  # fmt: skip


def _models(unit: Any) -> list[bytes]:
    sessions = unit.get(SqlLearningSessions).page(LearningSessionFilter(), None, 100)
    return [b"".join(unit.get(SqlLearningExports).chunks(one.number, 0, 100)) for one in sessions]


EMPTY: dict[str, Any] = {
    "some sessions": {}, "memories that hold": {}, "memories that were superseded": {},
    "counters": {}, "summaries": {}, "attempts": 0, "due": None, "feed": 0,
    "totals": (0, 0, 0, 0, 0, 0), "vectors": 0, "what sessions take": 0,
}  # fmt: skip


def test_a_new_tenant_sees_nothing_of_another(store: Store) -> None:
    assert {name: seen for name, seen in _seen(store).items() if seen != EMPTY.get(name, [])} == {}


def test_nothing_that_one_tenant_does_changes_what_another_sees(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    fill(acme)
    fill(rival)
    before = _seen(rival)
    with acme.write() as unit:
        queued = unit.queue.due(FOREVER, 100)
        unit.queue.defer([queued[0].doc_id], until_us=9, error="no")
        unit.queue.finish(queued[1:], np.ones((len(queued) - 1, 4), np.float32))
        unit.documents.set_archived(EVENT, "d1", archived=True)
        unit.documents.remove(EVENT, ["d2"])
        unit.get(SqlSessions).save([session("s1", event_count=7), session("s3")])
        unit.get(SqlEvents).append([event("e3", "s1", 3)])
        unit.get(SqlLessons).save([lesson("l1", archived_us=1)])
        unit.get(SqlReflections).remove(["r1"])
        unit.get(SqlMemories).mark(["m2"], "", None)
        unit.get(SqlMemories).remove(["m1"])
        unit.get(SqlCounters).add({"searched": 3})
        unit.get(SqlSummaryQueue).request({"s1": 1})
        policy = unit.get(SqlLearningSessions).get("policy")
        unit.get(SqlLearningExports).put(policy.number, export_of(b"another"), b"another")
        unit.get(SqlLearningSessions).delete(
            unit.get(SqlLearningSessions).add(learning_session("q")).number
        )
    assert _seen(rival) == before
    with acme.write() as unit:
        unit.embed_everything_again()
    assert _seen(rival) == before


def test_two_tenants_may_use_the_same_ids(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    fill(acme)
    fill(rival)
    assert _seen(acme) == _seen(rival)


def test_a_document_is_told_what_was_said_before_it_in_its_own_tenants_session_only(
    stores: Stores,
) -> None:
    said = {"session_id": "s", "category": "message"}
    for tenant, before in (("rival", "theirs"), ("acme", "ours")):
        with stores.open(tenant).write() as unit:
            unit.documents.add([document(before, position=1, **said)])
    with stores.open("acme").write() as unit:
        (later,) = unit.documents.add([document("later", position=2, **said)])
    assert later.context == "what ours says"


def test_the_oldest_reflections_leave_by_the_number_of_ones_own(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    for store in (acme, rival):
        with store.write() as unit:
            for n in range(3):
                unit.get(SqlReflections).add(reflection(f"r{n}", created_us=n), None)
    with acme.read() as unit:
        surplus = unit.get(SqlReflections).beyond(reflection("r2"), ReflectionLimits(per_session=2))
    assert surplus == ["r0"]
