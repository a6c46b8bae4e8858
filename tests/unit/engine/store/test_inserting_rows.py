"""Rows that PostgreSQL is given many at a time: the same rows, in the same order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.store.postgres.driver import statements

ONE_ROW = "INSERT INTO events (id, data, at) VALUES (%s::VARCHAR, %s, %s::DOUBLE PRECISION)"


@given(st.integers(1, 300))
def test_every_row_is_inserted_once_and_in_its_order(count: int) -> None:
    rows = [(f"e{n}", bytes([n % 256]), n / 2) for n in range(count)]
    inserted = []
    for statement, values in statements(ONE_ROW, rows):
        numbers = [int(number) for number in re.findall(r"\$(\d+)", statement)]
        assert numbers == list(range(1, len(values) + 1))
        inserted += [tuple(values[at : at + 3]) for at in range(0, len(values), 3)]
    assert inserted == rows


def test_statements_have_a_few_sizes_so_that_they_stay_prepared() -> None:
    said = {
        statement
        for count in range(1, 300)
        for statement, _ in statements(ONE_ROW, [("e", b"", 0.0)] * count)
    }
    assert len(said) == 4


def test_every_value_keeps_the_type_that_it_is_said_to_have() -> None:
    ((statement, _),) = statements(ONE_ROW, [("a", b"", 1.0)] * 4)
    assert statement.startswith(
        "INSERT INTO events (id, data, at) VALUES ($1::VARCHAR, $2, $3::DOUBLE PRECISION),"
        " ($4::VARCHAR, $5, $6::DOUBLE PRECISION)"
    )


@pytest.mark.parametrize(
    "one_row",
    [
        "INSERT INTO totals (name, value) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
        "INSERT INTO totals (name, value) VALUES (%s, %s) RETURNING name",
        "INSERT INTO totals (name, value) VALUES (%s, now())",
        "UPDATE totals SET value = %s WHERE name = %s",
    ],
)
def test_what_does_more_than_insert_is_left_to_run_row_by_row(one_row: str) -> None:
    assert not list(statements(one_row, [("a", 1), ("b", 2)]))
