"""Watches of a tenant share one reader and a window of what was recorded lately."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.errors import NotFound, Unavailable
from mneme_server.features.events import watches
from mneme_server.features.events.model import Event, EventFilter, Severity
from mneme_server.features.events.watches import Watch, Watches

PLAIN = Event(
    id="", session_id="s", agent_id="a", event_type="message", severity=Severity.INFO,
    timestamp_us=0, text="", name="", call_id="", error="", model="", input_tokens=0,
    output_tokens=0, cost_usd=0.0, duration_us=None, payload_json="{}", metadata_json="{}",
    searchable=True,
)  # fmt: skip


class Recorded:
    """One tenant's events, which a test records; counts how they are read."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.opened = 0
        self.reads = 0
        self.lent = 0
        self.failure: Exception | None = None

    @contextmanager
    def open(self, tenant_id: str) -> Iterator[Any]:
        if self.failure is not None:
            raise self.failure
        self.opened += 1
        self.lent += 1
        try:
            yield self
        finally:
            self.lent -= 1

    @contextmanager
    def read(self) -> Iterator[Any]:
        yield cast(Any, SimpleNamespace(get=lambda _repository: self))

    def last_cursor(self) -> int:
        return self.events[-1].cursor if self.events else 0

    def get_many(self, session_ids: Iterable[str]) -> Mapping[str, Any]:
        return {session_id: SimpleNamespace(project="") for session_id in session_ids}

    def recorded_after(self, cursor: int, filter_: EventFilter, limit: int) -> Sequence[Event]:
        self.reads += 1
        found = [e for e in self.events if e.cursor > cursor and filter_.matches(e, "")]
        return found[:limit]


class Bench:
    """Watches over one tenant, whose steps are done when a test says so."""

    def __init__(self) -> None:
        self.recorded = Recorded()
        self.steps: list[Callable[[], object]] = []
        self.made = 0
        self.watches: Watches[int] = Watches(
            cast(Any, self.recorded),
            lambda _tenant, step: self.steps.append(step),
            begun=lambda cursor: -cursor,
            made=self._make,
        )

    def _make(self, event: Event) -> int:
        self.made += 1
        return event.cursor

    def record(self, count: int, **changed: Any) -> None:
        for _ in range(count):
            cursor = self.recorded.last_cursor() + 1
            self.recorded.events.append(replace(PLAIN, cursor=cursor, **changed))
        self.watches.committed("t")

    def step(self) -> None:
        while self.steps:
            self.steps.pop(0)()

    def follow(self, after: int | None = None, **fields: Any) -> Watch[int]:
        watch = self.watches.follow("t", EventFilter(**fields), after)
        watch.on_ready(lambda: None)
        return watch


def taken(watch: Watch[int]) -> list[int]:
    found: list[int] = []
    while messages := watch.take():
        found += messages
    return found


def test_what_is_recorded_is_read_once_for_all_watches_and_made_once() -> None:
    bench = Bench()
    bench.record(5)
    watches = [bench.follow() for _ in range(10)]
    assert [taken(watch) for watch in watches] == [[-5]] * 10
    bench.recorded.reads = 0
    bench.record(3)
    bench.step()
    assert [taken(watch) for watch in watches] == [[6, 7, 8]] * 10
    assert (bench.recorded.reads, bench.made) == (1, 3)


def test_a_watch_holds_no_tenant_and_a_tenant_that_nobody_watches_is_not_read() -> None:
    bench = Bench()
    watch = bench.follow()
    taken(watch)
    assert bench.recorded.lent == 0
    watch.close()
    opened = bench.recorded.opened
    bench.record(3)
    bench.step()
    assert bench.recorded.opened == opened


def test_commits_are_gathered_while_the_reader_waits_for_its_turn() -> None:
    bench = Bench()
    watch = bench.follow()
    for _ in range(20):
        bench.record(1)
    assert len(bench.steps) == 1
    bench.step()
    assert taken(watch) == [0, *range(1, 21)]


def test_a_watch_that_falls_behind_the_window_reads_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "_WINDOW", 10)
    bench = Bench()
    slow, quick = bench.follow(), bench.follow()
    for _ in range(5):
        bench.record(8)
        bench.step()
        taken(quick)
    assert taken(slow) == [0, *range(1, 41)]


def test_the_window_holds_no_more_than_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "_WINDOW_CHARS", 1_000)
    bench = Bench()
    watch = bench.follow()
    taken(watch)
    bench.record(10, text="x" * 400)
    bench.step()
    window = watch._feed.window
    assert window is not None
    assert (window.head, len(window.recorded)) == (10, 2)
    assert taken(watch) == list(range(1, 11))
    bench.record(1, text="x" * 2_000)
    bench.step()
    assert taken(watch) == [11]


def test_the_window_is_forgotten_once_all_have_seen_it() -> None:
    bench = Bench()
    first, second = bench.follow(), bench.follow()
    bench.record(5)
    bench.step()
    taken(first)
    assert len(first._feed.window.recorded) == 5  # type: ignore[union-attr]
    taken(second)
    assert not first._feed.window.recorded  # type: ignore[union-attr]


def test_a_watch_that_cannot_read_says_why_and_the_reader_recovers() -> None:
    bench = Bench()
    first, second = bench.follow(), bench.follow()
    taken(first)
    taken(second)
    bench.recorded.failure = Unavailable("the disk is slow")
    bench.record(2)
    bench.step()
    with pytest.raises(Unavailable, match="slow"):
        first.take()
    first.close()
    bench.recorded.failure = None
    assert taken(second) == [1, 2]
    bench.record(2)
    bench.step()
    assert taken(second) == [3, 4]
    assert not second._feed.failed


@pytest.mark.parametrize(("replaced", "error"), [(False, NotFound), (True, Unavailable)])
def test_the_watches_of_a_removed_tenant_end_and_are_told_why(
    replaced: bool, error: type[Exception]
) -> None:
    bench = Bench()
    watches = [bench.follow() for _ in range(2)]
    woken: list[int] = []
    for number, watch in enumerate(watches):
        taken(watch)
        watch.on_ready(lambda number=number: woken.append(number))
    bench.watches.removed("t", replaced=replaced)
    assert sorted(woken) == [0, 1]
    for watch in watches:
        with pytest.raises(error):
            watch.take()
        watch.close()
    assert bench.follow().take() == [0], "who comes after it begins anew"


def test_a_refused_watch_leaves_nothing_behind() -> None:
    bench = Bench()
    bench.recorded.failure = NotFound("there is no tenant t")
    with pytest.raises(NotFound):
        bench.follow()
    assert not bench.watches._feeds


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(1, 60), st.sampled_from("ab")),
        st.tuples(st.just("step"), st.just(0), st.just("")),
        st.tuples(st.just("take"), st.integers(0, 3), st.just("")),
        st.tuples(st.just("follow"), st.integers(-1, 100), st.sampled_from(["", "a", "b"])),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_whatever_the_order_of_things_each_watch_sees_its_events_once_and_in_order(
    actions: list[tuple[str, int, str]],
) -> None:
    bench = Bench()
    followed: list[tuple[Watch[int], int, str, list[int]]] = []
    for action, number, session in actions:
        if action == "record":
            bench.record(number, session_id=session)
        elif action == "step":
            for step in [bench.steps.pop(0)] if bench.steps else []:
                step()
        elif action == "follow" and len(followed) < 4:
            newest = bench.recorded.last_cursor()
            start = newest if number < 0 else min(number, newest)  # None is ahead of all events.
            watch = bench.follow(None if number < 0 else number, session_id=session)
            assert watch.take() == [-start]
            followed.append((watch, start, session, []))
        elif action == "take" and number < len(followed):
            watch, _, _, found = followed[number]
            found += watch.take()
    bench.step()
    for watch, start, session, found in followed:
        found.extend(taken(watch))
        wanted = EventFilter(session_id=session)
        expected = [e.cursor for e in bench.recorded.events if wanted.matches(e, "")]
        assert found == [cursor for cursor in expected if cursor > start]
        assert all(a < b for a, b in pairwise(found))
