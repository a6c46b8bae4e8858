"""Matches are those of the text as it is stored, whichever of Unicode's forms that is in."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
from mneme_server.features.memory.patterns.matchers import RegexMatcher, Searched

PIECES = ["a", "é", "e\u0301", "\u0323\u0302", "ậ", "서", "\u1109\u1165", "か\u3099", " ", "\u0958",
          "\u212b", "\u09c7\u09be", "\u0344"]  # fmt: skip
TEXTS = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(TEXTS)
@example("e\u0301\u1109\u1165\u0958a")
def test_every_part_of_a_text_is_found_where_it_is_stored(text: str) -> None:
    searched = Searched(text)
    whole, start, end = searched.stored(0, len(searched.text))
    assert (whole, start, end) == (text, 0, len(text))
    parts = [searched.stored(place, place + 1)[0] for place in range(len(searched.text))]
    assert "".join(parts) == text


@given(before=TEXTS, after=TEXTS)
def test_a_match_is_what_the_stored_text_has_there(before: str, after: str) -> None:
    for form in ("NFC", "NFD"):
        text = f"{before} {unicodedata.normalize(form, 'Brücke')} {after}"
        for asked in ("NFC", "NFD"):
            matcher = RegexMatcher(unicodedata.normalize(asked, "(Brü)cke"))
            match = matcher.matches(text)[0]
            assert match.text == text[match.start : match.end]
            assert unicodedata.normalize("NFC", match.text) == "Brücke"
            assert unicodedata.normalize("NFC", match.groups[0]) == "Brü"
            if "\0" not in text:
                assert matcher.matching(text.encode()) == [0]
