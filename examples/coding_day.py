"""Two days of a coding agent: what fails on Monday is not tried on Tuesday.

    .venv/bin/python examples/coding_day.py

The agent is a script with three ideas of how to divide money; its checks are programs that really
fail. It records what it does, notes what each attempt taught, and hands over. The second task is
another one, at which the same ideas fail: an attempt begins with what earlier ones taught. Where
`next_idea` compares texts, your agent gives its model `attempt.text`, the same as a prompt.

The memory lies in the folder `memory`, whose server starts and stops by itself. Run it again, and
Monday knows it all, too. `.venv/bin/mneme --local memory sessions list` shows the days.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from uuid import uuid4

import mneme
from mneme.types import Reflection
from mneme.visible import QUOTED, visible

PROJECT = "till"
MONDAY = "Divide a bill among the guests so that no cent is lost"
TUESDAY = "Divide a tip among the waiters so that no cent is lost"
IDEAS = {
    "round each part to the nearest cent": "[round(total / n) for _ in range(n)]",
    "round each part down": "[total // n for _ in range(n)]",
    "round down, and give the first ones a cent more": (
        "[total // n + (k < total % n) for k in range(n)]"
    ),
}
CHECK = """\
def parts(total, n):
    return {idea}
got = sum(parts({total}, {n}))
assert got == {total}, f"the parts sum to {{got}} cents, not {total}"
"""


class CheckFailed(Exception):
    """The check of an attempt failed; the message is what it printed."""


def main() -> None:
    """Work on both days."""
    with mneme.local("memory") as memory:
        monday(memory)
        tuesday(memory)


def monday(memory: mneme.MnemeClient) -> None:
    """Find out the hard way, write down what was learned, and hand over."""
    session = start_day(memory, "Monday")
    idea = solve(memory, session, MONDAY, total=10000, n=7)
    memory.create_lesson(
        "Money is divided in whole cents",
        f"Rounding loses cents. What works: {idea}.",
        project=PROJECT,
        lesson_id=f"{PROJECT}-whole-cents",
    )
    for insight in memory.reflect("error_patterns", project=PROJECT).insights:
        print(f"the record says: {insight.summary}")
    memory.sleep(
        session_id=session,
        project=PROJECT,
        progress=[f"Done: {MONDAY}"],
        decisions=[{"decision": idea, "rationale": "no cent is lost"}],
        open_todos=[{"content": TUESDAY, "priority": 1}],
    )
    memory.end_session(session, status="completed")


def tuesday(memory: mneme.MnemeClient) -> None:
    """Begin where Monday ended."""
    session = start_day(memory, "Tuesday")
    for found in memory.search_lessons(TUESDAY, filter={"project": PROJECT}).results:
        print(f"a lesson: {found.lesson.title}. {found.lesson.content}")
    solve(memory, session, TUESDAY, total=2500, n=6)
    memory.sleep(session_id=session, project=PROJECT, completed_todos=[TUESDAY])
    memory.end_session(session, status="completed")


def start_day(memory: mneme.MnemeClient, name: str) -> str:
    """Wake up, and start a session; return its id."""
    print(f"\n{name}\n\n{QUOTED}\n{visible(memory.wake_up(project=PROJECT).text)}\n")
    session = f"{name.lower()}-{uuid4().hex[:8]}"
    memory.start_session(session_id=session, agent_id="coder", project=PROJECT)
    return session


def solve(memory: mneme.MnemeClient, session: str, task: str, total: int, n: int) -> str:
    """Try one idea after the other until the check passes; return the one that worked."""
    attempts = 0
    while True:
        attempts += 1
        try:
            with memory.attempt(task, session_id=session, project=PROJECT) as attempt:
                idea = next_idea(attempt.past)
                check(memory, session, idea, CHECK.format(idea=IDEAS[idea], total=total, n=n))
                attempt.worked(idea)
                print(f"{task}: solved in attempt {attempts}, by: {idea}")
                return idea
        except CheckFailed as failed:
            print(f"attempt {attempts} failed: {failed}")


def next_idea(past: list[Reflection]) -> str:
    """What worked before, else the first idea that did not fail. Your agent asks its model here."""
    worked = [idea for idea in IDEAS if any(idea in one.what_worked for one in past)]
    failed = " ".join(what for one in past for what in one.what_did_not_work)
    return (worked + [idea for idea in IDEAS if idea not in failed])[0]


def check(memory: mneme.MnemeClient, session: str, idea: str, program: str) -> None:
    """Run a program and record the call and what came of it, as an agent's tools are recorded."""
    call: Any = {"session_id": session, "name": "python", "call_id": uuid4().hex}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    error = ran.stderr.strip().rpartition("\n")[2] if ran.returncode else ""
    called = call | {"event_type": "tool_call", "text": idea, "payload": {"program": program}}
    if error:
        came = call | {"event_type": "tool_error", "error": error}
    else:
        came = call | {"event_type": "tool_response", "text": f"The check passed: {idea}"}
    memory.record_events([called, came])
    if error:
        raise CheckFailed(f"{idea}: {error}")


if __name__ == "__main__":
    main()
