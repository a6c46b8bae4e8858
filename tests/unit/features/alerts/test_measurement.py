"""What rules measure, when they look again, and what changes them."""

from __future__ import annotations

from typing import Any

import pytest
from mneme_server.common.clock import MINUTE_US
from mneme_server.features.alerts.evaluation import changes
from mneme_server.features.alerts.measurement import RuleReading, like, read
from mneme_server.features.alerts.model import AlertCondition, Rule
from mneme_server.features.events.history import HistoryFilter, Totals

NOW = 1_000 * MINUTE_US
WINDOW = 60 * MINUTE_US


class Record:
    """A record of which a test says what it comes to."""

    def __init__(self, totals: Totals = Totals(), **says: Any) -> None:  # noqa: B008
        self._totals = totals
        self._says = says

    def totals(self, filter_: HistoryFilter, message_like: str = "") -> Totals:
        assert (filter_.start_us, filter_.end_us) == (NOW - WINDOW + 1, NOW + 1)
        return self._totals

    def matching(self, filter_: HistoryFilter, message_like: str) -> list[int]:
        raise NotImplementedError

    def last_us(self, filter_: HistoryFilter, until_us: int) -> int | None:
        return self._says.get("last")

    def next_us(self, filter_: HistoryFilter, after_us: int) -> int | None:
        return self._says.get("ahead")

    def ended(self, filter_: HistoryFilter) -> tuple[int, int]:
        return self._says.get("ended", (0, 0))

    def first_failure_us(self, filter_: HistoryFilter) -> int | None:
        return self._says.get("failure")

    def nth_latest_us(self, filter_: HistoryFilter, number: int) -> int | None:
        raise NotImplementedError

    def endings(self, filter_: HistoryFilter) -> list[tuple[int, bool]]:
        raise NotImplementedError


def rule(condition: AlertCondition, **fields: Any) -> Rule:
    return Rule(id="r", name="r", condition=condition, created_us=MINUTE_US, **fields)


def test_silence_is_looked_for_when_it_will_have_lasted_long_enough() -> None:
    silence = rule(AlertCondition.NO_EVENTS_FOR)
    last = NOW - 20 * MINUTE_US
    reading = read(Record(last=last), silence, NOW, 0)
    assert reading == RuleReading(20.0, reading.count, last + WINDOW)
    assert not changes(silence, reading)
    lasted = read(Record(last=NOW - WINDOW), silence, NOW, 0)
    assert changes(silence, lasted)
    assert lasted.next_us is None  # Only what is recorded ends it.
    # Without any event it is counted from the rule's creation.
    assert read(Record(), silence, NOW, 0).value == 999


def test_a_share_is_looked_at_again_when_its_oldest_event_leaves_the_window() -> None:
    totals = Totals(count=4, errors=1, first_us=NOW - 50 * MINUTE_US)
    rate = rule(AlertCondition.ERROR_RATE_EXCEEDS, threshold=0.2)
    reading = read(Record(totals), rate, NOW, 0)
    assert (reading.value, reading.next_us) == (0.25, NOW + 10 * MINUTE_US)
    none = Totals(count=4, errors=0, first_us=NOW)
    assert read(Record(none), rate, NOW, 0).next_us is None


def test_a_sum_is_looked_at_again_only_while_it_is_triggered() -> None:
    totals = Totals(count=4, cost_usd=2.0, first_us=NOW - 50 * MINUTE_US)
    cost = rule(AlertCondition.COST_EXCEEDS, threshold=1)
    assert read(Record(totals), cost, NOW, 0).next_us is None
    opened = rule(AlertCondition.COST_EXCEEDS, threshold=1, open_entry="e")
    assert read(Record(totals), opened, NOW, 0).next_us == NOW + 10 * MINUTE_US


def test_events_that_are_ahead_of_the_clock_are_waited_for() -> None:
    ahead = NOW + 3 * MINUTE_US
    count = rule(AlertCondition.EVENT_COUNT_EXCEEDS)
    assert read(Record(ahead=ahead), count, NOW, 0).next_us == ahead


def test_a_queue_is_looked_at_while_something_waits_in_it() -> None:
    queue = rule(AlertCondition.QUEUE_DEPTH_EXCEEDS, threshold=10)
    waiting = read(Record(), queue, NOW, 11)
    assert changes(queue, waiting)
    assert waiting.next_us is not None
    assert read(Record(), queue, NOW, 0).next_us is None


@pytest.mark.parametrize(
    ("open_entry", "value", "count", "changing"),
    [
        ("", 0.5, 10, False),  # Not more than the threshold.
        ("", 0.51, 10, True),
        ("", 0.51, 1, False),  # Too few.
        ("e", 0.51, 10, False),
        ("e", 0.4, 10, False),  # Between the thresholds.
        ("e", 0.25, 1, True),
        ("", float("nan"), 10, False),  # Nobody knows.
        ("e", float("nan"), 10, False),
    ],
)
def test_it_triggers_above_one_threshold_and_resolves_at_the_other(
    open_entry: str, value: float, count: int, changing: bool
) -> None:
    rate = rule(
        AlertCondition.ERROR_RATE_EXCEEDS, threshold=0.5, resolve_threshold=0.25, min_events=2,
        open_entry=open_entry,
    )  # fmt: skip
    assert changes(rate, RuleReading(value, count)) is changing


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("Refused", "it was refused", True),
        ("took <num> seconds", "it took 5 seconds", True),
        ("took <num> seconds", "it took no time", False),
        ("100%", "100 of them", False),
        ("a_b", "axb", False),
        ("a.b", "axb", False),
        ("file <path> is\\gone", "file /a/b is\\gone", True),
    ],
)
def test_a_pattern_means_itself_but_for_its_placeholders(
    pattern: str, text: str, found: bool
) -> None:
    import sqlite3

    query = "SELECT lower(?) LIKE lower(?) ESCAPE '\\'"
    (like_found,) = sqlite3.connect(":memory:").execute(query, (text, like(pattern))).fetchone()
    assert bool(like_found) is found
