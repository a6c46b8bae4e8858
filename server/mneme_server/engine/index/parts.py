"""What an index is made of, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(Enum):
    """What an index is made of, as far as it can fail."""

    VECTORS = "vectors"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class IndexStats:
    """How large an index is. `rows` counts removed documents too; `mode` is "exact" or "hnsw";
    `dense_waiting` are vectors that lie in no graph yet."""

    documents: int
    rows: int
    vectors: int
    mode: str
    dense_waiting: int
    lexical_waiting: int
    lexical_writer: bool
    bytes: int
