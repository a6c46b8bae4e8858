from __future__ import annotations

import pytest
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import Severity
from mneme_server.features.reflect.calls import NEEDED, Calls, find_calls, grams_of
from mneme_server.features.reflect.history import NONE, History
from unit.features.reflect.record import Record

CALL, RESPONSE, FAILED = EventType.TOOL_CALL, EventType.TOOL_RESPONSE, EventType.TOOL_ERROR


def calls_of(record: Record) -> tuple[Calls, History]:
    history = record.history(*NEEDED)
    return find_calls(history), history


def failing(record: Record) -> list[int]:
    calls, _ = calls_of(record)
    return [int(call) for call in calls.failed]


def test_an_error_belongs_to_the_call_with_its_id_even_when_calls_overlap() -> None:
    record = Record()
    record.add("s", CALL, 0, name="a", call="1")
    record.add("s", CALL, 1, name="a", call="2")
    record.add("s", FAILED, 2, name="a", call="1", error="x")
    assert failing(record) == [0]


def test_where_an_id_is_used_again_the_last_call_before_the_error_is_meant() -> None:
    record = Record()
    for at, (kind, name) in enumerate(((CALL, "a"), (CALL, "b"), (FAILED, "b"), (CALL, "c"))):
        record.add("s", kind, at, name=name, call="same")
    assert failing(record) == [1]


def test_an_error_that_clocks_put_before_its_call_still_finds_it() -> None:
    record = Record()
    record.add("s", CALL, 0, name="a", call="1")
    record.add("s", FAILED, 1, name="b", call="2", error="x")
    record.add("s", CALL, 2, name="b", call="2")
    assert failing(record) == [1]


def test_without_an_id_the_tools_last_call_failed() -> None:
    record = Record()
    for at, name in enumerate("aba"):
        record.add("s", CALL, at, name=name)
    record.add("s", FAILED, 3, name="b", error="x")
    assert failing(record) == [1]


def test_without_id_and_name_the_last_call_failed() -> None:
    record = Record()
    record.add("s", CALL, 0, name="a")
    record.add("s", FAILED, 1, error="x")
    assert failing(record) == [0]


def test_an_id_means_nothing_in_another_session() -> None:
    record = Record()
    record.add("one", CALL, 0, name="a", call="1")
    record.add("two", FAILED, 1, name="a", call="1", error="x")
    calls, _ = calls_of(record)
    assert len(calls) == 2
    assert [int(calls.session[i]) for i in calls.failed] == [1]


def test_an_error_without_a_call_stands_for_one_that_was_not_recorded() -> None:
    record = Record()
    record.add("s", CALL, 0, name="a")
    record.add("s", FAILED, 1, name="b", error="x")
    calls, history = calls_of(record)
    assert [history.names[tool] for tool in calls.tool] == ["a", "b"]
    assert list(calls.failed) == [1]


@pytest.mark.parametrize("kind", [CALL, RESPONSE])
def test_a_call_or_an_answer_that_is_severe_failed(kind: EventType) -> None:
    record = Record()
    record.add("s", CALL, 0, name="a", call="1")
    record.add("s", kind, 1, name="a", call="1", severity=Severity.ERROR, text="x")
    calls, _ = calls_of(record)
    assert len(calls.failures) == 1
    assert list(calls.failed) == [len(calls) - 1]


def test_an_error_outside_tools_comes_after_the_last_call_of_its_session() -> None:
    record = Record()
    record.add("one", CALL, 0, name="a")
    record.add("two", EventType.ERROR, 1, error="at once")
    record.add("two", CALL, 2, name="a")
    record.add("two", EventType.ERROR, 3, error="later")
    calls, _ = calls_of(record)
    assert list(calls.after) == [NONE, 1]
    assert len(calls.failures) == 0


def test_sequences_are_counted_within_sessions() -> None:
    record = Record()
    for session, tools in (("one", "abab"), ("two", "ab"), ("three", "b")):
        for at, tool in enumerate(tools):
            record.add(session, CALL, at, name=tool)
    calls, history = calls_of(record)
    single, double, triple = grams_of(calls, range(1, 4))
    found = {
        "".join(gram.tools(calls, history.names, code)): int((gram.code == code).sum())
        for gram in (single, double, triple)
        for code in range(len(gram))
    }
    assert found == {"a": 3, "b": 4, "ab": 3, "ba": 1, "aba": 1, "bab": 1}


def test_what_came_before_a_call_is_of_its_own_session() -> None:
    record = Record()
    for session in ("one", "two"):
        for at, tool in enumerate("ab"):
            record.add(session, CALL, at, name=tool)
    calls, history = calls_of(record)
    (single, double) = grams_of(calls, range(1, 3))
    names = [
        single.tools(calls, history.names, c) if c != NONE else ()
        for c in single.before_call(calls)
    ]
    assert names == [(), ("a",), (), ("a",)]
    assert list(double.before_call(calls)) == [NONE] * 4
    assert [int(code) for code in double.up_to_call()] == [NONE, 0, NONE, 0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_calls_than_a_sequence_is_long_are_no_trouble(count: int) -> None:
    record = Record()
    for number in range(count):
        record.add("s", CALL, number, name="a")
    calls, _ = calls_of(record)
    for gram in grams_of(calls, range(1, 7)):
        assert len(gram.before_call(calls)) == len(gram.up_to_call()) == count


def test_a_record_without_calls_has_no_sequences() -> None:
    record = Record()
    record.add("s", EventType.MESSAGE, 0, text="hello")
    calls, _ = calls_of(record)
    assert [len(gram) for gram in grams_of(calls, range(1, 4))] == [0, 0, 0]


def test_events_are_ordered_by_time_whatever_the_order_of_recording() -> None:
    record = Record()
    record.add("s", CALL, 5, name="b")
    record.add("s", CALL, 1, name="a")
    calls, history = calls_of(record)
    assert [history.names[tool] for tool in calls.tool] == ["a", "b"]
