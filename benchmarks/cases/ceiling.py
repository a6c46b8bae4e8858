"""What Python's gRPC gives here at best, and the server's smallest calls beside it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TypeAlias

import grpc
from mneme.messages import GetSessionRequest

from benchmarks import echo
from benchmarks.context import Context
from benchmarks.measure import Pending, Rounds, flood, time_calls
from benchmarks.report import Row, Verdict, milliseconds
from benchmarks.server import Server

_IN_FLIGHT = 32
_MESSAGE = b"x" * 64
_Raw: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"
_HEALTH = "/grpc.health.v1.Health/Check"


def run(context: Context) -> list[Row]:
    """Measure echo, health check and GetSession, in turns."""
    with echo.running() as address, Server(context.work / "ceiling") as server:
        client = server.tenant("small")
        client.start_session(session_id="s", agent_id="a")
        raw = client.raw.event.GetSession
        request, metadata = GetSessionRequest(session_id="s"), client.metadata
        with (
            grpc.insecure_channel(address) as echo_channel,
            grpc.insecure_channel(server.address) as health_channel,
        ):
            say: _Raw = echo_channel.unary_unary(echo.METHOD)
            check: _Raw = health_channel.unary_unary(_HEALTH)
            return [
                _row(context, "echo, bare", "9,700/s at 32 in flight, 0.5 ms alone (reference)",
                     lambda: say(_MESSAGE), lambda: say.future(_MESSAGE),
                     "synchronous grpc server, 32 threads, 64 bytes back and forth"),
                _row(context, "health check", "",
                     lambda: check(b""), lambda: check.future(b""),
                     "the server's smallest call: no key, no tenant"),
                _row(context, "GetSession", "",
                     lambda: raw(request, metadata=metadata),
                     lambda: raw.future(request, metadata=metadata),
                     "authenticated, checked, logged, one row read from SQLite"),
            ]  # fmt: skip


def _row(
    context: Context,
    what: str,
    budget: str,
    call: Callable[[], object],
    send: Callable[[], Pending],
    how: str,
) -> Row:
    context.say(f"ceiling: {what}")
    calls = context.sizes.calls
    flood(send, calls, _IN_FLIGHT)  # Warms up.
    busy, alone = [], []
    for _ in range(context.sizes.rounds):
        busy.append(flood(send, calls * 8, _IN_FLIGHT))
        alone.append(time_calls(lambda _: call(), range(calls)))
    rounds = Rounds(alone)
    rate = statistics.median(busy)
    return Row(
        what=what,
        budget=budget,
        measured=f"{rate:,.0f}/s at {_IN_FLIGHT} in flight; alone {milliseconds(rounds.p50_ms)}"
        f" (p95 {milliseconds(rounds.p95_ms)})",
        verdict=Verdict.NONE,
        how=how,
        figures={**rounds.figures(), "per_second_32_in_flight": rate},
    )
