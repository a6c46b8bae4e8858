"""Answers and pages stay within what a host can take, and say what they leave out."""

from __future__ import annotations

import json

import pytest
from mneme.visible import visible
from mneme_mcp.bounds import MAX_BYTES, bounded, bounded_lines


def test_a_small_answer_is_whole() -> None:
    data = {"results": [{"text": "x" * 1000}] * 5}
    assert bounded(data) == (data, "")


def test_items_go_from_the_end_of_a_long_list_and_are_counted() -> None:
    data = {"total": 100, "results": [{"id": n, "text": "x" * 5_000} for n in range(100)]}
    kept, told = bounded(data)
    assert len(json.dumps(kept).encode()) <= MAX_BYTES
    shown = len(kept["results"])
    assert kept["results"] == data["results"][:shown]
    assert f"{100 - shown} of 100 results" in told
    assert len(data["results"]) == 100


@pytest.mark.parametrize("text", ["x" * 600_000, "\u6570" * 600_000])
def test_one_item_that_is_too_large_is_cut(text: str) -> None:
    kept, told = bounded({"item": {"text": text, "id": "a"}})
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= MAX_BYTES
    assert kept["item"]["id"] == "a"
    assert "texts beyond 1,000 characters" in told


@pytest.mark.parametrize("lines", [["x" * 3000] * 200, ["x" * 600_000], ["x" * 600_000, "y"]])
def test_a_page_keeps_as_many_lines_as_there_is_room_for_and_says_how_many_are_left_out(
    lines: list[str],
) -> None:
    kept = bounded_lines(lines, "read on")
    assert len("\n".join(kept).encode()) <= MAX_BYTES + 200
    assert "left out" in kept[-1]
    assert "read on" in kept[-1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user\u202egnp.exe", "user\u27e8U+202E\u27e9gnp.exe"),
        ("\x1b[2Jgone", "\u27e8U+001B\u27e9[2Jgone"),
        ("a\U000e0041b", "a\u27e8U+E0041\u27e9b"),
        ("two\n\tlines", "two\n\tlines"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\u200d\U0001f680"),
    ],
)
def test_what_would_not_be_seen_is_shown_by_its_name(text: str, shown: str) -> None:
    assert visible(text) == shown
