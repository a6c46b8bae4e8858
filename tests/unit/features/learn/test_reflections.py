"""Sayings are grouped by meaning."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.common import deadline
from mneme_server.features.learn import reflections
from mneme_server.features.learn.model import Saying
from mneme_server.features.learn.reflections import themes_of

TOPICS, EACH = 12, 9


@pytest.mark.parametrize("block", [1, 5, 1_000])
def test_the_groups_do_not_depend_on_how_many_are_compared_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflections, "_BLOCK", block)
    topics = np.eye(TOPICS, dtype=np.float32)
    said = [Saying(f"{t} {n}", f"r{n}", n) for n in range(EACH) for t in range(TOPICS)]
    vectors = np.tile(topics, (EACH, 1))
    found = themes_of(said, vectors, TOPICS)
    assert [theme.count for theme in found] == [EACH] * TOPICS
    assert {theme.text.split()[0] for theme in found} == {str(t) for t in range(TOPICS)}


def test_what_means_something_else_founds_a_group_of_its_own() -> None:
    said = [Saying(text, text, 0) for text in ("a", "b", "c")]
    vectors = np.array([[1, 0], [0.9, 0.4], [0, 1]], np.float32)
    assert [theme.count for theme in themes_of(said, vectors, 5)] == [2, 1]


def test_nobody_compares_for_a_caller_who_has_left() -> None:
    said = [Saying(str(n), str(n), n) for n in range(10)]
    with deadline.within(0.0), pytest.raises(deadline.Abandoned):
        themes_of(said, np.eye(10, dtype=np.float32), 5)
