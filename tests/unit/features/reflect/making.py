"""Records with and without something to find."""

from __future__ import annotations

import numpy as np
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import SessionStatus
from unit.features.reflect.record import DAY, Record

TOOLS = ("search", "book", "pay", "refund", "think", "mail")


def random_calls(
    seed: int, sessions: int = 80, length: int = 15, *, error_rate: float = 0.1, moody: bool = False
) -> Record:
    """Sessions of random calls, some of which fail, and random outcomes: nothing to find.

    `moody` sessions differ from each other in how often their calls fail, as real ones do, and in
    what tools they prefer.
    """
    rng = np.random.default_rng(seed)
    record = Record()
    for number in range(sessions):
        reward = float(rng.random() < 0.5)
        session = record.session(f"s{number:04d}", at=number * 600.0, reward=reward)
        rate = error_rate * (rng.gamma(0.5, 2.0) if moody else 1.0)
        liking = rng.dirichlet(np.full(len(TOOLS), 1.0 if moody else 1e6))
        for step in range(int(rng.integers(length // 2, length + length // 2))):
            tool = str(rng.choice(TOOLS, p=liking))
            failed = rng.random() < rate
            message = f"could not {tool} number {rng.integers(1_000_000)}" if failed else ""
            record.call(session, tool, number * 600.0 + step, error=message)
    return record


def daily_sessions(
    seed: int,
    days: int = 30,
    *,
    success: tuple[float, float] = (0.6, 0.6),
    latency_ms: tuple[float, float] = (200.0, 200.0),
    per_day: tuple[float, float] = (8.0, 8.0),
    cost: tuple[float, float] = (0.1, 0.1),
) -> Record:
    """Sessions over days; each measure goes evenly from its first value to its second."""
    rng = np.random.default_rng(seed)
    record = Record()
    number = 0
    for day in range(days):
        share = day / (days - 1)

        def now(ends: tuple[float, float], share: float = share) -> float:
            return ends[0] + (ends[1] - ends[0]) * share

        for _ in range(max(1, int(rng.poisson(now(per_day))))):
            number += 1
            at = day * DAY + float(rng.uniform(0, DAY))
            won = rng.random() < now(success)
            status = SessionStatus.COMPLETED if won else SessionStatus.ERROR
            session = record.session(f"s{number:05d}", at=at, status=status)
            for step in range(4):
                record.add(
                    session,
                    EventType.LLM_RESPONSE,
                    at + step,
                    model="m",
                    duration=int(rng.gamma(4, now(latency_ms) / 4) * 1_000),
                    cost=float(rng.gamma(2, now(cost) / 8)),
                )
    return record


def most_false_alarms(runs: int, rate: float = 0.05) -> int:
    """How many of so many runs may give a false alarm when their rate is as stated: three standard
    deviations above what is expected."""
    return int(runs * rate + 3 * (runs * rate * (1 - rate)) ** 0.5)
