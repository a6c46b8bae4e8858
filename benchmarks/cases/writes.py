"""Small writes, as agents make them: what one costs a server, and others that have the tenant open.

Calls come at an even pace, to tenants in turn. The processor time of everything counts that servers
do from the first call until some seconds after the last, less what they take when nobody calls; it
is told in times of what embedding the same texts takes, one call after another, in this run.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.messages import NewEvent, RecallRequest, RecordEventsRequest
from mneme_server.engine.embedding.local import LocalEmbedder

from benchmarks.context import Context
from benchmarks.measure import Round, paced, percentile
from benchmarks.report import (
    NO_BUDGET,
    Row,
    Verdict,
    at_least,
    at_most,
    at_rate,
    both,
    milliseconds,
)
from benchmarks.server import ROOT, Server
from benchmarks.texts import events

ON_SQLITE, ON_POSTGRES = 2.5, 4.0
NOT_ASKED, SEARCHED = 0.5, 1.5
AT_REST, EACH_MB = 0.05, 1.0
WRITERS_RATE, SHARE_OF_SQLITE = 200.0, 0.5
TOGETHER, AT_RANDOM, TAIL = 0.8, 0.6, 10.0
_PACES = (1, 10, 60)
_PACE = 10
_EVENTS = (1, 5)
_FEW = 10
_IN_FLIGHT = 16
_AFTER_S = 2.5
_CALM_S = 5.0
_APART_S = 0.02
_LEAST_CALLS = 10
_WRITERS = 6
_AT_ONCE = 8
_PATIENCE_S = 300.0
_OPTIONS = ("-c", "listen_addresses=", "-c", "shared_buffers=256MB", "-c", "max_connections=200")
"""With fsync, as SQLite has it; the rest as PostgreSQL comes."""


def run(context: Context) -> list[Row]:
    """Measure on SQLite, and on PostgreSQL with one, two and three servers."""
    texts = _Texts()
    embedding = _Embedding(context)
    rows: list[Row] = []
    with _Servers(context, texts, embedding) as servers:
        rows += _paced(context, servers, ON_SQLITE)
        sqlite = _written(context, servers)
    rows.append(_writers_row(servers.name, sqlite, f"≥ {WRITERS_RATE:.0f} calls/s",
                             at_rate(sqlite.per_second, WRITERS_RATE)))  # fmt: skip
    with _postgres() as database:
        if database is None:
            return [*rows, _not_measured()]
        with _Servers(context, texts, embedding, database) as servers:
            rows += _paced(context, servers, ON_POSTGRES)
            rows += _further(context, servers, sqlite)
    return rows


class _Texts:
    """Texts that nobody has embedded yet, of which each is had once."""

    def __init__(self) -> None:
        self._made = events(10_000_000, seed=7_001)
        self._taking = threading.Lock()

    def take(self, count: int) -> list[str]:
        """Return so many."""
        with self._taking:
            return [event.text for event in itertools.islice(self._made, count)]


class _Embedding:
    """What it takes to embed a call's texts alone, one call after another with a pause between.

    It is measured before and after each pace: on a machine that others use, too, what a second of
    processor time does is not the same all the time.

    Args:
        context: of this run.
    """

    def __init__(self, context: Context) -> None:
        folder = os.environ.get("MNEME_MODEL_DIR")
        self._embedder = LocalEmbedder(Path(folder) if folder else None)
        self._made = events(10_000_000, seed=7_002)
        self._calls = max(10, context.sizes.calls // 8)
        self._embedder.embed(self._take(1))  # Loads it.

    def ms(self, count: int) -> float:
        """Return the milliseconds of processor time for a call of so many texts."""
        used = []
        for texts in [self._take(count) for _ in range(self._calls)]:
            before = time.process_time()
            self._embedder.embed(texts)
            used.append((time.process_time() - before) * 1000)
            time.sleep(_APART_S)
        return statistics.fmean(used)

    def _take(self, count: int) -> list[str]:
        return [event.text for event in itertools.islice(self._made, count)]


@dataclass(frozen=True)
class _Cost:
    """What calls cost: milliseconds of processor time each, of the servers and of PostgreSQL, and
    of embedding the same alone, then."""

    servers_ms: float
    database_ms: float
    embedding_ms: float
    p50_ms: float
    per_second: float

    @property
    def ms(self) -> float:
        return self.servers_ms + self.database_ms

    @property
    def times(self) -> float:
        """How many times the embedding's the servers' is."""
        return self.servers_ms / self.embedding_ms

    @property
    def times_with_database(self) -> float:
        """The same, with PostgreSQL's."""
        return self.ms / self.embedding_ms


class _Servers:
    """Servers of the same tenants, and those tenants. A context manager.

    Args:
        context: of this run.
        texts: what is written.
        embedding: what its embedding takes alone.
        database: the PostgreSQL; None: one server, on SQLite.
    """

    def __init__(
        self, context: Context, texts: _Texts, embedding: _Embedding, database: Any = None
    ) -> None:
        self.name = "SQLite" if database is None else "PostgreSQL"
        self._context, self._texts, self._database = context, texts, database
        self._embedding = embedding
        self._admin_key = "mn_" + secrets.token_urlsafe(32)
        self._running = ExitStack()
        self.servers: list[Server] = []
        self.clients: list[MnemeClient] = []
        self.keys: list[str] = []
        self._cells = itertools.count()

    def __enter__(self) -> _Servers:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.close()

    def start(self) -> None:
        """Start one more, and have it open all tenants that there are."""
        number = len(self.servers) + 1
        settings = {
            "admin_key": self._admin_key,
            "tenant_idle_seconds": "86400",  # What is open stays open.
        }
        if self._database is not None:
            settings |= {"database_url": self._database.url(), "plain_keys": "true"}
        server = Server(self._context.work / f"writes-{self.name}-{number}", settings)
        self.servers.append(self._running.enter_context(server))
        self.clients.append(server.client(self._admin_key))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda key: self.recall(key, self.clients[-1]), self.keys))

    def add_tenants(self, upto: int) -> None:
        """Make more, until there are so many, and have all servers open them."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            self.keys += pool.map(self._made, range(len(self.keys), upto))

    def recall(self, key: str, client: MnemeClient) -> None:
        """Ask a tenant something by way of a server."""
        request = RecallRequest(query="what was written?", limit=1)
        client.raw.recall.Recall(request, metadata=_as(key), timeout=_PATIENCE_S)

    def write(self, request: RecordEventsRequest, key: str, client: MnemeClient) -> None:
        """Record events of a tenant by way of a server."""
        client.raw.event.RecordEvents(request, metadata=_as(key), timeout=_PATIENCE_S)

    def requests(self, calls: int, count: int) -> list[RecordEventsRequest]:
        """Return so many calls of so many new events each, in a session of their own."""
        session = f"cell-{next(self._cells)}"
        return [
            RecordEventsRequest(
                events=[
                    NewEvent(session_id=session, event_type="message", text=text)
                    for text in self._texts.take(count)
                ]
            )
            for _ in range(calls)
        ]

    def used_s(self) -> tuple[float, float]:
        """Return the processor time that the servers, and PostgreSQL, have used, in seconds."""
        database = 0.0 if self._database is None else _database_s(self._database.folder)
        return sum(server.cpu_s() for server in self.servers), database

    def calm(self, seconds: float) -> tuple[float, float]:
        """Wait, and return what parts of a core the servers, and PostgreSQL, take meanwhile."""
        before = self.used_s()
        time.sleep(seconds)
        servers, database = (now - was for now, was in zip(self.used_s(), before, strict=True))
        return servers / seconds, database / seconds

    def settle(self) -> None:
        """Wait until all is embedded and what follows is done."""
        until, was = time.monotonic() + _PATIENCE_S, float("inf")
        while time.monotonic() < until:
            share = self.calm(1.0)[0]
            if abs(share - was) < 0.03 and share < 0.2 * len(self.servers):
                return
            was = share
        raise AssertionError("the servers do not come to rest")

    def cost(self, a_second: int, tenants: int, count: int, *, searched: bool = False) -> _Cost:
        """Write to the first server at a pace; `searched`: the last one is, once a second."""
        self._context.say(
            f"writes: {self.name}, {len(self.servers)}, {a_second}/s, {tenants} tenants,"
            f" {count} events{', searched' if searched else ''}"
        )
        calls = max(_LEAST_CALLS, round(a_second * self._context.sizes.writes_s))
        requests = self.requests(calls, count)
        keys = self.keys[:tenants]
        self.settle()
        alone = self._embedding.ms(count)
        calm = self.calm(_CALM_S)
        before, started = self.used_s(), time.perf_counter()
        with self._searching(keys) if searched else ExitStack():
            taken = self._write_paced(requests, keys, a_second)
        time.sleep(_AFTER_S)
        self.settle()  # What waits for its embedding is a part of what the calls cost.
        took = time.perf_counter() - started
        used = [
            (now - was - rest * took) / calls * 1000
            for now, was, rest in zip(self.used_s(), before, calm, strict=True)
        ]
        alone = (alone + self._embedding.ms(count)) / 2
        return _Cost(used[0], used[1], alone, taken.p50_ms, taken.per_second)

    def _write_paced(
        self, requests: Sequence[RecordEventsRequest], keys: Sequence[str], a_second: int
    ) -> Round:
        client = self.clients[0]
        turns = zip(requests, itertools.cycle(keys), strict=False)
        return paced(lambda turn: self.write(*turn, client), turns, a_second, _IN_FLIGHT)

    @contextmanager
    def _searching(self, keys: Sequence[str]) -> Iterator[None]:
        """Ask the last server once a second, of the tenants in turn, while the block lasts."""
        over, failures = threading.Event(), list[BaseException]()

        def search() -> None:
            try:
                for key in itertools.cycle(keys):
                    self.recall(key, self.clients[-1])
                    if over.wait(1.0):
                        return
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=search)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if failures:
            raise failures[0]

    def _made(self, number: int) -> str:
        admin, tenant = self.clients[0], f"w{number}"
        admin.create_tenant(tenant)
        key = admin.create_api_key(tenant, "benchmark").secret
        self.write(self.requests(1, 1)[0], key, self.clients[0])
        for client in self.clients:
            self.recall(key, client)
        return key


def _as(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


def _database_s(folder: Path) -> float:
    """Return the processor time that a PostgreSQL has used, with all its processes, in seconds."""
    first = (folder / "data" / "postmaster.pid").read_text().split()[0]
    ticks = 0
    for process in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = process.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended, and counts as one of its parent's that ended.
        if process.parent.name == first:
            ticks += sum(map(int, stat[11:15]))  # With those that ended.
        elif stat[1] == first:
            ticks += sum(map(int, stat[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _paced(context: Context, servers: _Servers, budget: float) -> list[Row]:
    """Write at all paces to ever more tenants by way of one server."""
    rows = []
    paces = _PACES if context.sizes.many > _FEW else (_PACE,)
    sizes = sorted({1, _FEW, 100, context.sizes.many} if len(paces) > 1 else {_FEW})
    servers.add_tenants(1)
    memory = servers.servers[0].memory()["anonymous"]
    for tenants in sizes:
        servers.add_tenants(tenants)
        for count in _EVENTS:
            found = {pace: servers.cost(pace, tenants, count) for pace in paces}
            rows.append(_paced_row(servers, tenants, count, found, budget))
    rows.append(_at_rest(servers, memory))
    return rows


def _paced_row(
    servers: _Servers,
    tenants: int,
    count: int,
    found: Mapping[int, _Cost],
    budget: float,
) -> Row:
    times = {pace: cost.times for pace, cost in found.items()}
    alone = statistics.fmean(cost.embedding_ms for cost in found.values())
    one_by_one = (
        f"{times[pace]:.1f} × at {pace}/s ({milliseconds(cost.servers_ms)}"
        + (f", PostgreSQL {milliseconds(cost.database_ms)}" if cost.database_ms else "")
        + f"; p50 {milliseconds(cost.p50_ms)}"
        + (f", {cost.per_second:.0f}/s were made" if cost.per_second < 0.8 * pace else "")
        + ")"
        for pace, cost in found.items()
    )
    figures: dict[str, float] = {}
    for pace, cost in found.items():
        figures |= {f"{pace}_{name}": value for name, value in vars(cost).items()}
        figures[f"{pace}_ratio"] = times[pace]
    return Row(
        f"{servers.name}, one server: a call of {_events(count)}, {_tenants(tenants)}",
        f"≤ {budget} × its embedding",
        "; ".join(one_by_one),
        at_most(max(times.values()), budget),
        f"the server's processor time, with what follows; the embedding alone"
        f" {milliseconds(alone)}; what the server takes when nobody calls is taken off",
        figures,
    )


def _at_rest(servers: _Servers, before: int) -> Row:
    servers.settle()
    share, database = servers.calm(10.0)
    count = len(servers.keys)
    each = (servers.servers[0].memory()["anonymous"] - before) / max(1, count - 1) / 1e6
    scaled = max(1.0, count / 1_000)
    return Row(
        f"{servers.name}, one server: {_tenants(count)} open, nobody calls",
        f"≤ {AT_REST:.0%} of a core, {EACH_MB:.0f} MB each",
        f"{share:.1%} of a core"
        + (f", PostgreSQL {database:.1%}" if database else "")
        + f"; {each:.2f} MB each, with what was written",
        both(at_most(share / scaled, AT_REST), at_most(each, EACH_MB)) if count > _FEW
        else at_most(share, AT_REST),
        "over 10 s, once what was written is embedded; memory without mapped files",
        {"cores": share, "database_cores": database, "mb_each": each},
    )  # fmt: skip


def _further(context: Context, servers: _Servers, sqlite: _Written) -> list[Row]:
    """Have a second and a third server open the tenants, and write as before."""
    cells = [(_FEW, count) for count in _EVENTS]
    if context.sizes.many > _FEW:
        cells += [(100, 1), (context.sizes.many, 1)]
    before = {cell: servers.cost(_PACE, *cell) for cell in cells}
    alone = _written(context, servers)
    rows: list[Row] = []
    for number in (2, 3):
        servers.start()
        quiet = {cell: servers.cost(_PACE, *cell) for cell in cells}
        asked = {cell: servers.cost(_PACE, *cell, searched=True) for cell in cells}
        for cell in cells:
            for what, found, budget in (
                ("not asked", quiet, NOT_ASKED), ("searched once a second", asked, SEARCHED)
            ):  # fmt: skip
                rows.append(_more_row(number, what, cell, before[cell], found[cell], budget))
        before = quiet
        for how, together, share in (
            ("a tenant's calls kept together", True, TOGETHER), ("at random", False, AT_RANDOM)
        ):  # fmt: skip
            written = _written(context, servers, together=together)
            times = written.per_second / alone.per_second
            rows.append(
                _writers_row(
                    f"{servers.name}, {number} servers, {how}",
                    written,
                    f"≥ {share} of one server's" if number == 3 else "",
                    at_least(times, share) if number == 3 else NO_BUDGET,
                    f"{times:.2f} of one server's; ",
                )
            )
    times = alone.per_second / sqlite.per_second
    rows.insert(
        0,
        _writers_row(
            f"{servers.name}, one server", alone, f"≥ {SHARE_OF_SQLITE} of SQLite's",
            at_least(times, SHARE_OF_SQLITE), f"{times:.2f} of SQLite's; ",
        ),
    )  # fmt: skip
    return rows


def _more_row(
    number: int,
    what: str,
    cell: tuple[int, int],
    before: _Cost,
    found: _Cost,
    budget: float,
) -> Row:
    tenants, count = cell
    more = found.times_with_database - before.times_with_database
    return Row(
        f"PostgreSQL, {_ORDINALS[number]} server, {what}: a call of {_events(count)},"
        f" {_tenants(tenants)}",
        f"≤ {budget} × the embedding more",
        f"{more:+.1f} ×: {milliseconds(found.ms)}, of which PostgreSQL"
        f" {milliseconds(found.database_ms)}, the embedding alone"
        f" {milliseconds(found.embedding_ms)}; before {milliseconds(before.ms)} and"
        f" {milliseconds(before.embedding_ms)}",
        at_most(more, budget),
        f"{_PACE} calls a second; processor time of all servers and of PostgreSQL, with what"
        " follows",
        {
            "ratio_more": more,
            "ms": found.ms,
            "database_ms": found.database_ms,
            "ms_before": before.ms,
        },
    )


@dataclass(frozen=True)
class _Written:
    """What writers reach that do not wait between calls."""

    per_second: float
    times_s: Sequence[float]

    @property
    def tail(self) -> float:
        """How many times p50 p99 is."""
        return percentile(self.times_s, 99) / percentile(self.times_s, 50)


def _written(context: Context, servers: _Servers, *, together: bool = True) -> _Written:
    """Have writers record five events a call, as fast as they can, in ten tenants.

    `together`: all calls of a tenant go to one server; else each to any.
    """
    context.say(f"writes: {servers.name}, {len(servers.servers)}, as fast as they can")
    seconds = context.sizes.writes_s
    keys = servers.keys[:_FEW]
    prepared = [servers.requests(round(100 * seconds), _EVENTS[-1]) for _ in range(_WRITERS)]
    servers.settle()
    times: list[float] = []
    started = time.perf_counter()

    def write(number: int) -> None:
        draw = random.Random(number)
        for request in prepared[number]:
            begun = time.perf_counter()
            if begun - started > seconds:
                return
            place = draw.randrange(len(keys))
            client = servers.clients[
                (place if together else draw.randrange(1_000)) % len(servers.clients)
            ]
            servers.write(request, keys[place], client)
            times.append(time.perf_counter() - begun)

    _at_once(write)
    return _Written(len(times) / (time.perf_counter() - started), times)


def _at_once(write: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))


def _writers_row(
    where: str, written: _Written, budget: str, verdict: Verdict, measured: str = ""
) -> Row:
    p50, p90, p99 = (percentile(written.times_s, q) * 1000 for q in (50, 90, 99))
    return Row(
        f"{where}: {_WRITERS} writers, {_events(_EVENTS[-1])} a call, as fast as they can",
        (f"{budget}; " if budget else "") + f"p99 ≤ {TAIL:.0f} × p50",
        f"{measured}{written.per_second:,.0f} calls/s; p50 {milliseconds(p50)}, p90"
        f" {milliseconds(p90)}, p99 {milliseconds(p99)}",
        both(verdict, at_most(written.tail, TAIL)),
        f"{_FEW} tenants; writers, servers and PostgreSQL on the same cores",
        {"per_second": written.per_second, "p50_ms": p50, "p90_ms": p90, "p99_ms": p99},
    )


@contextmanager
def _postgres() -> Iterator[Any]:
    """Run a PostgreSQL for the block; lend None where there is none."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.postgres import PostgresServer, empty_folder
    from support.programs import postgres_programs

    programs = postgres_programs()
    if programs is None:
        yield None
        return
    with empty_folder() as folder:
        database = PostgresServer(programs, folder, _OPTIONS)
        try:
            yield database
        finally:
            database.stop()


def _not_measured() -> Row:
    from support.programs import POSTGRES_MISSING

    return Row(
        "small writes on PostgreSQL", "", f"not measured: {POSTGRES_MISSING}", NO_BUDGET,
        "there is no PostgreSQL on this machine",
    )  # fmt: skip


_ORDINALS = {2: "a second", 3: "a third"}


def _events(count: int) -> str:
    return "one event" if count == 1 else f"{count} events"


def _tenants(count: int) -> str:
    return "one tenant" if count == 1 else f"{count:,} tenants"
