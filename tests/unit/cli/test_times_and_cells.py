from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from mneme._core.answers import answer_of
from mneme.cli import cells
from mneme.cli.times import parse_end, parse_start
from mneme.messages import Event


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"], autouse=True)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_day_is_one_in_utc_wherever_the_machine_is_and_counts_to_its_end() -> None:
    assert parse_start("2026-03-08") == datetime(2026, 3, 8, tzinfo=UTC)
    assert parse_end("2026-03-08") == datetime(2026, 3, 9, tzinfo=UTC)


def test_an_iso_time_keeps_its_zone_or_is_utc() -> None:
    assert parse_start("2026-03-01T12:00:00Z") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert parse_end("2026-03-01T12:00:00+02:00") == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert parse_start("2026-03-01 12:30") == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w ago", timedelta(weeks=2)),
        ("1.5h", timedelta(minutes=90)),
        ("now", timedelta()),
    ],
)
def test_how_long_ago_counts_from_now(text: str, age: timedelta) -> None:
    assert abs(datetime.now(UTC) - age - parse_start(text)) < timedelta(seconds=30)


def test_today_and_yesterday_are_days() -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert parse_start("today") == today
    assert parse_end("yesterday") == parse_start("today")


@pytest.mark.parametrize("text", ["", "soon", "7x", "2026-13-01", "2026-02-30", "99999999999999d"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time; give an ISO time or a day"):
        parse_start(text)


@given(st.text(), st.integers(2, 40))
def test_a_preview_is_one_line_without_anything_a_terminal_obeys(text: str, limit: int) -> None:
    shown = cells.preview(text, limit)
    assert len(shown) <= limit
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@given(st.floats(0, 1))
def test_a_score_s_bar_is_as_wide_as_every_other(value: float) -> None:
    assert len(cells.score(value)) == len(cells.score(0.5))


def test_bars_grow_with_the_score() -> None:
    filled = [cells.score(n / 10).count("█") for n in range(11)]
    assert filled == sorted(filled)
    assert filled[0] == 0
    assert filled[-1] == 6


def test_sizes_spans_and_numbers_read_well() -> None:
    sizes = [cells.size(number) for number in (0, 999, 1000, 2_500_000)]
    assert sizes == ["0 B", "999 B", "1.0 kB", "2.5 MB"]
    spans = [cells.span(seconds) for seconds in (1.25, 90, 7200, 200_000)]
    assert spans == ["1.2 s", "1.5 min", "2.0 h", "2.3 d"]
    assert cells.plural(1, "memory", "memories") == "1 memory"
    assert cells.plural(2000, "memory", "memories") == "2,000 memories"


def test_a_time_is_shown_in_the_reader_s_zone() -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert cells.when(moment) == moment.astimezone().strftime("%Y-%m-%d %H:%M")
    assert cells.when(None) == ""


def test_an_enum_value_that_this_client_does_not_know_is_shown_as_its_number() -> None:
    event = answer_of(Event(severity=999))  # type: ignore[arg-type]
    assert cells.name(event.severity) == "999"
    assert cells.name(answer_of(Event(severity=3)).severity) == "warn"
    assert cells.name(answer_of(Event()).severity) == ""
