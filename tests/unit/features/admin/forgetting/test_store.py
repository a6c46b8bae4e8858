"""Every table of a tenant's database is forgotten by somebody."""

from __future__ import annotations

from collections import Counter

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store.schema import metadata


def _declared() -> dict[str, str]:
    return {
        table.name: said for one in tenant_schema().forgets for table, said in one.tables.items()
    }


def test_every_table_says_what_becomes_of_its_rows() -> None:
    """A new table belongs into `Forgets.tables` of its capability, whose forgetter erases its rows;
    see docs/guides/extending.md."""
    tenant_schema()  # Imports all tables.
    assert sorted(metadata.tables) == sorted(_declared())


def test_no_table_is_forgotten_by_two() -> None:
    times = Counter(table.name for one in tenant_schema().forgets for table in one.tables)
    assert not [name for name, count in times.items() if count > 1]


@pytest.mark.parametrize("table", sorted(_declared()))
def test_what_becomes_of_a_table_is_said_in_words(table: str) -> None:
    assert len(_declared()[table]) > 5
