"""Canonical JSON is that of RFC 8785, wherever that says how."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.canonical import Json, canonical_json, whole_numbers

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("aé€\ufb33\U0001f600"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())


def values(numbers: st.SearchStrategy[int | float]) -> st.SearchStrategy[Json]:
    return st.recursive(
        TEXTS | st.none() | st.booleans() | numbers,
        lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
        max_leaves=20,
    )


@given(values(FLOATS | st.integers(-(2**53) + 1, 2**53 - 1)))
def test_it_is_spelled_as_the_scheme_says(value: Json) -> None:
    assert canonical_json(value) == rfc8785.dumps(value).decode()  # type: ignore[arg-type]


@given(
    values(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.floats(-1000, 1000).map(round).map(float)
        | st.integers(-(2**53) + 1, 2**53 - 1)
    )
)
def test_with_ints_for_whole_floats_every_number_is_spelled_as_the_scheme_says(
    value: Json,
) -> None:
    spelled = canonical_json(whole_numbers(value))
    assert spelled == rfc8785.dumps(value).decode()  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["an e-mail", "the-last", "1e-7", "e+", "5e-", "a 2e+3"])
def test_what_looks_like_an_exponent_in_a_text_is_spelled_as_it_is(text: str) -> None:
    assert canonical_json({text: [text, 1e-7]}) == f'{{"{text}":["{text}",1e-7]}}'
    assert canonical_json({text: [text, 0.5]}) == f'{{"{text}":["{text}",0.5]}}'


@given(values(FLOATS | st.integers(-(2**63), 2**63)))
def test_every_whole_number_is_spelled_in_full(value: Json) -> None:
    assert json.loads(canonical_json(value)) == value


@pytest.mark.parametrize("beside", ["\U0001f600", 1e-7])
def test_a_number_is_spelled_the_same_whatever_stands_beside_it(beside: Json) -> None:
    late = 253_402_300_799_999_999  # The last microsecond of the year 9999.
    assert canonical_json([late]) == f"[{late}]"
    assert canonical_json([late, beside]).startswith(f"[{late},")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_json_cannot_say_is_an_error(number: float) -> None:
    for value in ([number], [number, 1e-7]):
        with pytest.raises(ValueError, match=r"."):
            canonical_json(value)
