"""The documented day of an agent is a day that happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.moments import timeless

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/guides/agents-day.md"
SCRIPT = ROOT / "scripts/agents_day.py"

_CALL = re.compile(r"^\*\*`(\w+)`\*\*$", re.MULTILINE)
_MADE = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{32}\b")  # Ids differ from run to run.


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as it comes out now."""
    written = tmp_path_factory.mktemp("day") / "page.md"
    done = subprocess.run(
        [sys.executable, SCRIPT, written], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return written.read_text()


def replies(page: str, tool: str) -> list[str]:
    """What a tool said, in the order of its calls."""
    return [
        part.partition("```text\n")[2].partition("\n```")[0]
        for part in re.split(r"^(?=\*\*`)", page, flags=re.MULTILINE)
        if part.startswith(f"**`{tool}`**")
    ]


def test_the_page_shows_what_the_calls_answer_today(day: str) -> None:
    shown, now = (_MADE.sub("…", timeless(text)).splitlines() for text in (PAGE.read_text(), day))
    assert shown == now, "write the page anew: python scripts/agents_day.py"


def test_the_day_goes_from_waking_up_to_sleep_and_into_the_next(day: str) -> None:
    monday, tuesday = (_CALL.findall(part) for part in day.split("## Tuesday"))
    assert monday[0] == tuesday[0] == "wake_up"
    assert monday[-1] == tuesday[-1] == "sleep"
    assert {"mneme_recall", "mneme_remember", "agentlens_learn", "agentlens_reflect"} <= set(monday)


def test_the_next_day_knows_what_the_first_one_left(day: str) -> None:
    first, second = replies(day, "wake_up")
    assert "nothing to pick up" in first
    assert "Repaired test_refund" in second
    assert "Give test_capture a key of its own, too (priority 1)" in second
    (context,) = replies(day, "mneme_context")
    assert "Ann wants flaky tests repaired, never skipped" in context
    (session,) = replies(day, "mneme_get")
    assert "Raise the timeout of test_refund from 30 to 120 s" in session
    assert "Give each test its own idempotency key" in context
    (reflected,) = replies(day, "agentlens_reflect")
    assert "2 times in 1 session" in reflected
    (found,) = replies(day, "memory_query")
    assert "--count 50" in found
