"""Recall's queries and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from mneme_server.common.canonical import JsonObject
from mneme_server.common.passages import Passage
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.features.recall.copies import Copies
from mneme_server.features.recall.ranking import RankingWeights
from mneme_server.features.recall.relative import NOW, AsOf
from mneme_server.features.recall.reranker import Reranking


class RecallMode(IntEnum):
    """How memories are searched. The numbers are those of `mneme.v1.RecallMode`."""

    HYBRID = 1
    DENSE = 2
    LEXICAL = 3


class RecallOutcome(Enum):
    """Why the results are what they are; the names are those of `mneme.v1.RecallOutcome`."""

    FOUND = "found"
    NOTHING_STORED = "nothing stored"
    NOTHING_MATCHES_FILTERS = "nothing matches the filters"
    NOTHING_ABOVE_MIN_SCORE = "nothing above min_score"
    NOTHING_CONFIDENT = "nothing above min_confidence"


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked.

    With `every_copy` near-copies are results of their own. `turns` asks for so many documents from
    just before and after each result in its session. `rerank` has a reranker, where there is one,
    order the first results. `at_once` has it answered while there is no index yet, marked as
    partial; else it waits for one. `bare` results are without details and passages: for who reads
    the things themselves, of kinds that nothing supersedes. `confidence` has the answer tell it,
    which costs a search of words; a `min_confidence` does, too. Days that it names relative to
    today are meant `as_of` when it is asked. Without `include_superseded` what another memory
    replaced is left out, and shown is that one.
    """

    text: str
    filter: DocumentFilter = field(default_factory=DocumentFilter)
    limit: int = 10
    min_score: float = 0.0
    mode: RecallMode = RecallMode.HYBRID
    weights: RankingWeights = field(default_factory=RankingWeights)
    explain: bool = False
    every_copy: bool = True
    turns: int = 0
    rerank: bool = False
    at_once: bool = False
    bare: bool = False
    confidence: bool = False
    min_confidence: float = 0.0
    as_of: AsOf = NOW
    include_superseded: bool = True

    @property
    def wants_confidence(self) -> bool:
        """Whether it matters how sure the answer is."""
        return self.confidence or self.min_confidence > 0


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a score: what was measured, and what it adds to the sum that ranks."""

    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """How the sum of a result's terms becomes its score: see `ranking.scores`."""

    highest: float
    evidence: float


@dataclass(slots=True)
class Recalled:
    """One result. Nobody changes it once it was answered.

    `score` is 0 to 1; `similarity` is the cosine, None when it is not known.

    `copies` tells of the memories that it stands for, None for itself alone. `before` and `after`
    are what its session holds around it, in order. `older` and `newer` are results that say almost
    the same at another time. `passage` is that of a long text that bears most on the query; None of
    a short one.
    """

    document: Document
    score: float
    similarity: float | None
    details: JsonObject
    terms: Sequence[Term] = ()
    copies: Copies | None = None
    before: Sequence[Document] = ()
    after: Sequence[Document] = ()
    older: Document | None = None
    newer: Document | None = None
    passage: Passage | None = None


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """What was recalled. `total` counts the candidates that reach `min_score`.

    `confidence` (0 to 1) tells how sure it is that something answers; None when that is not known,
    or was not asked for.
    It is `partial` when an index failed or a memory is damaged: something may be missing.
    `reranking` tells what a reranker did; None when none was asked. `scale` is there where results
    have terms.
    """

    results: Sequence[Recalled]
    outcome: RecallOutcome
    searched_count: int
    total: int = 0
    pending_count: int = 0
    capped: bool = False
    words_only: bool = False
    partial: bool = False
    reranking: Reranking | None = None
    confidence: float | None = None
    scale: ScoreScale | None = None
