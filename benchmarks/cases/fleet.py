"""Many tenants on two servers and one PostgreSQL: connections, and what a call takes then."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.messages import NewEvent, RecallRequest, RecordEventsRequest

from benchmarks.context import Context
from benchmarks.report import NO_BUDGET, Row, at_most, megabytes, milliseconds
from benchmarks.server import ROOT, Server
from benchmarks.texts import events

CONNECTIONS, TIMES = 60, 1.2
_FEW = 10
_EACH = 5
"""Memories of each tenant."""
_AT_ONCE = 8
_BOTH = 1_500
"""So many tenants, of which a server has about as many open as it may, are called on both servers;
each of the others on one, as a balancer would have it."""
_PACE_S = 0.02
"""From one call to the next: what a server does by itself counts as it would on a quiet day."""
_TURNS = 6
_SETTLED_S = 3.0
_PATIENCE_S = 1_800.0
_TEXTS = 50
"""Of which all tenants have some: what is measured is not the embedder."""
_AT_REST, _RESTING = 0.1, 3
"""Of a core: what a server takes at most for so many times in a row, once its work is done. What is
left from making thousands of tenants keeps it busy for minutes."""
_OPTIONS = ("-c", "listen_addresses=", "-c", "shared_buffers=256MB", "-c", "max_connections=200")
_CONNECTED = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mneme' AND datname = '{}'"
)


def run(context: Context) -> list[Row]:
    """Open ever more tenants on two servers, or say that there is no PostgreSQL here."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.postgres import PostgresServer, empty_folder
    from support.programs import POSTGRES_MISSING, postgres_programs

    programs = postgres_programs()
    if programs is None:
        return [
            Row(
                "Two servers with many tenants",
                "",
                f"not measured: {POSTGRES_MISSING}",
                NO_BUDGET,
                "there is no PostgreSQL on this machine",
            )
        ]
    with empty_folder() as folder:
        database = PostgresServer(programs, folder, _OPTIONS)
        try:
            return _measured(context, database)
        finally:
            database.stop()


def _measured(context: Context, database: Any) -> list[Row]:
    """Have two servers with few tenants beside two with many, and ask one of each in turn."""
    count = context.sizes.tenants
    with (
        _Fleet(context, database, "few") as few,
        _Fleet(context, database, "many") as many,
        _connections(database, many.name) as most,
    ):
        few.add(_FEW)
        many.add(_FEW)
        for upto in range(500, count + 500, 500):
            many.add(min(upto, count) - len(many.keys))
            context.say(f"fleet: {len(many.keys)} tenants")
        _wait_until_settled(few)
        _wait_until_settled(many)
        recall_s = _recalled(context, few, many)
        context.say("fleet: nobody calls")
        idle = _left_alone(context.sizes.fleet_s, few, many)
        took = [fleet.took() for fleet in (few, many)]
    return _rows(context, most, recall_s, idle, took)


@dataclass(frozen=True)
class _Took:
    """What one server of a fleet takes, and what PostgreSQL does: bytes."""

    rss: int
    disk: int
    stored: int


class _Fleet:
    """Two servers on a database of their own, which have the same tenants open. A context manager.

    Args:
        context: of this run.
        database: the PostgreSQL.
        name: names the database.
    """

    def __init__(self, context: Context, database: Any, name: str) -> None:
        self.name, self._database = name, database
        database.execute(f"CREATE DATABASE {name}")
        admin_key = "mn_" + secrets.token_urlsafe(32)
        settings = {
            "database_url": database.url(name),
            "plain_keys": "true",
            "admin_key": admin_key,
            # Whatever fits stays open: the worst that a server can have to look after.
            "tenant_idle_seconds": "86400",
        }
        self._folder = context.work / f"fleet-{name}-1"
        self.servers = [
            Server(folder, settings) for folder in (self._folder, context.work / f"fleet-{name}-2")
        ]
        self._running = ExitStack()
        self._admin_key = admin_key
        self.keys: list[str] = []
        self._texts = [made.text for made in events(_TEXTS)]

    def __enter__(self) -> _Fleet:
        for server in self.servers:
            self._running.enter_context(server)
        self._first, self._second = (server.client(self._admin_key) for server in self.servers)
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.close()

    def took(self) -> _Took:
        """Return what the first server, and PostgreSQL, take now."""
        size = self.execute("SELECT pg_database_size(current_database())")
        return _Took(self.servers[0].memory()["rss"], _size(self._folder), int(size))

    def execute(self, query: str) -> Any:
        """Return the one value that a query of the database has."""
        return self._database.execute(query, database=self.name)[0][0]

    def add(self, count: int) -> None:
        """Make so many more; have each recorded and recalled by one server, the first ones recalled
        by the other, too."""
        begun = len(self.keys)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            self.keys += pool.map(self._made, range(begun, begun + count))

    def recall(self, key: str, question: str) -> None:
        """Ask the first server."""
        if not _found(self._first, key, question):
            raise AssertionError(f"nothing was recalled for {question!r}")

    def _made(self, number: int) -> str:
        tenant, both = f"t{number}", number < _BOTH
        here, there = self._first, self._second
        if not both and number % 2:
            here, there = there, here
        here.create_tenant(tenant)
        key = here.create_api_key(tenant, "benchmark").secret
        chosen = [self._texts[(number + n * 7) % _TEXTS] for n in range(_EACH)]
        batch = [NewEvent(session_id="s", event_type="message", text=text) for text in chosen]
        here.raw.event.RecordEvents(RecordEventsRequest(events=batch), metadata=_as(key))
        for client in (here, there) if both else (here,):
            until = time.monotonic() + _PATIENCE_S
            while not _found(client, key, chosen[0]):  # It shows what there was 100 ms ago.
                _require_before(until)
        return key


def _found(client: MnemeClient, key: str, question: str) -> bool:
    answer = client.raw.recall.Recall(RecallRequest(query=question), metadata=_as(key))
    return bool(answer.results)


def _as(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


def _recalled(context: Context, *fleets: _Fleet) -> list[float]:
    """Ask the first server of each in turn, of the same few tenants at a steady pace; return the
    processor time that each took for a call, in seconds, with what it does by itself."""
    turn_s = context.sizes.fleet_s / _TURNS
    spent = [0.0 for _ in fleets]
    calls = 0
    for turn in range(_TURNS + 1):
        context.say(f"fleet: recall, turn {turn or 'to warm up'}")
        asked = context.fresh_questions(round(turn_s / _PACE_S))
        calls += len(asked) if turn else 0
        for place, fleet in enumerate(fleets):
            before, due = fleet.servers[0].cpu_s(), time.monotonic()
            for number, question in enumerate(asked):
                time.sleep(max(0.0, due - time.monotonic()))
                fleet.recall(fleet.keys[number % _FEW], question)
                due += _PACE_S
            spent[place] += (fleet.servers[0].cpu_s() - before) if turn else 0.0
    return [one / calls for one in spent]


def _left_alone(seconds: float, *fleets: _Fleet) -> list[float]:
    """Return what part of a core the first server of each takes while nobody calls."""
    before = [fleet.servers[0].cpu_s() for fleet in fleets]
    time.sleep(seconds)
    return [
        (fleet.servers[0].cpu_s() - was) / seconds
        for fleet, was in zip(fleets, before, strict=True)
    ]


def _wait_until_settled(fleet: _Fleet) -> None:
    """Wait until nothing is left to embed, and both servers have done what followed."""
    until, resting = time.monotonic() + _PATIENCE_S, 0
    while fleet.execute("SELECT count(*) FROM mneme.embedding_queue"):
        _require_before(until)
        time.sleep(0.5)
    while resting < _RESTING:
        before = [server.cpu_s() for server in fleet.servers]
        time.sleep(_SETTLED_S)
        used = [server.cpu_s() - was for server, was in zip(fleet.servers, before, strict=True)]
        resting = resting + 1 if max(used) <= _AT_REST * _SETTLED_S else 0
        _require_before(until)


def _require_before(until: float) -> None:
    if time.monotonic() > until:
        raise AssertionError("the servers do not come to rest")


@contextmanager
def _connections(database: Any, name: str) -> Iterator[list[int]]:
    """Note, all the while, how many connections servers have to a database: the most so far."""
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            (found,) = database.execute(_CONNECTED.format(name))[0]
            most[0] = max(most[0], int(found))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "tenants").rglob("*") if file.is_file())


def _rows(
    context: Context,
    most: Sequence[int],
    recall_s: Sequence[float],
    idle: Sequence[float],
    took: Sequence[_Took],
) -> list[Row]:
    (few_s, many_s), (few, many), count = recall_s, took, context.sizes.tenants
    times, seconds = many_s / few_s, context.sizes.fleet_s
    disk = (many.disk - few.disk) / (count - _FEW)
    stored = (many.stored - few.stored) / (count - _FEW)
    return [
        Row(
            f"connections of two servers, {count:,} tenants",
            f"≤ {CONNECTIONS}",
            f"{most[0]}",
            at_most(most[0], CONNECTIONS),
            "the most that PostgreSQL had of both together, looked at four times a second while the"
            " tenants were made, recorded to and recalled",
            {"connections": most[0]},
        ),
        Row(
            f"processor time of Recall, {count:,} tenants",
            f"≤ {TIMES} times that with {_FEW}",
            f"{times:.2f} times: {milliseconds(many_s * 1000)}, with {_FEW} tenants"
            f" {milliseconds(few_s * 1000)}",
            at_most(times, TIMES),
            f"of a server that is asked of {_FEW} tenants, one question each"
            f" {_PACE_S * 1000:.0f} ms for {seconds:.0f} s in {_TURNS} turns with one that has no"
            " others; what both do by themselves counts",
            {"ratio": times, "ms": many_s * 1000, "ms_few": few_s * 1000},
        ),
        Row(
            f"a server that nobody calls, {count:,} tenants",
            "",
            f"{idle[1]:.1%} of a core, with {_FEW} tenants {idle[0]:.1%}",
            NO_BUDGET,
            f"over {seconds:.0f} s, both at once, once all is embedded",
            {"cores": idle[1], "cores_few": idle[0]},
        ),
        Row(
            f"what a small tenant takes, {_EACH} memories each",
            "",
            f"{disk / 1e3:,.0f} KB on each server's disk, {stored / 1e3:,.0f} KB in the database;"
            f" a server has {megabytes(many.rss)} of memory with {count:,} tenants,"
            f" {megabytes(few.rss)} with {_FEW}",
            NO_BUDGET,
            "as many are open as may be; PostgreSQL's room with its indexes",
            {"disk_bytes": disk, "database_bytes": stored, "rss": many.rss, "rss_few": few.rss},
        ),
    ]
