"""What PostgreSQL costs beside SQLite: both keep the same, and are asked in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mneme import MnemeClient

from benchmarks import memories
from benchmarks.cases import unseen
from benchmarks.cases.recording import drive, requests_of
from benchmarks.context import Context
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.report import NO_BUDGET, Row, at_least, at_most, both, megabytes, milliseconds
from benchmarks.server import ROOT, Server

TIMES_RECALL, SHARE_RECORDED, SHARE_OF_ONE = 1.2, 0.4, 1.0
_TENANTS = 8
_MOST_A_SECOND = 6_000
"""Events that are prepared for each second."""
_OPTIONS = ("-c", "listen_addresses=", "-c", "shared_buffers=512MB")
"""With fsync, as SQLite has it, and room for all pages; the rest as PostgreSQL comes."""


def run(context: Context) -> list[Row]:
    """Measure recall and recording on both, or say that there is no PostgreSQL here."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.postgres import PostgresServer, empty_folder
    from support.programs import POSTGRES_MISSING, postgres_programs

    programs = postgres_programs()
    if programs is None:
        return [
            Row(
                "Recall and RecordEvents on PostgreSQL",
                "",
                f"not measured: {POSTGRES_MISSING}",
                NO_BUDGET,
                "there is no PostgreSQL on this machine",
            )
        ]
    with empty_folder() as folder:
        database = PostgresServer(programs, folder, _OPTIONS)
        try:
            with _both(context, database.url()) as (here, there):
                recalled = _recalled(context, here, there)
                took = _took(context, there, database)
                never_seen = unseen.rows(context, database.url())
                return [*recalled, *took, *never_seen, *_recorded(context, here, there)]
        finally:
            database.stop()


@contextmanager
def _both(context: Context, url: str) -> Iterator[tuple[Server, Server]]:
    """Serve the same memories from SQLite and from PostgreSQL."""
    here = memories.copy(context.memories, context.work / "on-sqlite")
    there = memories.copy(context.memories, context.work / "on-postgres")
    context.say("postgres: moving the memories there")
    subprocess.run(
        [sys.executable, "-m", "mneme_server", "migrate", "--to", url],
        env={**os.environ, "MNEME_DATA_DIR": str(there)}, check=True, stdout=sys.stderr,
    )  # fmt: skip
    settings = {"database_url": url, "plain_keys": "true"}
    with Server(here) as sqlite, Server(there, settings) as postgres:
        yield sqlite, postgres


def _recalled(context: Context, here: Server, there: Server) -> list[Row]:
    asked = [(_asking(server), server.cpu_s) for server in (here, there)]
    rounds: tuple[list[Round], list[Round]] = ([], [])
    for number in range(context.sizes.rounds + 1):
        context.say(f"postgres: recall, round {number or 'to warm up'}")
        questions = context.fresh_questions(context.sizes.calls)
        for (ask, cpu_s), measured in zip(asked, rounds, strict=True):
            before = cpu_s()
            timed = time_calls(ask, questions)
            if number:
                measured.append(replace(timed, cpu_s=cpu_s() - before))
    sqlite, postgres = (Rounds(measured) for measured in rounds)
    p50 = postgres.p50_ms / sqlite.p50_ms
    cpu = (postgres.cpu_ms or 0.0) / (sqlite.cpu_ms or 1e-9)
    return [
        Row(
            f"Recall on PostgreSQL, {context.sizes.memories:,} memories",
            f"≤ {TIMES_RECALL} times SQLite's processor time and p50",
            f"{cpu:.2f} times: {milliseconds(postgres.cpu_ms or 0.0)}, on SQLite"
            f" {milliseconds(sqlite.cpu_ms or 0.0)}; p50 {p50:.2f} times:"
            f" {milliseconds(postgres.p50_ms)}, {milliseconds(sqlite.p50_ms)}",
            both(at_most(cpu, TIMES_RECALL), at_most(p50, TIMES_RECALL)),
            f"{context.sizes.rounds} rounds of {context.sizes.calls} new questions, each asked of"
            " both in turn, one after another; the server's processor time, with what follows the"
            " feed",
            {
                "cpu_ratio": cpu,
                "p50_ratio": p50,
                **{f"postgres_{name}": value for name, value in postgres.figures().items()},
                **{f"sqlite_{name}": value for name, value in sqlite.figures().items()},
            },
        )
    ]


def _took(context: Context, server: Server, database: Any) -> list[Row]:
    """Say what the memories take where they are kept, and where they are searched."""
    folder = context.work / "on-postgres" / "tenants"
    copies = sum(
        file.stat().st_size
        for name in ("index", "lexical", "shown")
        for file in folder.glob(f"*/{name}/**/*")
        if file.is_file()
    )
    (stored,) = database.execute("SELECT pg_database_size(current_database())")[0]
    memory = server.memory()
    return [
        Row(
            f"what {context.sizes.memories:,} memories take on PostgreSQL",
            "",
            f"{megabytes(stored)} in the database; on each server {megabytes(copies)} of disk, and"
            f" {megabytes(memory['anonymous'])} of memory with the model",
            NO_BUDGET,
            "PostgreSQL's tables with their indexes, without its log; a server's indexes and copies"
            " of what is shown; memory without mapped files",
            {"database_bytes": stored, "disk_bytes": copies, "memory_bytes": memory["anonymous"]},
        )
    ]


def _asking(server: Server) -> Callable[[str], None]:
    client = server.tenant(memories.TENANT, create=False)

    def ask(question: str) -> None:
        if not client.recall(question).results:
            raise AssertionError(f"nothing was recalled for {question!r}")

    return ask


def _recorded(context: Context, here: Server, there: Server) -> list[Row]:
    seconds, count = context.sizes.record_s, int(context.sizes.record_s * _MOST_A_SECOND)
    rates: dict[str, list[float]] = {"sqlite": [], "postgres": [], "together": []}
    for number in range(max(3, context.sizes.rounds)):
        context.say(f"postgres: recording, round {number + 1}")
        for name, server in (("sqlite", here), ("postgres", there)):
            client = _new_tenant(server, f"one-{number}")
            prepared = [requests_of(count, f"r{number}-", searchable=True)]
            counts, took = drive(client, prepared, seconds)
            rates[name].append(sum(counts) / took)
            # Otherwise what waits for its embedding would slow down what follows.
            server.admin().delete_tenant(f"one-{number}").result()
        rates["together"].append(_together(there, number, seconds, count))
    median = {name: statistics.median(found) for name, found in rates.items()}
    share = statistics.median(
        theirs / ours for theirs, ours in zip(rates["postgres"], rates["sqlite"], strict=True)
    )
    more = statistics.median(
        eight / one for eight, one in zip(rates["together"], rates["postgres"], strict=True)
    )
    figures = {f"{name}_events_per_second": rate for name, rate in median.items()}
    rounds = len(rates["sqlite"])
    how = f"{rounds} rounds of {seconds:.0f} s in turns, batches of 100, embedding beside"
    return [
        Row(
            "RecordEvents on PostgreSQL, one client",
            f"≥ {SHARE_RECORDED} of SQLite's rate",
            f"{share:.2f} of it: {median['postgres']:,.0f} events/s, on SQLite"
            f" {median['sqlite']:,.0f}",
            at_least(share, SHARE_RECORDED),
            f"{how}; both with fsync, no standby",
            figures | {"share": share},
        ),
        Row(
            f"RecordEvents on PostgreSQL, {_TENANTS} tenants at once",
            "no less than one tenant alone",
            f"{more:.2f} times: {median['together']:,.0f} events/s together",
            at_least(more, SHARE_OF_ONE),
            f"{how}, a client each; all of them against one of the same round",
            figures | {"times": more},
        ),
    ]  # fmt: skip


def _together(server: Server, number: int, seconds: float, count: int) -> float:
    """Have several tenants record at once; return the events of all in a second."""
    clients = [_new_tenant(server, f"many-{number}-{n}") for n in range(_TENANTS)]
    prepared = [
        requests_of(count // 4, f"m{number}-{n}-", searchable=True) for n in range(_TENANTS)
    ]
    rates: list[float] = []

    def record(n: int) -> None:
        counts, took = drive(clients[n], [prepared[n]], seconds)
        rates.append(sum(counts) / took)

    threads: list[threading.Thread] = [
        threading.Thread(target=record, args=(n,)) for n in range(_TENANTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(_TENANTS):
        server.admin().delete_tenant(f"many-{number}-{n}").result()
    if len(rates) < _TENANTS:
        raise AssertionError("a tenant could not record")
    return sum(rates)


def _new_tenant(server: Server, tenant_id: str) -> MnemeClient:
    client = server.tenant(tenant_id)
    warm: Any = requests_of(100, "warm-", searchable=True)
    client.raw.event.RecordEvents(warm[0], metadata=client.metadata)
    return client
