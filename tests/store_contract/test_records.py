"""What the capabilities keep: events in chains, sessions, agents, lessons, reflections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.history import ActivityFilter, Column, HistoryFilter
from mneme_server.features.events.model import EventFilter, SessionFilter
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity, SqlHistory
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.learn.model import Access, LessonFilter
from mneme_server.features.learn.store.lessons import SqlLessons
from store_contract.samples import agent, event, lesson, session

Store = TenantStore[Any]


def test_events_are_numbered_in_the_order_of_recording(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s"), session("t")])
        unit.get(SqlEvents).append(
            [event("a", "s", 1, timestamp_us=9), event("b", "t", 1, timestamp_us=1)]
        )
    with store.write() as unit:
        unit.get(SqlEvents).append([event("c", "s", 2, timestamp_us=5)])
    with store.read() as unit:
        recorded = unit.get(SqlEvents).recorded_after(0, EventFilter(), 10)
        by_time = unit.get(SqlEvents).page(EventFilter(), None, 10, descending=False)
        assert unit.get(SqlEvents).last_cursor() == recorded[-1].cursor
        assert (
            unit.get(SqlEvents).recorded_after(recorded[0].cursor, EventFilter(), 1)
            == recorded[1:2]
        )
    assert [found.id for found in recorded] == ["a", "b", "c"]
    assert [found.cursor for found in recorded] == sorted({found.cursor for found in recorded})
    assert [found.id for found in by_time] == ["b", "c", "a"]


def test_a_sessions_events_form_a_chain_by_sequence(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        unit.get(SqlEvents).append([event(f"e{n}", "s", n) for n in (1, 2, 3)])
    with store.read() as unit:
        assert [found.id for found in unit.get(SqlEvents).chain("s", 1, 1)] == ["e2"]
        (found,) = unit.get(SqlEvents).by_ids(["e1", "unknown"]).values()
    assert replace(found, cursor=0) == event("e1", "s", 1)


@pytest.mark.parametrize(
    "second", [event("e1", "s", 2), event("e2", "s", 1), event("e2", "nowhere", 1)]
)
def test_a_second_event_of_an_id_or_a_place_or_of_no_session_is_refused(
    store: Store, second: Any
) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        unit.get(SqlEvents).append([event("e1", "s", 1)])
    with pytest.raises(Exception, match=r"(?i)unique|duplicate|foreign"), store.write() as unit:
        unit.get(SqlEvents).append([second])
    with store.read() as unit:
        assert unit.get(SqlEvents).total() == 1


def test_a_session_that_is_saved_again_replaces_itself(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s", tags=("x",)), session("t")])
        unit.get(SqlSessions).save([session("s", tags=("x",), event_count=4)])
    with store.read() as unit:
        assert unit.get(SqlSessions).get("s").event_count == 4
        assert [s.id for s in unit.get(SqlSessions).page(SessionFilter(tags=("x",)), None, 10)] == [
            "s"
        ]
        assert unit.get(SqlSessions).count(SessionFilter(tags=("x",))) == 1


def test_an_agents_activity_adds_up(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlAgents).add_activity(
            {"a": agent("a", name="Ann", first_seen_us=5, last_seen_us=6)}
        )
        unit.get(SqlAgents).add_activity({"a": agent("a", first_seen_us=2, last_seen_us=9)})
    with store.read() as unit:
        (found,) = unit.get(SqlAgents).page(None, 10)
    assert (found.name, found.event_count) == ("Ann", 2)
    assert (found.first_seen_us, found.last_seen_us) == (2, 9)


def test_a_lesson_has_an_etag_of_what_it_says(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlLessons).save([lesson("l", updated_us=1)])
    with store.read() as unit:
        before = unit.get(SqlLessons).get_many(["l"])["l"]
    with store.write() as unit:
        unit.get(SqlLessons).count_accesses({"l": Access(3, 7)})
    with store.read() as unit:
        counted = unit.get(SqlLessons).get_many(["l"])["l"]
    with store.write() as unit:
        unit.get(SqlLessons).save([replace(counted, content="other", updated_us=2)])
    with store.read() as unit:
        after = unit.get(SqlLessons).get_many(["l"])["l"]
    assert before.etag == counted.etag != after.etag
    assert (counted.access_count, counted.last_accessed_us) == (3, 7)


def test_lessons_are_found_by_what_they_are_filtered_by(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlLessons).save(
            [
                lesson("a", project="p", tags=("x",), updated_us=1),
                lesson("b", project="p", updated_us=2),
                lesson("c", archived_us=3, updated_us=3),
            ]
        )
    with store.read() as unit:
        for filter_, expected in (
            (LessonFilter(), ["b", "a"]),
            (LessonFilter(include_archived=True), ["c", "b", "a"]),
            (LessonFilter(project="p", tags=("x",)), ["a"]),
        ):
            assert [found.id for found in unit.get(SqlLessons).page(filter_, None, 10)] == expected
            assert unit.get(SqlLessons).count(filter_) == len(expected)


def test_events_are_found_by_the_project_of_their_session(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s", project="shop"), session("t", project="bank")])
        unit.get(SqlEvents).append(
            [event("a", "s", 1), event("b", "t", 1), event("c", "s", 2, severity=4)]
        )
    of_shop = EventFilter(project="shop")
    with store.read() as unit:
        by_time = unit.get(SqlEvents).page(of_shop, None, 10, descending=True)
        recorded = unit.get(SqlEvents).recorded_after(0, of_shop, 10)
        failed = unit.get(SqlEvents).page(
            replace(of_shop, min_severity=4), None, 10, descending=False
        )
    assert [found.id for found in by_time] == ["c", "a"]
    assert [found.id for found in recorded] == ["a", "c"]
    assert [found.id for found in failed] == ["c"]


def test_sessions_of_the_system_are_found_by_who_asks_for_them_alone(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save(
            [session("s"), session("alerts-r", system=True, last_event_us=99)]
        )
        unit.get(SqlEvents).append([event("a", "s", 1), event("b", "alerts-r", 1)])
    with store.read() as unit:
        assert unit.get(SqlSessions).get("alerts-r").system
        for filter_, names in (
            (SessionFilter(), ["s"]),
            (SessionFilter(agent_id="agent"), ["s"]),
            (SessionFilter(with_system=True), ["s", "alerts-r"]),
        ):
            assert [found.id for found in unit.get(SqlSessions).page(filter_, None, 10)] == names
            assert unit.get(SqlSessions).count(filter_) == len(names)
        for activity in (ActivityFilter(), ActivityFilter(agent_id="agent")):
            assert unit.get(SqlActivity).latest(activity).id == "s"
            assert unit.get(SqlActivity).count(activity) == 1
            assert list(unit.get(SqlActivity).ids(activity, 10)) == ["s"]
        assert [row.id for row in unit.get(SqlHistory).sessions(HistoryFilter())] == ["s"]
        scanned = list(unit.get(SqlHistory).scan(HistoryFilter(), [Column.SESSION]))
        assert [list(found) for (found,) in scanned] == [["s"]]


def test_answers_whose_text_holds_a_traceback_are_told_apart_where_they_are_no_errors(
    store: Store,
) -> None:
    raised = "Traceback (most recent call last):\nKeyError"
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        unit.get(SqlEvents).append(
            [
                event("a", "s", 1, event_type="tool_response", text=raised),
                event("b", "s", 2, event_type="tool_error", text=raised),
                event("c", "s", 3, event_type="message", text=raised),
                event("d", "s", 4, event_type="tool_response", text="ok"),
            ]
        )
    with store.read() as unit:
        (found,) = unit.get(SqlHistory).scan(HistoryFilter(), [Column.SEQUENCE, Column.TRACE])
    assert dict(zip(*found, strict=True)) == {1: 1, 2: 0, 3: 0, 4: 0}


def test_the_texts_of_all_lessons_that_match_are_read_some_at_a_time(store: Store) -> None:
    names = [f"l{n:04}" for n in range(1_001)]
    with store.write() as unit:
        unit.get(SqlLessons).save([lesson(name, project="shop") for name in names])
        unit.get(SqlLessons).save([lesson("other", project="bank")])
    with store.read() as unit:
        parts = list(unit.get(SqlLessons).texts(LessonFilter(project="shop")))
    assert len(parts) > 1
    assert [one.id for part in parts for one in part] == names
    assert parts[0][0].title == "title of l0000"
