"""`mneme import`, from files to a server."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mneme import to_dict, to_json
from mneme.messages import RecordEventsResponse
from unit.cli.command import mneme
from unit.cli.memory import Memory
from unit.client.scripted import ScriptedServer, failure

SHARED_DATA = Path(__file__).parents[4] / "shared" / "data"


def conversation(number: int, length: int = 3) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"{number}.{i}"} for i in range(length)]
    return {"task_id": number, "trial": 0, "reward": number % 2, "messages": messages}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(value: Any, name: str = "file.json") -> str:
        file = tmp_path / name
        if isinstance(value, str | bytes):
            file.write_bytes(value.encode() if isinstance(value, str) else value)
        else:
            file.write_text(json.dumps(value))
        return str(file)

    return write


def test_records_become_sessions_with_events_that_are_started_and_ended(
    memory: Memory, write: Any
) -> None:
    result = mneme("import", write([conversation(0), conversation(1)]), "--agent", "airline")
    assert result.code == 0
    assert result.out == "2 records read: 2 sessions, 6 new events, 0 already there, 0 broken\n"
    assert {s.agent_id for s in memory.sessions.values()} == {"airline"}
    assert sorted(memory.ended.values()) == ["SESSION_STATUS_COMPLETED", "SESSION_STATUS_ERROR"]
    for session_id in memory.sessions:
        assert [e.id for e in memory.of_session(session_id)] == [
            f"{session_id}:{i}" for i in range(3)
        ]


def test_importing_twice_changes_nothing(memory: Memory, write: Any) -> None:
    file = write([conversation(n) for n in range(5)])
    mneme("import", file)
    before = (dict(memory.sessions), dict(memory.events), dict(memory.ended))
    result = mneme("import", file)
    assert result.code == 0
    assert result.out == "5 records read: 5 sessions, 0 new events, 15 already there, 0 broken\n"
    assert (memory.sessions, memory.events, memory.ended) == before


def test_the_same_records_in_another_file_format_are_the_same_sessions(
    memory: Memory, write: Any
) -> None:
    records = [conversation(n) for n in range(3)]
    mneme("import", write(records))
    lines = "\n".join(json.dumps(record) for record in reversed(records))
    assert "0 new events, 9 already there" in mneme("import", write(lines, "other.jsonl")).out


def test_a_record_that_stands_twice_goes_in_once(memory: Memory, write: Any) -> None:
    assert "3 new events, 3 already there" in mneme("import", write([conversation(1)] * 2)).out


def test_a_message_that_could_not_be_read_is_added_once_its_file_is_mended(
    memory: Memory, write: Any
) -> None:
    whole = json.dumps(conversation(1, length=5)["messages"])
    messages = json.loads(whole)
    third = json.dumps(messages[2])
    result = mneme("import", write(whole.replace(third, third.replace('"role"', "role"))))
    assert result.out == "2 records read: 1 session, 4 new events, 0 already there, 1 broken\n"
    result = mneme("import", write(whole))
    assert result.out == "1 record read: 1 session, 1 new event, 4 already there, 0 broken\n"


def test_a_file_that_is_one_conversation_is_one_session(memory: Memory, write: Any) -> None:
    mneme("import", write(conversation(1)["messages"]))
    (session_id,) = memory.sessions
    assert session_id.startswith("chat-")


def test_several_files_and_standard_input_are_read(memory: Memory, write: Any) -> None:
    first = write([conversation(1)], "a.json")
    result = mneme("import", first, "-", stdin=json.dumps(conversation(2)))
    assert "2 records read: 2 sessions" in result.out


def test_every_session_gets_what_the_options_say(memory: Memory, write: Any) -> None:
    mneme("import", write([conversation(1)]), "--project", "p", "--user", "u", "--tag", "x")
    (session,) = memory.sessions.values()
    assert (session.project, session.user_id) == ("p", "u")
    assert list(session.tags) == ["x", "task:1", "trial:0", "reward:1"]


def test_a_broken_record_is_reported_with_its_place_and_the_rest_goes_in(
    memory: Memory, write: Any
) -> None:
    lines = [json.dumps(conversation(n)) for n in range(4)]
    lines[1] = lines[1][:30]
    lines[2] = '{"messages": [{"role": "user", "content": ""}]}'
    file = write("\n".join(lines))
    result = mneme("import", file)
    assert result.code == 1
    assert "4 records read: 2 sessions, 6 new events, 0 already there, 2 broken" in result.out
    assert f"{file}: record 2, line 2: not JSON: " in result.err
    assert f"{file}: record 3, line 3: its messages hold neither text nor tool calls" in result.err


def test_a_role_that_nobody_knows_is_kept_and_counted_and_drops_nothing_else(
    memory: Memory, write: Any
) -> None:
    wizard = {"role": "wizard", "content": "abra", "wand": [1]}
    result = mneme("import", write([{"role": "user", "content": "x"}, wizard]))
    assert result.code == 0
    assert result.err == "not known, kept as it is: 1 role 'wizard'\n"
    said, kept = memory.events.values()
    assert said.text == "x"
    assert kept.event_type == "custom"
    assert to_dict(kept.payload) == {"raw": wizard}


def test_what_is_neither_a_transcript_nor_an_event_is_reported_with_what_is_read(
    memory: Memory, write: Any
) -> None:
    result = mneme("import", write([{"hello": "world"}]))
    assert result.code == 1
    assert "record 1, line 1: not recognised; it is none of AgentLens' exports, " in result.err


def test_a_record_that_the_server_refuses_does_not_keep_the_others_out(
    memory: Memory, write: Any
) -> None:
    records = [conversation(n) for n in range(9)]
    records[4]["messages"][1]["content"] = "poison"
    file = write(records)
    result = mneme("import", file)
    assert result.code == 1
    assert (
        f"{file}: record 5, line 1: refused by the server: a field breaks its rules" in result.err
    )
    assert "is poison" in result.err
    assert len(memory.events) == 24
    assert len(memory.ended) == 8


def test_the_summary_for_machines_lists_what_is_broken(memory: Memory, write: Any) -> None:
    file = write('{"a": \n' + json.dumps(conversation(1)))
    result = mneme("import", file, "--json")
    assert result.code == 1
    (summary,) = result.documents
    assert summary["records"] == 2
    assert (summary["sessions"], summary["events"], summary["duplicates"]) == (1, 3, 0)
    assert summary["broken"][0] | {"reason": ""} == {
        "file": file,
        "record": 1,
        "line": 1,
        "reason": "",
    }


def test_what_had_to_be_changed_is_told(memory: Memory, write: Any) -> None:
    result = mneme("import", write([{"role": "user", "content": "x" * 70_000}]))
    assert result.code == 0
    assert "1 texts cut to what the server keeps" in result.err


def test_many_events_are_sent_in_batches_and_a_long_session_in_several(
    memory: Memory, write: Any
) -> None:
    records = [conversation(n, length=40) for n in range(30)] + [conversation(99, length=1200)]
    assert mneme("import", write(records)).code == 0
    assert len(memory.events) == 30 * 40 + 1200
    assert max(memory.batches) <= 500
    assert len(memory.batches) <= 7


def test_large_events_are_batched_by_their_size(memory: Memory, write: Any) -> None:
    long = [{"role": "tool", "content": "y" * 400_000} for _ in range(6)]
    assert mneme("import", write([{"messages": long}])).code == 0
    assert memory.batches == [2, 2, 2]


def test_a_server_with_too_much_to_do_is_waited_for(
    memory: Memory, served: ScriptedServer, write: Any
) -> None:
    record, refusals = served.scripts["RecordEvents"], [8]

    def busy(request: Any, context: Any) -> RecordEventsResponse:
        if refusals[0]:
            refusals[0] -= 1
            failure(
                context,
                "RESOURCE_EXHAUSTED",
                "too much waits",
                reason="QUEUE_FULL",
                retry_after=0.01,
            )
        answer: RecordEventsResponse = record(request, context)
        return answer

    served.on("RecordEvents", busy)
    result = mneme("import", write([conversation(1)]))
    assert (result.code, refusals) == (0, [0])
    assert len(memory.events) == 3


def test_a_full_disk_is_not_waited_for(memory: Memory, served: ScriptedServer, write: Any) -> None:
    served.on(
        "RecordEvents",
        lambda request, context: failure(
            context, "RESOURCE_EXHAUSTED", "the disk is full", reason="QUOTA_EXCEEDED"
        ),
    )
    result = mneme("import", write([conversation(1)]))
    assert result.code == 1
    assert "the disk is full [QUOTA_EXCEEDED]" in result.err


def test_without_a_server_nothing_is_reported_as_broken(served: ScriptedServer, write: Any) -> None:
    served.stop()
    result = mneme("import", write([conversation(1)]))
    assert result.code == 3
    assert "no Mneme server answers" in result.err


def test_listed_events_and_sessions_are_imported_again(memory: Memory, write: Any) -> None:
    mneme("import", write([conversation(1), conversation(2)]))
    listed = [to_json(event) for event in memory.recorded()]
    before = {e.id: e for e in memory.events.values()}
    memory.events.clear()
    result = mneme("import", write("\n".join(listed), "events.jsonl"))
    assert result.out == "6 records read: 2 sessions, 6 new events, 0 already there, 0 broken\n"
    assert {name: (e.text, e.session_id) for name, e in memory.events.items()} == {
        name: (e.text, e.session_id) for name, e in before.items()
    }
    assert "6 already there" in mneme("import", write("\n".join(listed), "events.jsonl")).out


def test_a_broken_event_does_not_keep_its_batch_out(memory: Memory, write: Any) -> None:
    lines = [
        {"session_id": "s", "event_type": "message", "text": text}
        for text in ("a", "b", "poison", "d", "e")
    ]
    file = write("\n".join(map(json.dumps, lines)))
    result = mneme("import", file, "--format", "events")
    assert result.code == 1
    assert f"{file}: record 3, line 3: refused by the server" in result.err
    assert [e.text for e in memory.events.values()] == ["a", "b", "d", "e"]


def test_the_format_may_be_forced(memory: Memory, write: Any) -> None:
    result = mneme("import", write([conversation(1)]), "--format", "events")
    assert "neither an event (event_type) nor a session" in result.err


def test_a_progress_bar_is_for_people_only(memory: Memory, write: Any) -> None:
    assert mneme("import", write([conversation(1)])).err == ""


def test_a_published_benchmark_s_transcripts_come_in_as_an_independent_count_says(
    memory: Memory,
) -> None:
    file = SHARED_DATA / "tau-bench" / "gpt-4o-airline.json"
    if not file.exists():
        pytest.skip(f"needs {file.name} of tau-bench beside the repository")
    expected: Counter[str] = Counter()
    records = json.loads(file.read_text())
    for message in (message for record in records for message in record["traj"]):
        if message["role"] == "tool":
            failed = message["content"].startswith("Error")
            expected["tool_error" if failed else "tool_response"] += 1
        else:
            expected["message"] += bool(message.get("content"))
            expected["tool_call"] += len(message.get("tool_calls") or [])
    result = mneme("import", str(file))
    assert result.code == 0
    assert len(memory.sessions) == len(records) == 200
    assert Counter(e.event_type for e in memory.events.values()) == expected
    rewards = Counter(status.rpartition("_")[2] for status in memory.ended.values())
    assert rewards == {
        "COMPLETED": sum(record["reward"] == 1 for record in records),
        "ERROR": sum(record["reward"] == 0 for record in records),
    }
    assert "0 new events" in mneme("import", str(file)).out
