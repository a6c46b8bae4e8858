"""Many tenants on one server: memory stays bounded."""

from __future__ import annotations

import statistics
import time

from mneme import MnemeClient

from benchmarks.context import Context
from benchmarks.report import NO_BUDGET, Row, at_most, in_time, megabytes, milliseconds
from benchmarks.server import Server

INIT_MS, GROWTH_MB = 50.0, 100.0
_IDLE_S = 2.0
_EACH_BYTES = 4_000_000
"""About what a small tenant takes that was just written to."""


def run(context: Context) -> list[Row]:
    """Open one tenant after another, each with a memory, while idle ones are closed."""
    count = context.sizes.tenants
    open_limit = max(2, min(64, count // 4))
    settings = {
        "tenant_memory_bytes": str(open_limit * _EACH_BYTES),
        "tenant_idle_seconds": str(_IDLE_S),
    }
    with Server(context.work / "tenants", settings) as server:
        admin = server.admin()
        admin.get_stats()
        first_s: list[float] = []
        at: dict[str, int] = {"none": server.memory()["rss"]}
        for number in range(count):
            tenant = f"t{number}"
            before = time.perf_counter()
            admin.create_tenant(tenant)
            secret = admin.create_api_key(tenant, "benchmark").secret
            middle = time.perf_counter()
            with _client(server, secret) as client:
                opened = time.perf_counter()
                client.start_session(session_id="s", agent_id="a")
                first_s.append(time.perf_counter() - opened + middle - before)
                client.record_events(
                    [{"session_id": "s", "event_type": "message", "text": f"tenant {number}"}]
                )
                if not client.recall(f"tenant {number}").results:
                    raise AssertionError("the tenant's memory was not found")
            if (number + 1) % 50 == 0:
                context.say(f"tenants: {number + 1} of {count}")
            if number + 1 in (open_limit, count):
                at[f"{number + 1}"] = server.memory()["rss"]
        time.sleep(_IDLE_S * 2)
        at["idle"] = server.memory()["rss"]
        reopened = _reopen(server, count)
    growth = (at[f"{count}"] - at[f"{open_limit}"]) / 1e6
    p95 = statistics.quantiles(first_s, n=20)[-1] * 1000
    return [
        Row(
            f"memory, {count} tenants",
            f"≤ {GROWTH_MB:.0f} MB more than with {open_limit}",
            f"{megabytes(at['none'])} with none, {megabytes(at[f'{open_limit}'])} with"
            f" {open_limit}, {megabytes(at[f'{count}'])} with {count}, {megabytes(at['idle'])}"
            " when all are idle",
            at_most(growth, GROWTH_MB),
            f"each recorded and recalled something; about {open_limit} fit into the memory for open"
            f" tenants, {_IDLE_S:.0f} s idle",
            {f"rss_{name}": size for name, size in at.items()},
        ),
        Row(
            "a tenant's first use",
            f"p95 ≤ {INIT_MS:.0f} ms",
            f"p50 {milliseconds(statistics.median(first_s) * 1000)}, p95 {milliseconds(p95)}",
            in_time(p95, INIT_MS),
            "CreateTenant, CreateApiKey and the StartSession that makes its database",
            {"p50_ms": statistics.median(first_s) * 1000, "p95_ms": p95},
        ),
        Row(
            "opening an idle tenant again",
            "",
            milliseconds(reopened),
            NO_BUDGET,
            "GetStats of a small tenant that was closed, median",
            {"p50_ms": reopened},
        ),
    ]


def _client(server: Server, secret: str) -> MnemeClient:
    return MnemeClient(server.address, api_key=secret)


def _reopen(server: Server, count: int) -> float:
    admin = server.admin()
    times = []
    for number in range(min(30, count)):
        before = time.perf_counter()
        admin.get_stats(tenant_id=f"t{number}")
        times.append(time.perf_counter() - before)
    return statistics.median(times) * 1000
