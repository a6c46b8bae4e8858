"""How sure it is that something here answers the query: a figure between 0 and 1.

It is fitted on questions that can be answered by what is stored, and on questions that belong to
other stores; docs/recall.md shows how well it holds, and where it does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mneme_server.corpus.ports import CorpusIndex, Rows, Selection, WordEvidence
from mneme_server.recall.cosines import E5
from mneme_server.recall.ranking import Floats

RECALLED_BY_DEFAULT = 0.05
"""Below this, what GetContext and WakeUp recall is left out."""

# A name in code, a path, a code: what is either there or not, whatever a model makes of it.
_FEW_WORDS = 2
_SUFFIXES = (
    "py|js|ts|tsx|go|rs|java|c|cc|cpp|h|rb|php|sh|sql|md|json|ya?ml|toml|lock|cfg|conf|ini|txt|csv"
    "|log|html|css|xml"
)
_IDENTIFIER = re.compile(
    r"(?:[A-Za-z]:\\|~?/|\./)?[\w.-]+(?:[/\\][\w.-]+)+\.\w+"  # src/app.py
    r"|(?<![\w.])(?:~?/|\./)[\w.-]+(?:/[\w.-]+)*"  # /etc/hosts
    rf"|\b[\w-]+\.(?:{_SUFFIXES})\b"  # config.yaml
    r"|\b[A-Za-z_]\w+(?:(?:::|\.)[a-z_]\w+)+\b"  # os.path, std::mem
    r"|\b[A-Za-z]\w*(?:Error|Exception|Warning)\b"  # KeyError
    r"|\b(?i:code|errno|status|http|error|exit|ticket|order|issue)(?i: code| status)?"
    r"[ :=#]{1,3}\d+\b"  # exit code 137
    r"|\b[A-Z]{1,10}-\d+\b"  # ORA-12345
    r"|\b\w+(?:_\w+)+\b"  # get_user
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])(?!\d+(?:st|nd|rd|th|[ap]m|[a-z]{1,2})\b)\w{4,}\b"  # 4WQ150
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"  # getUser
    r"|\b[A-Z]{6,}\b"  # ECONNREFUSED
    r"|\b\d{5,}\b"
)

# What each of them has somewhere; most questions have none of it, and are not searched.
_UNUSUAL = re.compile(r"[\d_/\\.:]|[a-z][A-Z]|[A-Z]{6}|Error|Exception|Warning")


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights of a logistic regression over what is known of a query.

    Attributes:
        cosine: of the best cosine of query and text.
        best: of the best BM25 over what is attainable.
        occurring: of the share of the query's words that occur, by weight.
        identified: of the share of its identifiers that occur.
        bias: what is added.
    """

    cosine: float
    best: float
    occurring: float
    identified: float
    bias: float

    def __call__(self, cosine: float, best: float, words: WordEvidence) -> float:
        """Return the confidence, 0 to 1."""
        total = (
            self.cosine * cosine
            + self.best * best
            + self.occurring * words.occurring
            + self.identified * words.identified
            + self.bias
        )
        return 1.0 / (1.0 + math.exp(-total))


_MINILM = Fit(cosine=22.0, best=2.85, occurring=3.95, identified=7.5, bias=-12.34)
_E5 = Fit(cosine=68.88, best=4.51, occurring=5.57, identified=7.5, bias=-61.45)
FITTED = {"all-MiniLM-L6-v2": _MINILM, "all-MiniLM-L6-v2-int8": _MINILM, E5: _E5}
"""By the id of the embedding model: one's cosines mean nothing for another."""
BY_WORDS = Fit(cosine=0.0, best=6.6, occurring=6.9, identified=3.0, bias=-5.25)
"""For a query without a vector, and for memories that have none yet."""


def identifiers_in(query: str) -> list[str]:
    """Return the names in code, paths and codes that a query holds.

    A few words with a digit among them are one: "v1.2.3", "4412".
    """
    found = _IDENTIFIER.findall(query) if _UNUSUAL.search(query) else []
    if not found and len(query.split()) <= _FEW_WORDS and any(map(str.isdigit, query)):
        return [query]
    return found


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of how well a query is answered, besides its cosines: see `Fit`."""

    best: float
    words: WordEvidence
    waits: bool
    """Whether the best by words has no vector yet."""


def words_of(
    index: CorpusIndex, query: str, selection: Selection, *, any_waits: bool
) -> WordEvidence:
    """Return how far the query's words are to be found. `any_waits`: some memory has no vector."""
    # Of those that match best, only whether one waits is asked.
    return index.word_evidence(query, selection, identifiers_in(query), any_best=not any_waits)


def signs_of(words: WordEvidence, waiting: Rows) -> Signs:
    """Return what the words tell of a query. `waiting` are the candidates without a vector."""
    if not words.telling:
        return Signs(0.0, words, waits=False)
    found = words.best
    known = found.rows.size > 0 and words.attainable > 0
    best = float(found.scores[0]) / words.attainable if known else 0.0
    return Signs(best, words, waits=waiting.size > 0 and bool(np.isin(found.rows, waiting).any()))


def confidence_of(
    words: Callable[[], WordEvidence],
    model_id: str,
    *,
    rows: Rows,
    similarity: Floats,
    by_words: bool,
) -> float | None:
    """Return how sure it is that something selected answers the query.

    None when it would take the cosines of a model that is not fitted.

    Args:
        words: returns `words_of` the query.
        model_id: the embedding model's.
        rows: the candidates, (n,).
        similarity: their cosines, (n,), NaN where there is none.
        by_words: whether the query has no vector.
    """
    fit = FITTED.get(model_id)
    if fit is None and not by_words:
        return None
    known = ~np.isnan(similarity)
    signs = signs_of(words(), rows[~known])
    if not signs.words.telling:
        return 0.0
    if fit is None or by_words or not known.any():
        return BY_WORDS(0.0, signs.best, signs.words)
    found = fit(float(similarity[known].max()), signs.best, signs.words)
    if signs.waits:
        found = max(found, BY_WORDS(0.0, signs.best, signs.words))
    return found
