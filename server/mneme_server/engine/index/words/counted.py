"""Words that are counted in memory, and BM25 over them: of all documents of a tenant that has few,
of another one of those that tantivy does not hold yet.

Of a tenant with few documents all are counted in the same way, whether or not tantivy holds them,
so that no score depends on it.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.document import Document
from mneme_server.engine.index.words.analysis import WordField, Words
from mneme_server.engine.index.words.bm25 import (
    K1,
    WordStatistics,
    inverse_frequency,
    kept_lengths,
    length_norm,
)

DocIds = NDArray[np.int64]
Places = NDArray[np.intp]

_HEAD = struct.Struct("<II8s")
_HEADS = np.dtype([("text", "<u4"), ("context", "<u4"), ("language", "S8")])
_WORDS = np.dtype([("word", "<u8"), ("text", "<u2"), ("context", "<u2")])
_MOST = 0xFFFF
"""More often than that a word counts as that often."""
_REMEMBERED = 1_000
"""Words that were looked for."""
_WHOLE = 8
"""Bytes of a word that stand for themselves; longer ones are hashed."""


class WaitingDocument:
    """A document that tantivy does not hold yet, with its words, which are counted when they are
    first asked for."""

    def __init__(self, document: Document, words: Words) -> None:
        self.document = document
        self._words = words
        self._language: str | None = None
        self._counts: bytes | None = None

    @property
    def language(self) -> str:
        """The language of its text; "" for English."""
        if self._language is None:
            self._language = self._words.language_of(self.document)
        return self._language

    @property
    def counts(self) -> bytes:
        """How often each word occurs in its fields, as `CountedWords` takes it."""
        return self._counts or self.count()

    @property
    def is_counted(self) -> bool:
        """Whether its words were counted."""
        return self._counts is not None

    def count(self) -> bytes:
        """Count its words and return `counts`."""
        fields = [Counter(self._words.of(self.document, f, self.language)) for f in WordField]
        words = list(dict.fromkeys(word for counts in fields for word in counts))
        kept = np.empty(len(words), _WORDS)
        kept["word"] = [_number_of(word) for word in words]
        for field, counts in zip(WordField, fields, strict=True):
            kept[field.value] = [min(counts[word], _MOST) for word in words]
        lengths = [counts.total() for counts in fields]
        self._counts = _HEAD.pack(*lengths, self.language.encode()) + kept.tobytes()
        return self._counts


class CountedWords:
    """How often each word occurs in each document. Nothing of it changes. Implements
    `WordStatistics`.

    A word is looked for among all words of all documents, which takes some 50 µs for two thousand.

    Args:
        kept: of each document, by its id, its `WaitingDocument.counts`.
    """

    def __init__(self, kept: Mapping[int, bytes]) -> None:
        self.doc_ids: DocIds = np.fromiter(kept, np.int64, len(kept))
        heads = np.frombuffer(b"".join(one[: _HEAD.size] for one in kept.values()), _HEADS)
        words = np.frombuffer(b"".join(one[_HEAD.size :] for one in kept.values()), _WORDS)
        sizes = [(len(one) - _HEAD.size) // _WORDS.itemsize for one in kept.values()]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._words = np.ascontiguousarray(words["word"])
        self._found: dict[str, _Occurrences] = {}  # A call asks for the same words again.
        self._counts = {f: np.ascontiguousarray(words[f.value]) for f in WordField}
        self._lengths = {f: heads[f.value].astype(np.int64) for f in WordField}
        self.languages = frozenset(
            code.decode() for code in np.unique(heads["language"]).tolist() if code
        )

    @property
    def count(self) -> int:
        """How many documents there are."""
        return self.doc_ids.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.doc_ids.size * 40 + self._words.nbytes * 3 // 2

    def idf(self, field: WordField, word: str) -> float:
        """See `WordStatistics`."""
        return inverse_frequency(self.count, self.frequency(field, word))

    def frequency(self, field: WordField, word: str) -> int:
        """See `WordStatistics`."""
        return int(np.count_nonzero(self._occurring(word).counts[field]))

    def average_length(self, field: WordField) -> float:
        """See `WordStatistics`."""
        return int(self._lengths[field].sum()) / max(1, self.count) or 1.0

    def holding(self, words: Collection[str]) -> DocIds:
        """Return the documents whose text holds all of these words, in no order."""
        held = np.ones(self.count, bool)
        for word in words:
            found, one = self._occurring(word), np.zeros(self.count, bool)
            one[found.places] = found.counts[WordField.TEXT] > 0
            held &= one
        return self.doc_ids[held]

    def score(
        self,
        words: Sequence[str],
        weights: Mapping[WordField, float],
        statistics: WordStatistics,
    ) -> tuple[DocIds, NDArray[np.float32]]:
        """Return the documents that hold any of the words, and their scores, in no order: BM25 with
        these statistics, summed over the words and, weighted, over the fields."""
        totals = np.zeros(self.count)
        for field, weight in weights.items() if self.count else ():
            average = statistics.average_length(field)
            norms = length_norm(kept_lengths(self._lengths[field]), average)
            for word in words:
                places, counts = self._occurring(word)
                if places.size:
                    frequency = counts[field]
                    share = frequency * (K1 + 1) / (frequency + norms[places])
                    totals[places] += weight * statistics.idf(field, word) * share
        found = totals > 0
        return self.doc_ids[found], totals[found].astype(np.float32)

    def _occurring(self, word: str) -> _Occurrences:
        found = self._found.get(word)
        if found is None:
            at = np.flatnonzero(self._words == np.uint64(_number_of(word)))
            places = np.searchsorted(self._ends, at, side="right")
            counts = {
                field: counts[at].astype(np.float64) for field, counts in self._counts.items()
            }
            if len(self._found) >= _REMEMBERED:
                self._found = {}
            self._found[word] = found = _Occurrences(places, counts)
        return found


class _Occurrences(NamedTuple):
    """Where a word occurs: the places of the documents, and how often in each, by field."""

    places: Places
    counts: Mapping[WordField, NDArray[np.float64]]


def _number_of(word: str) -> int:
    """Return 64 bits that stand for a word."""
    written = word.encode()
    if len(written) > _WHOLE:
        written = hashlib.blake2b(written, digest_size=_WHOLE).digest()
    return int.from_bytes(written, "little")
