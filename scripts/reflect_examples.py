"""Writes docs/reflect-examples.md: what Reflect says about three records, unedited.

    python scripts/reflect_examples.py --tau-bench FILE

The file is tau-bench's `gpt-4o-airline.json`, as its repository publishes it. The other two records
are the sample sessions, and a made-up fleet of agents on call, in which this script hides what is
to be found.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mneme import MnemeClient

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reflect-examples.md"
HEAD = """\
# What Reflect says: three records

Every sentence of all five analyses, with default arguments, unedited. `python
scripts/reflect_examples.py --tau-bench FILE` writes this page; [Reflect](reflect.md) explains how
the figures are computed.
"""
ANALYSES: tuple[Any, ...] = (
    "error_patterns", "tool_sequences", "cost_analysis", "performance_trends",
    "session_comparison",
)  # fmt: skip
_START = datetime(2026, 8, 1, tzinfo=UTC)
_SUCCESS = {"deploy": 0.9, "migrate": 0.45, "triage": 0.8, "report": 0.97}


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tau-bench", required=True, type=Path, metavar="FILE")
    given = parser.parse_args()
    parts = [HEAD]
    for title, about, fill in (
        (
            "tau-bench: 200 runs of gpt-4o as an airline's agent",
            "Four trials of each of fifty tasks, with rewards; no costs, and no times other than"
            " that of the import.",
            lambda address: _import(address, given.tau_bench),
        ),
        (
            "A fleet on call, made up",
            "Six sessions a day for two months. What is planted: migrations fail most, `ssh` times"
            " out more often in sessions that fail, costs double, latencies grow by two thirds, and"
            " twelve sessions hold only a handover. Users and agents make no difference.",
            _record_fleet,
        ),
        (
            "The sample sessions: coding agents",
            "Seventeen sessions of `samples/`, too few for most comparisons.",
            lambda address: _import(address, ROOT / "samples"),
        ),
    ):
        with _server() as address:
            fill(address)
            parts.append(f"\n## {title}\n\n{about}\n")
            with MnemeClient(address, timeout=300) as client:
                parts += [_section(client.reflect(name), name) for name in ANALYSES]
    PAGE.write_text("".join(parts), encoding="utf-8")


def _section(answer: Any, name: str) -> str:
    lines = [f"{number}. {one.summary}" for number, one in enumerate(answer.insights, 1)]
    looked = answer.metadata
    head = (
        f"\n### {name}\n\n{looked.sessions_analyzed:,} sessions, {looked.events_analyzed:,} events."
    )
    said = lines or ["No findings."]
    said += [answer.caveat] if answer.caveat else []
    said += [f"Note: {note}" for note in looked.notes]
    return f"{head}\n\n```text\n" + "\n".join(said) + "\n```\n"


def _import(address: str, path: Path) -> None:
    mneme = Path(sys.executable).with_name("mneme")
    subprocess.run(
        [mneme, "import", path, "--address", address], check=True, stdout=subprocess.DEVNULL
    )


def _record_fleet(address: str) -> None:
    rng = random.Random(4)
    with MnemeClient(address, timeout=300) as client:
        for number in range(360):
            _record_session(client, number, rng)
        for number in range(12):
            client.sleep(f"handover-{number}", project="ops", progress=["Left off here"])


def _record_session(client: MnemeClient, number: int, rng: random.Random) -> None:
    days = number / 6
    at = _START + timedelta(days=days)
    task = rng.choice(list(_SUCCESS))
    won = rng.random() < _SUCCESS[task]
    session_id = f"run-{number:04d}"
    client.start_session(
        session_id=session_id, agent_id=f"bot-{number % 3}", user_id=f"user-{rng.randrange(5)}",
        project="ops", started_at=at, tags=[f"task:{task}", rng.choice(("planned", "urgent"))],
    )  # fmt: skip
    events: list[Any] = []

    def add(event_type: str, **fields: Any) -> None:
        nonlocal at
        at += timedelta(seconds=rng.uniform(1, 20))
        events.append(
            {"session_id": session_id, "event_type": event_type, "timestamp": at,
             "searchable": False, **fields}
        )  # fmt: skip

    for step in range(rng.randrange(3, 9)):
        usage = {"inputTokens": rng.randrange(300, 4_000), "outputTokens": rng.randrange(50, 600)}
        add(
            "llm_response",
            payload={
                "model": "large" if step % 2 else "small",
                "costUsd": rng.uniform(0.01, 0.03) * (1 + days / 60),
                "durationMs": rng.uniform(300, 900) * (1 + days / 90),
                "usage": usage,
            },
        )
        tool = rng.choice(("ssh", "query", "read_log", "write_file"))
        call = {"name": tool, "call_id": f"{session_id}-{step}"}
        add("tool_call", **call, payload={"arguments": {"step": step}})
        if tool == "ssh" and rng.random() < (0.12 if won else 0.35):
            host = rng.choice(("host-0", "host-1", "web12", "db3.internal"))
            said = f"connect to {host} as bob{rng.randrange(50)}: timed out"
            add("tool_error", **call, severity="error", error=said)
        else:
            add("tool_response", **call)
    client.record_events(events)
    client.end_session(session_id, status="completed" if won else "error", ended_at=at)


@contextmanager
def _server() -> Iterator[str]:
    """Run a server on a folder of its own; yield its address."""
    with tempfile.TemporaryDirectory(prefix="mneme-examples-") as folder:
        settings = {
            "MNEME_LISTEN": "127.0.0.1:0", "MNEME_HTTP_LISTEN": "",
            "MNEME_METRICS_LISTEN": "", "MNEME_DATA_DIR": folder,
            "MNEME_AUTH": "disabled", "MNEME_LOG_LEVEL": "warning",
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "mneme_server", "serve"],
            env=os.environ | settings, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith("serving on ")), "")
            if not line:
                raise SystemExit("the server did not start")
            yield line.removeprefix("serving on ").strip()
        finally:
            process.terminate()
            process.wait(timeout=60)


if __name__ == "__main__":
    main()
