"""Whose user something is, where only its metadata says so."""

from __future__ import annotations

import pytest
from mneme_server.features.events.model import user_in


@pytest.mark.parametrize(
    ("value", "user"),
    [
        (42.0, "42"), (1234567890123456.0, "1234567890123456"),
        (1234567890123457.0, "1234567890123457"), (1e15, "1000000000000000"), (-7, "-7"),
        (2.5, "2.5"), (1e300, ""), (True, ""),
    ],
)  # fmt: skip
def test_a_number_names_a_user_by_all_its_digits(value: float, user: str) -> None:
    assert user_in({"userId": value}) == user
