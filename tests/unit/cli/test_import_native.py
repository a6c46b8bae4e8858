"""Mneme's own events and sessions as JSON Lines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme import to_dict
from mneme._core.convert import fill
from mneme.importing.plan import Defaults, Planned, UnusableError
from mneme.importing.readers.events import NativeReader, is_native
from mneme.importing.reading import Place, Record
from mneme.messages import Event, Grade, NewEvent, NewGrade, Session, WatchEventsResponse


def plan(value: Any, **defaults: Any) -> Planned:
    planned = NativeReader(Defaults(**defaults)).plan(Record(Place("f", 1, 1), value))
    assert planned is not None
    return planned


def event(value: Any) -> NewEvent:
    return plan(value).events[0]


LISTED = Event()
fill(
    LISTED,
    {
        "id": "e1",
        "session_id": "s",
        "event_type": "tool_error",
        "severity": "error",
        "timestamp": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "text": "tool_error: book",
        "payload": {"a": [1, {"b": None}]},
        "metadata": {"host": "x"},
        "name": "book",
        "input_tokens": 2**40,
        "searchable": True,
        "sequence": 7,
        "recorded_at": datetime(2026, 3, 2, tzinfo=UTC),
        "prev_hash": "aa",
        "hash": "bb",
    },
)


def test_a_listed_event_goes_in_again_without_what_only_a_server_says() -> None:
    known = {f.name for f in NewEvent.DESCRIPTOR.fields}
    expected = NewEvent()
    fill(expected, {f.name: v for f, v in LISTED.ListFields() if f.name in known})
    assert event(to_dict(LISTED)) == expected
    assert event(to_dict(LISTED, defaults=False)) == expected


def test_every_field_of_a_new_event_is_one_of_a_listed_event() -> None:
    listed = Event.DESCRIPTOR.fields_by_name
    for field in NewEvent.DESCRIPTOR.fields:
        assert listed[field.name].type == field.type, field.name


def test_watched_events_are_read_from_their_envelope() -> None:
    message = WatchEventsResponse(event=LISTED, cursor="9")
    assert event(to_dict(message)).id == "e1"
    reader = NativeReader(Defaults())
    assert reader.plan(Record(Place("f", 1, 1), {"cursor": "9"})) is None


@pytest.mark.parametrize("kind", ["message", "EVENT_TYPE_MESSAGE"])
def test_an_event_s_type_is_read_as_it_was_written_and_was_once(kind: Any) -> None:
    assert event({"session_id": "s", "event_type": kind}).event_type == "message"


def test_integers_that_a_payload_would_round_are_kept_as_text() -> None:
    payload = {"arguments": {"id": 123456789012345678, "ids": [2**53, -(2**53) - 1, 2**70]}}
    found = event({"session_id": "s", "event_type": "tool_call", "payload": payload})
    assert to_dict(found)["payload"]["arguments"] == {
        "id": "123456789012345678",
        "ids": [2**53, "-9007199254740993", "1180591620717411303424"],
    }


def test_protobuf_s_own_camel_case_is_read_too() -> None:
    found = event({"sessionId": "s", "eventType": "message", "costUsd": 0.5})
    assert (found.session_id, found.cost_usd) == ("s", 0.5)


def test_whether_an_event_is_searchable_is_kept_only_where_it_is_said() -> None:
    line = {"session_id": "s", "event_type": "message"}
    assert not event(line).HasField("searchable")
    assert event({**line, "searchable": False}).searchable is False


def lines(*values: Any) -> list[NewEvent]:
    reader = NativeReader(Defaults())
    planned = [reader.plan(Record(Place("f", n, n), v)) for n, v in enumerate(values, start=1)]
    return [event for p in planned if p for event in p.events]


def test_events_without_ids_get_the_same_ones_each_time_and_equal_lines_stay_apart() -> None:
    same = {"session_id": "s", "event_type": "message", "text": "tick"}
    other = {**same, "text": "tock"}
    first = [e.id for e in lines(same, other, same)]
    assert len(set(first)) == 3
    assert first == [e.id for e in lines(same, other, same)]
    assert all(name.startswith("s:") for name in first)


@given(st.text(st.characters(categories=["L"]), min_size=1, max_size=200))
def test_made_ids_fit_the_server(session_id: str) -> None:
    assert len(event({"session_id": session_id, "event_type": "message"}).id) <= 200


def test_a_listed_session_is_started_and_ended_again() -> None:
    session = Session()
    fields = {
        "id": "s",
        "agent_id": "a",
        "user_id": "u",
        "tags": ["t"],
        "metadata": {"k": 1},
        "status": "error",
        "started_at": datetime(2026, 3, 1, tzinfo=UTC),
        "ended_at": datetime(2026, 3, 2, tzinfo=UTC),
        "event_count": 5,
        "head_hash": "ff",
    }
    fill(session, fields)
    for line in (to_dict(session), {"session": to_dict(session)}):
        planned = plan(line, tags=("x",))
        start, end = planned.start or {}, planned.end or {}
        assert (start["session_id"], start["agent_id"], start["user_id"]) == ("s", "a", "u")
        assert start["tags"] == ["t", "x"]
        assert to_dict(start["metadata"]) == {"k": 1}
        assert start["started_at"].ToDatetime(UTC) == fields["started_at"]
        assert end["status"] == 3
        assert end["ended_at"].ToDatetime(UTC) == fields["ended_at"]


def test_an_active_session_is_not_ended() -> None:
    planned = plan({"id": "s", "status": "SESSION_STATUS_ACTIVE"})
    assert planned.start is not None
    assert planned.end is None


def test_defaults_fill_in_what_lines_leave_open() -> None:
    line = {"session_id": "s", "event_type": "message"}
    assert plan(line, agent_id="a").events[0].agent_id == "a"
    assert plan({**line, "agent_id": "b"}, agent_id="a").events[0].agent_id == "b"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"event_type": "message"}, "session_id: an event belongs to a session"),
        ({"event_type": 8, "session_id": "s"}, "event_type"),
        ({"event_type": "message", "session_id": "s", "txt": "x"}, "txt"),
        ({"event_type": "message", "session_id": 5}, "session"),
        ({"event_type": "message", "session_id": "s", "timestamp": "noon"}, "timestamp"),
        ({"session": {"status": "active"}}, "id: a session needs one"),
        ({"hello": 1}, "neither an event"),
        ([1], "neither an event"),
    ],
)
def test_a_line_that_cannot_be_used_says_why(value: Any, words: str) -> None:
    with pytest.raises(UnusableError, match=words):
        plan(value)


def test_what_is_native_is_told_from_what_is_not() -> None:
    assert is_native({"event_type": "message"})
    assert is_native({"id": "s", "started_at": "2026-01-01T00:00:00Z"})
    assert not is_native({"messages": []})
    assert not is_native([])


def session(**fields: Any) -> Planned:
    return plan({"id": "s", "started_at": "2026-03-01T12:00:00Z", **fields})


def test_a_status_says_that_a_session_ended_and_how_only_where_its_agent_says_so() -> None:
    seen = session(status="SESSION_STATUS_COMPLETED")
    said = session(status="SESSION_STATUS_ERROR", outcome_by="GRADE_SOURCE_AGENT")
    by_metadata = session(status="SESSION_STATUS_ERROR", outcome_by="GRADE_SOURCE_METADATA")
    assert [one.end and one.end["observed"] for one in (seen, said, by_metadata)] == [
        True, False, True,
    ]  # fmt: skip
    assert [seen.grades, said.grades, by_metadata.grades] == [[], [], []]


def test_the_grade_that_a_session_was_given_goes_in_again_under_the_same_id() -> None:
    fields = {
        "status": "SESSION_STATUS_COMPLETED", "outcome": "OUTCOME_PARTIAL", "reward": 0.5,
        "outcome_by": "GRADE_SOURCE_PERSON",
    }  # fmt: skip
    (grade,), (again,) = session(**fields).grades, session(**fields).grades
    assert grade == again
    assert (grade.session_id, grade.reward, grade.id[:2]) == ("s", 0.5, "s:")
    assert to_dict(grade)["outcome"] == "partial"


def test_a_listed_grade_goes_in_again() -> None:
    listed = Grade()
    fill(
        listed,
        {
            "id": "g", "session_id": "s", "outcome": "failure", "reward": 0.0, "source": "person",
            "grader": "ann", "comment": "no refund", "graded_at": datetime(2026, 3, 1, tzinfo=UTC),
            "recorded_at": datetime(2026, 3, 2, tzinfo=UTC),
        },
    )  # fmt: skip
    (grade,) = plan(to_dict(listed)).grades
    expected = NewGrade.FromString(listed.SerializeToString())
    expected.DiscardUnknownFields()  # type: ignore[attr-defined]
    assert grade == expected


def test_a_grade_of_a_benchmark_needs_no_more_than_its_session_and_a_reward() -> None:
    (grade,) = plan({"session_id": "s", "reward": 1}).grades
    (again,) = plan({"session_id": "s", "reward": 1}).grades
    assert (grade, grade.reward, to_dict(grade)["source"]) == (again, 1, "grader")
