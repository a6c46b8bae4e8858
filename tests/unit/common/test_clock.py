from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.clock import END_US, from_rfc3339, rfc3339


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_123_456, "2023-11-14T22:13:20.123456Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_is_written_to_the_microsecond(time_us: int, text: str) -> None:
    assert rfc3339(time_us) == text
    assert from_rfc3339(text) == time_us


@given(st.integers(0, END_US - 1))
def test_every_time_that_is_kept_is_read_as_it_was_written(time_us: int) -> None:
    assert from_rfc3339(rfc3339(time_us)) == time_us


def test_times_of_other_zones_are_read() -> None:
    assert from_rfc3339("1970-01-01T02:00:00+02:00") == 0
    assert from_rfc3339("1970-01-01T00:00:00.5Z") == 500_000


@pytest.mark.parametrize("text", ["", "None", "1970-01-01T00:00:00", "yesterday", "1970-13-01Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_rfc3339(text)
