"""Recording events: how many a second are durable, and how soon they can be found."""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from mneme import MnemeClient
from mneme.messages import NewEvent, RecordEventsRequest
from mneme_server.engine.embedding.local import LocalEmbedder

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Rounds, time_calls
from benchmarks.report import NO_BUDGET, Row, at_most, at_rate, in_time, milliseconds
from benchmarks.server import Server
from benchmarks.texts import events

DURABLE, EMBEDDED = 10_000, 400
ONE_MS, THOUSAND_MS = 50.0, 2_500.0
TIMES_EMBEDDING = 2.0
_BATCH = 100
_MOST_A_SECOND = 25_000


def run(context: Context) -> list[Row]:
    """Measure batches from one and from four clients, and waiting for the index."""
    with Server(context.work / "recording") as server:
        rows = [
            _sustained(context, server, clients, searchable=searchable)
            for searchable in (True, False)
            for clients in (1, 4)
        ]
        rows.append(_embedded(context, server))
        rows += _waited_for(context, server)
    return rows


def _sustained(context: Context, server: Server, clients: int, *, searchable: bool) -> Row:
    kind = "searchable" if searchable else "not searchable"
    context.say(f"recording: clients: {clients}, {kind}")
    tenant = f"sustained-{clients}-{kind.replace(' ', '-')}"
    first = server.tenant(tenant)
    first.record_events([NewEvent(session_id="w", event_type="message", text="warm up")],
                        wait_indexed=True)  # fmt: skip
    share = int(context.sizes.record_s * _MOST_A_SECOND / clients)
    prepared = [requests_of(share, f"c{n}-", searchable=searchable) for n in range(clients)]
    before = server.cpu_s()
    counts, seconds = drive(first, prepared, context.sizes.record_s)
    cpu_us = (server.cpu_s() - before) / sum(counts) * 1e6
    pending = first.get_stats().tenant.pending_count
    # Otherwise what waits would slow down what follows.
    server.admin().delete_tenant(tenant).result()
    rate = sum(counts) / seconds
    what = f"RecordEvents, batches of {_BATCH}, {clients} client{'s'[: clients - 1]}"
    return Row(
        what=f"{what}, {kind}",
        budget=f"≥ {DURABLE:,}/s" if searchable else "",
        measured=f"{rate:,.0f} events/s; {cpu_us:,.0f} µs of processor time for one",
        verdict=at_rate(rate, DURABLE) if searchable else NO_BUDGET,
        how=f"{seconds:.1f} s without a pause, ids from the client"
        + (f"; embedding runs beside it, {pending:,} of {sum(counts):,} still wait"
           if searchable else ""),
        figures={
            "events_per_second": rate,
            "server_cpu_us_an_event": cpu_us,
            "seconds": seconds,
            "pending_at_end": pending,
        },
    )  # fmt: skip


def drive(
    client: MnemeClient, prepared: list[list[RecordEventsRequest]], limit_s: float
) -> tuple[list[int], float]:
    """Send each list from a thread of its own until the time is up; return events acknowledged."""
    counts = [0] * len(prepared)
    record, metadata = client.raw.event.RecordEvents, client.metadata
    failures: list[BaseException] = []
    started = time.perf_counter()

    def work(number: int) -> None:
        try:
            for request in prepared[number]:
                if time.perf_counter() - started >= limit_s:
                    return
                record(request, metadata=metadata)
                counts[number] += len(request.events)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(prepared))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return counts, time.perf_counter() - started


def requests_of(count: int, prefix: str, *, searchable: bool) -> list[RecordEventsRequest]:
    """Return batches of so many events in all, whose ids begin with the prefix."""
    seed = sum(map(ord, prefix)) + searchable
    requests = []
    for batch in memories.batches(events(count, seed), _BATCH, prefix):
        for event in batch:
            if not searchable:
                event.searchable = False
        requests.append(RecordEventsRequest(events=batch))
    return requests


def _embedded(context: Context, server: Server) -> Row:
    context.say("recording: until embedded and searchable")
    client = server.tenant("embedded")
    count = int(context.sizes.record_s * 800)
    requests = requests_of(count, "e-", searchable=True)
    client.recall("warm up")
    started = time.perf_counter()
    for request in requests:
        client.raw.event.RecordEvents(request, metadata=client.metadata)
    memories.wait_until_embedded(client, lambda _: None)
    rate = count / (time.perf_counter() - started)
    return Row(
        what="events embedded and searchable",
        budget=f"≥ {EMBEDDED}/s",
        measured=f"{rate:,.0f}/s",
        verdict=at_rate(rate, EMBEDDED),
        how=f"{count:,} events in batches of {_BATCH}, until none waits for its embedding",
        figures={"per_second": rate, "events": count},
    )


def _waited_for(context: Context, server: Server) -> list[Row]:
    client = server.tenant("waited-for")
    made = (memories.new_event(event, "w-") for event in events(1_000_000, 77))

    def record(batch: list[NewEvent]) -> None:
        client.record_events(batch, wait_indexed=True)

    context.say("recording: one event, wait_indexed")
    one = context.rounds(
        record,
        lambda: ([event] for event in itertools.islice(made, context.sizes.calls // 3)),
        warm_up=[[event] for event in itertools.islice(made, 5)],
        cpu_s=server.cpu_s,
    )
    embedding_ms = _embedding_ms(context, [event.text for event in itertools.islice(made, 500)])
    ratio = (one.cpu_ms or 0.0) / embedding_ms
    context.say("recording: 1,000 events, wait_indexed")
    thousand = Rounds(
        [time_calls(record, _lists(made, 1_000, 1)) for _ in range(max(3, context.sizes.rounds))]
    )
    return [
        Row(
            "RecordEvents of one, wait_indexed",
            f"p95 ≤ {ONE_MS:.0f} ms",
            f"p50 {milliseconds(one.p50_ms)}, p95 {milliseconds(one.p95_ms)}",
            in_time(one.p95_ms, ONE_MS),
            "recorded, embedded and found by meaning when the call returns",
            one.figures(),
        ),
        Row(
            "RecordEvents of one, wait_indexed: processor time",
            f"≤ {TIMES_EMBEDDING:.0f} times its embedding's",
            f"{ratio:.2f} times: {milliseconds(one.cpu_ms or 0.0)}, its embedding alone"
            f" {milliseconds(embedding_ms)}",
            at_most(ratio, TIMES_EMBEDDING),
            "the server's, with the commit; the embedding in a process of its own, one text after"
            " another",
            {"ratio": ratio, "server_cpu_ms": one.cpu_ms or 0.0, "embedding_cpu_ms": embedding_ms},
        ),
        Row(
            "RecordEvents of 1,000, wait_indexed",
            f"p95 ≤ {THOUSAND_MS / 1000:.1f} s",
            milliseconds(thousand.p50_ms),
            in_time(thousand.p50_ms, THOUSAND_MS),
            f"median of {len(thousand.rounds)} batches",
            thousand.figures(),
        ),
    ]


def _embedding_ms(context: Context, texts: list[str]) -> float:
    """Return the processor time to embed a text alone, in milliseconds: the median over rounds."""
    folder = os.environ.get("MNEME_MODEL_DIR")
    embedder = LocalEmbedder(Path(folder) if folder else None)
    share = len(texts) // (context.sizes.rounds + 1)
    used = []
    for number in range(context.sizes.rounds + 1):
        some = texts[number * share : (number + 1) * share]
        before = time.process_time()
        for text in some:
            embedder.embed([text])
        used.append((time.process_time() - before) / len(some) * 1000)
    embedder.close()
    return statistics.median(used[1:])  # The first round warms up.


def _lists(made: Iterator[NewEvent], size: int, count: int) -> list[list[NewEvent]]:
    return [list(itertools.islice(made, size)) for _ in range(count)]
