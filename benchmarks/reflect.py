"""Reflect over a large record: `python -m benchmarks.reflect`.

Writes made-up events straight into a tenant's database, starts a server on them in a process of its
own, and asks for every analysis over gRPC: its time, and the server's peak memory meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme_server.capabilities import tenant_schema
from mneme_server.common.clock import DAY_US
from mneme_server.engine.store.rows import insert_rows
from mneme_server.engine.store.sqlite_store import FILE_NAME, SqliteTenantStore
from mneme_server.features.events.store.tables import agents, events, sessions
from rich.console import Console
from rich.table import Table

TENANT = "default"
EVENTS_PER_SESSION = 50
SECONDS, MEGABYTES = 10.0, 500.0
ANALYSES = (
    "error_patterns", "tool_sequences", "cost_analysis", "performance_trends",
    "session_comparison",
)  # fmt: skip
_TOOLS = (
    "search_flights", "get_user", "get_reservation", "book", "cancel", "pay", "refund", "calculate",
    "send_mail", "think", "list_airports", "update_seats",
)  # fmt: skip
_ERRORS = (
    "Error: payment amount does not add up, total price is {n}, but paid {m}",
    "Error: flight HAT{n:03d} not available on date 2026-05-{d:02d}",
    "Error: user user_{n}_{m} not found",
    "Error: not enough seats on flight HAT{n:03d}",
    "TimeoutError: no answer from https://api.example.com/v1/orders/{n} after {m} ms",
    "HTTP 503 from 10.0.{d}.{d}:8443, request 7f{n:06x}a1",
    "KeyError: 'reservation_{n}'",
    "cannot open /var/lib/agent/run-{n}/state-{m}.json: permission denied",
)
_MODELS = ("gpt-4o", "gpt-4o-mini", "claude-sonnet")
_START_US = 1_780_000_000_000_000
_DAYS = 90
_CHUNK = 20_000


@dataclass(frozen=True)
class Measured:
    """One analysis: its time at first and again, and the server's memory in megabytes."""

    analysis: str
    first_s: float
    again_s: float
    peak_mb: float
    events: int

    @property
    def is_met(self) -> bool:
        return max(self.first_s, self.again_s) <= SECONDS and self.peak_mb <= MEGABYTES


def measure(event_count: int, folder: Path) -> tuple[list[Measured], float]:
    """Measure every analysis over so many events; return the figures, and the server's memory
    before the first in megabytes. A fresh server for each: what one reads does not help the next.
    """
    data = folder / "data"
    fill(data / "tenants" / TENANT, event_count)
    measured = []
    idle = 0.0
    for analysis in ANALYSES:
        with _server(data) as (address, pid), MnemeClient(address, timeout=300.0) as client:
            client.list_agents()  # Opens the tenant.
            idle = _memory(pid, "VmRSS")
            times = []
            for _ in range(2):
                started = time.perf_counter()
                answer = client.reflect(analysis)
                times.append(time.perf_counter() - started)
            peak = _memory(pid, "VmHWM")
            measured.append(
                Measured(analysis, times[0], times[1], peak, answer.metadata.events_analyzed)
            )
    return measured, idle


def fill(folder: Path, event_count: int, seed: int = 1) -> None:
    """Write a tenant's database with so many events, in sessions of `EVENTS_PER_SESSION`."""
    folder.mkdir(parents=True)
    database = SqliteTenantStore(folder, TENANT, tenant_schema())
    database.close()
    from mneme_server.engine.store.engine import SqliteDatabase

    rng = random.Random(seed)
    opened = SqliteDatabase(folder / FILE_NAME)
    session_rows: list[dict[str, Any]] = []
    event_rows: list[dict[str, Any]] = []
    for number in range(-(-event_count // EVENTS_PER_SESSION)):
        session, its_events = _session(number, event_count, rng)
        session_rows.append(session)
        event_rows += its_events
        if len(event_rows) >= _CHUNK:
            _write(opened, session_rows, event_rows)
            session_rows, event_rows = [], []
    _write(opened, session_rows, event_rows)
    with opened.write() as connection:
        insert_rows(connection, agents, [_agent(i) for i in range(4)])
    opened.close()


def _write(opened: Any, session_rows: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    if rows:
        with opened.write() as connection:
            insert_rows(connection, sessions, session_rows)
            insert_rows(connection, events, rows)


def _session(
    number: int, event_count: int, rng: random.Random
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    session_id = f"session-{number:08d}"
    total = -(-event_count // EVENTS_PER_SESSION)
    start = _START_US + int(_DAYS * DAY_US * number / total)
    success = rng.random() < 0.6
    rows: list[dict[str, Any]] = []
    moment = start
    tool = rng.choice(_TOOLS)
    count = min(EVENTS_PER_SESSION, event_count - number * EVENTS_PER_SESSION)
    while len(rows) < count:
        moment += rng.randrange(200_000, 3_000_000)
        step = len(rows) % 5
        call_id = f"{session_id}-{len(rows) // 5}"
        base = _event(session_id, len(rows) + 1, number, moment)
        if step == 0:
            base |= {"event_type": 8, "text": "please look at my booking and tell me what to do"}
        elif step == 1:
            base |= {"event_type": 6, "model": _MODELS[number % 3]}
        elif step == 2:
            tokens = rng.randrange(200, 4_000)
            base |= {
                "event_type": 7, "model": _MODELS[number % 3], "input_tokens": tokens,
                "output_tokens": tokens // 5, "cost_usd": tokens * 4e-6,
                "duration": rng.randrange(300_000, 9_000_000), "text": "I will look that up now",
            }  # fmt: skip
        elif step == 3:
            tool = rng.choice(_TOOLS)
            arguments = {"id": rng.randrange(1_000), "cabin": "economy", "origin": "JFK"}
            base |= {
                "event_type": 3, "name": tool, "call_id": call_id,
                "payload": json.dumps({"arguments": arguments}, separators=(",", ":")),
            }  # fmt: skip
        elif rng.random() < 0.2:
            message = rng.choice(_ERRORS).format(
                n=rng.randrange(1_000), m=rng.randrange(10_000), d=rng.randrange(1, 29)
            )
            base |= {
                "event_type": 5, "name": tool, "call_id": call_id, "severity": 4, "error": message,
                "duration": rng.randrange(10_000, 900_000),
            }  # fmt: skip
        else:
            base |= {
                "event_type": 4, "name": tool, "call_id": call_id,
                "duration": rng.randrange(10_000, 900_000),
                "payload": json.dumps({"result": {"flights": ["HAT001"] * 20}}),
            }  # fmt: skip
        rows.append(base)
    session = {
        "tenant_id": TENANT, "id": session_id, "agent_id": f"agent-{number % 4}", "agent_name": "",
        "user_id": f"user-{number % 500}", "project": f"project-{number % 5}",
        "tags": json.dumps([f"kind-{number % 7}"]),
        "metadata": json.dumps({"reward": float(success)}), "status": 2, "started_at": start,
        "ended_at": moment, "last_event_at": moment, "event_count": count, "tool_call_count": 0,
        "error_count": 0, "llm_call_count": 0, "total_cost_usd": 0.0, "total_input_tokens": 0,
        "total_output_tokens": 0, "head_hash": "", "declared": True,
    }  # fmt: skip
    return session, rows


def _event(session_id: str, sequence: int, number: int, moment: int) -> dict[str, Any]:
    return {
        "tenant_id": TENANT, "id": f"{session_id}:{sequence}", "session_id": session_id,
        "sequence": sequence, "agent_id": f"agent-{number % 4}", "event_type": 10, "severity": 2,
        "timestamp": moment, "text": "", "name": "", "call_id": "", "error": "", "model": "",
        "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration": None, "payload": "{}",
        "metadata": "{}", "searchable": False, "recorded_at": moment, "prev_hash": "0" * 64,
        "hash": "0" * 64,
    }  # fmt: skip


def _agent(number: int) -> dict[str, Any]:
    return {
        "tenant_id": TENANT, "id": f"agent-{number}", "name": "", "first_seen_at": _START_US,
        "last_seen_at": _START_US, "session_count": 0, "event_count": 0, "tool_call_count": 0,
        "error_count": 0, "total_cost_usd": 0.0,
    }  # fmt: skip


@contextmanager
def _server(data: Path) -> Iterator[tuple[str, int]]:
    """Run a server on the data; yield its address and process id."""
    settings = {
        "MNEME_LISTEN": "127.0.0.1:0", "MNEME_HTTP_LISTEN": "",
            "MNEME_METRICS_LISTEN": "", "MNEME_DATA_DIR": str(data),
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
            raise RuntimeError("the server did not start")
        yield line.removeprefix("serving on ").strip(), process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def _memory(pid: int, name: str) -> float:
    """Return a process' memory in megabytes (10^6), as Linux counts it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"the system does not tell {name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code: 1 when a budget is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.reflect", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mneme-reflect-") as work:
        measured, idle = measure(arguments.events, Path(work))
    table = Table(title=f"Reflect over {arguments.events:,} events (server idle: {idle:,.0f} MB)")
    for heading in ("analysis", "first", "again", "peak memory", "budget"):
        table.add_column(heading, justify="left" if heading == "analysis" else "right")
    for row in measured:
        table.add_row(
            row.analysis, f"{row.first_s:.1f} s", f"{row.again_s:.1f} s", f"{row.peak_mb:,.0f} MB",
            "met" if row.is_met else "missed",
        )  # fmt: skip
    Console().print(table)
    print(f"budget: {SECONDS:.0f} s and {MEGABYTES:.0f} MB, the server's own memory included")
    return 0 if all(row.is_met for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
