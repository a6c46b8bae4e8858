"""An index answers what there was a tenth of a second ago, or later, or says it cannot tell."""

from __future__ import annotations

import time

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import Unavailable
from mneme_server.engine.corpus.freshness import OLDEST_S, Freshness


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
