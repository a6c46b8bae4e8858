"""Profiles of users who are known by many facts, measured through gRPC.

    python -m benchmarks.profiles [--facts 10000] [--calls 300]

Fills a server of its own with as many facts of one user and of another, of fifty projects; one in
two thousand is pinned, one in forty important. Then asks for the profile of the first.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mneme import MnemeClient

from benchmarks.sessions import server, timed, work

BUDGET_MS = 15.0
"""GetProfile, p95, over 10,000 facts of one user."""

_USERS = ("ann", "bob")
_PROJECTS = 50
_PINNED, _IMPORTANT = 2_000, 40
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def facts(count: int) -> Iterator[dict[str, Any]]:
    """Yield memories to store, each user's in turn; the same each time."""
    rng = random.Random(42)
    for number in range(count):
        for user in _USERS:
            yield {
                "text": f"{work(rng)[1]}, ticket {number}",
                "user_id": user,
                "project": f"project-{number % _PROJECTS}",
                "since": _BEGIN + timedelta(hours=number),
                "pinned": number % _PINNED == 0,
                "importance": "high" if number % _IMPORTANT == 0 else "normal",
            }


def measure(client: MnemeClient, calls: int) -> dict[str, dict[str, float]]:
    """Return the figures by what is asked."""
    return {
        "GetProfile": timed(calls, lambda _: client.profile("ann")),
        "GetProfile, 4,000 tokens": timed(
            calls, lambda _: client.profile("ann", token_budget=4_000)
        ),
        "GetProfile, of a project": timed(
            calls, lambda n: client.profile("ann", project=f"project-{n % _PROJECTS}")
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code tells whether the budget is met."""
    parser = argparse.ArgumentParser(description="Measure profiles of users.")
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder) / "data") as client:
        for _ in client.create_memories(facts(given.facts)):
            pass
        figures = measure(client, given.calls)
    for what, found in figures.items():
        print(f"{what:<26} p50 {found['p50_ms']:6.1f} ms  p95 {found['p95_ms']:6.1f} ms")
    return 0 if figures["GetProfile"]["p95_ms"] <= BUDGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
