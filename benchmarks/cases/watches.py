"""A thousand watches on one server: how soon do they see an event, and what do they cost calls?"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from mneme import MnemeClient
from mneme.messages import RecallRequest, WatchEventsRequest
from mneme.v1.event_service_pb2_grpc import EventServiceStub

from benchmarks.context import Context
from benchmarks.measure import percentile
from benchmarks.report import NO_BUDGET, Row, at_most, in_time, milliseconds
from benchmarks.server import Server

WATCHES, TENANTS, WORKERS = 1_000, 10, 8
SEEN_MS, RATIO = 1_000.0, 1.5
_A_CONNECTION = 25
_WARM = 20


def run(context: Context) -> list[Row]:
    """Open them on few workers; then time events to all of them, and recall beside them."""
    settings = {"workers": str(WORKERS), "max_uploads": "2"}
    with Server(context.work / "watches", settings) as server:
        clients = [server.tenant(f"watched-{number}") for number in range(TENANTS)]
        for client in clients:
            client.record_events([_event("the first")])
        before = server.memory()["anonymous"]
        alone = _recall_p95(context, clients[0])
        context.say(f"watches: opening {WATCHES:,}")
        with _watches(server.address, clients) as watches:
            each = (server.memory()["anonymous"] - before) / WATCHES
            beside = _recall_p95(context, clients[0])
            seen = [_seen_s(clients, watches, number) for number in range(context.sizes.rounds)]
    slowest = max(seen) * 1000
    return [
        Row(
            f"{WATCHES:,} watches of {TENANTS} tenants on {WORKERS} workers: an event for each",
            f"all have it within {milliseconds(SEEN_MS)}",
            f"{milliseconds(statistics.median(seen) * 1000)}, at worst {milliseconds(slowest)}",
            in_time(slowest, SEEN_MS),
            "from the first of the ten commits until the last watch has read its event, one client"
            " process",
            {"median_ms": statistics.median(seen) * 1000, "worst_ms": slowest},
        ),
        Row(
            f"Recall beside {WATCHES:,} open watches",
            f"p95 ≤ {RATIO} times that without",
            f"{beside / alone:.2f} times: {milliseconds(beside)}, without {milliseconds(alone)}",
            at_most(beside / alone, RATIO),
            "one call after the other; nothing is recorded meanwhile",
            {"ratio": beside / alone, "p95_ms": beside, "p95_ms_without": alone},
        ),
        Row(
            "memory of an open watch",
            "",
            f"{each / 1000:.0f} KB",
            NO_BUDGET,
            f"the server's, {_A_CONNECTION} on a connection",
            {"bytes": each},
        ),
    ]


def _event(text: str) -> dict[str, Any]:
    return {"session_id": "s", "event_type": "message", "text": text}


@contextmanager
def _watches(address: str, clients: list[MnemeClient]) -> Iterator[list[Any]]:
    """Open them all, and read where each begins."""
    channels: list[grpc.Channel] = []
    opened: list[Any] = []
    try:
        for client in clients:
            for _ in range(WATCHES // TENANTS // _A_CONNECTION):
                own = [("grpc.use_local_subchannel_pool", 1)]
                channels.append(grpc.insecure_channel(address, own))
                stub = EventServiceStub(channels[-1])
                some = [
                    stub.WatchEvents(WatchEventsRequest(), metadata=client.metadata)
                    for _ in range(_A_CONNECTION)
                ]
                for watch in some:
                    next(watch)
                opened += some
        yield opened
    finally:
        for channel in channels:
            channel.close()


def _seen_s(clients: list[MnemeClient], watches: list[Any], number: int) -> float:
    """Record an event for each tenant; return the seconds until every watch has read its own."""
    text = f"event {number}"
    start = time.perf_counter()
    recording = [
        threading.Thread(target=client.record_events, args=([_event(text)],)) for client in clients
    ]
    for thread in recording:
        thread.start()
    for watch in watches:
        if next(watch).event.text != text:
            raise AssertionError("a watch saw another event")
    took = time.perf_counter() - start
    for thread in recording:
        thread.join()
    return took


def _recall_p95(context: Context, client: MnemeClient) -> float:
    """Return the p95 of calls one after the other, in milliseconds."""
    times = []
    for question in context.fresh_questions(context.sizes.calls + _WARM):
        start = time.perf_counter()
        client.raw.recall.Recall(RecallRequest(query=question), metadata=client.metadata)
        times.append(time.perf_counter() - start)
    return percentile(times[_WARM:], 95) * 1000
