"""The ranking of candidates: a sum of few terms, each of which can be read and switched off.

Every term is neutral where it does not apply: a lesson has no session and no neighbours, a fact has
no author. docs/recall.md gives the formulas, the reasons and what each term was measured to do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_SESSION = -1
CONTEXT_WEIGHT = 2.0
"""Weight of BM25 over a text with its context, beside BM25 over the text alone."""
MAX_WORDS = 64
"""The length term stops growing here, and from here on a text borrows less from its neighbours: it
tells by itself what it is about."""
LONG_WORDS = 128
"""From here on the length term falls: a long text has some word of any query."""
PAGE_WORDS = 32
"""Beyond that a text is the more of a page the longer it is."""
_TALK = 0.15
"""So far candidates may be pages without being taken for any: in a talk some are long, too."""
_PAGE_DENSE = 1.5
_DAYS_ALONE = 16.0
"""So much more a day counts where nothing else is asked for: the next one comes after it."""
SESSION_WORDS = 2_500.0
"""Up to here a session is about one thing; of a longer one the passage tells."""
PASSAGE = 6
"""Places before and after a text that make its passage."""
UNRELATED_COSINE = 0.2
"""Unrelated texts lie below this cosine under MiniLM; a text lifts another only above it."""
HALF_LIFE_DAYS = 30.0
"""Age at which the recency term has fallen to half."""
WORD_HALF = 3.0
"""BM25 per word of the query that counts as evidence of one half."""
_FULL_LENGTH = float(np.log(MAX_WORDS))
"""Of what has no session: a fact is not too short to answer."""
_ONCE = 2.5
"""BM25 that is attainable of a word, over what a text has that holds it once."""
_DECIMALS = 9
_POSITION_BITS = 40


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """Weights of the terms. 0 switches a term off."""

    lexical: float = 1.0
    """BM25 of text and context, divided by the best candidate's."""
    dense: float = 1.5
    """Cosine of query and text."""
    answer: float = 1.0
    """Lift by the text said before, when that one and the query both ask a question; less for a
    text of more than `MAX_WORDS`."""
    next: float = 0.65
    """Lift by the text said after: what follows tells what it was about. Less for a long text."""
    alone: float = 0.75
    """Lift by its own text, for what has nobody to borrow from: tools' events, lessons."""
    session_dense: float = 1.0
    """Best cosine among the session's candidates; less for a session over `SESSION_WORDS`."""
    session_lexical: float = 0.5
    """Best lexical term among the session's candidates; less for a session over `SESSION_WORDS`."""
    passage: float = 2.0
    """Mean lexical term of what is said up to `PASSAGE` places before and after, of a long text
    less; the more, the longer the session is beyond `SESSION_WORDS`."""
    events: float = 2.0
    """For the summary of a session where sessions are searched for: the sum of its events."""
    author: float = 0.25
    """1 when the query names whoever speaks, or speaks of "me" or to "you"."""
    length: float = 0.1
    """Natural logarithm of the number of words, falling again beyond `LONG_WORDS`: "Thanks!"
    answers nothing, and a page anything."""
    date: float = 1.5
    """How well the day fits a date that the query names, 0 to 1; see `dates.date_match`."""
    failure: float = 0.5
    """1 for an error when the query speaks of a failure."""
    importance: float = 0.1
    """Importance from -0.25 (low) over 0 (normal) to 0.5 (critical)."""
    recency: float = 0.02
    """2 ** (-age / `HALF_LIFE_DAYS`), age against the newest memory: decides between equals."""
    repeated: float = 0.25
    """-1 for a memory whose very text ranks higher already, in the same kind of memory."""

    def array(self) -> Floats:
        """Return the weights in the order of `TERMS`, (terms,)."""
        return np.array(_in_order(self), dtype=np.float64)

    def fitting(self, pages: float, identified: float) -> RankingWeights:
        """Return the weights for a query.

        Where its candidates are pages, any of them has some word of it, and its vector tells more.
        An identifier is there or is not, and tells more than all else.

        Args:
            pages: see `pages_among`.
            identified: the share of the query that identifiers are, 0 to 1.
        """
        pages *= 1.0 - identified
        if not pages and not identified:
            return self
        return replace(
            self,
            lexical=self.lexical * (1.0 + identified),
            session_lexical=self.session_lexical * (1.0 + identified),
            dense=self.dense * (1.0 + _PAGE_DENSE * pages),
        )

    def by_day(self) -> RankingWeights:
        """Return the weights for a query that asks for days alone: its other words tell nothing."""
        return replace(self, date=self.date * _DAYS_ALONE)

    def highest(
        self, *, asks: bool, dated: bool, named: bool, failure: bool, summed: bool = False
    ) -> float:
        """Return the sum that a perfect memory would get for a query.

        Args:
            asks: the query is a question.
            dated: it names a date.
            named: it names the author of a candidate.
            failure: it speaks of a failure.
            summed: memories are ranked by their sessions' events, too.
        """
        lift = 1.0 - UNRELATED_COSINE
        borrowed = max(self.answer * asks + self.next, self.alone) * lift
        session = max(self.session_dense + self.session_lexical, self.passage)
        own = self.lexical + self.dense + session
        said = self.author * named + self.date * dated + self.failure * failure
        small = self.length * float(np.log(MAX_WORDS)) + self.importance / 2 + self.recency
        highest = own + borrowed + said + small
        return highest * (1.0 + self.events * summed)


TERMS = tuple(field.name for field in fields(RankingWeights))
_in_order = attrgetter(*TERMS)
_REPEATED = TERMS.index("repeated")


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is known of n candidates: arrays (n,). What does not exist is NaN."""

    lexical: Floats
    """BM25 of text plus `CONTEXT_WEIGHT` times BM25 of text and context."""
    attainable: float
    """What no text could exceed of that; 0 where it is not known, and of no use."""
    cosine: Floats
    """Cosine of the query and the text."""
    cosine_question: Floats
    """Cosine of the question said just before; NaN unless the query asks, too."""
    cosine_next: Floats
    """Cosine of what is said just after."""
    alone: Bools
    """Whether nothing is said just before or after, or it is not said itself."""
    spoken: Bools
    session: Ints
    """Number of the session; `NO_SESSION` for none."""
    position: Ints
    """Place in the session."""
    session_words: Floats
    """Words of all that the session holds; 0 without one."""
    words: Floats
    author_named: Bools
    date_match: Floats
    failed: Bools
    """Whether it is an error and the query speaks of a failure."""
    importance: Floats
    age_days: Floats


def measure(candidates: Candidates, events: Floats | None = None) -> Floats:
    """Return the terms before weighting, (terms, n), in the order of `TERMS`.

    `repeated` is left 0: it depends on the order of the others; see `put_back`.
    `events` (n,) are the sums of the candidates' sessions, where these are searched for.
    """
    best = candidates.lexical.max(initial=0.0)
    lexical = candidates.lexical / best if best > 0 else np.zeros_like(candidates.lexical)
    cosine = _cosine(candidates.cosine, lexical)
    apart = candidates.session == NO_SESSION
    lexical = np.where(apart, _held(candidates), lexical) if apart.any() else lexical
    whole = _shrinking(candidates.session_words, SESSION_WORDS)
    of_session = _best_of_session(np.stack([cosine, lexical]), candidates.session) * whole
    borrows = _shrinking(candidates.words, MAX_WORDS)
    measured = {
        "lexical": lexical,
        "dense": cosine,
        "answer": _lift(candidates.cosine_question) * borrows,
        "next": _lift(candidates.cosine_next) * borrows,
        "alone": _lift(cosine) * candidates.alone,
        "session_dense": of_session[0],
        "session_lexical": of_session[1],
        "passage": _passage(lexical * borrows, candidates, 1.0 - whole),
        "events": 0.0 if events is None else events,
        "author": candidates.author_named,
        "length": np.where(apart, _FULL_LENGTH, _length(candidates.words)),
        "date": candidates.date_match,
        "failure": candidates.failed,
        "importance": candidates.importance,
        "recency": np.exp2(candidates.age_days * (-1.0 / HALF_LIFE_DAYS)),
    }
    terms = np.zeros((len(TERMS), len(cosine)))
    for name, values in measured.items():
        terms[TERMS.index(name)] = values
    return terms


def pages_among(candidates: Candidates) -> float:
    """Return how far the candidates are pages, not turns of a talk, from 0 to 1."""
    if not candidates.words.size:
        return 0.0
    page = 1.0 - float(np.mean(PAGE_WORDS / np.fmax(candidates.words, PAGE_WORDS)))
    return max(0.0, (page - _TALK) / (1.0 - _TALK))


def total(terms: Floats, weights: RankingWeights) -> Floats:
    """Return the sum that ranks, (n,).

    Term by term, not as a matrix product: that would round differently from call to call.
    """
    totals: Floats = np.add.reduce(terms * weights.array()[:, np.newaxis], axis=0)
    return totals


def repeats(order: Ints, texts: Ints) -> Ints:
    """Return the candidates whose text comes earlier in `order`.

    Args:
        order: the candidates, the best first, (n,).
        texts: a number for each candidate that equal texts share, (n,).
    """
    in_order = texts[order]
    grouped = np.argsort(in_order, kind="stable")  # Of equal texts the best comes first.
    same = in_order[grouped[1:]] == in_order[grouped[:-1]]
    later: Ints = order[grouped[1:][same]]
    return later


def put_back(repeated: Ints, terms: Floats, totals: Floats, weights: RankingWeights) -> None:
    """Set the term `repeated` of these candidates, and take it off their sums; in place."""
    terms[_REPEATED, repeated] = -1.0
    totals[repeated] -= weights.repeated


def ranked(totals: Floats, times_us: Ints, doc_ids: Ints) -> Ints:
    """Return the candidates' places, the best first.

    Of equal sums the newest comes first, then the latest written, so that the order is always the
    same. Sums are compared to nine decimals: equal memories tie whatever their terms' last bits.
    """
    key = -np.round(totals, _DECIMALS)
    order = np.argsort(key)
    in_order = key[order]
    if (in_order[1:] == in_order[:-1]).any():
        order = np.lexsort((-doc_ids, -times_us, key))
    return order


def evidence(candidates: Candidates, query_words: int) -> float:
    """Return how well the best candidate matches at all, 0 to 1.

    The sum that ranks compares a query's candidates with each other: one of them always has the
    best BM25. This compares queries: it is the best cosine, or b / (b + `WORD_HALF`) for b the
    best BM25 per word of the query and field, whichever is more.
    """
    cosine = np.fmax.reduce(candidates.cosine, initial=0.0)
    fields_weight = 1.0 + CONTEXT_WEIGHT
    per_word = candidates.lexical.max(initial=0.0) / (fields_weight * max(query_words, 1))
    return min(max(0.0, float(cosine), float(per_word / (per_word + WORD_HALF))), 1.0)


def scores(totals: Floats, highest: float, evidence_: float) -> Floats:
    """Return the scores, 0 to 1, in the order of the sums: sqrt(sum / highest * evidence)."""
    if highest <= 0:
        return np.zeros_like(totals)
    return np.sqrt(np.minimum(np.maximum(totals / highest, 0.0), 1.0) * evidence_)


def _cosine(known: Floats, lexical: Floats) -> Floats:
    """Return the cosines, with an estimate for what is not embedded yet.

    Whose words fit as well as the best candidate's is taken to fit as well as the best candidate by
    meaning: 0 would put what was just written behind all that is vaguely like the query.
    """
    unknown = np.isnan(known)
    if not unknown.any():
        return known
    return np.where(unknown, lexical * np.fmax.reduce(known, initial=0.0), known)


def _held(candidates: Candidates) -> Floats:
    """Return how far each candidate has the query's words, 0 to 1: 1 for all of them, each once,
    and for a few of them little, as a fact that shares a word with a question is seldom meant."""
    if not candidates.attainable:
        return np.zeros_like(candidates.lexical)
    share = candidates.lexical * (_ONCE / candidates.attainable)
    held: Floats = np.minimum(share, 1.0) ** 2
    return held


def _length(words: Floats) -> Floats:
    counted = np.minimum(np.maximum(words, 1.0), MAX_WORDS)
    return np.log(counted * _shrinking(words, LONG_WORDS))


def _shrinking(words: Floats, most: float) -> Floats | float:
    """Return min(1, most / words)."""
    return most / np.fmax(words, most) if words.max(initial=0.0) > most else 1.0


def _passage(lexical: Floats, candidates: Candidates, share: Floats | float) -> Floats | float:
    """Return the mean lexical term of the places around what is spoken, times `share`.

    0 for everything else. What is no candidate counts 0, and so does what is not spoken.
    """
    if not np.any(share):
        return 0.0
    around = np.zeros_like(lexical)
    spoken = np.flatnonzero(candidates.spoken & (candidates.session != NO_SESSION))
    place = (candidates.session[spoken] << _POSITION_BITS) + candidates.position[spoken]
    order = np.argsort(place)
    place, spoken = place[order], spoken[order]
    until = np.concatenate([[0.0], np.cumsum(lexical[spoken])])
    first = np.searchsorted(place, place - PASSAGE, side="left")
    last = np.searchsorted(place, place + PASSAGE, side="right")
    around[spoken] = (until[last] - until[first] - lexical[spoken]) / (2 * PASSAGE)
    return around * share


def _lift(cosine: Floats) -> Floats:
    return np.fmax(cosine, UNRELATED_COSINE) - UNRELATED_COSINE  # 0 for NaN.


def _best_of_session(values: Floats, session: Ints) -> Floats:
    """Return for each value (k, n) the largest of its row's session; its own where it has none."""
    best = values.copy()
    inside = np.flatnonzero(session != NO_SESSION)
    if inside.size:
        order = inside[np.argsort(session[inside])]
        first = firsts(session[order])
        highest = np.maximum.reduceat(values[:, order], np.flatnonzero(first), axis=1)
        best[:, order] = highest[:, np.cumsum(first) - 1]
    return best


def firsts(ordered: Ints) -> Bools:
    """Return which of the values (n,) is another than the one before; the first is."""
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
