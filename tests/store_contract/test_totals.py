"""Totals are kept, not counted; they are what counting would give, whatever was written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.model import EventFilter, SessionFilter
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.learn.model import LessonFilter, ReflectionFilter
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.store.reflections import SqlReflections
from mneme_server.features.memory.model import MemoryFilter
from mneme_server.features.memory.store import SqlMemories
from store_contract.conftest import Closing, SharedStores, fill
from store_contract.samples import agent, event, lesson, memory, reflection, session

Store = TenantStore[Any]
Write = Callable[[Any], object]

_names = st.sampled_from([f"n{n}" for n in range(6)])
_some = st.lists(_names, min_size=1, max_size=4)


def _lessons(names: list[str], archived: list[bool]) -> Write:
    return lambda unit: unit.get(SqlLessons).save(
        [
            lesson(name, archived_us=1 if old else None)
            for name, old in zip(names, archived, strict=True)
        ]
    )


def _reflection(name: str) -> Write:
    def write(unit: Any) -> None:
        if name not in unit.get(SqlReflections).get_many([name]):
            unit.get(SqlReflections).add(reflection(name), None)

    return write


def _memories(names: list[str]) -> Write:
    return lambda unit: unit.get(SqlMemories).save(
        [memory(name) for name in dict.fromkeys(names)], dict.fromkeys(names, 1)
    )


def _events(name: str, count: int) -> Write:
    def write(unit: Any) -> None:
        unit.get(SqlSessions).save([session(name)])
        chain = unit.get(SqlEvents).chain(name, 0, 1_000)
        places = range(len(chain) + 1, len(chain) + count + 1)
        unit.get(SqlEvents).append([event(f"{name}-{n}", name, n) for n in places])

    return write


_writes: st.SearchStrategy[Write] = st.one_of(
    st.builds(
        lambda names: lambda unit: unit.get(SqlSessions).save([session(name) for name in names]),
        _some,
    ),
    # What was looked for in a transaction may be remembered by it.
    st.builds(lambda names: lambda unit: unit.get(SqlSessions).get_many(names), _some),
    st.builds(lambda name: lambda unit: unit.get(SqlSessions).get(name), _names),
    st.builds(_events, _names, st.integers(1, 40)),
    st.builds(
        lambda names: lambda unit: unit.get(SqlAgents).add_activity({n: agent(n) for n in names}),
        _some,
    ),
    _some.flatmap(
        lambda names: st.builds(
            _lessons,
            st.just(names),
            st.lists(st.booleans(), min_size=len(names), max_size=len(names)),
        )
    ),
    st.builds(_reflection, _names),
    st.builds(_memories, _some),
    st.builds(lambda names: lambda unit: unit.get(SqlMemories).remove(names), _some),
    st.builds(lambda names: lambda unit: unit.get(SqlReflections).remove(names), _some),
)
_transactions = st.lists(st.tuples(st.lists(_writes, max_size=4), st.booleans()), max_size=8)


_ALL_MEMORIES = MemoryFilter(include_superseded=True)


class _Undone(Exception):
    pass


def _kept(unit: Any) -> dict[str, int]:
    return {
        "events": unit.get(SqlEvents).total(),
        "sessions": unit.get(SqlSessions).total(),
        "sessions listed": unit.get(SqlSessions).count(SessionFilter()),
        "sessions active": unit.get(SqlActivity).count(ActivityFilter()),
        "agents": unit.get(SqlAgents).total(),
        "lessons": unit.get(SqlLessons).total(),
        "lessons listed": unit.get(SqlLessons).count(LessonFilter()),
        "lessons and archived ones": unit.get(SqlLessons).count(
            LessonFilter(include_archived=True)
        ),
        "reflections": unit.get(SqlReflections).count(ReflectionFilter()),
        "memories": unit.get(SqlMemories).count(_ALL_MEMORIES),
    }


def _counted(unit: Any) -> dict[str, int]:
    many = 10_000
    sessions = len(unit.get(SqlSessions).page(SessionFilter(), None, many))
    lessons = len(unit.get(SqlLessons).page(LessonFilter(), None, many))
    return {
        "events": len(unit.get(SqlEvents).page(EventFilter(), None, many, descending=False)),
        "sessions": sessions,
        "sessions listed": sessions,
        "sessions active": sessions,
        "agents": len(unit.get(SqlAgents).page(None, many)),
        "lessons": lessons,
        "lessons listed": lessons,
        "lessons and archived ones": len(
            unit.get(SqlLessons).page(LessonFilter(include_archived=True), None, many)
        ),
        "reflections": len(unit.get(SqlReflections).page(ReflectionFilter(), None, many)),
        "memories": len(unit.get(SqlMemories).page(_ALL_MEMORIES, None, many)),
    }


@settings(max_examples=40)
@given(transactions=_transactions)
def test_totals_are_what_counting_gives_after_any_sequence_of_writes(
    transactions: list[tuple[list[Write], bool]],
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Closing(SharedStores(Path(folder), tenant_schema()))) as stores,
    ):
        fill(stores.open("rival"))
        store = stores.open("acme")
        for writes, undone in transactions:
            try:
                with store.write() as unit:
                    for write in writes:
                        write(unit)
                    if undone:
                        raise _Undone
            except _Undone:
                pass
            with store.read() as unit:
                assert _kept(unit) == _counted(unit)


def test_totals_outlive_the_store(stores: Any) -> None:
    before = stores.open("acme")
    fill(before)
    before.close()
    with stores.open("acme").read() as unit:
        assert _kept(unit) == _counted(unit)
        assert _kept(unit)["events"] == 2


def test_a_session_is_counted_once_whatever_was_looked_for_before(store: Store) -> None:
    with store.write() as unit:
        assert unit.get(SqlSessions).get("s") is None
        assert unit.get(SqlSessions).get_many(["t"]) == {}
        for _ in range(2):
            unit.get(SqlSessions).save([session("s"), session("t"), session("u")])
    with store.write() as unit:
        assert list(unit.get(SqlSessions).get_many(["t", "v"])) == ["t"]
        unit.get(SqlSessions).save([session("t"), session("u"), session("v")])
    with store.read() as unit:
        assert unit.get(SqlSessions).total() == 4
