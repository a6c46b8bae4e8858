"""Session files of Claude Code and Codex, line by line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme import to_dict
from mneme.importing.run import Importer
from support.transcripts.written import WRITERS
from unit.cli.kept import Kept

AT = "2026-03-01T12:00:0{}Z"


def read(*lines: Any, complete: bool = True) -> Kept:
    kept = Kept()
    importer = Importer(kept, complete=complete)
    data = "\n".join(map(json.dumps, lines)).encode()
    importer.add_stream(io.BytesIO(data), "-")
    assert not importer.totals.broken
    return kept


def claude(number: int, kind: str, message: Any = None, **more: Any) -> dict[str, Any]:
    line = {"type": kind, "uuid": f"u{number}", "sessionId": "s", "cwd": "/home/dev/tickets"}
    return line | {"timestamp": AT.format(number), "message": message, **more}


def answer(number: int, block: Any, *, written: int, message: str = "m") -> dict[str, Any]:
    usage = {"input_tokens": 2, "cache_read_input_tokens": 40, "output_tokens": written}
    content = {"id": message, "role": "assistant", "model": "c", "content": [block]}
    return claude(number, "assistant", content | {"usage": usage})


SAID = {"type": "text", "text": "I look."}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}


def result(number: int, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "out", **more}
    return claude(number, "user", {"role": "user", "content": [block]})


def test_an_answer_that_spans_lines_counts_its_usage_once_as_its_last_line_has_it() -> None:
    kept = read(answer(1, SAID, written=1), answer(2, CALL, written=90), result(3))
    (usage,) = kept.of("llm_response")
    assert (usage.input_tokens, usage.output_tokens, usage.model) == (42, 90, "c")
    assert [e.text for e in kept.of("message")] == ["I look."]


def test_an_answer_whose_calls_are_answered_between_its_lines_is_one_answer() -> None:
    second = CALL | {"id": "t2"}
    kept = read(answer(1, CALL, written=1), result(2), answer(3, second, written=9))
    assert [e.output_tokens for e in kept.of("llm_response")] == [9]


def test_a_session_is_of_its_agent_and_of_the_project_in_whose_folder_it_ran() -> None:
    kept = read(claude(1, "user", {"role": "user", "content": "hi"}, gitBranch="main"))
    start = kept.started["s"]
    assert (start["agent_id"], start["project"]) == ("claude-code", "tickets")
    assert start["metadata"] == {"cwd": "/home/dev/tickets", "gitBranch": "main"}
    assert kept.ended == {"s": "completed"}


def test_lines_without_a_time_take_that_of_the_session_s_beginning() -> None:
    summary = {"type": "summary", "summary": "Fares fixed", "leafUuid": "x"}
    kept = read(summary, claude(1, "user", {"role": "user", "content": "hi"}))
    first, second = kept.events
    assert (first.text, first.timestamp) == ("Fares fixed", second.timestamp)


def test_a_file_that_holds_only_a_summary_is_a_session_too() -> None:
    kept = read({"type": "summary", "summary": "Fares fixed", "leafUuid": "x"})
    assert [event.text for event in kept.events] == ["Fares fixed"]


def test_a_line_that_stands_twice_counts_once_and_another_one_under_its_id_is_kept() -> None:
    line = claude(1, "user", {"role": "user", "content": "hi"})
    other = claude(1, "user", {"role": "user", "content": "ho"})
    assert [e.text for e in read(line, line, other, other).events] == ["hi", "ho"]


def test_a_subagent_s_lines_say_whose_they_are() -> None:
    line = claude(1, "user", {"role": "user", "content": "hi"}, agentId="a1", isSidechain=True)
    kept = read(line)
    assert to_dict(kept.events[0].metadata) == {"agentId": "a1", "isSidechain": True}
    assert (kept.started, kept.ended) == ({}, {})


def test_what_a_tool_answered_the_program_is_kept_beside_what_it_told_the_model() -> None:
    told = result(2) | {"toolUseResult": {"stdout": "out", "stderr": "careful"}}
    (response,) = read(answer(1, CALL, written=1), told).of("tool_response")
    assert to_dict(response.payload) == {
        "result": "out",
        "details": {"stdout": "out", "stderr": "careful"},
    }
    assert (response.name, response.call_id) == ("Bash", "t1")


@pytest.mark.parametrize("content", ["no", [{"type": "text", "text": "no"}]])
def test_an_error_is_one_because_the_line_says_so_not_because_of_its_words(content: Any) -> None:
    (error,) = read(result(1, content=content, is_error=True)).of("tool_error")
    assert error.error == "no"
    fine = read(result(1, content="Error: this is the text of a log"))
    assert (len(fine.of("tool_error")), len(fine.of("tool_response"))) == (0, 1)


def test_failures_of_the_api_are_errors() -> None:
    said = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "x"}]}
    line = claude(1, "assistant", said | {"usage": {"output_tokens": 0}}, isApiErrorMessage=True)
    system = claude(2, "system", subtype="api_error", error={"status": 529})
    kept = read(line, system)
    assert [e.error for e in kept.of("error")] == ["x", '{"status": 529}']
    assert kept.of("llm_response") == []


def test_pictures_of_a_result_are_kept() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    (response,) = read(result(1, content=[picture])).of("tool_response")
    assert to_dict(response.payload)["content"] == [picture]


def codex(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": AT.format(number), "type": kind, "payload": payload}


META = codex(0, "session_meta", id="c1", cwd="/home/dev/tickets", timestamp=AT.format(0))


def item(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex(number, "response_item", type=kind, **payload)


def shown(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex(number, "event_msg", type=kind, **payload)


def spoken(number: int, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return item(number, "message", role="assistant", content=[part])


@pytest.mark.parametrize("first_shown", [True, False])
def test_what_was_said_and_shown_counts_once_whichever_came_first(first_shown: bool) -> None:
    pair = [shown(1, "agent_message", message="done"), spoken(2, "done")]
    kept = read(META, *(pair if first_shown else reversed(pair)))
    assert [e.text for e in kept.events] == ["done"]


def test_what_was_only_shown_goes_in_and_what_was_said_twice_is_there_twice() -> None:
    kept = read(
        META,
        shown(1, "user_message", message="go"),
        shown(2, "agent_message", message="done"),
        spoken(3, "done"),
        spoken(4, "done"),
        shown(5, "agent_message", message="done"),
        shown(6, "agent_message", message="done"),
    )
    assert sorted(e.text for e in kept.events) == ["done", "done", "done", "go"]


def test_what_was_only_just_shown_waits_in_a_file_that_goes_on() -> None:
    line = shown(1, "agent_message", message="done")
    assert read(META, line, complete=False).events == []
    assert len(read(META, line, complete=True).events) == 1


@given(st.lists(st.sampled_from(["say a", "say b", "show a", "show b", "other"]), max_size=40))
def test_however_lines_lie_each_text_counts_as_often_as_its_commoner_form(order: list[str]) -> None:
    made = {
        "say": lambda n, text: spoken(n % 10, text),
        "show": lambda n, text: shown(n % 10, "agent_message", message=text),
    }
    lines = [
        made[what.split()[0]](n, what.split()[1]) if " " in what else shown(n % 10, "warning")
        for n, what in enumerate(order)
    ]
    texts = [e.text for e in read(META, *lines).of("message")]
    for text in "ab":
        assert texts.count(text) == max(order.count(f"say {text}"), order.count(f"show {text}"))


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ('{"output": "x", "metadata": {"exit_code": 1}}', True),
        ('{"output": "x", "metadata": {"exit_code": 0}}', False),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nx", True),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nx", False),
        ("Chunk ID: a\nProcess exited with code 127\nOutput:\nx", True),
        ("Wall time: 0 seconds\nOutput:\nExit code: 1", False),
        ("Error: the text of a log", False),
        ({"content": "x", "success": False}, True),
        ({"content": "x", "success": True}, False),
        ([{"type": "input_text", "text": "x"}], False),
    ],
)
def test_a_command_has_failed_when_its_exit_code_says_so(output: Any, failed: bool) -> None:
    call = item(1, "function_call", call_id="f", name="shell", arguments='{"a": 1}')
    kept = read(META, call, item(2, "function_call_output", call_id="f", output=output))
    assert (len(kept.of("tool_error")), len(kept.of("tool_response"))) == (failed, not failed)


def test_the_end_of_a_call_says_whether_it_failed_and_stands_for_an_answer_that_is_missing() -> (
    None
):
    end = shown(2, "exec_command_end", call_id="f", exit_code=1, aggregated_output="x")
    call = item(1, "function_call", call_id="f", name="shell", arguments="{}")
    output = item(3, "function_call_output", call_id="f", output="x")
    for lines in ([call, end, output], [call, end]):
        (error,) = read(META, *lines).of("tool_error")
        assert (error.error, error.name, error.call_id) == ("x", "shell", "f")


def test_old_rollouts_whose_lines_are_the_items_themselves_are_read() -> None:
    meta = {"id": "old", "timestamp": AT.format(0), "instructions": "Be brief."}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    kept = read(meta, {"record_type": "state"}, said)
    assert list(kept.started) == ["old"]
    assert [e.text for e in kept.of("message")] == ["Be brief.", "hi"]


def test_a_subagent_s_first_words_are_not_taken_for_its_parent_s_history() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}
    meta = codex(0, "session_meta", id="child", source=spawned, forked_from_id="p")
    kept = read(meta, codex(0, "session_meta", id="p"), spoken(0, "mine"))
    assert [e.text for e in kept.events] == ["mine"]
    assert list(kept.started) == ["child"]


def test_a_fork_without_ids_of_turns_begins_when_its_lines_have_other_times() -> None:
    meta = codex(0, "session_meta", id="f", timestamp=AT.format(0), forked_from_id="p")
    kept = read(meta, codex(0, "session_meta", id="p"), spoken(0, "theirs"), spoken(9, "mine"))
    assert [e.text for e in kept.events] == ["mine"]


@pytest.mark.parametrize(
    ("form", "seed"),
    [
        *(("claude-code", seed) for seed in (1, 4, 6, 8)),
        *(("codex", seed) for seed in (3, 5, 8, 9)),
    ],
)
def test_wherever_a_growing_file_was_read_nothing_is_lost_or_doubled(
    form: str, seed: int, tmp_path: Path
) -> None:
    (file, *_) = WRITERS[form](tmp_path, seed)
    lines = file.read_text().splitlines(keepends=True)
    at_once, bit_by_bit = Kept(), Kept()
    Importer(at_once, complete=True).add_path(file)
    for end in [*range(1, len(lines), 7), len(lines)]:
        file.write_text("".join(lines[:end]))
        importer = Importer(bit_by_bit, complete=False)
        importer.add_path(file)
        assert not importer.totals.broken
    Importer(bit_by_bit, complete=True).add_path(file)
    assert {e.id: e for e in bit_by_bit.events} == {e.id: e for e in at_once.events}
