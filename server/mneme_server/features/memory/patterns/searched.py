"""A text as it is searched, and where that is in the text as it is stored."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cached_property

from mneme_server.common.texts import composed


class Searched:
    """A text in the form NFC, `text`, that knows the form it is stored in."""

    def __init__(self, stored: str) -> None:
        self._stored = stored
        self.text = composed(stored)

    def stored(self, start: int, end: int) -> tuple[str, int, int]:
        """Return what is stored of a part of `text`, where that starts and where it ends; nothing
        of a part that there is not, which starts at -1."""
        if start < 0:
            return "", start, end
        if self.text is not self._stored:
            start, end = self._places[start], self._places[end]
        return self._stored[start:end], start, end

    @cached_property
    def _places(self) -> list[int]:
        """Where each character of `text` is stored, and the end. Of a run that became several
        characters, each has a place in it, the first its beginning."""
        places: list[int] = []
        start = 0
        for run in _runs(self._stored):
            places += [start + min(place, len(run)) for place in range(len(composed(run)))]
            start += len(run)
        return [*places, start]


def _runs(text: str) -> Iterator[str]:
    """Yield the parts of a text, each of which has its form whatever is beside it."""
    run = ""
    for character in text:
        if run and not _joins(run, character):
            yield run
            run = ""
        run += character
    if run:
        yield run


def _joins(run: str, character: str) -> bool:
    """Tell whether a character is one with those before it."""
    if character.isascii():
        return False
    if unicodedata.combining(character):
        return True
    return composed(run + character) != composed(run) + composed(character)
