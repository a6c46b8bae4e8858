"""Write docs/guides/agents-day.md: two days of an agent, as an MCP host sees them.

Starts a server with an empty memory and the adapter, makes the calls below with the official MCP
client, and writes down each call with the text that came back.

Usage: python scripts/agents_day.py [FILE]
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guides/agents-day.md"

_HEAD = """\
# An agent's day

What an agent says to its memory on two days of work, and what comes back: every reply below is
real output, written by `scripts/agents_day.py` against a server with an empty memory. The host
runs `mneme-mcp --toolsets default,compat`. (Both days were run within
seconds, hence "just now".) A program does the same in
[`examples/coding_day.py`](../../examples/coding_day.py).
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One call.

    Args:
        why: what the agent has in mind.
        tool: the tool.
        arguments: what it is given.
        fails: whether an error is expected.
    """

    why: str
    tool: str
    arguments: Mapping[str, Any]
    fails: bool = False


SESSION = "refund-test"
_EVENT = {"sessionId": SESSION}

MONDAY = (
    Step("The agent wakes up. Nobody has worked here yet.", "wake_up", {"project": "shop-api"}),
    Step(
        "It starts a session, so that what it does belongs together.",
        "agentlens_session_start",
        {
            "sessionId": SESSION,
            "agentId": "coder-1",
            "project": "shop-api",
            "userId": "ann",
            "tags": ["bugfix"],
        },
    ),
    Step(
        "Ann asks it to repair a flaky test. Has this come up before?",
        "mneme_recall",
        {"query": "the refund test times out", "project": "shop-api"},
    ),
    Step(
        "It has not. The agent gets to work, and records what happens.",
        "agentlens_log_event",
        _EVENT
        | {
            "eventType": "message",
            "text": "Ann: test_refund fails about every third run in CI, please repair it",
        },
    ),
    Step(
        "The test fails here, too.",
        "agentlens_log_event",
        _EVENT
        | {
            "eventType": "tool_error",
            "name": "pytest",
            "error": "test_refund: timed out after 30 s waiting for the payment sandbox",
        },
    ),
    Step(
        "A longer timeout looks like the answer.",
        "agentlens_log_event",
        _EVENT
        | {
            "eventType": "tool_call",
            "name": "edit_file",
            "text": "Raise the timeout of test_refund from 30 to 120 s",
        },
    ),
    Step(
        "It is not.",
        "agentlens_log_event",
        _EVENT
        | {
            "eventType": "tool_error",
            "name": "pytest",
            "error": "test_refund: timed out after 120 s waiting for the payment sandbox",
        },
    ),
    Step(
        "The attempt taught something. The agent writes it down before it tries again.",
        "reflection_store",
        {
            "sessionId": SESSION,
            "projectId": "shop-api",
            "taskDescription": "Repair the flaky test_refund",
            "outcome": "failure",
            "whatDidNotWork": ["Raising the timeout: the sandbox never answers"],
            "nextStrategy": "Look at what the test sends to the payment sandbox",
        },
    ),
    Step(
        "The cause is found: two tests share an idempotency key, and the sandbox waits.",
        "agentlens_log_event",
        _EVENT
        | {
            "eventType": "tool_response",
            "name": "pytest",
            "text": "test_refund passes 50 times in a row with an idempotency key of its own",
        },
    ),
    Step(
        "Wrong arguments are answered with what would be right.",
        "agentlens_learn",
        {"action": "remember", "title": "Own idempotency keys"},
        fails=True,
    ),
    Step(
        "So the lesson is saved like this.",
        "agentlens_learn",
        {
            "action": "save",
            "title": "Give each test its own idempotency key",
            "content": "Tests that share an idempotency key wait for each other in the payment "
            "sandbox until they time out. Make a key per test; do not raise the timeout.",
            "category": "testing",
            "importance": "high",
            "project": "shop-api",
            "sourceSessionId": SESSION,
        },
    ),
    Step(
        "Ann adds that tests are never to be skipped. That is about her, not about this task.",
        "mneme_remember",
        {"text": "Ann wants flaky tests repaired, never skipped", "user_id": "ann"},
    ),
    Step(
        "The command that shows the trouble goes to the log that all agents of the project share.",
        "memory_log",
        {
            "project": "shop-api",
            "event_type": "success",
            "context": "finding out whether a payment test is flaky",
            "command": "pytest tests/test_refund.py --count 50",
            "lesson": "fifty runs in a row show a shared idempotency key within a minute",
            "tags": ["pytest", "payments"],
        },
    ),
    Step(
        "What does the record say about the day?",
        "agentlens_reflect",
        {"analysis": "error_patterns", "project": "shop-api"},
    ),
    Step(
        "The day ends. The agent hands over.",
        "sleep",
        {
            "session_id": SESSION,
            "project": "shop-api",
            "progress": ["Repaired test_refund: each test has its own idempotency key"],
            "decisions": [
                {
                    "decision": "Make idempotency keys in the fixture",
                    "rationale": "no test can forget it",
                }
            ],
            "open_todos": [
                {"content": "Give test_capture a key of its own, too", "priority": 1},
                {"content": "Tell the payments team about the endless wait", "priority": 3},
            ],
            "files": ["tests/test_refund.py", "tests/conftest.py"],
        },
    ),
)

TUESDAY = (
    Step("First of all: where does the work stand?", "wake_up", {"project": "shop-api"}),
    Step(
        "The first open item. What does the past say about it?",
        "mneme_context",
        {
            "query": "test_capture is flaky: it waits for the payment sandbox",
            "user_id": "ann",
            "project": "shop-api",
            "token_budget": 600,
        },
    ),
    Step(
        "What exactly was tried then?",
        "mneme_get",
        {"id": f"session {SESSION}"},
    ),
    Step(
        "Has a similar task been tried, and how did it go?",
        "reflection_search",
        {"projectId": "shop-api", "taskDescription": "Make test_capture reliable"},
    ),
    Step(
        "And in one line, from all agents of the project:",
        "memory_query",
        {"query": "how to check whether a payment test is flaky", "project": "shop-api"},
    ),
    Step(
        "The agent repairs test_capture in one attempt, and hands over again.",
        "sleep",
        {
            "session_id": "capture-test",
            "project": "shop-api",
            "progress": ["Gave test_capture its own idempotency key, as with test_refund"],
            "completed_todos": ["Give test_capture a key of its own, too"],
        },
    ),
)


async def run_day(address: str, steps: tuple[Step, ...]) -> list[str]:
    """Make the calls of a day in a host of their own; return the page's parts.

    Raises:
        RuntimeError: a call failed that should not have, or the other way round.
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    adapter = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mneme_mcp", "--toolsets", "default,compat"],
        env=kept | {"MNEME_ADDRESS": address},
    )
    parts = []
    async with Client(adapter) as host:
        for step in steps:
            result = await host.call_tool(step.tool, dict(step.arguments))
            said = "\n".join(b.text for b in result.content if isinstance(b, TextContent)).strip()
            if bool(result.is_error) != step.fails:
                raise RuntimeError(f"{step.tool} {step.arguments}: {said}")
            arguments = json.dumps(step.arguments, indent=2, ensure_ascii=False)
            call = f"**`{step.tool}`**\n\n```json\n{arguments}\n```"
            parts.append(f"{step.why}\n\n{call}\n\n```text\n{said}\n```\n")
    return parts


def page(address: str) -> str:
    """Run both days and return the page."""
    monday = asyncio.run(run_day(address, MONDAY))
    tuesday = asyncio.run(run_day(address, TUESDAY))
    return "\n".join([_HEAD, "## Monday\n", *monday, "## Tuesday\n", *tuesday])


@contextmanager
def _server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="mneme-day-") as folder:
        settings = {
            "MNEME_LISTEN": "127.0.0.1:0",
            "MNEME_HTTP_LISTEN": "",
            "MNEME_METRICS_LISTEN": "",
            "MNEME_DATA_DIR": str(Path(folder) / "data"),
            "MNEME_AUTH": "disabled",
            "MNEME_LOG_LEVEL": "warning",
        }
        environment = os.environ | settings
        process = subprocess.Popen(
            [sys.executable, "-m", "mneme_server", "serve"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("serving on "):
                    yield line.removeprefix("serving on ").strip()
                    return
            raise RuntimeError("the server ended instead of serving")
        finally:
            process.terminate()
            process.wait(timeout=60)
            process.stdout.close()


def main() -> int:
    """Write the page."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    with _server() as address:
        target.write_text(page(address), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
