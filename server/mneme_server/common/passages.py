"""The cutter of long texts: passages, each short enough to have one meaning.

A vector of a text says what it is about on the whole: what one sentence of ten pages says is not in
it. So a long text has a vector of its beginning, and one of each of its passages. Sizes are in
bytes of UTF-8, which come nearest to tokens in every script: a word of English has some five and
one to two tokens, a Chinese character three and one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

READ_AT_ONCE = 1_024
"""Bytes that every embedding model reads at once: the shortest read 256 tokens. A text that is no
longer has one vector, of all of it."""
LARGEST = 180
"""Bytes of a passage at most; `docs/adr/0058` has the curve of quality against cost that it was
chosen from."""
_REPEATED = LARGEST // 3
"""Bytes up to which the last sentence of a passage begins the next one as well: what follows often
says "it" of what stands there."""
_HEADING_BYTES = 120
_SENTENCE_END = re.compile(r"[.!?…:;](?=\s)|[。！？；\n]")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")


class Passage(NamedTuple):
    """Where a passage stands in its text, in characters, and below which headings that are not part
    of it, from the outer one to the inner, with " > " between; "" below none."""

    start: int
    end: int
    headings: str = ""

    def of(self, text: str) -> str:
        """Return what is embedded of the text: the passage, below its headings."""
        said = text[self.start : self.end]
        return f"{self.headings}\n{said}" if self.headings else said

    def quoted(self, text: str) -> QuotedPassage:
        """Return it with what it says in its text."""
        return QuotedPassage(text[self.start : self.end], self.start, self.end, self.headings)


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A passage, and what it says."""

    text: str
    start: int
    end: int
    headings: str


def is_long(text: str) -> bool:
    """Tell whether a text is more than a model reads at once, and is cut."""
    if len(text) > READ_AT_ONCE:
        return True
    return len(text) * 4 > READ_AT_ONCE and _bytes(text, 0, len(text)) > READ_AT_ONCE


def passages(text: str) -> Sequence[Passage]:
    """Cut a text at headings, lines and sentences; return none of one that is read at once.

    The passages cover all of the text but for space, in order. What has neither lines nor sentences
    is cut between words, and what has no words, between characters.
    """
    return [*_packed(text)] if is_long(text) else ()


def around(text: str, passage: Passage, most: int) -> tuple[int, int]:
    """Return from where to where a text is shown for one of its passages: with those next to it,
    as far as they fit in `most` characters."""
    cut = passages(text)
    first = last = next(n for n, one in enumerate(cut) if one.start == passage.start)
    while True:
        before = first > 0 and cut[last].end - cut[first - 1].start <= most
        first -= before
        after = last + 1 < len(cut) and cut[last + 1].end - cut[first].start <= most
        last += after
        if not before and not after:
            return cut[first].start, cut[last].end


def _packed(text: str) -> Iterator[Passage]:
    """Yield passages of as many sentences as fit."""
    path: list[str] = []
    above: Sequence[str] = ()  # The headings of what is held: of a heading itself, the outer ones.
    held: list[_Piece] = []
    size = 0
    for piece in _pieces(text):
        heading = text[piece.start] == "#" and _HEADING.match(text, piece.start, piece.end)
        if held and (heading or size + piece.size > LARGEST):
            yield _joined(held, above)
            again = held[-1]
            repeated = len(held) > 1 and not heading and again.size <= _REPEATED
            held = [again] if repeated and again.size + piece.size <= LARGEST else []
            size = sum(one.size for one in held)
            above = path
        if heading:
            path = [*path[: len(heading[1]) - 1], heading[2].strip()]
            above = path[:-1]
        held.append(piece)
        size += piece.size
    if held:
        yield _joined(held, above)


class _Piece(NamedTuple):
    """A sentence, or what of a long one goes into a passage; `size` in bytes."""

    start: int
    end: int
    size: int


def _joined(held: Sequence[_Piece], above: Sequence[str]) -> Passage:
    headings = " > ".join(above)
    while len(headings.encode("utf-8", "surrogatepass")) > _HEADING_BYTES:
        headings = headings[len(headings) // 4 + 1 :]  # The inner ones tell more.
    return Passage(held[0].start, held[-1].end, headings)


def _pieces(text: str) -> Iterator[_Piece]:
    plain = text.isascii()
    ends = [mark.end() for mark in _SENTENCE_END.finditer(text)]
    start = 0
    for end in [*ends, len(text)]:
        said = text[start:end].lstrip()
        if said:
            start = end - len(said)
            last = start + len(said.rstrip())
            size = last - start if plain else _bytes(text, start, last)
            if size <= LARGEST:
                yield _Piece(start, last, size)
            else:
                yield from _of_words(text, start, last)
        start = end


def _of_words(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Cut what is too long for a passage between words; a word that is, between characters."""
    while start < end:
        last = start + _fitting(text, start, end)
        if last < end and not text[last].isspace():
            words = text[start:last].rsplit(None, 1)
            if len(words) > 1:
                last -= len(words[1])
        said = text[start:last].rstrip()
        yield _Piece(start, start + len(said), _bytes(text, start, start + len(said)))
        start = last
        while start < end and text[start].isspace():
            start += 1


def _fitting(text: str, start: int, end: int) -> int:
    """Return how many characters from `start` on fit in a passage; at least one."""
    some = text[start : min(end, start + LARGEST)]
    if some.isascii():
        return len(some)
    whole = some.encode("utf-8", "surrogatepass")[:LARGEST]
    return max(1, len(whole.decode("utf-8", "ignore")))


def _bytes(text: str, start: int, end: int) -> int:
    return len(text[start:end].encode("utf-8", "surrogatepass"))
