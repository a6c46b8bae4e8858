"""Values that are not in a space: what is said of them."""

from __future__ import annotations

import pytest
from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.spaces import Box, Discrete


@pytest.mark.parametrize(
    ("value", "field", "said"),
    [
        ([0.5, 7], "state[1]", "must be from 0 to 1, not 7"),
        ([0.5], "state", "must be a list of 2 numbers, but has 1"),
        ([0.5, 0, 0], "state", "must be a list of 2 numbers, but has 3"),
        ("left", "state", "must be a list of 2 numbers"),
        ([0.5, "left"], "state[1]", "must be a number, neither NaN nor infinite"),
    ],
)
def test_numbers_that_are_not_in_the_space_are_named(value: Json, field: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Box((0.0, 0.0), (1.0, 1.0)).check(value, "state")
    assert (refused.value.field, refused.value.message) == (field, f"{field}: {said}")


def test_one_number_is_no_numbers() -> None:
    with pytest.raises(InvalidArgument, match="a list of 1 number, but has 2"):
        Box((0.0,), (1.0,)).check([1, 2], "state")


def test_a_number_may_be_written_as_a_text_where_there_are_no_labels() -> None:
    assert Discrete(4).check("2", "action") == 2
    assert Discrete(2, ("2", "1")).check("2", "action") == "2"
    for value in ("4", "left", "9" * 11):
        with pytest.raises(InvalidArgument, match="must be a whole number from 0 to 3"):
            Discrete(4).check(value, "action")
