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
DEMO = ROOT / "scripts/demo.py"
PROMISES = 23


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(place: Path) -> subprocess.CompletedProcess[str]:
    return run(DEMO, TMPDIR=str(place))


def test_the_demo_keeps_every_promise(shown: subprocess.CompletedProcess[str]) -> None:
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.count("  ok  ") == PROMISES
    assert "  NO  " not in shown.stdout


def test_the_demo_leaves_nothing_behind(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    assert shown.returncode == 0
    assert list(place.glob("mneme-demo-*")) == []


def test_the_demo_is_plain_text_in_a_pipe(shown: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in shown.stdout
    assert "What next" in shown.stdout


def test_the_demo_fails_when_a_promise_does_not_hold(tmp_path: Path) -> None:
    changed = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import demo;"
        "demo.QUESTIONS = (('what is the capital of France', 'no-such-session'),);"
        "sys.exit(demo.main())"
    )
    done = run("-c", changed, DEMO.parent, TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert "1 promise" in done.stdout
    (kept,) = tmp_path.glob("mneme-demo-*")
    assert (kept / "server.log").exists()


def test_the_demo_writes_what_it_shows_as_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    done = run(DEMO, "--svg", picture, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill" in picture.read_text()


def test_the_demo_fails_with_a_reason_when_the_server_cannot_start(tmp_path: Path) -> None:
    unusable = tmp_path / "file"
    unusable.write_text("not a folder")
    done = run(DEMO, TMPDIR=str(tmp_path), MNEME_MODEL_DIR=str(unusable))
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
