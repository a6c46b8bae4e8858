"""Ten sessions of each format in a real server, against a count that shares no code with it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mneme.importing.readers import readers
from support.transcripts.walked import WALKS, Held, held_in, on_the_timeline
from support.transcripts.written import WRITERS
from unit.cli.command import Result, mneme

pytestmark = pytest.mark.slow

REAL = Path(__file__).parents[2] / "fixtures" / "transcripts"
SESSIONS = 10
AN_HOUR_AGO = 1_700_000_000
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


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


def settled(folder: Path) -> None:
    """Make files look as if nobody wrote to them for long, in the order of their names."""
    for number, file in enumerate(sorted(folder.rglob("*"))):
        os.utime(file, (AN_HOUR_AGO + number, AN_HOUR_AGO + number))


def written_just_now(lines: str) -> str:
    """Lines as their program would have written them until now: the last of them this second."""
    times = [datetime.fromisoformat(time) for time in _TIME.findall(lines)]
    passed = datetime.now(UTC) - max(times)
    return _TIME.sub(lambda one: _iso(datetime.fromisoformat(one[0]) + passed), lines)


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timeline() -> Held:
    return on_the_timeline(mneme("events", "list", "--limit", "0", "--json").documents)


def summary(result: Result) -> dict[str, Any]:
    (found,) = result.documents
    return dict(found)


def write(form: str, folder: Path) -> None:
    folder.mkdir()
    for seed in range(SESSIONS):
        # A resumed session lies in a later file than the one it repeats.
        for number, file in enumerate(WRITERS[form](folder, seed)):
            os.utime(file, (AN_HOUR_AGO + number, AN_HOUR_AGO + number))


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_every_argument_result_and_error_is_in_the_timeline_once(
    as_tenant: Callable[[], None], tmp_path: Path, form: str
) -> None:
    folder = tmp_path / form
    write(form, folder)
    expected = held_in(form, folder)
    assert expected.arguments or expected.results or expected.facts
    imported = summary(mneme("import", str(folder), "--json"))
    # Lines that a killed writer left are the only ones that do not go in.
    assert len(imported["broken"]) == (2 if form == "claude-code" else 0)
    assert {name for file in imported["files"] for name in file["formats"]} == {form}
    assert imported["sessions"] >= SESSIONS
    assert timeline() == expected
    again = summary(mneme("import", str(folder), "--json"))
    assert again["events"] == 0
    assert timeline() == expected
    assert mneme("events", "verify").code == 0


def test_every_format_is_tried_here_or_where_chats_are() -> None:
    assert set(readers()) == {*WRITERS, "openai", "events"}
    assert set(WALKS) == set(WRITERS)


def test_sessions_that_claude_code_itself_wrote_come_in_whole(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    folder = tmp_path / "real"
    shutil.copytree(REAL / "claude-code", folder)
    settled(folder)
    expected = held_in("claude-code", folder)
    assert len(list(folder.glob("*.jsonl"))) >= SESSIONS
    assert min(map(len, (expected.arguments, expected.results, expected.errors))) >= 5
    imported = summary(mneme("import", str(folder), "--json"))
    assert (imported["broken"], imported["kept"]) == ([], {})
    assert timeline() == expected


def test_a_file_that_grew_adds_what_is_new_to_the_same_session(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    for form in ("claude-code", "codex"):
        whole, growing = tmp_path / form, tmp_path / f"growing-{form}"
        whole.mkdir()
        (file, *_) = WRITERS[form](whole, 8)
        shutil.copytree(whole, growing)
        (target,) = growing.rglob(file.name)
        # A file that still grows has a last line of now: an older one is a copy, and finished.
        lines = written_just_now(file.read_text()).splitlines(keepends=True)
        counted = []
        for end in (len(lines) // 3, 2 * len(lines) // 3, len(lines)):
            target.write_text("".join(lines[:end]))
            found = summary(mneme("import", str(target), "--json"))
            assert (found["broken"], found["sessions"]) == ([], 1)
            counted.append(found["events"])
        os.utime(target, (AN_HOUR_AGO, AN_HOUR_AGO))
        counted.append(summary(mneme("import", str(target), "--json"))["events"])
        at_once = summary(mneme("import", "--dry-run", str(target), "--json"))
        assert sum(counted) == at_once["events"]
        assert all(counted[:3])
    sessions = mneme("sessions", "list", "--json").documents
    assert {session["status"] for session in sessions} == {"completed"}
    assert len(sessions) == 2


def test_history_that_a_resumed_session_repeats_counts_once_even_when_imported_apart(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    folder = tmp_path / "claude"
    folder.mkdir()
    first, resumed = WRITERS["claude-code"](folder, 3)
    expected = held_in("claude-code", folder)
    settled(folder)
    for file in (first, resumed, first):
        result = mneme("import", str(file), "--json")
        assert result.code == 0, result.err
    assert timeline() == expected
    sessions = {s["id"] for s in mneme("sessions", "list", "--json").documents}
    assert sessions == {first.stem, resumed.stem}


def test_reflect_finds_the_errors_of_an_imported_session(
    as_tenant: Callable[[], None], tmp_path: Path
) -> None:
    chat = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"c": 1}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "no disk", "is_error": True}
            ],
        },
    ]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(chat))
    mneme("import", str(file))
    (session,) = mneme("sessions", "list", "--json").documents
    assert (session["tool_call_count"], session["error_count"]) == (1, 1)
    found = mneme("reflect", "error_patterns", "--json").documents[0]
    assert "no disk" in json.dumps(found)
