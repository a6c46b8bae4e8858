"""Equal nodes on one PostgreSQL behind the balancers of `deploy/`, as the clients call them: a
tenant's calls meet one node, and what becomes of the node is noticed by nobody.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from support.balancers import KINDS, Balancer, balancing
from support.postgres import PostgresServer
from support.programs import Node
from support.server import ADMIN_KEY, ServerProcess

TENANTS = [f"tenant-{number}" for number in range(12)]
_WITHIN_S = 120.0


class Nodes:
    """Two nodes, each a process of its own, tenants with keys, and a balancer before them."""

    def __init__(
        self, folder: Path, url: str, kind: str, opened: ExitStack, changes: Mapping[str, str]
    ) -> None:
        self._opened = opened
        self.processes: dict[str, ServerProcess] = {}
        for name in ("one", "two"):
            process = ServerProcess(
                folder / name, database_url=url, http_listen="127.0.0.1:0", drain_seconds=_WITHIN_S
            )
            self.processes[process.http_address] = process
            opened.callback(self._stop, process)
        (folder / "balancer").mkdir()
        nodes = [Node(one.address, http) for http, one in self.processes.items()]
        self.balancer: Balancer = opened.enter_context(
            balancing(kind, folder / "balancer", nodes, changes)
        )
        self.keys = self._make_tenants(nodes[0].grpc)

    def client(self, tenant: str, key: str = "", **options: object) -> MnemeClient:
        """Return a client of a tenant, closed at the end."""
        client = MnemeClient(
            self.balancer.grpc, api_key=key or self.keys[tenant], tenant=tenant, **options
        )
        self._opened.callback(client.close)
        return client

    def _make_tenants(self, address: str) -> dict[str, str]:
        with MnemeClient(address, api_key=ADMIN_KEY) as admin:
            for tenant in TENANTS:
                admin.create_tenant(tenant)
            return {
                tenant: admin.create_api_key(tenant_id=tenant, name="its own").secret
                for tenant in TENANTS
            }

    @staticmethod
    def _stop(process: ServerProcess) -> None:
        if process.process.poll() is None:
            process.stop()


MakeNodes = Callable[..., Nodes]


@pytest.fixture
def nodes(postgres: PostgresServer, tmp_path: Path) -> Iterator[MakeNodes]:
    with ExitStack() as opened:

        def make(kind: str = "nginx", changes: Mapping[str, str] = {}) -> Nodes:
            postgres.execute("DROP DATABASE IF EXISTS nodes", "CREATE DATABASE nodes")
            return Nodes(tmp_path, postgres.url("nodes"), kind, opened, changes)

        yield make


def who(client: MnemeClient) -> str:
    """Return which node answers: where it serves HTTP."""
    return client.get_stats().server.http_address


@pytest.mark.parametrize("kind", KINDS)
def test_a_tenants_calls_meet_one_node_with_each_of_its_keys(nodes: MakeNodes, kind: str) -> None:
    behind = nodes(kind)
    first = {tenant: who(behind.client(tenant)) for tenant in TENANTS}
    assert set(first.values()) == set(behind.processes), "each node has some of the tenants"
    with MnemeClient(next(iter(behind.processes.values())).address, api_key=ADMIN_KEY) as admin:
        others = {
            tenant: admin.create_api_key(tenant_id=tenant, name="another").secret
            for tenant in TENANTS
        }
    assert {tenant: who(behind.client(tenant, others[tenant])) for tenant in TENANTS} == first
    assert {tenant: asyncio.run(_who(behind, tenant)) for tenant in TENANTS} == first


async def _who(behind: Nodes, tenant: str) -> str:
    key = behind.keys[tenant]
    async with AsyncMnemeClient(behind.balancer.grpc, api_key=key, tenant=tenant) as client:
        return (await client.get_stats()).server.http_address


def test_what_the_header_says_opens_nothing(nodes: MakeNodes) -> None:
    behind = nodes()
    mine, other = TENANTS[:2]
    behind.client(other).record_events(
        [{"id": "e1", "session_id": "s", "event_type": "message", "text": "the heron fishes"}],
    )
    lying = behind.client(other, behind.keys[mine])
    assert lying.get_stats().tenant.tenant_id == mine
    assert list(lying.iter_events()) == []


@pytest.mark.parametrize("ending", ["killed", "stopped"])
def test_a_node_that_ends_is_not_missed_and_the_others_tenants_stay(
    nodes: MakeNodes, ending: str
) -> None:
    behind = nodes()
    clients = {tenant: behind.client(tenant, timeout=_WITHIN_S, retries=4) for tenant in TENANTS}
    first = {tenant: who(client) for tenant, client in clients.items()}
    gone = first[TENANTS[0]]
    recorded: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
    ended = threading.Event()
    failures: list[BaseException] = []

    def write(tenant: str) -> None:
        try:
            after = 0
            while after < 3:
                after += ended.is_set()
                name = f"e{len(recorded[tenant])}"
                event = {"id": name, "session_id": "s", "event_type": "message", "text": name}
                clients[tenant].record_events([event])
                recorded[tenant].append(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(tenant,)) for tenant in TENANTS[:6]]
    for thread in threads:
        thread.start()
    while not all(recorded[tenant] for tenant in TENANTS[:6]) and not failures:
        time.sleep(0.05)
    process = behind.processes[gone]
    if ending == "killed":
        process.kill()
    else:
        assert process.stop() == 0
    ended.set()
    for thread in threads:
        thread.join(_WITHIN_S)
    assert failures == []
    for tenant, client in clients.items():
        assert [one.id for one in client.iter_events(session_id="s")] == recorded[tenant]
        assert who(client) != gone
        assert first[tenant] in (gone, who(client)), "who was not there did not move"


def test_a_watch_that_idles_outlives_the_proxys_time_out(nodes: MakeNodes) -> None:
    behind = nodes(changes={"grpc_read_timeout 1h;": "grpc_read_timeout 5s;"})
    client = behind.client(TENANTS[0])
    seen: list[str] = []
    told = threading.Event()

    def follow() -> None:
        for one in client.watch_events():
            seen.extend([one.event.id] if one.event.id else [])  # It begins with none.
            if one.event.id == "last":
                told.set()
                return

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    names = ["first", "last"]
    for name in names:
        time.sleep(7.0)  # Longer than the proxy lets it be idle.
        client.record_events(
            [{"id": name, "session_id": "s", "event_type": "message", "text": name}]
        )
    assert told.wait(_WITHIN_S), seen
    assert seen == names
