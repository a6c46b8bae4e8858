"""Rows and records are made of each other by the fields that both have, and none is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.capabilities import capabilities
from mneme_server.common.errors import DataLoss
from mneme_server.common.records import CONVERSIONS
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.features.events.model import Event
from mneme_server.features.events.store.events import _event_row
from mneme_server.features.skills.model import Episode
from mneme_server.features.skills.store.episodes import _episode, _episode_row
from mneme_server.features.skills.store.tables import episodes

capabilities()
DECLARED = list(CONVERSIONS)
"""Those of the server: tests declare others while they run."""
EVENT = Event(
    "i", "s", "a", "llm_call", 2, 1, "text", "", "", "", "", 0, 0, 0.0, None, "{}", "{}", True
)
EPISODE = Episode("e", "task", 0.5, True, tags=("a", "b"), tools=("t", "t"), occurred_us=1)


@dataclass(frozen=True, slots=True)
class Digested:
    """What has more than an episode."""

    id: str
    digest: bytes


def row_of(episode: Episode) -> Any:
    return SimpleNamespace(**_episode_row(episode, "tenant"))


def test_every_conversion_that_is_declared_can_be_made() -> None:
    """None lacks a field that the other side has."""
    assert len(DECLARED) > 50
    making = DECLARED
    while making:
        known = len(CONVERSIONS)
        assert all(callable(conversion.function) for conversion in making)
        making = CONVERSIONS[known:]  # Those of their parts.


@given(
    st.builds(
        Episode,
        id=st.text(),
        task=st.text(),
        reward=st.floats(allow_nan=False),
        success=st.booleans(),
        latency_ms=st.none() | st.integers(0, 2**40),
        tools=st.lists(st.text(), max_size=4).map(tuple),
        tags=st.frozensets(st.text(), max_size=4).map(lambda tags: tuple(sorted(tags))),
        occurred_us=st.integers(0, 2**50),
        created_us=st.integers(0, 2**50),
    )
)
def test_a_record_comes_back_from_its_row_as_it_was(stored: Episode) -> None:
    assert _episode(row_of(stored)) == stored


def test_a_list_keeps_its_order_and_its_repeats_and_a_set_has_neither() -> None:
    row = row_of(replace(EPISODE, tools=("t", "s", "t"), tags=("b", "a", "b")))
    assert (row.tools, row.tags) == ('["t", "s", "t"]', '["a", "b"]')


@pytest.mark.parametrize(
    "damage", [{"tools": "no json"}, {"occurred_at": -1}, {"reward": None}, {"tags": b"\xff"}]
)
def test_a_damaged_row_is_told_by_its_kind_and_id(damage: dict[str, Any]) -> None:
    row = SimpleNamespace(**_episode_row(EPISODE, "tenant") | damage)
    with pytest.raises(DataLoss, match="the episode e is damaged"):
        _episode(row)  # type: ignore[arg-type]


def test_a_column_that_nothing_fills_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"nothing of Episode is episodes\.task_vector"):
        row_writer(Episode, episodes)(EPISODE, "tenant")


def test_a_column_that_others_fill_is_left_to_them() -> None:
    assert "cursor" not in _event_row(EVENT, "tenant")  # The database numbers events.


def test_a_field_that_is_kept_nowhere_is_an_error_unless_it_says_so() -> None:
    made = row_writer(Episode, episodes, besides=["task_vector"])
    with pytest.raises(TypeError, match="episodes keeps no memory_ids of Episode"):
        made(EPISODE, "tenant")


def test_a_field_without_a_default_that_is_in_no_column_is_an_error() -> None:
    with pytest.raises(TypeError, match="episodes has no digest"):
        row_reader(episodes, Digested)(row_of(EPISODE))
