"""What Python's gRPC gives here at best, and the server's smallest calls beside it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeAlias

import grpc
from mneme.messages import GetSessionRequest

from benchmarks import echo
from benchmarks.context import Context
from benchmarks.measure import Pending, Rounds, flood, time_calls
from benchmarks.report import NO_BUDGET, Row, at_least, milliseconds
from benchmarks.server import Server

_IN_FLIGHT = 32
_MESSAGE = b"x" * 64
_Raw: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"
_HEALTH = "/grpc.health.v1.Health/Check"
_GET_SESSION = "/mneme.v1.EventService/GetSession"
_SHARE = 0.4
_RATE, _BEST = "per_second_32_in_flight", "per_second_at_best"
_ECHO = "echo, bare"
_REFERENCE = 9_700.0
"""Calls a second of the machine that times and rates were set for."""


def run(context: Context) -> list[Row]:
    """Measure echo, health check and GetSession, in turns."""
    with echo.running() as address, Server(context.work / "ceiling") as server:
        client = server.tenant("small")
        client.start_session(session_id="s", agent_id="a")
        request = GetSessionRequest(session_id="s").SerializeToString()
        metadata = client.metadata
        with (
            _connected(address, echo.METHOD) as say,
            _connected(server.address, _HEALTH) as check,
            _connected(server.address, _GET_SESSION) as ask,
        ):
            echoes = _row(
                context, _ECHO, f"{_REFERENCE:,.0f}/s at 32 in flight, 0.5 ms alone (reference)",
                lambda: next(say)(_MESSAGE), lambda: next(say).future(_MESSAGE),
                "synchronous grpc server, 32 threads, 64 bytes back and forth",
            )  # fmt: skip
            checks = _row(
                context, "health check", "",
                lambda: next(check)(b""), lambda: next(check).future(b""),
                "the server's smallest call: no key, no tenant",
            )  # fmt: skip
            sessions = _row(
                context, "GetSession", f"≥ {_SHARE} of the health check's rate",
                lambda: next(ask)(request, metadata=metadata),
                lambda: next(ask).future(request, metadata=metadata),
                "authenticated, checked, logged, one row read from SQLite",
            )  # fmt: skip
        share = sessions.figures[_RATE] / checks.figures[_RATE]
        measured = f"{sessions.measured}; {share:.2f} of the health check's"
        verdict = at_least(share, _SHARE)
        return [echoes, checks, replace(sessions, measured=measured, verdict=verdict)]


def pace(rows: Sequence[Row]) -> float:
    """Return how many times as many bare calls are answered here, in the best round, as on the
    machine that times and rates were set for; `rows` are those of `run`."""
    [echoes] = [row for row in rows if row.what == _ECHO]
    return echoes.figures[_BEST] / _REFERENCE


@contextmanager
def _connected(address: str, method: str) -> Iterator[Iterator[_Raw]]:
    """Yield a method's callables on two connections in turns.

    A connection may have 32 streams, and one counts until the server has cleared it away, a moment
    after its answer: bare gRPC without retries stays below that.
    """
    with ExitStack() as stack:
        own = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.insecure_channel(address, own) for _ in range(2)]
        for channel in channels:
            stack.enter_context(channel)
        yield itertools.cycle([channel.unary_unary(method) for channel in channels])


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
        verdict=NO_BUDGET,
        how=how,
        figures={**rounds.figures(), _RATE: rate, _BEST: max(busy)},
    )
