"""Recording events, and the counters of sessions and agents that follow from them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from mneme.v1 import common_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme_server.features.events.event_types import EventType
from support.api import Api, grpc, refused
from support.making import (
    CUSTOM,
    LLM_CALL,
    LLM_RESPONSE,
    MESSAGE,
    TOOL_CALL,
    TOOL_ERROR,
    at,
    event,
    ids_of,
    list_events,
    recall,
    record,
    session_of,
    stream,
    struct,
    verify,
)

ALL_TYPES = list(map(str, EventType))
ERROR, INFO = common_pb2.SEVERITY_ERROR, common_pb2.SEVERITY_INFO
CRITICAL = common_pb2.SEVERITY_CRITICAL
COST = "cost_tracked"


def start(api: Api, **fields: Any) -> events_pb.Session:
    return api.events.StartSession(events_pb.StartSessionRequest(**fields)).session


def end(api: Api, session_id: str, status: int = 0, **fields: Any) -> events_pb.Session:
    request = events_pb.EndSessionRequest(session_id=session_id, status=status, **fields)
    return api.events.EndSession(request).session


def agents(api: Api) -> dict[str, events_pb.Agent]:
    answer = api.events.ListAgents(events_pb.ListAgentsRequest())
    return {agent.id: agent for agent in answer.agents}


def one_event(api: Api, **fields: Any) -> events_pb.Event:
    (receipt,) = record(api, event(**fields))
    return next(found for found in list_events(api) if found.id == receipt.id)


def test_the_counters_of_session_and_agent_are_the_sums_over_events_of_every_type(
    api: Api,
) -> None:
    recorded = [
        event(f"event of type {kind}", "s", kind, agent_id="agent", at=n,
              input_tokens=n, output_tokens=2 * n, cost_usd=n / 8)
        for n, kind in enumerate(ALL_TYPES, start=1)
    ]  # fmt: skip
    record(api, *recorded)
    session, total = session_of(api, "s"), sum(range(len(ALL_TYPES) + 1))
    assert session.event_count == len(ALL_TYPES)
    assert session.tool_call_count == 1
    assert session.llm_call_count == 1
    assert session.error_count == 2  # tool_error and error.
    assert (session.total_input_tokens, session.total_output_tokens) == (total, 2 * total)
    assert session.total_cost_usd == pytest.approx(total / 8)
    assert session.started_at == at(1)
    assert session.last_event_at == at(len(ALL_TYPES))
    agent = agents(api)["agent"]
    assert (agent.session_count, agent.event_count) == (1, len(ALL_TYPES))
    assert (agent.tool_call_count, agent.error_count) == (1, 2)
    assert agent.total_cost_usd == pytest.approx(total / 8)
    assert (agent.first_seen_at, agent.last_seen_at) == (at(1), at(len(ALL_TYPES)))


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_severity_is_error_for_failures_and_info_for_the_rest_unless_it_is_given(
    kind: str, api: Api
) -> None:
    failure = kind in (TOOL_ERROR, "error")
    assert one_event(api, kind=kind).severity == (ERROR if failure else INFO)
    given = one_event(api, kind=kind, severity=common_pb2.SEVERITY_WARN)
    assert given.severity == common_pb2.SEVERITY_WARN
    assert session_of(api, "s").error_count == (2 if failure else 0)


@pytest.mark.parametrize("severity", [ERROR, common_pb2.SEVERITY_CRITICAL])
def test_a_severe_event_counts_as_one_error_whatever_its_type(severity: int, api: Api) -> None:
    record(api, event("x", severity=severity), event("x", kind=TOOL_ERROR, severity=severity))
    assert session_of(api, "s").error_count == 2


@pytest.mark.parametrize(
    ("payload", "field", "value"),
    [
        ({"name": "book"}, "name", "book"),
        ({"toolName": "book"}, "name", "book"),
        ({"call_id": "c1"}, "call_id", "c1"),
        ({"callId": "c1"}, "call_id", "c1"),
        ({"error": "no seats"}, "error", "no seats"),
        ({"error": {"message": "no seats"}}, "error", "no seats"),
        ({"model": "m-1"}, "model", "m-1"),
        ({"input_tokens": 7}, "input_tokens", 7),
        ({"inputTokens": 7}, "input_tokens", 7),
        ({"usage": {"input_tokens": 7}}, "input_tokens", 7),
        ({"usage": {"prompt_tokens": 7}}, "input_tokens", 7),
        ({"usage": {"outputTokens": 9}}, "output_tokens", 9),
        ({"usage": {"completion_tokens": 9}}, "output_tokens", 9),
        ({"cost_usd": 0.25}, "cost_usd", 0.25),
        ({"costUsd": 0.25}, "cost_usd", 0.25),
        ({"duration_ms": 1500}, "duration", Duration(seconds=1, nanos=500_000_000)),
        ({"durationMs": 1500}, "duration", Duration(seconds=1, nanos=500_000_000)),
    ],
)
def test_a_typed_field_that_is_not_given_is_read_from_the_payload(
    payload: dict[str, Any], field: str, value: Any, api: Api
) -> None:
    found = one_event(api, kind=LLM_RESPONSE, payload=payload)
    assert getattr(found, field) == value
    assert found.payload == struct(**payload)


def test_a_typed_field_that_is_given_wins_over_the_payload(api: Api) -> None:
    found = one_event(api, kind=LLM_RESPONSE, input_tokens=3, payload={"input_tokens": 7})
    assert found.input_tokens == 3
    assert session_of(api, "s").total_input_tokens == 3


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": TOOL_ERROR, "name": "book_flight", "error": "no seats"},
         "tool_error: book_flight: no seats"),
        ({"kind": TOOL_CALL, "name": "book", "payload": {"arguments": {"to": "JFK", "seats": 2}}},
         "tool_call: book: seats 2, to JFK"),
        ({"kind": MESSAGE, "payload": {"content": "hello there"}}, "hello there"),
        ({"kind": TOOL_CALL, "text": "my own words", "name": "book"}, "my own words"),
        ({"kind": LLM_CALL, "payload": {"content": "a prompt"}}, ""),
        ({"kind": CUSTOM, "name": "deployed"}, ""),
        ({"kind": CUSTOM, "severity": CRITICAL, "payload": {"alert": {"disk": "full", "pct": 99}}},
         "custom: disk full, pct 99"),
        ({"kind": LLM_RESPONSE, "severity": ERROR, "payload": {"reason": "the model timed out"}},
         "llm_response: reason the model timed out"),
        ({"kind": COST, "severity": CRITICAL, "payload": {"budget": "spent"}},
         "cost_tracked: budget spent"),
    ],
)  # fmt: skip
def test_the_text_is_the_given_one_or_made_from_what_the_event_holds(
    fields: dict[str, Any], text: str, api: Api
) -> None:
    found = one_event(api, **fields)
    assert sorted(found.text.replace(",", "").split()) == sorted(text.replace(",", "").split())
    assert found.searchable == bool(text)


@pytest.mark.parametrize(
    ("fields", "searchable"),
    [
        ({"kind": MESSAGE, "text": "words"}, True),
        ({"kind": MESSAGE, "text": "words", "searchable": False}, False),
        ({"kind": MESSAGE, "text": "words", "payload": {"role": "system"}}, False),
        (
            {"kind": MESSAGE, "text": "words", "payload": {"role": "system"}, "searchable": True},
            True,
        ),
        ({"kind": "session_started", "text": "words"}, False),
        ({"kind": LLM_RESPONSE, "text": "words"}, True),
        ({"kind": CUSTOM, "text": "words"}, True),
    ],
)
def test_what_can_be_recalled_follows_from_type_and_text_unless_it_is_said(
    fields: dict[str, Any], searchable: bool, api: Api
) -> None:
    found = one_event(api, **fields)
    assert found.searchable == searchable
    assert ids_of(recall(api, "words")) == ([found.id] if searchable else [])


def test_an_error_that_ends_a_session_has_its_words_and_is_not_recalled(api: Api) -> None:
    ended = "session_ended"
    found = one_event(api, kind=ended, severity=ERROR, payload={"reason": "out of memory"})
    assert found.text == "session_ended: reason out of memory"
    assert not found.searchable


def test_everything_that_an_event_was_given_comes_back(api: Api) -> None:
    given = event(
        "words", "s", LLM_RESPONSE, id="e", agent_id="a", severity=common_pb2.SEVERITY_WARN,
        at=1.234567, payload={"deep": {"list": [1, 2.5, None, True, "x"]}}, metadata={"v": "1"},
        name="n", call_id="c", error="err", model="m", input_tokens=1, output_tokens=2,
        cost_usd=0.1, duration=Duration(seconds=3, nanos=5_000), searchable=True,
    )  # fmt: skip
    (receipt,) = record(api, given)
    (found,) = list_events(api)
    for field in given.DESCRIPTOR.fields:
        assert getattr(found, field.name) == getattr(given, field.name), field.name
    assert (receipt.id, receipt.sequence, receipt.hash) == (found.id, 1, found.hash)
    assert abs(found.recorded_at.ToSeconds() - session_of(api, "s").started_at.ToSeconds()) >= 0


def test_an_event_without_an_id_or_a_time_gets_both(api: Api) -> None:
    first, second = record(api, event("one"), event("two"))
    assert len(first.id) == len(second.id) == 26
    assert first.id != second.id
    assert all(found.timestamp == found.recorded_at for found in list_events(api))


def test_an_event_that_names_no_agent_is_its_sessions_agents(api: Api) -> None:
    start(api, session_id="s", agent_id="owner")
    record(api, event("one"), event("two", agent_id="helper"))
    assert [found.agent_id for found in list_events(api)] == ["owner", "helper"]
    assert {name: a.event_count for name, a in agents(api).items()} == {"owner": 1, "helper": 1}


def test_sending_a_batch_again_changes_nothing(api: Api) -> None:
    batch = [event(f"number {n}", id=f"e{n}", agent_id="a", cost_usd=1) for n in range(5)]
    first = record(api, *batch)
    before = (session_of(api, "s"), agents(api), list_events(api))
    again = record(api, *batch)  # Without timestamps: the server's own do not count as content.
    assert [r.duplicate for r in first] == [False] * 5
    assert [r.duplicate for r in again] == [True] * 5
    assert [(r.id, r.sequence, r.hash) for r in again] == [
        (r.id, r.sequence, r.hash) for r in first
    ]
    assert (session_of(api, "s"), agents(api), list_events(api)) == before
    assert len(ids_of(recall(api, "number"))) == 5


def test_a_batch_that_overlaps_an_earlier_one_adds_only_what_is_new(api: Api) -> None:
    record(api, event("one", id="1", at=1), event("two", id="2", at=2))
    answer = api.events.RecordEvents(
        events_pb.RecordEventsRequest(
            events=[event("two", id="2", at=2), event("three", id="3", at=3)]
        )
    )
    assert (answer.recorded_count, answer.duplicate_count) == (1, 1)
    assert [found.id for found in list_events(api)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "other words"}, {"session": "other"}, {"kind": CUSTOM}, {"agent_id": "other"},
        {"severity": ERROR}, {"at": 2}, {"payload": {"a": 2}}, {"metadata": {"a": 2}},
        {"name": "other"}, {"call_id": "other"}, {"error": "other"}, {"model": "other"},
        {"input_tokens": 9}, {"output_tokens": 9}, {"cost_usd": 9},
        {"duration": Duration(seconds=9)}, {"searchable": False},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_an_id_that_is_taken_by_other_content_is_refused_and_nothing_is_recorded(
    changed: dict[str, Any], api: Api
) -> None:
    given: dict[str, Any] = {"text": "words", "id": "e", "at": 1, "payload": {"a": 1}}
    record(api, event(**given))
    with refused() as failure:
        record(api, event("new", id="new"), event(**(given | changed)))
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS")
    assert failure.field == "events[1].id"
    assert [found.id for found in list_events(api)] == ["e"]


def test_an_error_is_found_by_the_last_words_of_its_long_trace(api: Api) -> None:
    for n, said in enumerate(["KeyError: 'tenant_id'", "PermissionError: /srv/app/spool"]):
        frames = "".join(f"  File app/step{line}.py, in step{line}\n" for line in range(300))
        trace = f"Traceback (most recent call last):\n{frames}{said}"
        record(api, event("", f"s{n}", "error", id=f"e{n}", error=trace))
    assert recall(api, "KeyError tenant_id").results[0].source_id == "e0"
    assert recall(api, "PermissionError spool").results[0].source_id == "e1"


def test_a_stream_is_recorded_as_a_whole_in_its_order(api: Api) -> None:
    answer = stream(api, (event(f"number {n}", id=f"e{n:04}", at=n) for n in range(1_234)))
    assert (answer.recorded_count, answer.duplicate_count) == (1_234, 0)
    assert [found.sequence for found in list_events(api)] == list(range(1, 1_235))
    again = stream(api, (event(f"number {n}", id=f"e{n:04}", at=n) for n in range(1_234)))
    assert (again.recorded_count, again.duplicate_count) == (0, 1_234)


def test_a_stream_that_fails_tells_how_much_is_safe_and_can_be_sent_again(api: Api) -> None:
    good = [event(f"number {n}", id=f"e{n:04}", at=n) for n in range(1_200)]
    with refused() as failure:
        stream(api, [*good[:1_100], event("bad", "")])
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "event.session_id")
    assert failure.metadata["message_index"] == "1100"
    safe = int(failure.metadata["recorded"])
    assert len(list_events(api)) == safe
    assert safe == 1_100  # All that came before the bad one.
    answer = stream(api, good)
    assert (answer.recorded_count, answer.duplicate_count) == (100, 1_100)


def test_events_of_a_stream_that_stays_open_are_recorded_and_those_before_it_breaks_off(
    api: Api,
) -> None:
    may_go_on = threading.Event()

    def slowly() -> Iterator[events_pb.StreamEventsRequest]:
        for n in range(5):
            yield events_pb.StreamEventsRequest(event=event(f"number {n}", id=f"e{n}", at=n))
        may_go_on.wait(60)

    running = api.events.StreamEvents(slowly())
    while len(list_events(api)) < 5:
        assert running.is_active()
        threading.Event().wait(0.02)
    running.cancel()
    may_go_on.set()


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (event("", kind=CUSTOM, payload={"x": "\0"}), "event.payload"),
        (event("other words", id="e0001", at=1), "event.id"),
        (event("words", "s" * 201), "event.session_id"),
    ],
    ids=["found when it is read", "found when it is recorded", "found by the rules"],
)
def test_a_bad_event_of_a_stream_is_named_by_its_place_in_the_stream(
    bad: events_pb.NewEvent, field: str, api: Api
) -> None:
    good = [event(f"number {n}", id=f"e{n:04}", at=n) for n in range(600)]
    with refused() as failure:
        stream(api, [*good, bad, *good])
    assert failure.field == field
    assert failure.metadata["message_index"] == "600"
    assert "events[" not in failure.message


def test_an_empty_stream_records_nothing(api: Api) -> None:
    assert stream(api, []).recorded_count == 0


def test_starting_a_session_again_changes_nothing_unless_it_says_something_else(
    api: Api,
) -> None:
    given = {
        "session_id": "s", "agent_id": "a", "agent_name": "Ann", "user_id": "u", "project": "p",
        "tags": ["y", "x", "x"], "metadata": struct(k=1), "started_at": at(5),
    }  # fmt: skip
    first = start(api, **given)
    assert list(first.tags) == ["x", "y"]
    assert first.status == events_pb.SESSION_STATUS_ACTIVE
    assert start(api, **given) == first
    for other in (
        {"agent_id": "b"}, {"agent_name": "Bob"}, {"user_id": "v"}, {"project": "q"},
        {"tags": ["x"]}, {"metadata": struct(k=2)}, {"started_at": at(6)},
    ):  # fmt: skip
        with refused() as failure:
            start(api, **(given | other))
        assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "session_id")
        assert next(iter(other)) in failure.message
    assert agents(api)["a"].session_count == 1


def test_a_session_without_an_id_gets_a_new_one_each_time(api: Api) -> None:
    assert start(api).id != start(api).id


def test_events_before_the_start_open_the_session_which_the_start_completes(api: Api) -> None:
    record(api, event("first", agent_id="a", at=10), event("earlier", agent_id="a", at=4))
    assert session_of(api, "s").started_at == at(4)
    started = start(api, session_id="s", user_id="u", project="p", tags=["t"])
    assert (started.event_count, started.agent_id, started.started_at) == (2, "a", at(4))
    assert agents(api)["a"].session_count == 1
    # And what was recorded before is found by what is known of the session now.
    for fields in ({"user_id": "u"}, {"project": "p"}, {"tags": ["t"]}):
        assert recall(api, "first", **fields).searched_count == 2, fields


def test_a_session_that_changes_hands_at_its_start_counts_for_its_new_agent(api: Api) -> None:
    record(api, event("first", agent_id="a"))
    start(api, session_id="s", agent_id="b")
    counts = {name: agent.session_count for name, agent in agents(api).items()}
    assert counts == {"a": 0, "b": 1}


def test_ending_a_session_sets_its_status_once(api: Api) -> None:
    start(api, session_id="s", started_at=at(1))
    ended = end(api, "s", ended_at=at(9))
    assert (ended.status, ended.ended_at) == (events_pb.SESSION_STATUS_COMPLETED, at(9))
    assert end(api, "s") == ended
    with refused() as failure:
        end(api, "s", events_pb.SESSION_STATUS_ERROR)
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION, "CONSTRAINT_VIOLATION",
    )  # fmt: skip
    record(api, event("a late event"))
    assert session_of(api, "s").event_count == 1
    assert session_of(api, "s").status == events_pb.SESSION_STATUS_COMPLETED


@pytest.mark.parametrize(
    ("severity", "status"),
    [(0, events_pb.SESSION_STATUS_COMPLETED), (ERROR, events_pb.SESSION_STATUS_ERROR)],
)
def test_an_event_that_ends_the_session_ends_it(severity: int, status: int, api: Api) -> None:
    ending = "session_ended"
    record(api, event("words", at=1), event("", kind=ending, severity=severity, at=7))
    session = session_of(api, "s")
    assert (session.status, session.ended_at) == (status, at(7))


def test_sessions_are_listed_by_every_filter(api: Api) -> None:
    start(api, session_id="1", agent_id="a", user_id="u", tags=["x", "y"], started_at=at(10))
    start(api, session_id="2", agent_id="a", project="p", tags=["x"], started_at=at(20))
    start(api, session_id="3", agent_id="b", user_id="u", project="p", started_at=at(30))
    end(api, "3", events_pb.SESSION_STATUS_ERROR)

    def listed(**fields: Any) -> list[str]:
        answer = api.events.ListSessions(events_pb.ListSessionsRequest(**fields))
        assert answer.total_size == len(answer.sessions)
        return [session.id for session in answer.sessions]

    assert listed() == ["3", "2", "1"]
    assert listed(agent_id="a") == ["2", "1"]
    assert listed(user_id="u") == ["3", "1"]
    assert listed(project="p") == ["3", "2"]
    assert listed(project="p", user_id="u") == ["3"]
    assert listed(tags=["x"]) == ["2", "1"]
    assert listed(tags=["x", "y"]) == ["1"]
    assert listed(status=events_pb.SESSION_STATUS_ACTIVE) == ["2", "1"]
    assert listed(status=events_pb.SESSION_STATUS_ERROR) == ["3"]
    assert listed(start_time=at(20)) == ["3", "2"]
    assert listed(end_time=at(20)) == ["1"]
    assert listed(start_time=at(20), end_time=at(20)) == []


def test_events_are_listed_by_every_filter_in_both_directions(api: Api) -> None:
    record(
        api,
        event("1", "s", id="1", at=3, agent_id="a", name="n"),
        event("2", "s", TOOL_ERROR, id="2", at=1, agent_id="b"),
        event("3", "t", id="3", at=2, severity=common_pb2.SEVERITY_DEBUG),
        event("4", "t", TOOL_CALL, id="4", at=2, name="n"),
    )

    def listed(**fields: Any) -> str:
        return "".join(found.id for found in list_events(api, **fields))

    assert listed() == "2341"
    assert listed(descending=True) == "1432"
    assert listed(session_id="t") == "34"
    assert listed(agent_id="a") == "1"
    assert listed(event_types=[MESSAGE]) == "31"
    assert listed(event_types=[TOOL_CALL, TOOL_ERROR]) == "24"
    assert listed(min_severity=INFO) == "241"
    assert listed(min_severity=ERROR) == "2"
    assert listed(name="n") == "41"
    assert listed(start_time=at(2)) == "341"
    assert listed(end_time=at(2)) == "2"
    assert listed(start_time=at(2), end_time=at(3), name="n") == "4"


FOREIGN = ("on_tool_end", "gen_ai.user.message", "PreToolUse", "tool-call", "item/started")


def test_another_framework_s_types_are_kept_listed_and_filtered_as_they_are(api: Api) -> None:
    record(api, *[event(f"told by {kind}", kind=kind, at=n) for n, kind in enumerate(FOREIGN)])
    assert tuple(found.event_type for found in list_events(api)) == FOREIGN
    for kind in FOREIGN:
        (found,) = list_events(api, event_types=[kind])
        assert found.text == f"told by {kind}"
    assert list_events(api, event_types=["pretooluse"]) == []
    two = list_events(api, event_types=["PreToolUse", "message", "on_tool_end"])
    assert [found.event_type for found in two] == ["on_tool_end", "PreToolUse"]


def test_another_framework_s_events_are_recalled_as_custom_ones_are(api: Api) -> None:
    said = event("the ferry leaves at noon", kind="on_chain_end", id="said")
    silent = event("", kind="on_chain_start", id="silent", payload={"ferry": "noon"})
    failed = event(
        "", kind="on_tool_error", id="failed", severity=ERROR, payload={"error": "no ferry today"}
    )
    record(api, said, silent, failed, wait=True)
    assert {found.id for found in list_events(api) if found.searchable} == {"said", "failed"}
    (found,) = [one for one in list_events(api) if one.id == "failed"]
    assert found.text == "on_tool_error: no ferry today"
    answer = recall(api, "when does the ferry leave?")
    assert {result.source_id for result in answer.results} == {"said", "failed"}
    assert {result.metadata["event_type"] for result in answer.results} == {
        "on_chain_end", "on_tool_error",
    }  # fmt: skip


def test_an_unknown_type_counts_as_nothing_but_an_event_and_as_an_error_by_severity(
    api: Api,
) -> None:
    record(
        api,
        event("a", kind="tool.call", at=1),
        event("b", kind="error.raised", at=2),
        event("c", kind="on_tool_error", severity=CRITICAL, at=3),
    )
    found = session_of(api, "s")
    assert (found.event_count, found.tool_call_count, found.error_count) == (3, 0, 1)
    assert verify(api).valid


def test_a_known_type_is_meant_and_asked_for_in_any_case(api: Api) -> None:
    record(api, event("", kind="TOOL_CALL", name="search"))
    assert session_of(api, "s").tool_call_count == 1
    (found,) = list_events(api, event_types=["Tool_Call"])
    assert found.event_type == "tool_call"


@pytest.mark.parametrize("kind", ["", "two words", "1st", "a" * 129, "naïve", "a\n"])
def test_what_is_no_type_is_refused(kind: str, api: Api) -> None:
    with refused() as failure:
        record(api, event("words", kind=kind))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert failure.field == "events[0].event_type"
