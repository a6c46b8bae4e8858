"""Transcripts become sessions and events."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme import to_dict
from mneme.importing.outcomes import run_failed, tool_error
from mneme.importing.plan import CUT, REPLACED, Defaults, Planned, UnusableError
from mneme.importing.readers.chat import messages_of, plan_transcript
from mneme.importing.reading import Place, Record
from mneme.importing.run import Importer
from mneme.messages import NewEvent
from unit.cli.kept import Kept


def plan(value: Any, **defaults: Any) -> Planned:
    return plan_transcript(Record(Place("f", 1, 1), value), Defaults(**defaults))


def events(*messages: Any) -> list[NewEvent]:
    return plan(list(messages)).events


def event(*messages: Any) -> NewEvent:
    (only,) = events(*messages)
    return only


def kinds(planned: list[NewEvent]) -> list[str]:
    return [e.event_type.removeprefix("EVENT_TYPE_").lower() for e in planned]


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        ],
    }


TAU = {
    "task_id": 3,
    "trial": 1,
    "reward": 0.0,
    "info": {
        "task": {
            "user_id": "mia_li",
            "instruction": "You want to fly.",
            "actions": [{"name": "x"}],
        },
        "user_cost": 0.0035,
        "source": "user",
    },
    "traj": [
        {"role": "system", "content": "# Policy"},
        {"role": "user", "content": "Hi"},
        call("get_user", '{"user_id": "mia_li"}'),
        {"role": "tool", "tool_call_id": "c1", "name": "get_user", "content": '{"ok": true}'},
        call("book", '{"amount": 5}', "c2"),
        {"role": "tool", "tool_call_id": "c2", "name": "book", "content": "Error: no seats"},
        {"role": "assistant", "content": "I am sorry."},
    ],
}


def test_a_tau_bench_record_is_a_session_with_its_task_trial_reward_and_user() -> None:
    planned = plan(TAU)
    assert kinds(planned.events) == [
        *["message", "message", "tool_call", "tool_response", "tool_call", "tool_error", "message"]
    ]
    start = planned.start or {}
    assert start["user_id"] == "mia_li"
    assert start["tags"] == ["task:3", "trial:1", "reward:0"]
    assert start["metadata"] == {
        "task_id": 3,
        "trial": 1,
        "reward": 0.0,
        "user_id": "mia_li",
        "user_cost": 0.0035,
        "source": "user",
        "instruction": "You want to fly.",
    }
    assert start["session_id"].startswith("task-3-trial-1-")
    assert planned.end == {"session_id": start["session_id"], "status": "error"}


def test_messages_keep_their_role_and_text() -> None:
    found = events({"role": "system", "content": "p"}, {"role": "user", "content": "q"})
    assert [(e.text, e.payload.fields["role"].string_value) for e in found] == [
        ("p", "system"),
        ("q", "user"),
    ]
    assert not found[0].HasField("searchable")


@pytest.mark.parametrize(
    ("named", "meant"),
    [("human", "user"), ("USER", "user"), ("User ", "user"), ("ai", "assistant"),
     ("AI", "assistant"), ("bot", "assistant"), ("Model", "assistant"), ("System", "system")],
)  # fmt: skip
def test_roles_are_understood_by_the_names_that_tools_have_for_them(named: str, meant: str) -> None:
    (said,) = events({"role": named, "content": "Where is it?"})
    assert (kinds([said]), said.text) == (["message"], "Where is it?")
    assert said.payload["role"] == meant


def test_a_tool_s_answer_is_one_however_its_role_is_written() -> None:
    first, second = events(
        call("get", "{}"), {"role": "TOOL", "content": "42", "tool_call_id": "c1"}
    )
    assert kinds([first, second]) == ["tool_call", "tool_response"]


def test_a_developer_s_prompt_is_kept_out_of_recall_like_a_system_prompt() -> None:
    assert event({"role": "developer", "content": "p"}).searchable is False


def test_a_tool_call_has_name_id_and_parsed_arguments() -> None:
    found = event(call("search", '{"from": "JFK", "stops": [0, 1]}', "c9"))
    assert (found.name, found.call_id) == ("search", "c9")
    assert to_dict(found.payload) == {"arguments": {"from": "JFK", "stops": [0, 1]}}


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("not json", "not json"),
        ('{"broken": ', '{"broken": '),
        ({"already": "parsed"}, {"already": "parsed"}),
        ('{"id": 12345678901234567890}', '{"id": 12345678901234567890}'),
        ('{"x": NaN}', '{"x": NaN}'),
    ],
)
def test_arguments_that_json_cannot_hold_exactly_stay_text(arguments: Any, kept: Any) -> None:
    assert to_dict(event(call("f", arguments)).payload) == {"arguments": kept}


def test_text_and_calls_of_one_message_are_events_in_that_order() -> None:
    message = call("a", "{}") | {"content": "Let me look."}
    message["tool_calls"].append({"id": "c2", "function": {"name": "b", "arguments": "{}"}})
    found = events(message)
    assert kinds(found) == ["message", "tool_call", "tool_call"]
    assert [e.name for e in found] == ["", "a", "b"]


def test_an_answer_without_a_name_gets_that_of_its_call() -> None:
    found = events(
        call("search", "{}", "c7"), {"role": "tool", "tool_call_id": "c7", "content": "x"}
    )
    assert (found[1].name, found[1].call_id) == ("search", "c7")
    assert to_dict(found[1].payload) == {"result": "x"}


def test_an_answer_in_json_is_kept_as_json() -> None:
    found = event({"role": "tool", "content": '[{"flight": "HAT069", "price": 121}]'})
    assert to_dict(found.payload) == {"result": [{"flight": "HAT069", "price": 121}]}


def test_an_empty_answer_is_still_an_answer() -> None:
    assert kinds([event({"role": "tool", "name": "calculate", "content": ""})]) == ["tool_response"]


def test_a_failed_tool_s_words_are_its_error() -> None:
    found = event({"role": "tool", "name": "book", "content": "Error: no seats"})
    assert found.error == "Error: no seats"
    assert to_dict(found.payload) == {}
    structured = event({"role": "tool", "content": '{"error": {"message": "no seats", "code": 7}}'})
    assert structured.error == "no seats"
    assert to_dict(structured.payload) == {"result": {"error": {"message": "no seats", "code": 7}}}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"content": "Error: no seats"}, "Error: no seats"),
        ({"content": "Error executing tool"}, "Error executing tool"),
        (
            {"content": "  Traceback (most recent call last):\n"},
            "  Traceback (most recent call last):\n",
        ),
        ({"content": "Exception: x"}, "Exception: x"),
        ({"content": "KeyError: 'x'"}, "KeyError: 'x'"),
        ({"content": "requests.exceptions.HTTPError: 404"}, "requests.exceptions.HTTPError: 404"),
        ({"content": '{"error": "gone"}'}, "gone"),
        ({"content": '{"isError": true}'}, '{"isError": true}'),
        ({"content": "oops", "is_error": True}, "oops"),
        ({"content": "oops", "status": "error"}, "oops"),
        ({"content": "Errors are rare here"}, None),
        ({"content": "No Error: all is well"}, None),
        ({"content": '{"error": null, "result": 1}'}, None),
        ({"content": '{"error": ""}'}, None),
        ({"content": '{"isError": false}'}, None),
        ({"content": "[]"}, None),
        ({"content": ""}, None),
        ({"content": "{broken"}, None),
    ],
)
def test_what_counts_as_a_tool_s_error(message: dict[str, Any], error: str | None) -> None:
    assert tool_error(message, message["content"]) == error


@pytest.mark.parametrize(
    ("record", "failed"),
    [
        ({"reward": 0.0}, True),
        ({"reward": -1}, True),
        ({"reward": 1}, False),
        ({"reward": 0.2}, False),
        ({"reward": 0, "success": True}, False),
        ({"resolved": False}, True),
        ({"passed": True}, False),
        ({"reward": "0"}, False),
        ({"reward": None}, False),
        ({}, False),
    ],
)
def test_what_counts_as_a_failed_run(record: dict[str, Any], failed: bool) -> None:
    assert run_failed(record) is failed
    planned = plan({**record, "messages": [{"role": "user", "content": "x"}]})
    assert (planned.end or {})["status"] == ("error" if failed else "completed")


def test_the_old_function_calls_are_understood() -> None:
    found = events(
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "search", "arguments": '{"q": 1}'},
        },
        {"role": "function", "name": "search", "content": "found"},
    )
    assert kinds(found) == ["tool_call", "tool_response"]
    assert [e.name for e in found] == ["search", "search"]


def test_custom_tools_are_understood() -> None:
    message = {
        "role": "assistant",
        "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
        ],
    }
    assert to_dict(event(message).payload) == {"arguments": "SELECT 1"}


def test_a_content_in_parts_is_joined_and_pictures_are_named() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:…"}},
        {"type": "text", "text": "a cat"},
    ]
    assert event({"role": "user", "content": parts}).text == "Look:\n[image_url]\na cat"


def test_a_refusal_is_a_message() -> None:
    assert event({"role": "assistant", "content": None, "refusal": "I cannot."}).text == "I cannot."


def test_what_else_a_message_says_is_kept_in_its_payload() -> None:
    message = {
        "role": "assistant",
        "content": "x",
        "model": "gpt-4o",
        "usage": {"prompt_tokens": 5},
        "reasoning_content": "thinking",
        "annotations": [],
        "audio": None,
    }
    assert to_dict(event(message).payload) == {
        "role": "assistant",
        "model": "gpt-4o",
        "usage": {"prompt_tokens": 5},
        "reasoning_content": "thinking",
    }


@pytest.mark.parametrize(
    "said",
    [
        {"timestamp": "2026-03-01T12:00:00Z"},
        {"timestamp": "2026-03-01T13:00:00+01:00"},
        {"created_at": "2026-03-01T12:00:00"},
        {"ts": 1772366400},
        {"time": 1772366400000},
        {"timestamp": "1772366400000"},
        {"ts": "1772366400.000000"},
    ],
)
def test_a_message_s_own_time_is_kept(said: dict[str, Any]) -> None:
    planned = plan([{"role": "user", "content": "x", **said}, {"role": "user", "content": "y"}])
    first, second = planned.events
    assert first.timestamp.ToDatetime(UTC) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert not second.HasField("timestamp")
    assert (planned.start or {})["started_at"] == first.timestamp
    assert (planned.end or {})["ended_at"] == first.timestamp


def test_no_time_is_made_up() -> None:
    planned = plan([{"role": "user", "content": "x", "timestamp": "yesterday"}])
    assert not planned.events[0].HasField("timestamp")
    assert "started_at" not in (planned.start or {})


@pytest.mark.parametrize(
    "key", ["messages", "traj", "trajectory", "conversation", "conversations", "transcript"]
)
def test_records_hold_their_messages_under_many_names(key: str) -> None:
    assert messages_of({key: TAU["traj"], "id": 1}) == TAU["traj"]


def test_what_holds_no_messages_is_no_transcript() -> None:
    for value in ({}, {"messages": []}, {"messages": "x"}, [], [1], "x", None, [{"text": "x"}]):
        assert messages_of(value) is None


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "assistant", "content": ""}], "neither text nor tool calls"),
    ],
)
def test_a_transcript_that_cannot_be_understood_says_why(messages: Any, words: str) -> None:
    with pytest.raises(UnusableError, match=words):
        plan({"messages": messages})


def test_defaults_win_over_what_the_record_says() -> None:
    record = {**TAU, "agent_id": "theirs", "project": "theirs"}
    said = plan(record).start or {}
    assert (said["agent_id"], said["project"]) == ("theirs", "theirs")
    mine = plan(record, agent_id="a", project="p", user_id="u", tags=("x",)).start or {}
    assert (mine["agent_id"], mine["project"], mine["user_id"]) == ("a", "p", "u")
    assert mine["tags"][0] == "x"


def test_the_same_record_makes_the_same_ids_wherever_it_stands() -> None:
    reordered = json.loads(json.dumps(dict(reversed(TAU.items()))))
    moved = plan_transcript(Record(Place("other", 9, 99), reordered), Defaults())
    assert [e.id for e in moved.events] == [e.id for e in plan(TAU).events]
    assert [e.id for e in moved.events][:2] == [
        f"{moved.events[0].session_id}:0",
        f"{moved.events[0].session_id}:1",
    ]


# What the server keeps as it is.
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
_RECORDS = st.fixed_dictionaries(
    {
        "task_id": st.integers(0, 2),
        "reward": st.integers(0, 1),
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant"]), "content": _TEXTS}
            ),
            min_size=1,
            max_size=3,
        ),
    }
)


def imported(*records: Any, into: Kept | None = None) -> Kept:
    kept = into or Kept()
    importer = Importer(kept)
    importer.add_stream(io.BytesIO("\n".join(map(json.dumps, records)).encode()), "-")
    assert not importer.totals.broken
    return kept


def said(record: dict[str, Any]) -> list[str]:
    return [message["content"] for message in record["messages"]]


@given(_RECORDS, st.data())
def test_a_record_that_grew_adds_what_is_new_to_the_same_session(record: Any, data: Any) -> None:
    end = data.draw(st.integers(1, len(record["messages"])))
    kept = imported({**record, "messages": record["messages"][:end]})
    imported(record, into=kept)
    assert list(kept.texts.values()) == [said(record)]


@given(st.lists(_RECORDS, min_size=1, max_size=4))
def test_records_that_open_alike_stay_apart_and_nothing_of_them_is_lost(records: Any) -> None:
    kept = imported(*records)
    for record in records:
        assert any(texts[: len(said(record))] == said(record) for texts in kept.texts.values())
    before = {name: list(texts) for name, texts in kept.texts.items()}
    imported(*records, into=kept)
    assert kept.texts == before


def test_what_a_message_without_text_says_is_kept_with_its_first_call() -> None:
    message = call("a", "{}") | {"usage": {"prompt_tokens": 5}, "reasoning_content": "why"}
    message["tool_calls"].append({"id": "c2", "function": {"name": "b", "arguments": "{}"}})
    first, second = events(message)
    assert to_dict(first.payload) == {
        "arguments": {},
        "usage": {"prompt_tokens": 5},
        "reasoning_content": "why",
    }
    assert to_dict(second.payload) == {"arguments": {}}


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ({"role": "wizard", "content": "x"}, "role 'wizard'"),
        ("no object", "message that is no object"),
        ({"role": "assistant", "tool_calls": "x"}, "tool calls that are no list"),
        (
            {"role": "assistant", "tool_calls": [{"function": {}}]},
            "tool call without a name",
        ),
    ],
)
def test_what_is_not_understood_is_kept_as_it_is_and_counted(message: Any, what: str) -> None:
    planned = plan({"messages": [{"role": "user", "content": "x"}, message]})
    assert planned.kept == {what: 1}
    said, kept = planned.events
    assert said.text == "x"
    inner = message
    if isinstance(message, dict) and message["role"] == "assistant":
        inner = message["tool_calls"]
        inner = inner if isinstance(inner, str) else inner[0]
    assert to_dict(kept.payload) == {"raw": inner}
    assert kept.searchable is False


def test_ids_fit_the_server_whatever_the_record_is_called() -> None:
    record = {"id": "ü\x00 /" * 500, "messages": [{"role": "user", "content": "x"}]}
    session_id = (plan(record).start or {})["session_id"]
    assert len(session_id) < 190
    assert session_id.isascii()
    assert session_id.isprintable()


def test_characters_that_text_cannot_hold_are_replaced_and_noted() -> None:
    planned = plan([{"role": "user", "content": "a\x00b\ud800c 😀"}])
    assert planned.events[0].text == "a�b�c 😀"
    assert planned.notes[REPLACED] == 1


def test_a_long_text_is_cut_and_kept_whole_in_the_payload() -> None:
    planned = plan([{"role": "user", "content": "x" * 70_000}])
    assert len(planned.events[0].text) == 65_536
    assert planned.events[0].payload.fields["content"].string_value == "x" * 70_000
    assert planned.notes[CUT] == 1


def test_a_result_beyond_what_the_server_keeps_is_cut_and_noted() -> None:
    planned = plan([{"role": "tool", "name": "cat", "content": "y" * 3_000_000}])
    assert planned.events[0].payload.ByteSize() <= 1024 * 1024
    assert len(planned.events[0].payload.fields["result"].string_value) > 500_000
    assert planned.notes[CUT] == 1


def test_many_small_values_are_cut_too() -> None:
    numbers = json.dumps(list(range(200_000)))
    planned = plan([{"role": "tool", "content": numbers}])
    assert planned.events[0].payload.ByteSize() <= 1024 * 1024
    assert planned.notes[CUT] >= 1


def test_json_nested_too_deep_becomes_text() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = {"in": deep}
    found = event(call("f", json.dumps(deep)))
    assert json.loads(found.payload.fields["arguments"].string_value) == deep


def test_large_integers_of_a_record_become_text() -> None:
    record = {"messages": [{"role": "user", "content": "x"}], "seed": 2**60}
    assert (plan(record).start or {})["metadata"] == {"seed": str(2**60)}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            call("search", '{"to": "SEA", "from": {"city": "NYC"}, "days": [1, 2], "x": null}'),
            "tool_call: search: to SEA, city NYC, days 1, days 2",
        ),
        (call("think", "{}"), ""),
        (call("sql", "SELECT 1"), "tool_call: sql: SELECT 1"),
        (
            {"role": "tool", "name": "find", "content": '[{"b": 1}, {"a": true}]'},
            "tool_response: find: b 1, a True",
        ),
        ({"role": "tool", "content": "done"}, "tool_response: done"),
        ({"role": "tool", "name": "book", "content": ""}, ""),
        (
            {"role": "tool", "name": "book", "content": "Error: no seats"},
            "tool_error: book: Error: no seats",
        ),
    ],
)
def test_tools_events_are_remembered_by_words_in_the_agent_s_own_order(
    message: Any, text: str
) -> None:
    assert event(message).text == text


def test_a_long_result_is_remembered_by_its_beginning() -> None:
    found = event({"role": "tool", "name": "cat", "content": json.dumps(["word"] * 10_000)})
    assert len(found.text) == 4000
    assert found.text.startswith("tool_response: cat: word, word")
