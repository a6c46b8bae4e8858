"""What was committed reaches the index in order, at once or from the feed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.common.pages import parts
from mneme_server.engine.corpus import live_index as following
from mneme_server.engine.corpus.cache import AT_ONCE, CorpusChange, Steps, do_at_once
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import START, FeedRow, KindChange, LostPlace, Position, ranges
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.features.events.event_types import EVENT


@dataclass
class Store:
    """A store's feed, and what its rows add."""

    rows: list[FeedRow] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    reads: int = 0

    def commit(self, count: int = 1, *, everything: bool = False) -> CorpusChange:
        number = len(self.rows) + 1
        position = Position(number, number * 7)
        ids = [number * 1_000 + n for n in range(count)]
        self.rows.append(FeedRow(position, (KindChange("event", ranges(ids)),), (), everything))
        saved = [Document(n, EVENT, f"e{n}", "text", n) for n in ids]
        return CorpusChange(saved=saved, everything=everything, position=position)

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        self.reads += 1
        if self.fails:
            raise self.fails.pop(0)
        if place != START and self.rows[place.number - 1].position != place:
            raise LostPlace("another")
        return self.rows[place.number : place.number + limit]


class Index:
    """A follower that holds ids, and fails when it is told to."""

    def __init__(self, store: Store, fails: Sequence[str] = ()) -> None:
        self.store = store
        self.fails = list(fails)
        self.position = START
        self.partial = False
        self.held: list[int] = []
        self.made: list[str] = []
        self.successors: list[Index] = []
        self.discarded = False
        self._told: Callable[[], object] = lambda: None

    def applying(self, change: CorpusChange) -> Steps:
        ids = [document.doc_id for document in change.saved]
        steps = [partial(self._do, "apply", part) for part in parts(ids, AT_ONCE)]
        return [*steps, partial(self._advance, change.position)]

    def catching_up(self, rows: Sequence[FeedRow]) -> Steps:
        if any(row.everything for row in rows):
            raise LostPlace("everything changed")
        ids = [first for row in rows for kind in row.kinds for first, _ in kind.saved]
        return [partial(self._do, "catch up", ids), partial(self._advance, rows[-1].position)]

    def on_failure(self, told: Callable[[], object]) -> None:
        self._told = told

    def missed(self, _error: BaseException) -> None:
        self.partial = True
        self._told()

    def abandon(self) -> None:
        self.made.append("abandon")

    def rebuilt(self) -> Index:
        if self.fails and self.fails[0] == "rebuild":
            del self.fails[0]
            raise OSError("no space")
        built = self.successors.pop(0) if self.successors else Index(self.store)
        built.position = self.store.rows[-1].position
        return built

    def discard(self) -> None:
        self.discarded = True

    def close(self) -> None:
        self.made.append("close")

    def _do(self, what: str, ids: Sequence[int]) -> None:
        if self.fails and self.fails[0] == what:
            del self.fails[0]
            raise RuntimeError("the index broke")
        self.made.append(what)
        self.held += ids

    def _advance(self, position: Position | None) -> None:
        assert position is not None
        self.position = position


def live(
    store: Store, index: Index, by_turns: Callable[[Steps], None] = do_at_once
) -> LiveIndex[Index]:
    return LiveIndex("acme", index, store.changes_after, by_turns)


def unreachable() -> Unavailable:
    return Unavailable("the database cannot be reached", reason=Reason.DATABASE_ERROR)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def test_a_large_change_is_applied_by_turns_in_steps() -> None:
    store, steps_of = Store(), list[int]()

    def by_turns(steps: Steps) -> None:
        steps_of.append(len(steps))
        do_at_once(steps)

    index = Index(store)
    followed = live(store, index, by_turns)
    followed.apply(store.commit(100))
    assert steps_of == []
    followed.apply(store.commit(300))
    assert steps_of == [4]
    assert index.held == [*range(1_000, 1_100), *range(2_000, 2_300)]


def test_what_was_committed_while_an_index_was_opened_is_caught_up() -> None:
    store = Store()
    for _ in range(40):
        store.commit()
    index = Index(store)
    live(store, index)
    assert index.position.number == 40


def test_a_change_that_fails_is_read_from_the_feed_before_its_writer_goes_on() -> None:
    store = Store()
    index = Index(store, fails=["apply"])
    followed = live(store, index)
    followed.apply(store.commit())
    assert (index.made, index.position.number) == (["catch up"], 1)
    followed.apply(store.commit())
    assert index.made == ["catch up", "apply"]
    assert not index.partial


def test_what_was_never_passed_on_is_caught_up_with_the_next_commit() -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    store.commit()
    store.commit()
    followed.apply(store.commit())
    assert index.held == [1_000, 2_000, 3_000]


def test_much_that_was_missed_is_caught_up_while_writers_go_on() -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    for _ in range(100):
        store.commit()
    followed.apply(store.commit())
    until(lambda: index.position.number == 101)
    assert index.held == [n * 1_000 for n in range(1, 102)]
    followed.apply(store.commit())
    assert index.made[-1] == "apply"


def test_an_index_that_cannot_catch_up_either_is_replaced() -> None:
    store = Store()
    index = Index(store, fails=["apply", "catch up"])
    followed = live(store, index)
    followed.apply(store.commit())
    until(lambda: followed.current is not index)
    assert index.partial
    assert followed.current.position.number == 1
    until(lambda: index.discarded)
    followed.apply(store.commit())
    assert followed.current.made == ["apply"]


def test_an_index_is_replaced_when_everything_changed() -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    followed.apply(store.commit(everything=True))
    until(lambda: followed.current is not index)
    assert followed.current.position.number == 1


def test_what_is_committed_while_an_index_is_built_again_reaches_both() -> None:
    store = Store()
    index = Index(store, fails=["apply", "catch up"])
    built, began, go_on = Index(store), threading.Event(), threading.Event()
    rebuild = index.rebuilt

    def slowly() -> Index:
        index.successors.append(built)
        made = rebuild()
        began.set()
        assert go_on.wait(30)
        return made

    index.rebuilt = slowly  # type: ignore[method-assign]
    followed = live(store, index)
    followed.apply(store.commit())
    assert began.wait(30)
    for _ in range(30):
        followed.apply(store.commit())
    assert index.held == [n * 1_000 for n in range(2, 32)], "the failed one answers meanwhile"
    go_on.set()
    until(lambda: followed.current is built)
    assert built.held == [n * 1_000 for n in range(2, 32)]


def test_an_index_that_cannot_be_built_is_tried_again() -> None:
    store = Store()
    index = Index(store, fails=["apply", "catch up", "rebuild"])
    followed = live(store, index)
    followed.apply(store.commit())
    until(lambda: followed.current is not index)
    assert not followed.current.partial


def test_a_reader_waits_for_a_row_that_another_process_wrote() -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    store.commit()
    assert followed.wait_for(1, 30)
    assert index.held == [1_000]
    assert followed.wait_for(1, 0)


def test_a_reader_does_not_wait_for_an_index_that_failed() -> None:
    store = Store()
    index = Index(store, fails=["apply", "catch up"])
    began, go_on = threading.Event(), threading.Event()
    rebuild = index.rebuilt

    def slowly() -> Index:
        began.set()
        assert go_on.wait(30)
        return rebuild()

    index.rebuilt = slowly  # type: ignore[method-assign]
    followed = live(store, index)
    followed.apply(store.commit())
    assert began.wait(30)
    assert followed.wait_for(1, 30)
    assert followed.current.partial
    go_on.set()
    until(lambda: not followed.current.partial)


def test_a_reader_who_waits_for_a_row_that_never_comes_is_told() -> None:
    store = Store()
    store.commit()
    followed = live(store, Index(store))
    assert not followed.wait_for(5, 0.01)
    until(lambda: followed._thread is None)
    followed.apply(store.commit())
    assert followed.current.position.number == 2


def test_closing_ends_the_work_and_writes_what_must_be_kept() -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    followed.apply(store.commit())
    followed.close()
    assert index.made == ["apply", "close"]


@pytest.mark.parametrize("why", [unreachable, deadline.Abandoned])
def test_an_index_is_kept_while_the_store_cannot_be_read_and_catches_up_once_it_can(
    why: Callable[[], Exception],
) -> None:
    store = Store()
    index = Index(store)
    followed = live(store, index)
    store.commit()  # By another server.
    store.fails = [why() for _ in range(3)]
    followed.apply(store.commit())
    until(lambda: index.position.number == 2)
    assert index.held == [1_000, 2_000]
    store.commit()
    store.fails = [why()]
    assert followed.wait_for(3, 30)
    assert index.held == [1_000, 2_000, 3_000]
    assert followed.current is index
    assert not index.partial


def test_an_index_that_cannot_be_caught_up_as_it_is_opened_is_not_used() -> None:
    store = Store()
    store.commit()
    store.fails = [unreachable()]
    with pytest.raises(Unavailable):
        live(store, Index(store))


def left_alone(store: Store, index: Index) -> LiveIndex[Index]:
    """Follow a feed that nobody asks about."""
    return LiveIndex("acme", index, store.changes_after, closely=lambda: False)


def test_what_nobody_asks_about_costs_nothing_but_the_number_of_the_feeds_head() -> None:
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    before = store.reads
    for number in range(1, 41):
        store.commit()
        followed.know_of(number)
    assert followed._thread is None
    assert (store.reads, index.position.number, followed.lag) == (before, 0, 40)


def test_who_asks_then_has_all_that_is_behind_read_at_once() -> None:
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    for _ in range(40):
        store.commit()
    before = store.reads
    followed.come_to(40)
    assert index.held == [n * 1_000 for n in range(1, 41)]
    assert (store.reads - before, index.made) == (1, ["catch up"])
    followed.come_to(40)
    assert store.reads - before == 1


def test_rows_of_many_documents_are_caught_up_in_parts() -> None:
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    for _ in range(3):
        store.commit(following._DOCUMENTS)
    followed.come_to(3)
    assert index.made == ["catch up"] * 3


def test_a_write_of_ones_own_to_what_is_behind_leaves_it_behind_until_somebody_asks() -> None:
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    store.commit()  # By another server.
    followed.apply(store.commit())
    assert (index.held, followed._thread) == ([], None)
    followed.come_to(2)
    assert index.held == [1_000, 2_000]
    followed.apply(store.commit())
    assert index.made[-1] == "apply"


def test_the_first_who_asks_never_waits_for_very_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_MOST_BEHIND", 100)
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    for number in range(1, 102):
        store.commit()
        followed.know_of(number)
    until(lambda: index.position.number == 101)


def test_who_asks_while_the_store_cannot_be_read_does_not_wait_for_it() -> None:
    store = Store()
    index = Index(store)
    followed = left_alone(store, index)
    store.commit()
    store.fails = [unreachable()]
    followed.come_to(1)
    until(lambda: index.position.number == 1)
    assert not index.partial
