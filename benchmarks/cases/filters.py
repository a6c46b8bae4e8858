"""Recall through filters that leave a few of many memories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mneme import MnemeClient

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Rounds
from benchmarks.report import Row, at_least, both, milliseconds
from benchmarks.server import Server

KEPT_PER = 10_000
"""A filter leaves one memory in so many."""
_THEN = datetime(2031, 7, 1, 12, tzinfo=UTC)
_SESSION = "the few"
_NAMES = {"agent_id": "auditor", "user_id": "the-one", "project": "the-project"}
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "session": {"session_id": _SESSION},
    "agent": {"agent_id": _NAMES["agent_id"]},
    "user": {"user_id": _NAMES["user_id"]},
    "project": {"project": _NAMES["project"]},
    "tag": {"tags": ["the-tag"]},
    "time": {"start_time": _THEN, "end_time": _THEN + timedelta(days=1)},
    "event type": {"event_types": ["on_audit"]},
    "severity": {"min_severity": "warn"},
    "tool": {"name": "the_tool"},
    "author": {"author": "inspector"},
}


def run(context: Context) -> list[Row]:
    """Measure which part of what a filter leaves is found, in each mode, and how fast."""
    data = memories.copy(context.memories, context.work / "filters")
    return measured(context, data, context.sizes.memories)


def measured(context: Context, data: Path, count: int) -> list[Row]:
    """Measure in a data folder with `count` memories, which is changed."""
    kept = max(2, count // KEPT_PER)
    with Server(data) as server:
        client = server.tenant(memories.TENANT, create=False)
        _record(client, kept)
        plain = _times(context, client, {}, "nothing")
        rows = [_row(context, client, name, count, kept, plain) for name in FILTERS]
    return rows


def _record(client: MnemeClient, count: int) -> None:
    client.start_session(session_id=_SESSION, tags=["the-tag"], started_at=_THEN, **_NAMES)
    events: list[Any] = [
        {
            "session_id": _SESSION,
            "event_type": "on_audit",
            "severity": "warn",
            "name": "the_tool",
            "timestamp": _THEN + timedelta(minutes=place),
            "payload": {"role": "inspector"},
            "text": f"The audit went well and found what was expected, says paper {place}",
        }
        for place in range(count)
    ]
    client.record_events(events, wait_indexed=True)


def _row(
    context: Context, client: MnemeClient, name: str, count: int, kept: int, plain: Rounds
) -> Row:
    filter_ = FILTERS[name]
    # An exact search of what is left gives all of it: it is no more than the limit.
    found = {
        mode: len(_ask(client, "Did the audit find what was expected?", filter_, mode)) / kept
        for mode in ("hybrid", "dense", "lexical")
    }
    times = _times(context, client, filter_, name)
    shares = ", ".join(f"{mode} {share:.0%}" for mode, share in found.items())
    return Row(
        f"Recall, {count:,} memories, {kept} left by a filter on {name}",
        "all found",
        f"{shares}; p50 {milliseconds(times.p50_ms)}, p95 {milliseconds(times.p95_ms)}",
        both(*(at_least(share, 1.0) for share in found.values())),
        f"of what exact search gives; new questions, hybrid; p95 without a filter"
        f" {milliseconds(plain.p95_ms)}",
        times.figures(),
    )


def _ask(
    client: MnemeClient, question: str, filter_: Mapping[str, Any], mode: str = "hybrid"
) -> list[str]:
    answer = client.recall(question, mode=mode, limit=100, every_copy=True, **filter_)
    return [result.source_id for result in answer.results]


def _times(context: Context, client: MnemeClient, filter_: Mapping[str, Any], name: str) -> Rounds:
    context.say(f"filters: {name}")
    calls = context.sizes.calls

    def ask(question: str) -> None:
        client.recall(question, **filter_)

    return context.rounds(ask, lambda: context.fresh_questions(calls), in_flight=1)
