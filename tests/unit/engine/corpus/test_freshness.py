"""An index answers what there was a tenth of a second ago, or later, or says it cannot tell."""

from __future__ import annotations

import time

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import Unavailable
from mneme_server.engine.corpus import freshness as fresh
from mneme_server.engine.corpus.freshness import OLDEST_S, Freshness, Searches


class Index:
    def __init__(self) -> None:
        self.row = 0

    def has(self, number: int) -> bool:
        return self.row >= number


def test_an_index_that_was_just_told_that_it_has_everything_answers() -> None:
    freshness = Freshness(Index().has, since_s=float("-inf"))
    freshness.told(0, time.monotonic() + 3600)
    freshness.require()


def test_one_that_was_told_nothing_for_too_long_refuses() -> None:
    freshness = Freshness(Index().has, since_s=time.monotonic() - 2 * OLDEST_S)
    with deadline.within(0.05), pytest.raises(Unavailable):
        freshness.require()


def test_one_that_lacks_a_row_refuses_until_it_has_it() -> None:
    index = Index()
    freshness = Freshness(index.has, since_s=float("-inf"))
    freshness.told(7, time.monotonic() + 3600)
    with deadline.within(0.05), pytest.raises(Unavailable):
        freshness.require()
    index.row = 7
    freshness.require()


def test_a_row_that_it_has_says_nothing_of_those_that_it_lacks() -> None:
    index = Index()
    index.row = 1
    freshness = Freshness(index.has, since_s=float("-inf"))
    freshness.told(1, time.monotonic() - 2 * OLDEST_S)
    freshness.told(2, time.monotonic() + 3600)
    with deadline.within(0.05), pytest.raises(Unavailable):
        freshness.require()


def test_what_was_fresh_when_the_call_looked_is_so_however_long_catching_up_takes() -> None:
    asked_s = time.monotonic() - 3600
    freshness = Freshness(Index().has, since_s=asked_s)
    freshness.require(asked_s)
    with deadline.within(0.05), pytest.raises(Unavailable):
        freshness.require()


def test_where_the_feed_is_is_known_for_as_long_as_an_answer_may_be_old() -> None:
    freshness = Freshness(Index().has, since_s=0.0)
    assert not freshness.was_told(100.0)
    freshness.told(7, 100.0)
    assert freshness.newest == 7
    assert freshness.was_told(100.0 + OLDEST_S / 2)
    assert not freshness.was_told(100.0 + 2 * OLDEST_S)


def test_two_searches_within_a_second_are_frequent_and_looks_of_one_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(fresh.time, "monotonic", lambda: now[0])
    searches = Searches()
    for at in (1000.0, 1000.01, 1002.0, 1002.01):
        now[0] = at
        searches.note()
        assert not searches.are_frequent
    now[0] = 1002.5
    searches.note()
    assert searches.are_frequent
    now[0] = 1003.1
    assert not searches.are_frequent
