"""The cutter of long texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.common.passages import LARGEST, READ_AT_ONCE, Passage, around, is_long, passages

_PIECES = st.sampled_from(
    ["The meter reads low. ", "So what? ", "\n", "\n\n", "# On heat\n", "## On pumps\n", " " * 50,
     "它在下雨。", "Das Gerät läuft nicht; es steht. ", "x" * 700, "…", "...", "👩‍🔧", "wort " * 60]
)  # fmt: skip
TEXTS = st.lists(_PIECES, min_size=1, max_size=120).map("".join)


def without_space(text: str) -> str:
    return "".join(text.split())


@given(TEXTS)
def test_passages_hold_all_of_a_long_text_in_its_order(text: str) -> None:
    found = passages(text)
    assert bool(found) == is_long(text)
    end = 0
    for passage in found:
        assert not text[end : passage.start].strip(), "something is left out"
        assert passage.start < passage.end
        assert text[passage.start : passage.end].strip() == text[passage.start : passage.end]
        end = passage.end
    if found:
        assert not text[end:].strip()


@given(TEXTS)
def test_none_is_longer_than_the_longest(text: str) -> None:
    for start, end, _ in passages(text):
        assert len(without_space(text[start:end]).encode()) <= LARGEST


@given(TEXTS)
@settings(max_examples=30)
def test_what_stands_before_changes_no_passage_behind_a_heading(text: str) -> None:
    """So a change at the beginning of a page leaves the vectors of its other sections valid."""
    behind = "\n# The end\n" + "It stands at the end. " * 80
    said = [passage.of(text + behind) for passage in passages(text + behind)]
    alone = [passage.of(behind) for passage in passages(behind)]
    assert said[-len(alone) :] == alone


def test_a_text_that_is_read_at_once_is_not_cut() -> None:
    assert passages("a" * READ_AT_ONCE) == ()
    assert passages("雨" * (READ_AT_ONCE // 3)) == ()
    assert passages("a " * READ_AT_ONCE)
    assert passages("雨" * (READ_AT_ONCE // 3 + 1))


def test_a_passage_ends_where_a_sentence_does() -> None:
    text = " ".join(f"This is the sentence with the number {n} of them all." for n in range(60))
    for start, end, _ in passages(text):
        assert text[end - 1] == "."
        assert text[start:].startswith("This is")


def test_a_short_sentence_at_the_end_of_a_passage_begins_the_next_one_too() -> None:
    text = " ".join(f"Ann told number {n}. {'She said it twice, and then once more. ' * 4}"
                    for n in range(20))  # fmt: skip
    found = passages(text)
    assert any(later.start < sooner.end for sooner, later in pairwise(found))


def test_a_passage_is_read_below_its_headings() -> None:
    text = "# Pumps\n## Seals\n" + "They are changed each year. " * 60 + "\n## Motors\nThey stay. "
    found = [*passages(text)]
    assert found[1].of(text).startswith("Pumps\n## Seals\nThey are changed")
    assert found[2].of(text).startswith("Pumps > Seals\nThey are changed")
    assert found[-1].of(text) == "Pumps\n## Motors\nThey stay."


def test_a_long_path_of_headings_keeps_the_inner_ones() -> None:
    text = "".join(f"{'#' * n} {'outer ' * 20}{n}\n" for n in range(1, 7)) + "Words here. " * 100
    assert len(passages(text)[-1].headings.encode()) <= 120
    assert passages(text)[-1].headings.endswith("6")


@pytest.mark.parametrize("text", ["." * 200_000, " " * 200_000 + "x" * 2_000, "# " * 100_000])
def test_a_text_without_sentences_is_cut_all_the_same(text: str) -> None:
    assert [Passage(*one) for one in passages(text)]


@given(TEXTS, st.integers(0, 10**6), st.integers(200, 2_000))
def test_a_passage_is_shown_with_what_is_next_to_it_within_a_limit(
    text: str, which: int, most: int
) -> None:
    cut = passages(text)
    if not cut:
        return
    chosen = cut[which % len(cut)]
    start, end = around(text, chosen, most)
    assert start <= chosen.start < chosen.end <= end
    assert end - start <= max(most, chosen.end - chosen.start)
