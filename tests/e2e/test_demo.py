"""`make demo` keeps its promises, and says so when one is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISES = 20


def run_demo(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts/demo.py", *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_demo_keeps_every_promise_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run_demo(TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok  ") >= PROMISES
    assert "  NO  " not in done.stdout
    assert "nothing" not in done.stderr
    assert list(tmp_path.glob("mneme-demo-*")) == []


def test_the_demo_is_plain_text_in_a_pipe(tmp_path: Path) -> None:
    done = run_demo(TMPDIR=str(tmp_path))
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 200 for line in done.stdout.splitlines())


def test_the_demo_writes_what_it_shows_as_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    done = run_demo("--svg", str(picture), TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill" in picture.read_text()


def test_the_demo_fails_with_a_reason_when_the_server_cannot_start(tmp_path: Path) -> None:
    unusable = tmp_path / "file"
    unusable.write_text("not a folder")
    done = run_demo(TMPDIR=str(tmp_path), MNEME_MODEL_DIR=str(unusable))
    assert done.returncode == 1
    assert str(unusable) in done.stderr


@pytest.mark.parametrize(
    "file", sorted((ROOT / "samples").rglob("*.jsonl")), ids=lambda f: f.parent.name
)
def test_the_samples_tell_whole_sessions_in_the_order_of_time(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    sessions = {line["id"]: line for line in lines if "status" in line}
    events = [line for line in lines if "event_type" in line]
    assert len(sessions) + len(events) == len(lines)
    ids = Counter(event["id"] for event in events)
    assert max(ids.values()) == 1
    for session_id, session in sessions.items():
        own = [event for event in events if event["session_id"] == session_id]
        times = [event["timestamp"] for event in own]
        assert times == sorted(times)
        assert session["started_at"] <= times[0]
        assert times[-1] <= session["ended_at"]
        calls = {event["call_id"] for event in own if event["event_type"] == "tool_call"}
        answers = {e["call_id"] for e in own if e["event_type"] in ("tool_response", "tool_error")}
        assert calls == answers
