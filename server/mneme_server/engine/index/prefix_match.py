"""The match of a question's words with the starts of words in texts, where no index has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.cold_search import TextPage
from mneme_server.engine.corpus.ports import Rows
from mneme_server.engine.corpus.words import STOP_WORDS
from mneme_server.engine.index.words.analysis import asked_pairs
from mneme_server.engine.index.words.bm25 import inverse_frequency, length_norm
from mneme_server.engine.index.words.languages import KANA_STOPS, UNSPACED, in_pairs

_WORDS = 24
"""Words of a question that are looked for, the longest."""
_SURE = 4
"""Characters at a word's start that are always compared."""
_ENDING = 3
"""Characters at a longer word's end that may differ: what its other forms end with."""
_WORD = re.compile(r"\w+")
_HEAD = np.dtype("<u8")
"""The first bytes of a word as a number, to be compared at once."""
_NOWHERE = np.empty(0, np.int64)
_INSIDE = bytes(chr(code).isascii() and chr(code).isalnum() for code in range(256))
"""Which bytes are letters or digits; of what is no ASCII it is not known."""


def matching(query: str, pages: Iterable[TextPage], count: int) -> tuple[Rows, Rows]:
    """Return all documents that have these texts, and up to `count` whose texts match the words of
    `query` best, by BM25 over the starts of words."""
    starts = starts_of(query)
    ids, sizes = [_NOWHERE], [_NOWHERE]
    having: list[list[Rows]] = [[] for _ in starts]
    seen = 0
    for page in map(_composed, pages):
        said = _WordStarts(page.joined)
        ends = np.cumsum(page.sizes + 1)
        for forms, rows in zip(starts, having, strict=True):
            for form in forms:
                places = said.places(form)
                if places.size:
                    rows.append(seen + np.searchsorted(ends, places, side="right"))
        ids.append(page.doc_ids)
        sizes.append(page.sizes)
        seen += page.doc_ids.size
    doc_ids = np.concatenate(ids)
    scores = _scores(having, np.concatenate(sizes))
    matched = np.flatnonzero(scores)
    return doc_ids, best(doc_ids[matched], scores[matched], count)


def best(doc_ids: Rows, scores: NDArray[np.floating], count: int) -> Rows:
    """Return the documents with the `count` highest scores, in any order."""
    if doc_ids.size > count:
        doc_ids = doc_ids[np.argpartition(-scores, count)[:count]]
    return doc_ids


def starts_of(query: str) -> list[set[bytes]]:
    """Return how the words of a query begin, each in the spellings that texts may have."""
    query = composed(query).lower()
    words = _WORD.findall(UNSPACED.sub(asked_pairs, query))
    telling = [word for word in words if word not in STOP_WORDS and word not in KANA_STOPS]
    telling = telling or _WORD.findall(in_pairs(query))
    telling = sorted(dict.fromkeys(telling), key=len, reverse=True)[:_WORDS]
    starts = dict.fromkeys(word[: max(_SURE, len(word) - _ENDING)] for word in telling)
    return [
        {form.encode().lower() for form in (start, start.capitalize(), start.upper())}
        for start in starts
    ]


def _composed(page: TextPage) -> TextPage:
    """Return texts as words are compared; most are so already."""
    if page.joined.isascii():
        return page
    joined = page.joined.decode(errors="surrogateescape")
    if composed(joined) == joined:
        return page
    ends = np.cumsum(page.sizes + 1).tolist()  # No text takes the space before it to itself.
    texts = [
        composed(page.joined[start:end].decode(errors="surrogateescape"))
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    said = [text.encode(errors="surrogateescape") for text in texts]
    sizes = np.array([len(text) for text in said], np.int64)
    sizes[:-1] -= 1  # Of the last one there is no space behind.
    return TextPage(page.doc_ids, sizes, b"".join(said))


def _scores(having: Sequence[Sequence[Rows]], sizes: Rows) -> NDArray[np.float64]:
    """Return BM25 of texts (n,) that are so long in bytes; `having` has, for each word, the numbers
    of those with it, as often as they have it."""
    scores = np.zeros(sizes.size)
    average = max(1.0, float(sizes.sum()) / max(1, sizes.size))
    norm = length_norm(sizes.astype(np.float64), average)
    for rows in having:
        if rows:
            times = np.bincount(np.concatenate(rows), minlength=sizes.size)
            found = np.flatnonzero(times)
            often = times[found].astype(np.float64)
            scores[found] += (
                inverse_frequency(sizes.size, found.size) * often / (often + norm[found])
            )
    return scores


class _WordStarts:
    """Texts in UTF-8, and where their words begin. What is no ASCII stays as it is.

    Where they begin is found once: to look all through the texts for each word takes longer.
    """

    def __init__(self, joined: bytes) -> None:
        self._text = text = joined.lower()
        inside = np.frombuffer(text.translate(_INSIDE), np.bool_)
        self._begins = np.flatnonzero(inside[1:] > inside[:-1]) + 1
        if inside.size and inside[0]:
            self._begins = np.concatenate([[0], self._begins])
        padded = text + bytes(_HEAD.itemsize)
        heads = np.ndarray((len(text),), _HEAD, padded, strides=(1,))
        self._heads = heads[self._begins]

    def places(self, start: bytes) -> Rows:
        """Return where words begin so; of what begins with no ASCII, where it stands at all."""
        if not start[:1].isalnum():
            return self._anywhere(start)
        head = start[: _HEAD.itemsize]
        beyond = np.uint64(8 * (_HEAD.itemsize - len(head)))
        wanted = np.uint64(int.from_bytes(head, "little"))
        found: Rows = self._begins[self._heads << beyond == wanted << beyond]
        if len(start) > len(head):
            said = self._text
            found = found[[said.startswith(start, place) for place in found.tolist()]]
        return found

    def _anywhere(self, start: bytes) -> Rows:
        places, at = [], self._text.find(start)
        while at >= 0:
            places.append(at)
            at = self._text.find(start, at + 1)
        return np.array(places, np.int64)
