"""A coding agent with our hooks: each session finds what the one before it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mneme import MnemeClient
from support.api import Api
from support.server import LocalServer

FOLDER = "/home/me/shop"


def line(number: int, kind: str, content: Any, session: str = "s-1") -> str:
    return json.dumps(
        {
            "type": kind,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session,
            "cwd": FOLDER,
            "timestamp": f"2026-11-20T10:00:{number:02}Z",
            "version": "2.1.0",
            "message": {"id": f"m-{session}-{number}", "role": kind, "content": content},
        }
    )


def run(server: LocalServer, api: Api, moment: str, transcript: Path, event: str) -> str:
    """What a host does: its message on the standard input, our answer on the standard output."""
    told = {"hook_event_name": event, "cwd": FOLDER, "transcript_path": str(transcript)}
    done = subprocess.run(
        [sys.executable, "-m", "mneme", "hooks", "run", moment, "--host", "claude-code"],
        env=os.environ | {"MNEME_ADDRESS": server.address, "MNEME_API_KEY": str(api.secret)},
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_session_that_ends_is_what_the_next_one_wakes_up_to(
    server: LocalServer, api: Api, tmp_path: Path
) -> None:
    transcript = tmp_path / "s-1.jsonl"
    edit = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "src/tax.py"}}
    lines = [
        line(0, "user", "Round the taxes on each line of an invoice"),
        line(1, "assistant", [edit]),
        line(2, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "edited"}]),
    ]
    transcript.write_text("\n".join(lines) + "\n")
    assert run(server, api, "remember", transcript, "PreCompact") == ""
    said = "I decided to round half to even because the bank does so. Taxes are rounded per line."
    lines.append(line(3, "assistant", [{"type": "text", "text": said}]))
    transcript.write_text("\n".join(lines) + "\n")
    for _ in range(2):  # A host may call twice.
        assert run(server, api, "end", transcript, "SessionEnd") == ""
    with MnemeClient(server.address, api_key=api.secret) as client:
        session = client.get_session("s-1").session
        texts = [event.text for event in client.iter_events(session_id="s-1")]
    assert (session.project, session.status) == ("shop", "completed")
    assert sum(said in text for text in texts) == 1
    answer = json.loads(run(server, api, "wake-up", tmp_path / "s-2.jsonl", "SessionStart"))
    told = answer["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert "src/tax.py" in told["additionalContext"] or "rounded" in told["additionalContext"]


def test_a_host_that_keeps_no_transcript_is_no_failure(
    server: LocalServer, api: Api, tmp_path: Path
) -> None:
    assert run(server, api, "end", tmp_path / "none.jsonl", "SessionEnd") == ""


def test_a_first_session_is_told_that_there_is_nothing_yet(
    server: LocalServer, api: Api, tmp_path: Path
) -> None:
    answer = json.loads(run(server, api, "wake-up", tmp_path / "none.jsonl", "SessionStart"))
    assert answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--local", "."], "{}"), (["--local", "."], "no JSON"), (["--no-such-option"], "{}")],
)
def test_a_hook_that_fails_blocks_nothing(tmp_path: Path, options: list[str], told: str) -> None:
    """Claude Code and Codex take the exit code 2 for a veto of what was about to happen."""
    command = [sys.executable, "-m", "mneme", *options, "hooks", "run", "wake-up"]
    done = subprocess.run(
        command,
        env=os.environ | {"MNEME_SERVER": "/no/such/server"},
        cwd=tmp_path,
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.startswith("mneme: ")
    assert done.returncode == 1
