"""Two servers on one PostgreSQL with a standby, under load and one fault after the other.

    MNEME_TEST_FAULT_MINUTES=30 MNEME_TEST_SEED=1 pytest tests/robustness/test_nodes.py -s

Servers are killed, frozen and told to stop; PostgreSQL is stopped, killed, failed over to its
standby, or loses all its connections, and the standby goes away. All the while one server's clock
is a minute off, and of what the servers tell each other half is lost. Whatever happens: nothing
that was acknowledged is lost or there twice, chains and logs are valid, what was written is read
back under its token from any server, no result of work in the background is stored twice, and
clients are refused nothing but what they may try again.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mneme import MnemeClient
from support.server import ServerProcess
from support.standby import Pair, pair
from support.steady_load import (
    KINDS,
    PATIENCE_S,
    Auditor,
    Broken,
    Changer,
    Client,
    Ledger,
    Nodes,
    Writer,
    check,
)

MINUTES = float(os.environ.get("MNEME_TEST_FAULT_MINUTES") or 0)
"""How long; 0: some faults, once each."""
SEED = int(os.environ.get("MNEME_TEST_SEED") or 1)
DATABASE = "mneme"
_TENANTS = 2
_LEASE_S = 9.0
"""Longer than a server that says nothing keeps its leases."""


class Servers:
    """Two servers, each with its own trouble all the time."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self.nodes = Nodes([])
        self.nodes.started += [self._start(which) for which in (0, 1)]

    def restart(self, which: int) -> None:
        """Start the server again, on its data folder, where it listens elsewhere."""
        self.nodes.started[which] = self._start(which)

    def logs(self) -> Iterator[str]:
        """Yield what all of them wrote to their logs."""
        for log in sorted(self._folder.glob("node-*.log")):
            yield log.read_text(errors="replace")

    def stop(self) -> None:
        """Kill what still runs."""
        for one in self.nodes.started:
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
                one.kill()

    def _start(self, which: int) -> ServerProcess:
        clock_s = 60 * which
        return ServerProcess(
            self._folder / f"node-{which}",
            program=("-m", "support.adrift", str(clock_s), "50"),
            database_url=self._url,
            drain_seconds=5,
        )


Fault = Callable[[Servers, Pair, random.Random], None]


def _kill(servers: Servers, _pair: Pair, rng: random.Random) -> None:
    which = rng.randrange(2)
    servers.nodes.started[which].kill()
    time.sleep(rng.uniform(0, 2))
    servers.restart(which)


def _tell_to_stop(servers: Servers, _pair: Pair, rng: random.Random) -> None:
    which = rng.randrange(2)
    code = servers.nodes.started[which].stop()
    if code:
        raise Broken(f"a server that was told to stop ended with {code}")
    servers.restart(which)


def _freeze(servers: Servers, _pair: Pair, rng: random.Random, longest_s: float = 2.0) -> None:
    process = servers.nodes.started[rng.randrange(2)].process
    process.send_signal(signal.SIGSTOP)
    time.sleep(rng.uniform(longest_s / 2, longest_s))
    process.send_signal(signal.SIGCONT)


def _freeze_beyond_its_leases(servers: Servers, pair_: Pair, rng: random.Random) -> None:
    _freeze(servers, pair_, rng, 2 * _LEASE_S)


def _stop_the_database(_servers: Servers, pair_: Pair, rng: random.Random) -> None:
    pair_.primary.stop()
    time.sleep(rng.uniform(0, 2))
    pair_.primary.start()


def _kill_the_database(_servers: Servers, pair_: Pair, rng: random.Random) -> None:
    pair_.primary.crash()
    time.sleep(rng.uniform(0, 2))
    pair_.primary.start()


def _kill_both(servers: Servers, pair_: Pair, rng: random.Random) -> None:
    which = rng.randrange(2)
    pair_.primary.crash()
    servers.nodes.started[which].kill()
    pair_.primary.start()
    servers.restart(which)


def _fail_over(_servers: Servers, pair_: Pair, _rng: random.Random) -> None:
    pair_.fail_over()


def _kill_the_standby(_servers: Servers, pair_: Pair, rng: random.Random) -> None:
    pair_.standby.crash()
    time.sleep(rng.uniform(0, 2))
    pair_.standby.start()


def _cut_connections(_servers: Servers, pair_: Pair, _rng: random.Random) -> None:
    pair_.primary.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{DATABASE}' AND backend_type = 'client backend'"
    )


FAULTS: Sequence[Fault] = (
    _kill, _tell_to_stop, _freeze, _freeze_beyond_its_leases, _stop_the_database,
    _kill_the_database, _kill_both, _fail_over, _kill_the_standby, _cut_connections,
)  # fmt: skip
SOME: Sequence[Fault] = (
    _freeze_beyond_its_leases, _kill_the_database, _kill_both, _fail_over, _cut_connections,
)  # fmt: skip


def test_two_servers_lose_and_double_nothing_whatever_happens(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with pair() as databases:
        databases.primary.execute(f"CREATE DATABASE {DATABASE}")
        servers = Servers(tmp_path, databases.url(DATABASE))
        try:
            _run(servers, databases, rng)
        except Exception as error:
            logs = "\n".join(log[-3_000:] for log in servers.logs())
            raise AssertionError(f"MNEME_TEST_SEED={SEED}: {error}\n{logs}") from error
        finally:
            servers.stop()


def _run(servers: Servers, databases: Pair, rng: random.Random) -> None:
    ledgers = []
    for _ in range(_TENANTS):
        made = servers.nodes.started[0].keys.tenant("faults")
        ledgers.append(Ledger(made.tenant_id, str(made.secret)))
    chosen = FAULTS if MINUTES else SOME
    happened: Counter[str] = Counter()
    began = time.monotonic()
    with _load(servers.nodes, ledgers, rng) as clients:
        _wait_until_all_go_on(clients)
        while not happened or time.monotonic() < began + MINUTES * 60:
            for fault in rng.sample(chosen, len(chosen)):
                fault(servers, databases, rng)
                happened[fault.__name__.strip("_")] += 1
                _wait_until_all_go_on(clients)
                _say(f"{time.monotonic() - began:.0f} s: {fault.__name__.strip('_')}", clients)
    _say(f"{time.monotonic() - began:.0f} s: {dict(happened)}", clients)
    _check_work(databases, ledgers)
    for which, server in enumerate(servers.nodes.started):
        for ledger in ledgers:
            with MnemeClient(server.address, api_key=ledger.secret, timeout=PATIENCE_S) as client:
                try:
                    check(client, ledger, rng)
                except Broken as error:
                    raise Broken(f"server {which}, {ledger.tenant_id}: {error}") from error
    for log in servers.logs():
        if "internal error" in log:
            raise Broken(f"a server met a bug:\n{log[-5_000:]}")


@contextmanager
def _load(nodes: Nodes, ledgers: Sequence[Ledger], rng: random.Random) -> Iterator[list[Client]]:
    """Have clients do their things for the block, and end what they are at."""
    clients: list[Client] = []
    for place, ledger in enumerate(ledgers):
        clients += [Writer(kind, nodes, ledger, random.Random(rng.random())) for kind in KINDS]
        clients.append(Auditor("audit", nodes, ledger, random.Random(rng.random())))
        if place == 0:
            clients.append(Changer("change", nodes, ledger, random.Random(rng.random())))
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.over.set()
    for client in clients:
        client.join(PATIENCE_S)
    _require_whole(clients)


def _wait_until_all_go_on(clients: Sequence[Client]) -> None:
    """Wait until each has done its thing twice more: the first may have begun before."""
    before = {client: client.steps for client in clients}
    until = time.monotonic() + PATIENCE_S
    while any(client.steps < before[client] + 2 for client in clients):
        _require_whole(clients)
        if time.monotonic() > until:
            late = [client.name for client in clients if client.steps < before[client] + 2]
            raise Broken(f"{late} do not go on")
        time.sleep(0.05)


def _require_whole(clients: Sequence[Client]) -> None:
    for client in clients:
        if client.broken is not None:
            raise Broken(f"{client.name}: {client.broken}") from client.broken


def _check_work(databases: Pair, ledgers: Sequence[Ledger]) -> None:
    """See that all work is done in the end, and that no result of it was stored twice: each takes
    a number, in the transaction that stores it."""

    def counted(what: str, tenant: str) -> int:
        asked = f"SELECT {what} tenant_id = '{tenant}'"
        return int(databases.primary.execute(asked, database=DATABASE)[0][0])

    until = time.monotonic() + PATIENCE_S
    for ledger in ledgers:
        tenant = ledger.tenant_id
        while counted("count(*) FROM mneme.embedding_queue WHERE", tenant):
            if time.monotonic() > until:
                raise Broken("texts are still not embedded")
            time.sleep(0.1)
        documents = counted("count(*) FROM mneme.documents WHERE", tenant)
        vectors = counted("count(*) FROM mneme.vectors WHERE", tenant)
        taken = counted("value FROM mneme.numbers WHERE name = 'vectors' AND", tenant)
        if vectors != documents:
            raise Broken(f"{tenant} has {documents} documents and {vectors} vectors")
        if not ledger.latest and taken != vectors:
            raise Broken(f"{tenant} has {vectors} vectors, and {taken} were stored")


def _say(what: str, clients: Sequence[Client]) -> None:
    refusals = sum((client.refusals for client in clients), Counter[str]())
    steps = sum(client.steps for client in clients)
    print(f"seed {SEED}, {what}; {steps} steps; refused: {dict(refusals)}", flush=True)
