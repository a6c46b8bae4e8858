"""Times as people say them."""

from __future__ import annotations

import pytest
from mneme_server.common.humanize import ago, lasting, span

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3_600, "in the future"), (0, "just now"), (59, "just now"), (60, "1 minute ago"),
        (7_300, "2 hours ago"), (86_400 * 3, "3 days ago"), (86_400 * 8, "1 week ago"),
        (86_400 * 45, "1 month ago"), (86_400 * 800, "2 years ago"),
    ],
)  # fmt: skip
def test_times_are_said_as_people_say_them(seconds: int, said: str) -> None:
    assert ago(NOW - seconds * SECOND, NOW) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 seconds"), (61, "1 minute"), (3_600, "1 hour"), (5_400, "1 hour 30 minutes")],
)
def test_durations_are_said_as_people_say_them(seconds: int, said: str) -> None:
    assert lasting(seconds) == said


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(1, "minute"), (10, "10 minutes"), (60, "hour"), (90, "90 minutes"), (36 * 60, "36 hours"),
     (1440, "day"), (10_080, "week"), (20_160, "2 weeks"), (43_200, "30 days")],
)  # fmt: skip
def test_a_span_is_said_exactly_after_the_last(minutes: int, said: str) -> None:
    assert span(60 * minutes) == said
