"""What a caller gets: plain values, and the message behind them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mneme
import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from mneme import types
from mneme._core.answers import Answer, ListAnswer, answer_of
from mneme._core.convert import fill
from mneme._core.enums import short_names
from mneme._core.rpc import Rpc
from mneme._generated.services import RPCS
from mneme.messages import (
    CreateMemoryResponse,
    Event,
    GetContextResponse,
    GetLessonResponse,
    GetSessionResponse,
    RecallResponse,
    RecallResult,
    WakeUpResponse,
)
from unit.client.scripted import EitherClient, ScriptedServer


def test_an_answer_has_the_values_that_arguments_have() -> None:
    moment = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    given = {
        "event_type": "tool_error",
        "timestamp": moment,
        "duration": timedelta(seconds=1.5),
        "payload": {"amount": 3, "rate": 0.5, "items": [None, {"a": True}]},
        "input_tokens": 2**60,
        "text": "no seats",
    }
    message = Event()
    fill(message, given)
    event = answer_of(message)
    assert {name: getattr(event, name) for name in given} == given


def test_what_is_not_set_is_none_or_empty() -> None:
    event = answer_of(Event())
    assert (event.timestamp, event.duration, event.severity) == (None, None, None)
    assert (event.text, event.payload, event.input_tokens) == ("", {}, 0)
    result = answer_of(RecallResult())
    assert (result.similarity, result.terms) == (None, [])


def test_what_is_asked_for_as_a_list_is_read_as_one() -> None:
    results = [{"source_id": "a"}, {"source_id": "b"}]
    answer = answer_of(RecallResponse(results=results, outcome=1))
    assert isinstance(answer, types.RecallResponse)
    assert [hit.source_id for hit in answer] == ["a", "b"]
    assert (len(answer), answer[0].source_id, answer[-1]) == (2, "a", answer.results[1])
    assert answer[:1] == answer.results[:1]
    assert answer[1] in answer
    assert ("outcome" in answer, "confidence" in answer) == (True, False)
    assert bool(answer)
    assert not answer_of(RecallResponse())


LISTING = [rpc for rpc in RPCS if rpc.method.startswith(("List", "Search", "Recall", "Match"))]


@pytest.mark.parametrize("rpc", LISTING, ids=lambda rpc: rpc.method)
def test_whatever_lists_or_searches_answers_with_a_list(rpc: Rpc[Message, Answer[Any]]) -> None:
    answer = rpc.answer(rpc.response())
    assert isinstance(answer, ListAnswer)
    getattr(answer.raw, answer.items_in).add()
    assert list(answer) == getattr(answer, answer.items_in)
    assert len(answer) == 1


def test_what_is_no_list_and_no_dict_says_how_it_is_read() -> None:
    context = answer_of(GetContextResponse())
    with pytest.raises(TypeError, match=r"GetContextResponse is no list: .*\.items"):
        list(context)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"Event is no dict: write \.text"):
        _ = answer_of(Event())["txt"]  # type: ignore[index]
    with pytest.raises(TypeError, match=r"RecallResponse is no dict: write \.results"):
        _ = answer_of(RecallResponse())["results"]  # type: ignore[index]


def test_what_was_made_is_known_by_its_id_at_once() -> None:
    made = types.CreateMemoryResponse(CreateMemoryResponse(memory={"id": "m1"}))
    assert (made.id, made.memory.id) == ("m1", "m1")
    read = types.GetLessonResponse(GetLessonResponse(lesson={"id": "l1"}))
    assert read.id == "l1"


def test_a_nested_message_is_an_answer_and_in_tells_whether_it_was_set() -> None:
    empty, full = (
        answer_of(WakeUpResponse()),
        answer_of(WakeUpResponse(last_handover={"session_id": "h"})),
    )
    assert ("last_handover" in empty, empty.last_handover.session_id) == (False, "")
    assert ("last_handover" in full, full.last_handover.session_id) == (True, "h")


def test_lists_hold_answers_and_stay_as_they_were_read() -> None:
    answer = answer_of(RecallResponse(results=[{"source_id": "a"}, {"source_id": "b"}]))
    assert [result.source_id for result in answer.results] == ["a", "b"]
    assert answer.results is answer.results


def test_an_enum_s_value_that_this_client_is_too_old_for_is_its_number() -> None:
    assert answer_of(Event(severity=999)).severity == 999  # type: ignore[arg-type]


def test_the_raw_message_is_one_attribute_away() -> None:
    message = GetSessionResponse()
    assert answer_of(message).raw is message


def test_an_answer_cannot_be_changed_by_mistake() -> None:
    event = answer_of(Event(text="as recorded"))
    with pytest.raises(AttributeError, match="cannot change"):
        event.text = "otherwise"


def test_an_unknown_name_is_an_attribute_error_that_names_the_answer() -> None:
    with pytest.raises(AttributeError, match="Event has no attribute 'txt'"):
        _ = answer_of(Event()).txt


def test_answers_compare_print_copy_and_pickle_as_values_do() -> None:
    event = answer_of(Event(id="e1", event_type="error"))
    assert event == answer_of(Event(id="e1", event_type="error"))
    assert event != answer_of(Event(id="e2"))
    assert repr(event) == "Event(id='e1', event_type='error')"
    assert copy.deepcopy(event) == event
    assert pickle.loads(pickle.dumps(event)) == event


def test_an_answer_can_be_given_back_as_an_argument(
    client: EitherClient, served: ScriptedServer
) -> None:
    lesson = answer_of(types.Lesson.of(id="l1", title="T", content="C"))
    client.call("import_lessons", [lesson])
    assert served.last("ImportLessons").lessons[0].title == "T"


def test_every_message_of_every_answer_has_its_class_with_its_fields() -> None:
    waiting = [rpc.response.DESCRIPTOR for rpc in RPCS]
    seen: set[str] = set()
    while waiting:
        message: Descriptor = waiting.pop()
        if message.full_name in seen or not message.full_name.startswith("mneme.v1."):
            continue
        seen.add(message.full_name)
        if message.GetOptions().map_entry:
            continue
        cls = getattr(types, message.name)
        assert issubclass(cls, Answer)
        assert list(cls.__annotations__) == [field.name for field in message.fields]
        waiting += [field.message_type for field in message.fields if field.message_type]


def test_every_name_of_an_enum_is_one_that_arguments_take() -> None:
    enum = descriptor_pool.Default().FindEnumTypeByName("mneme.v1.Severity")
    for number, name in enumerate(short_names(enum), start=1):
        event = Event()
        fill(event, {"severity": name})
        assert event.severity == number
        assert answer_of(event).severity == name


def test_the_package_shows_what_there_is_to_use() -> None:
    assert {"MnemeClient", "AsyncMnemeClient", "MnemeError", "types"} <= set(dir(mneme))
    for name in dir(mneme):
        __import__(f"mneme.{name}") if name[0].islower() and name not in mneme.__all__ else (
            getattr(mneme, name)
        )


_USE = """
from datetime import datetime

from mneme import MnemeClient
from mneme.types import NewEventFields, RecallResult

event: NewEventFields = {"session_id": "s1", "event_type": "tool_error", "error": "no seats"}


def best(client: MnemeClient) -> RecallResult:
    client.record_events([event, {"session_id": "s1", "event_type": "message", "text": "hello"}])
    found = client.recall("why", scopes=["event"], mode="hybrid").results[0]
    when: datetime | None = found.timestamp
    print(when, found.metadata["event_type"], found.raw.score)
    return found
"""


WRONG = (
    'client.recall("why", scopes=["nonsense"])',
    'client.recall("why", scopes="event")',
    'client.recall("why", limits=3)',
    'client.record_events([{"session_id": "s", "event_type": "error", "severity": "eror"}])',
    'client.record_events([{"event_type": "error"}])',
    'client.create_lesson("t", "c", importance="urgent")',
    'client.recall("why").results[0].scoer',
)


def test_a_type_checker_refuses_what_the_api_would_refuse(tmp_path: Path) -> None:
    lines = [_USE, "def wrong(client: MnemeClient) -> None:", *(f"    {line}" for line in WRONG)]
    program = "\n".join(lines) + "\n"
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    first = program.count("\n") - len(WRONG) + 1
    assert refused == set(range(first, first + len(WRONG))), done.stdout
