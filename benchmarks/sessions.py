"""Context over many sessions, measured through gRPC: GetContext, WakeUp, Sleep, the timeline.

    python -m benchmarks.sessions [--sessions 10000] [--calls 300] [--data FOLDER]

Fills a server of its own with sessions of a few kinds of work in twenty projects, every fifth with
a handover, the others ended with their events; waits until all are summarised and embedded; then
calls one after the other with topics that were not asked before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from mneme import MnemeClient
from mneme.errors import AlreadyExistsError

BUDGET_MS = 30.0
"""GetContext and WakeUp, p95, over 10,000 sessions."""

_BUDGETED = ("GetContext", "WakeUp")
_PROJECTS = 20
_HANDED_OVER = 5
_EVENTS = 4
_FILLERS = 8
_START_S = 180.0

_AREAS = {
    "authentication": ["JWT validation", "OAuth2 login", "password resets", "session cookies"],
    "billing": ["monthly invoices", "VAT per country", "card charges", "refunds"],
    "search": ["the ranking formula", "synonyms", "typo tolerance", "index rebuilds"],
    "mobile": ["push notifications", "the offline cache", "dark mode", "crash reports"],
    "infrastructure": ["database migrations", "blue-green deploys", "log rotation", "backups"],
    "data": ["the nightly import", "duplicate customers", "time zones", "the CSV export"],
}
_FIRST = ["al", "ber", "cor", "dan", "el", "fer", "gil", "har", "is", "jon", "kar", "lin", "mor"]
_LAST = ["ta", "mann", "low", "rick", "dero", "sen", "vik", "hara", "lotte", "nova", "qua", "ster"]
_NAMES = [first + last for first in _FIRST for last in _LAST]
_PLACES = ["staging", "production", "review", "the canary", "the tests", "the pipeline"]
_VERBS = ["Fixed", "Implemented", "Tested", "Rewrote", "Investigated", "Documented", "Reviewed"]
_WHYS = ["customers complained", "it was slow", "the audit asked for it", "it broke on Monday"]


def work(rng: random.Random) -> tuple[str, str]:
    """Return an area and a sentence on what was done in it."""
    area = rng.choice(list(_AREAS))
    what, why = rng.choice(_AREAS[area]), rng.choice(_WHYS)
    who = f"{rng.choice(_NAMES)} and {rng.choice(_NAMES)}"
    where = f"ticket {rng.randrange(10_000)} in {rng.choice(_PLACES)}"
    return area, f"{rng.choice(_VERBS)} {what} for {who}, {where}, because {why}"


def topic(rng: random.Random) -> str:
    """Return a topic that was as good as certainly not asked before."""
    area = rng.choice(list(_AREAS))
    return f"{rng.choice(_AREAS[area])} in {area} for {rng.choice(_NAMES)}"


def fill(client: MnemeClient, number: int) -> None:
    """Record one session."""
    rng = random.Random(number)
    area, said = work(rng)
    session, project = f"s{number}", f"project-{number % _PROJECTS}"
    client.start_session(session_id=session, agent_id=f"agent-{number % 7}", project=project)
    tools = ["read_file", "edit_file", "run_tests", "search_code"]
    events = [{"session_id": session, "event_type": "message", "text": said}]
    for step in range(_EVENTS - 1):
        failed = rng.random() < 0.2
        events.append(
            {
                "session_id": session,
                "event_type": "tool_error" if failed else "tool_call",
                "name": rng.choice(tools),
                "text": f"step {step} on {area}: {work(rng)[1]}",
                "error": f"exit code {rng.randrange(2, 9)}" if failed else "",
            }
        )
    client.record_events(events)
    if number % _HANDED_OVER:
        client.end_session(session)
        return
    client.sleep(
        session,
        progress=[said],
        open_todos=[{"content": f"Finish {rng.choice(_AREAS[area])}", "priority": 2}],
        decisions=[{"decision": f"Keep {area} simple", "rationale": rng.choice(_WHYS)}],
        files=[f"src/{area}/{rng.randrange(20)}.py"],
    )


@contextmanager
def server(folder: Path) -> Iterator[MnemeClient]:
    """Run a server of its own, and lend a client of a tenant in it; the tenant may exist."""
    key = "mn_" + secrets.token_urlsafe(24)
    environment = {
        **os.environ,
        "MNEME_LISTEN": "127.0.0.1:0",
        "MNEME_HTTP_LISTEN": "",
        "MNEME_METRICS_LISTEN": "",
        "MNEME_DATA_DIR": str(folder),
        "MNEME_ADMIN_KEY": key,
        "MNEME_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mneme_server", "serve"],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    watchdog = threading.Timer(_START_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        line = next((line for line in process.stdout if line.startswith("serving on ")), "")
        watchdog.cancel()
        if not line:
            raise SystemExit("the server did not start")
        address = line.removeprefix("serving on ").strip()
        with MnemeClient(address, api_key=key) as admin:
            with suppress(AlreadyExistsError):
                admin.create_tenant("benchmark")
            secret = admin.create_api_key("benchmark", "benchmark").secret
        with MnemeClient(address, api_key=secret, timeout=120.0) as client:
            yield client
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(60)


def prepare(client: MnemeClient, sessions: int) -> None:
    """Fill the tenant, and wait until every session is summarised and everything embedded."""
    with ThreadPoolExecutor(_FILLERS) as pool:
        list(pool.map(lambda number: fill(client, number), range(sessions)))
    while client.search_sessions("ticket", limit=1).searched_count < sessions:
        time.sleep(1)
    while client.recall("ticket", scopes=["event"], limit=1).pending_count:
        time.sleep(1)


def timed(calls: int, call: Callable[[int], object]) -> dict[str, float]:
    """Call one after the other; return milliseconds at the median and the 95th percentile."""
    for number in range(5):
        call(-1 - number)
    times = []
    for number in range(calls):
        started = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return {"p50_ms": times[len(times) // 2], "p95_ms": times[int(len(times) * 0.95)]}


def measure(client: MnemeClient, calls: int) -> dict[str, dict[str, float]]:
    """Return the figures by call."""
    rng = random.Random(42)

    def project() -> str:
        return f"project-{rng.randrange(_PROJECTS)}"

    return {
        "GetContext": timed(calls, lambda _: client.get_context(topic(rng))),
        "GetContext, of a project": timed(
            calls, lambda _: client.get_context(topic(rng), project=project())
        ),
        "WakeUp": timed(calls, lambda _: client.wake_up()),
        "WakeUp, of a project": timed(calls, lambda _: client.wake_up(project=project())),
        "SearchSessions": timed(calls, lambda _: client.search_sessions(topic(rng))),
        "GetTimeline, 50 sessions": timed(
            max(10, calls // 10), lambda _: client.get_timeline(project=project())
        ),
        "Sleep": timed(
            max(10, calls // 3),
            lambda _: client.sleep(
                f"new-{secrets.token_hex(6)}", project=project(), progress=[work(rng)[1]]
            ),
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code tells whether the budget is met."""
    parser = argparse.ArgumentParser(description="Measure context over many sessions.")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--data", type=Path, help="keep the sessions here, and use them again")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return run(given.data or Path(folder) / "data", given)


def run(data: Path, given: argparse.Namespace) -> int:
    """Measure on the sessions in a folder, which are made if need be."""
    with server(data) as client:
        started = time.perf_counter()
        if client.search_sessions("ticket", limit=1).searched_count < given.sessions:
            prepare(client, given.sessions)
        print(f"{given.sessions:,} sessions in {time.perf_counter() - started:.0f} s",
              file=sys.stderr)  # fmt: skip
        figures = measure(client, given.calls)
    if given.json:
        print(json.dumps(figures))
    else:
        for what, measured in figures.items():
            print(f"{what:<26} p50 {measured['p50_ms']:6.1f} ms  p95 {measured['p95_ms']:6.1f} ms")
    budgeted = [found for what, found in figures.items() if what.startswith(_BUDGETED)]
    met = all(found["p95_ms"] <= BUDGET_MS for found in budgeted)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
