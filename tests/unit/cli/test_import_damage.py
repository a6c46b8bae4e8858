"""Transcripts that are not what their format says: whatever stands anywhere, the import goes on."""

from __future__ import annotations

import io
import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.importing.plan import CUT
from mneme.importing.run import Importer
from support.transcripts.written import WRITERS
from unit.cli.kept import Kept

STRANGE = (
    None,
    7,
    -1.5,
    True,
    "",
    "x",
    [],
    {},
    [7],
    [None],
    {"type": 7},
    {"role": []},
    2**70,
    1e300,
)


@cache
def written(form: str, seed: int) -> tuple[str, ...]:
    """The records of a session, each as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        (file, *_) = WRITERS[form](Path(folder), seed)
        text = file.read_text()
    return tuple(text.splitlines()) if file.suffix == ".jsonl" else (text,)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(item, (*path, key))
    return found


def damaged(record: Any, path: tuple[Any, ...], strange: Any) -> Any:
    *before, last = path
    inner = record
    for key in before:
        inner = inner[key]
    inner[last] = strange
    return record


@pytest.mark.parametrize("form", sorted(WRITERS))
@given(st.data())
def test_whatever_stands_anywhere_in_a_file_the_rest_of_it_goes_in(form: str, data: Any) -> None:
    records = list(written(form, data.draw(st.sampled_from([3, 5, 8]))))
    number = data.draw(st.integers(0, len(records) - 1))
    record = json.loads(records[number])
    path = data.draw(st.sampled_from(places(record)))
    records[number] = json.dumps(damaged(record, path, data.draw(st.sampled_from(STRANGE))))
    kept = Kept()
    importer = Importer(kept, form=form, complete=True)
    importer.add_stream(io.BytesIO("\n".join(records).encode()), "-")
    assert len(importer.totals.broken) <= 1
    if len(records) > 1:  # Of lines only the damaged one may be lost; a document may be as one.
        assert len(kept.events) > len(records) / 4


def imported(*lines: str, form: str = "auto", redact: bool = False) -> tuple[Importer, Kept]:
    kept = Kept()
    importer = Importer(kept, form=form, redact=redact, complete=True)
    importer.add_stream(io.BytesIO("\n".join(lines).encode()), "-")
    return importer, kept


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("key", ["type", "role", "status", "trajectory_format", "event_type"])
def test_json_of_any_other_kind_is_not_recognised_and_what_follows_goes_in(
    key: str, strange: Any
) -> None:
    other = {key: strange, "payload": {}, "id": "x", "agentId": "a", "startedAt": "now"}
    chat = {"messages": [{"role": "user", "content": "go"}]}
    importer, kept = imported(json.dumps(other), json.dumps(chat))
    assert len(importer.totals.broken) <= 1
    assert "go" in [event.text for event in kept.events]


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("depth", [40, 340, 500, 900])
def test_a_record_that_is_nested_too_deep_is_reported_and_the_others_go_in(
    depth: int, redact: bool
) -> None:
    deep = '{"in":' * depth + "1" + "}" * depth
    chat = '{"messages": [{"role": "user", "content": "%s", "x": %s}]}'
    lines = [chat % ("first", 1), chat % ("second", deep), chat % ("third", 1)]
    importer, kept = imported(*lines, redact=redact)
    assert [event.text for event in kept.events][:: len(kept.events) - 1] == ["first", "third"]
    reported = [(broken.place.record, broken.reason) for broken in importer.totals.broken]
    assert reported in ([], [(2, "not readable: nested too deep")])
    assert len(kept.events) + len(reported) == 3


@pytest.mark.parametrize("depth", [40, 340, 500, 900, 5000])
def test_arguments_that_are_nested_too_deep_are_kept_as_text(depth: int) -> None:
    given = '{"in": ' * depth + "1" + "}" * depth
    call = {"id": "c", "function": {"name": "f", "arguments": given}}
    chat = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    importer, kept = imported(json.dumps(chat))
    assert not importer.totals.broken
    assert kept.events[0].payload.fields["arguments"].string_value == given


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        (r'"na\udc00me": 1', {"role": "user", "na\ufffdme": 1}),
        ('"score": 1e999', {"role": "user", "score": "inf"}),
        ('"timestamp": "0001-01-01T00:00:00+01:00"', {"role": "user"}),
    ],
)
def test_a_message_goes_in_beside_what_no_struct_and_no_time_holds(
    field: str, payload: dict[str, Any]
) -> None:
    chat = '{"messages": [{"role": "user", "content": "go", %s}]}'
    importer, kept = imported(chat % field)
    assert not importer.totals.broken
    (event,) = kept.events
    assert (event.text, dict(event.payload.items())) == ("go", payload)


def test_what_waits_for_the_time_of_a_session_goes_in_beside_a_line_that_cannot() -> None:
    note = {"type": "summary", "sessionId": "s"}
    usage = {"input_tokens": 2**70}
    answer = {"role": "assistant", "id": "m", "content": "done", "usage": usage}
    lines = [
        note | {"summary": "one"},
        {"type": "assistant", "sessionId": "s\ud800"},
        note | {"summary": "two"},
        note | {"type": "user", "message": {"role": "user", "content": "go"}},
        note | {"type": "assistant", "message": answer},
    ]
    when = {"timestamp": "2026-11-02T09:00:00Z"}
    for end in ({}, note | when | {"summary": "end"}):  # They wait for the end, or for a time.
        importer, kept = imported(*map(json.dumps, [*lines, end]), form="claude-code")
        assert {"one", "two", "go", "done"} <= {event.text for event in kept.events}
        assert len(importer.totals.broken) == 2
        assert kept.ended == {"s": "completed"}


def test_an_export_goes_in_beside_the_parts_of_it_that_cannot_be_read() -> None:
    session = {"id": "s", "agentId": "a", "startedAt": "2026-11-02T09:00:00Z", "status": "error"}
    event = {"sessionId": "s", "agentId": "a", "hash": "h", "payload": {"error": "no"}}
    events = [
        event | {"id": str(n), "eventType": kind} for n, kind in enumerate(["error", {}, "error"])
    ]
    lesson = {"title": "t", "content": "c", "importance": "high", "category": "x"}
    lessons = [lesson | {"id": n, "createdAt": n} for n in ("yesterday", "2026-11-02T09:00:00Z")]
    export = {"session": session, "events": events, "lessons": lessons}
    importer, kept = imported(json.dumps(export))
    assert [event.id for event in kept.events] == ["0", "2"]
    assert len(importer.totals.broken) == 2
    assert importer.totals.lessons == 1
    assert kept.ended == {"s": "error"}


def test_thousands_of_small_values_are_cut_as_fast_as_one_large_one() -> None:
    payload = {f"key{number}": "x" * 40 for number in range(40_000)}
    event = {"id": "e", "sessionId": "s", "agentId": "a", "eventType": "custom", "hash": "h"}
    before = time.perf_counter()
    importer, kept = imported(json.dumps(event | {"payload": payload}))
    assert time.perf_counter() - before < 10
    assert importer.totals.notes[CUT] == 1
    assert 900_000 < kept.events[0].payload.ByteSize() <= 1024 * 1024
