"""Many tenants on two servers and one PostgreSQL: connections, and what a call takes then."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.messages import NewEvent, RecallRequest, RecordEventsRequest

from benchmarks.context import Context
from benchmarks.report import Row, Verdict, at_most, megabytes, milliseconds
from benchmarks.server import ROOT, Server
from benchmarks.texts import events

CONNECTIONS, TIMES = 60, 1.2
_FEW = 10
_EACH = 5
"""Memories of each tenant."""
_AT_ONCE = 4
_PACE_S = 0.02
"""From one call to the next: what a server does by itself counts as it would on a quiet day."""
_SETTLED_S = 3.0
_PATIENCE_S = 600.0
_TEXTS = 50
"""Of which all tenants have some: what is measured is not the embedder."""
_SETTLING = 0.8
_OPTIONS = ("-c", "listen_addresses=", "-c", "shared_buffers=256MB", "-c", "max_connections=200")
_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mneme'"


def run(context: Context) -> list[Row]:
    """Open ever more tenants on both servers, or say that there is no PostgreSQL here."""
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
                Verdict.NONE,
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
    count, admin_key = context.sizes.fleet, "mn_" + secrets.token_urlsafe(32)
    settings = {
        "database_url": database.url(),
        "plain_keys": "true",
        "admin_key": admin_key,
        # Whatever fits stays open: the worst that a server can have to look after.
        "tenant_idle_seconds": "86400",
    }
    folders = [context.work / f"fleet-{number}" for number in (0, 1)]
    with (
        Server(folders[0], settings) as first,
        Server(folders[1], settings) as second,
        _connections(database) as most,
    ):
        made = _Tenants(first, second, admin_key)
        made.add(_FEW)
        context.say(f"fleet: {_FEW} tenants")
        few = _asked(context, database, made, folders)
        for upto in range(500, count + 500, 500):
            made.add(min(upto, count) - len(made.keys))
            context.say(f"fleet: {len(made.keys)} tenants")
        many = _asked(context, database, made, folders)
    return _rows(context, count, most, few, many)


@dataclass(frozen=True)
class _Seen:
    """What was measured with so many tenants, of the server that is asked."""

    recall_ms: float
    idle: float
    rss: int
    disk: int
    stored: int


class _Tenants:
    """Tenants that both servers have open, each with a few memories."""

    def __init__(self, first: Server, second: Server, admin_key: str) -> None:
        self.first, self.second = first, second
        self.keys: list[str] = []
        self._admin = first.client(admin_key)
        self._there = second.client(admin_key)
        self._texts = [made.text for made in events(_TEXTS)]

    def add(self, count: int) -> None:
        """Make so many more, have them recorded by one server and recalled by the other."""
        begun = len(self.keys)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            self.keys += pool.map(self._made, range(begun, begun + count))

    def recall(self, key: str, question: str) -> None:
        """Ask the first server."""
        if not _found(self._admin, key, question):
            raise AssertionError(f"nothing was recalled for {question!r}")

    def _made(self, number: int) -> str:
        tenant = f"t{number}"
        self._admin.create_tenant(tenant)
        key = self._admin.create_api_key(tenant, "benchmark").secret
        chosen = [self._texts[(number + n * 7) % _TEXTS] for n in range(_EACH)]
        batch = [NewEvent(session_id="s", event_type="message", text=text) for text in chosen]
        self._admin.raw.event.RecordEvents(RecordEventsRequest(events=batch), metadata=_as(key))
        self.recall(key, chosen[0])
        until = time.monotonic() + _PATIENCE_S
        while not _found(self._there, key, chosen[0]):  # It shows what there was 100 ms ago.
            _require_before(until)
        return key


def _found(client: MnemeClient, key: str, question: str) -> bool:
    answer = client.raw.recall.Recall(RecallRequest(query=question), metadata=_as(key))
    return bool(answer.results)


def _as(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


def _asked(context: Context, database: Any, tenants: _Tenants, folders: Sequence[Path]) -> _Seen:
    """Ask of the same few tenants at a steady pace, then leave the servers alone for a while."""
    _wait_until_settled(database, tenants)
    server, seconds = tenants.first, context.sizes.fleet_s
    asked = context.fresh_questions(max(_FEW, round(seconds / _PACE_S)))
    keys = tenants.keys[:_FEW]
    for key in keys:
        tenants.recall(key, asked[0])
    before, due = server.cpu_s(), time.monotonic()
    for number, question in enumerate(asked):
        time.sleep(max(0.0, due - time.monotonic()))
        tenants.recall(keys[number % _FEW], question)
        due += _PACE_S
    recall_ms = (server.cpu_s() - before) / len(asked) * 1000
    began, before = time.monotonic(), server.cpu_s()
    time.sleep(seconds)
    idle = (server.cpu_s() - before) / (time.monotonic() - began)
    stored = database.execute("SELECT pg_database_size(current_database())")[0][0]
    return _Seen(recall_ms, idle, server.memory()["rss"], _size(folders[0]), int(stored))


def _wait_until_settled(database: Any, tenants: _Tenants) -> None:
    """Wait until nothing is left to embed, and both servers are as quiet as they become."""
    until = time.monotonic() + _PATIENCE_S
    while database.execute("SELECT count(*) FROM mneme.embedding_queue")[0][0]:
        _require_before(until)
        time.sleep(0.5)
    last = float("inf")
    while True:
        before = [server.cpu_s() for server in (tenants.first, tenants.second)]
        time.sleep(_SETTLED_S)
        after = [server.cpu_s() for server in (tenants.first, tenants.second)]
        used = sum(after) - sum(before)
        if used >= _SETTLING * last:
            return
        last = used
        _require_before(until)


def _require_before(until: float) -> None:
    if time.monotonic() > until:
        raise AssertionError("the servers do not come to rest")


@contextmanager
def _connections(database: Any) -> Iterator[list[int]]:
    """Note, all the while, how many connections the servers have: the most comes last."""
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            (found,) = database.execute(_CONNECTED)[0]
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


def _rows(context: Context, count: int, most: Sequence[int], few: _Seen, many: _Seen) -> list[Row]:
    times = many.recall_ms / few.recall_ms
    more = count - _FEW
    disk, stored = (many.disk - few.disk) / more, (many.stored - few.stored) / more
    how = (
        f"of the first server, which is asked of the same {_FEW} tenants, one question each"
        f" {_PACE_S * 1000:.0f} ms for {context.sizes.fleet_s:.0f} s; what it does by itself counts"
    )
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
            f"{times:.2f} times: {milliseconds(many.recall_ms)}, with {_FEW} tenants"
            f" {milliseconds(few.recall_ms)}",
            at_most(times, TIMES),
            how,
            {"ratio": times, "ms": many.recall_ms, "ms_few": few.recall_ms},
        ),
        Row(
            f"a server that nobody calls, {count:,} tenants",
            "",
            f"{many.idle:.1%} of a core, with {_FEW} tenants {few.idle:.1%}",
            Verdict.NONE,
            f"over {context.sizes.fleet_s:.0f} s, once all is embedded",
            {"cores": many.idle, "cores_few": few.idle},
        ),
        Row(
            f"what a small tenant takes, {_EACH} memories each",
            "",
            f"{disk / 1e3:,.0f} KB on each server's disk, {stored / 1e3:,.0f} KB in the database;"
            f" a server has {megabytes(many.rss)} of memory with {count:,} tenants,"
            f" {megabytes(few.rss)} with {_FEW}",
            Verdict.NONE,
            "as many are open as may be; PostgreSQL's room with its indexes",
            {"disk_bytes": disk, "database_bytes": stored, "rss": many.rss, "rss_few": few.rss},
        ),
    ]
