"""Values of metadata are spelled so that their spellings are in the order of the values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.memory.values import ValueRange, equal, leaves, less, more, spelled

_numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_values = st.one_of(_numbers, _texts, st.booleans(), st.none())


def holds(span: ValueRange, value: object) -> bool:
    spelling = spelled(value)  # type: ignore[arg-type]
    if span.is_one:
        return spelling == span.low
    above = spelling >= span.low if span.least else spelling > span.low
    return above and (spelling <= span.high if span.most else spelling < span.high)


@given(_numbers, _numbers)
def test_numbers_are_in_order_as_they_are_spelled(one: float, other: float) -> None:
    assert (spelled(one) < spelled(other)) == (one < other)
    assert (spelled(one) == spelled(other)) == (one == other)


@given(_texts, _texts)
def test_texts_are_in_order_as_they_are_spelled_in_utf_8(one: str, other: str) -> None:
    assert (spelled(one).encode() < spelled(other).encode()) == (one < other)


@given(_values, _numbers)
def test_a_comparison_with_a_number_picks_the_numbers_that_it_says(
    value: object, number: float
) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    assert holds(less("k", number, same=False), value) == (is_number and value < number)  # type: ignore[operator]
    assert holds(less("k", number, same=True), value) == (is_number and value <= number)  # type: ignore[operator]
    assert holds(more("k", number, same=False), value) == (is_number and value > number)  # type: ignore[operator]
    assert holds(more("k", number, same=True), value) == (is_number and value >= number)  # type: ignore[operator]


@given(_values, _texts)
def test_a_comparison_with_a_text_picks_the_texts_that_it_says(value: object, text: str) -> None:
    is_text = isinstance(value, str)
    assert holds(less("k", text, same=False), value) == (is_text and value < text)  # type: ignore[operator]
    assert holds(more("k", text, same=True), value) == (is_text and value >= text)  # type: ignore[operator]


@given(_values, _values)
def test_only_the_same_value_of_the_same_type_is_equal(one: object, other: object) -> None:
    kind_of = [bool if isinstance(v, bool) else str if isinstance(v, str) else type(v) is type(None)
               for v in (one, other)]  # fmt: skip
    assert holds(equal("k", one), other) == (kind_of[0] == kind_of[1] and one == other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, {}),
        ({"a": "x"}, {"a": "tx"}),
        ({"a": {"b": {"c": True}}, "d": None}, {"a.b.c": "jtrue", "d": "jnull"}),
        ({"list": [1, {"x": 2}]}, {"list": 'j[1,{"x":2}]'}),
        ({"empty": {}}, {"empty": "j{}"}),
    ],
)
def test_the_values_of_an_object_have_the_path_to_them_as_their_key(
    metadata: dict[str, object], expected: dict[str, str]
) -> None:
    assert dict(leaves(metadata)) == expected  # type: ignore[arg-type]


def test_zero_has_one_spelling() -> None:
    assert spelled(0) == spelled(0.0) == spelled(-0.0)
