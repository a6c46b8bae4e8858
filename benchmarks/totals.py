"""How long the figures of `GetStats` take that a database gives: counted, and as they are kept.

`python -m benchmarks.totals 1000000` makes a tenant of so many events, in a folder that is removed
again.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.features.events.model import Agent, Event, Session
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.events.store.tables import agents, events, sessions
from sqlalchemy import func, select

_EACH = 100
_AT_ONCE = 50_000
_TIMES = 21


def main(count: int) -> None:
    """Make the tenant, take the times, print them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteTenantStore(Path(folder), "tenant", tenant_schema())) as store,
    ):
        for first in range(0, count, _AT_ONCE):
            _fill(store, first, min(count, first + _AT_ONCE))
        with store.read() as unit:

            def counted() -> list[int]:
                return [
                    unit._connection.execute(
                        select(func.count()).select_from(table).where(table.c.tenant_id == "tenant")
                    ).scalar_one()
                    for table in (events, sessions, agents)
                ]

            def kept() -> list[int]:
                return [
                    one.total()
                    for one in (unit.get(SqlEvents), unit.get(SqlSessions), unit.get(SqlAgents))
                ]

            assert counted() == kept()
            for name, figures in (("counted", counted), ("kept", kept)):
                print(f"{name}: {figures()} in {_median_ms(figures):.3f} ms")


def _fill(store: SqliteTenantStore, first: int, last: int) -> None:
    names = [f"s{number}" for number in range(first // _EACH, last // _EACH)]
    with store.write() as unit:
        unit.get(SqlSessions).save([Session(name, started_us=1) for name in names])
        unit.get(SqlAgents).add_activity({name: Agent(name) for name in names[::10]})
        for name in names:
            unit.get(SqlEvents).append([_event(name, place) for place in range(1, _EACH + 1)])


def _event(session: str, place: int) -> Event:
    return Event(
        f"{session}-{place}", session, "agent", "message", 2, place, "a text of some words", "", "",
        "", "", 0, 0, 0.0, None, "{}", "{}", searchable=True, sequence=place,
    )  # fmt: skip


def _median_ms(figures: Callable[[], object]) -> float:
    taken = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        figures()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


if __name__ == "__main__":
    main(int(sys.argv[1]))
