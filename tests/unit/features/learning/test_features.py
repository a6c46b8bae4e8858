"""Any state has a key, however large or small its numbers are, and close ones share it."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mneme_server.features.learning.features import facts, first_digit, key_of, squashed
from mneme_server.features.learning.spaces import Box, OpenObject

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_any_number_is_rounded_to_its_first_digit(number: float) -> None:
    rounded = first_digit(number)
    assert math.isfinite(rounded)
    assert abs(rounded - number) <= abs(number)
    assert first_digit(rounded) == rounded or abs(number) > 1e308


@given(FINITE, FINITE, FINITE)
@example(-1.7e308, 1.7e308, 1.7e308)
@example(0.0, 5e-324, 5e-324)
def test_any_number_of_a_box_has_a_bin_and_is_a_fact(
    one: float, other: float, share: float
) -> None:
    low, high = sorted((one, other))
    value = min(max(share, low), high)
    box = Box((low,), (high,))
    assert key_of(box, [value], 10)
    ((_, fact),) = facts(box, [value])
    assert fact == pytest.approx(squashed(value)) or -1.0 <= fact <= 1.0


@pytest.mark.parametrize(("number", "rounded"), [(0.83, 0.8), (0.034, 0.03), (4321.0, 4000.0)])
def test_the_first_digit_is_the_bin_of_an_open_state(number: float, rounded: float) -> None:
    assert first_digit(number) == rounded
    space = OpenObject()
    assert key_of(space, {"load": number}, 10) == key_of(space, {"load": rounded}, 10)
