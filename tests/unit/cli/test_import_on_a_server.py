"""`mneme import` into a real server: what the counters say, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.cli.command import mneme

SHARED_DATA = Path(__file__).parents[4] / "shared" / "data"

CHATS = [
    {
        "task_id": number,
        "trial": 0,
        "reward": number,
        "user_id": f"user-{number}",
        "messages": [
            {"role": "system", "content": "You sell train tickets."},
            {"role": "user", "content": f"I need ticket number {number}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"c{number}",
                        "type": "function",
                        "function": {
                            "name": "buy",
                            "arguments": json.dumps({"zone": number, "class": 2, "a": {"b": [1]}}),
                        },
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": '{"seat": 12, "car": 3}' if number else "Error: the train is full",
            },
        ],
    }
    for number in range(2)
]


@pytest.fixture
def as_tenant(
    new_tenant: Callable[[], Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Makes the command line speak as a tenant that nobody else uses."""

    def become() -> None:
        monkeypatch.setenv("MNEME_ADDRESS", server.address)
        monkeypatch.setenv("MNEME_API_KEY", new_tenant().secret)

    become()
    return become


def sessions() -> dict[str, Any]:
    documents = mneme("sessions", "list", "--limit", "0", "--json").documents
    return {document["id"]: document for document in documents}


def test_counters_of_the_sessions_are_what_the_transcripts_hold(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    assert mneme("import", str(file), "--agent", "seller", "--project", "trains").code == 0
    first, second = sorted(sessions().values(), key=lambda s: s["metadata"]["task_id"])
    assert (first["event_count"], first["tool_call_count"], first["error_count"]) == (4, 1, 1)
    assert second["error_count"] == 0
    assert (first["status"], second["status"]) == ("error", "completed")
    assert (first["agent_id"], first["project"], first["user_id"]) == ("seller", "trains", "user-0")
    assert first["tags"] == ["reward:0", "task:0", "trial:0"]


def test_an_imported_session_that_nobody_judged_turned_out_nobody_knows_how(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    judged = [{**CHATS[0]}, {**CHATS[1], "task_id": 1}, {**CHATS[1], "task_id": 2}]
    del judged[1]["reward"], judged[2]["reward"]
    judged[2]["resolved"] = False
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(judged))
    mneme("import", str(file))
    by_task = {session["metadata"]["task_id"]: session for session in sessions().values()}
    said = [(by_task[n]["outcome"], by_task[n]["outcome_by"]) for n in range(3)]
    assert said == [("failure", "metadata"), (None, None), ("failure", "metadata")]


def test_importing_twice_changes_nothing_on_a_server_either(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    mneme("import", str(file))
    before = sessions()
    result = mneme("import", str(file))
    assert result.out == "2 records read: 2 sessions, 0 new events, 8 already there, 0 broken\n"
    assert sessions() == before


def test_what_was_imported_is_recalled_and_its_chain_is_intact(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    mneme("import", str(file))
    found = mneme("recall", "train is full", "--mode", "lexical", "--json").documents[0]
    assert "the train is full" in found["results"][0]["text"]
    assert mneme("events", "verify").code == 0


def test_a_tenant_s_sessions_move_to_another_tenant_with_their_events(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    mneme("import", str(file))
    graded = next(iter(sessions()))
    mneme("sessions", "grade", graded, "--outcome", "partial", "--source", "person", "--by", "ann")
    before = sessions()
    assert before[graded]["outcome"] == "partial"
    moved = tmp_path / "moved.jsonl"
    lines = mneme("sessions", "list", "--limit", "0", "--json").out
    moved.write_text(lines + mneme("events", "list", "--limit", "0", "--json").out)
    as_tenant()
    assert sessions() == {}
    assert mneme("import", str(moved)).code == 0
    after = sessions()
    # Not the hashes: they cover when an event was recorded, and a salt of its own.
    same = (
        "event_count", "tool_call_count", "error_count", "status", "metadata", "tags",
        "outcome", "outcome_by",
    )  # fmt: skip
    for session_id, session in before.items():
        assert {key: after[session_id][key] for key in same} == {key: session[key] for key in same}


def test_a_published_benchmark_s_counters_are_what_its_file_holds(
    as_tenant: Callable[[], None],
) -> None:
    file = SHARED_DATA / "tau-bench" / "gpt-4o-airline.json"
    if not file.exists():
        pytest.skip(f"needs {file.name} of tau-bench beside the repository")
    assert mneme("import", str(file)).code == 0
    by_run = {(s["metadata"]["task_id"], s["metadata"]["trial"]): s for s in sessions().values()}
    records = json.loads(file.read_text())
    assert len(by_run) == len(records) == 200
    for record in records:
        session = by_run[record["task_id"], record["trial"]]
        messages = record["traj"]
        texts = sum(m["role"] != "tool" and bool(m.get("content")) for m in messages)
        calls = sum(len(m.get("tool_calls") or []) for m in messages)
        answers = [m["content"] for m in messages if m["role"] == "tool"]
        assert int(session["event_count"]) == texts + calls + len(answers)
        assert int(session["tool_call_count"]) == calls
        assert int(session["error_count"]) == sum(a.startswith("Error") for a in answers)
        assert session["user_id"] == record["info"]["task"]["user_id"]
        assert session["metadata"]["reward"] == record["reward"]
