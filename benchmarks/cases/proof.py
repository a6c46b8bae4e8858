"""Proof: certificates out of a large log, and what the log costs whoever records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.messages import RecordEventsRequest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.features.proof.store.log import SqlLog

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.recording_server import UNLOGGED
from benchmarks.report import Row, at_most, both, in_time, milliseconds
from benchmarks.server import Server
from benchmarks.texts import events, questions

MADE_MS, BESIDE_BYTES = 30.0, 20_000
TIMES_UNLOGGED = 1.1
_LEAVES_A_MEMORY = 100
_PARTS = 5
_RESULTS = 10
_BATCH = 100
_BATCHES = 40
_TURNS = 15
_TENANTS = ("logged", UNLOGGED)
_THREADS = 4
_WARM_UP = 10
_SETTINGS = {"embed_queue_limit": "2000000"}


def run(context: Context) -> list[Row]:
    """Measure certificates, and recording with the log and without."""
    return [_certified(context), _recorded(context)]


def _certified(context: Context) -> Row:
    data = context.work / "proof"
    count = context.sizes.memories // 10
    with Server(data) as server:
        leaves = _fill(context, server, data / "tenants" / "proof", count)
        client = server.tenant("proof", create=False)
        sizes: list[int] = []

        def certify(question: str) -> None:
            answer = client.recall_with_certificate(question, limit=_RESULTS)
            sizes.append(_beside_contents(answer.certificate.json))

        some = max(20, context.sizes.calls // 2)
        context.say(f"proof: certificates among {leaves:,} leaves")
        made = context.rounds(
            certify, lambda: context.fresh_questions(some), warm_up=questions(20, seed=11),
            cpu_s=server.cpu_s,
        )  # fmt: skip
    return Row(
        f"RecallWithCertificate, {_RESULTS} results among {leaves:,} leaves",
        f"p95 ≤ {MADE_MS:.0f} ms; ≤ {BESIDE_BYTES / 1000:.0f} KB beside its contents",
        f"p50 {milliseconds(made.p50_ms)}, p95 {milliseconds(made.p95_ms)}, of the processor's time"
        f" {milliseconds(made.cpu_ms or 0.0)}; {max(sizes) / 1000:.1f} KB",
        both(in_time(made.p95_ms, MADE_MS), at_most(max(sizes), BESIDE_BYTES)),
        f"a new question each time, embedded; {count:,} memories, whose leaves lie between those of"
        " what is gone",
        {"bytes_beside_contents": max(sizes), "leaves": leaves, **made.figures()},
    )


def _fill(context: Context, server: Server, folder: Path, count: int) -> int:
    """Store memories and, between them, leaves of what is gone; return how many leaves there
    are."""
    context.say(f"proof: storing {count:,} memories")
    texts = [one.text for one in events(count, seed=21)]
    share = count // _PARTS
    for part in range(_PARTS):
        client = server.tenant("proof", create=part == 0)
        some = range(part * share, (part + 1) * share)
        made: Any = ({"id": f"m{n}", "text": texts[n], "keep_copy": True} for n in some)
        for _ in client.create_memories(made):
            pass
        memories.wait_until_embedded(client, lambda _: None)
        server.stop()
        _log_gone(folder, share * (_LEAVES_A_MEMORY - 1))
        server.start()
    return int(server.tenant("proof", create=False).get_checkpoint().size)


def _log_gone(folder: Path, count: int) -> None:
    """Append leaves to a tenant's log while no server runs, as of events that are not there."""
    store = SqliteTenantStore(folder, folder.name, tenant_schema())
    try:
        with store.write() as unit:
            unit.get(SqlLog)._append([os.urandom(32) for _ in range(count)])
    finally:
        store.close()


def _beside_contents(certificate: str) -> int:
    """Return the bytes of a certificate that are not contents."""
    results = json.loads(certificate)["body"]["results"]
    return len(certificate.encode()) - sum(len(one["content"].encode()) for one in results)


def _recorded(context: Context) -> Row:
    """Compare the processor time of recording into a tenant that is logged and into one that is
    not, in turns: that of the threads that serve calls."""
    context.say("proof: recording with the log and without")
    module = "benchmarks.recording_server"
    with Server(context.work / "proof-recording", _SETTINGS, module=module) as server:
        steps = [_steps(server, server.tenant(name), n) for n, name in enumerate(_TENANTS)]
        turns = [tuple(map(next, steps)) for _ in range(_TURNS)]
    with_us, without_us = (sum(each) / _TURNS for each in zip(*turns, strict=True))
    ratio = with_us / without_us
    return Row(
        f"RecordEvents, batches of {_BATCH}: what the log costs",
        f"≤ {TIMES_UNLOGGED} times without",
        f"{ratio:.3f} times: {with_us:.1f} µs of processor time for an event, {without_us:.1f}"
        " without",
        at_most(ratio, TIMES_UNLOGGED),
        f"one server and two tenants, {_TURNS * _BATCHES * _BATCH:,} events each, in turns; the"
        " threads that serve calls; nothing is embedded",
        {"ratio": ratio, "logged_us": with_us, "unlogged_us": without_us},
    )


def _steps(server: Server, client: MnemeClient, seed: int) -> Iterator[float]:
    """Record some batches at each step, and yield the microseconds for an event."""
    made = memories.batches(events(1_000_000, seed=31 + seed), _BATCH)
    record: Any = client.raw.event.RecordEvents
    for _ in range(_WARM_UP):
        record(RecordEventsRequest(events=next(made)), metadata=client.metadata)
    while True:
        requests = [RecordEventsRequest(events=next(made)) for _ in range(_BATCHES)]
        before = _served_s(server)
        for request in requests:
            record(request, metadata=client.metadata)
        yield (_served_s(server) - before) / (_BATCHES * _BATCH) * 1e6


def _served_s(server: Server) -> float:
    """Return the processor time of the threads that serve calls: few, when one calls after the
    other."""
    return sum(server.thread_s(f"grpc-{number}") for number in range(_THREADS))
