"""Recall over HTTP beside Recall over gRPC: what the other edge costs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Rounds
from benchmarks.report import Row, in_time, milliseconds
from benchmarks.server import Server

MORE_MS = 1.0


def run(context: Context) -> list[Row]:
    """Measure the same questions over REST, Connect and gRPC, one round after another."""
    data = memories.copy(context.memories, context.work / "http")
    with Server(data, {"http_listen": "127.0.0.1:0"}) as server:
        client = server.tenant(memories.TENANT, create=False)
        key = dict(client.metadata)["authorization"]
        calls: dict[str, Callable[[str], object]] = {
            "gRPC": lambda question: client.recall(question, limit=10),
            "REST": _rest(server.http_address, key),
            "Connect": _connect(server.http_address, key),
        }
        context.say("recall over HTTP")
        known = context.fresh_questions(context.sizes.calls)
        measured = {
            name: context.rounds(call, lambda: known, warm_up=known, cpu_s=server.cpu_s)
            for name, call in calls.items()
        }
    grpc = measured["gRPC"]
    how = (
        f"{context.sizes.rounds} rounds of {context.sizes.calls} calls, one after another, over one"
        " connection; the same questions, embeddings from the cache; limit 10"
    )
    return [
        Row(
            f"Recall over {name}, {context.sizes.memories:,} memories",
            f"≤ {MORE_MS:g} ms more than gRPC",
            f"{milliseconds(rounds.p50_ms - grpc.p50_ms)} more: {_times(rounds)};"
            f" gRPC {_times(grpc)}",
            in_time(rounds.p50_ms - grpc.p50_ms, MORE_MS),
            how,
            rounds.figures(),
        )
        for name, rounds in measured.items()
        if name != "gRPC"
    ]


def _rest(address: str, key: str) -> Callable[[str], object]:
    ask = _asking(address, key)
    return lambda question: ask(
        "GET", "/api/recall?" + urlencode({"query": question, "limit": 10}), None
    )


def _connect(address: str, key: str) -> Callable[[str], object]:
    ask = _asking(address, key)
    path = "/mneme.v1.RecallService/Recall"
    return lambda question: ask("POST", path, json.dumps({"query": question, "limit": 10}))


def _asking(address: str, key: str) -> Callable[[str, str, str | None], object]:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    headers = {"authorization": key, "content-type": "application/json"}

    def ask(verb: str, path: str, body: str | None) -> object:
        connection.request(verb, path, body, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if answer.status != 200 or not told["results"]:
            raise AssertionError(f"{verb} {path}: {answer.status} {told}")
        return told

    return ask


def _times(rounds: Rounds) -> str:
    cpu = "" if rounds.cpu_ms is None else f", {milliseconds(rounds.cpu_ms)} of processor time"
    return f"p50 {milliseconds(rounds.p50_ms)}, p95 {milliseconds(rounds.p95_ms)}{cpu}"
