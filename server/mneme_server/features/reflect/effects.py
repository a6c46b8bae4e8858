"""The effects of sequences of tools: how much likelier something is after one than elsewhere.

Calls of one session are alike: one session that fails ten times in a row is not ten sessions that
fail. So where calls are counted, counts are first divided by their design effect, the factor by
which clustering in sessions inflates the variance of the rate (Rao and Scott 1992), on either side
of the comparison. What is left are counts of as many independent observations as there really are;
Fisher's test and the ratio's interval are computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.reflect.calls import Calls, Grams
from mneme_server.features.reflect.history import NONE, Ints, SessionColumns
from mneme_server.features.reflect.model import SequenceEffect
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import (
    Floats,
    benjamini_hochberg,
    fisher_exact,
    rate_ratio,
    sum_by,
)

MIN_SESSIONS = 3
"""Sessions that a sequence must be seen in to be tested."""
MAX_TESTED = 20_000
"""Sequences of one length and effect that are tested, those in the most sessions."""


@dataclass(slots=True)
class Effects:
    """Sequences of one length and what followed; all arrays are (e,).

    `code` numbers the sequence in `grams`. `tests` is how many sequences could have been tested,
    those that are left out here included. `hit_session` and `hit_code` (h,) list each occurrence
    of the effect after a sequence.
    """

    grams: Grams
    effect: str
    code: Ints
    count: Ints
    hits: Ints
    base_count: Ints
    base_hits: Ints
    lift: Floats
    low: Floats
    high: Floats
    p_value: Floats
    tested: NDArray[np.bool_]
    tests: int
    hit_session: Ints
    hit_code: Ints
    capped: bool = False

    def strength(self) -> Floats:
        """Return each one's strength (e,), as `SequenceEffect.strength` says."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(self.low > 1, self.hits * (1 - 1 / self.low), 0.0)
            expected = self.count * self.base_hits / np.maximum(self.base_count, 1)
        return np.where(self.high < 1, expected * np.maximum(1 - self.high, 0.0), above)

    def item(
        self, i: int, q_value: float, calls: Calls, names: list[str], sessions: SessionColumns
    ) -> SequenceEffect:
        """Return one of them."""
        code = int(self.code[i])
        return SequenceEffect(
            tools=self.grams.tools(calls, names, code),
            effect=self.effect,
            count=int(self.count[i]),
            effect_count=int(self.hits[i]),
            base_count=int(self.base_count[i]),
            base_effect_count=int(self.base_hits[i]),
            lift=float(self.lift[i]),
            lift_interval=Interval(float(self.low[i]), float(self.high[i])),
            q_value=q_value,
            tested=bool(self.tested[i]),
            session_ids=sessions.newest(self.hit_session[self.hit_code == code]),
        )


class Moments:
    """Where an effect could follow, each (m,): the session, and the sequence before it or `NONE`.

    What is counted of them is the same whatever follows. A hundred errors are looked for after a
    million calls, and counting those takes most of the time.
    """

    def __init__(self, grams: Grams, session: Ints, before: Ints) -> None:
        self.grams = grams
        self.session = session
        self.before = before
        self.seen = before != NONE
        self.span = int(session.max()) + 1 if len(session) else 1
        pairs, self.pair = np.unique(
            before[self.seen] * self.span + session[self.seen], return_inverse=True
        )
        self.code, self.pair_session = pairs // self.span, pairs % self.span
        self.pair_count = np.bincount(self.pair, minlength=len(pairs)).astype(float)
        self.count = sum_by(self.code, self.pair_count, len(grams))
        self.in_sessions = np.bincount(self.code, minlength=len(grams))
        self.per_session = np.bincount(session, minlength=self.span).astype(float)


def after_sequences(
    moments: Moments,
    effect: str,
    hit: NDArray[np.bool_],
    *,
    min_sessions: int = MIN_SESSIONS,
    followed_only: bool = False,
) -> Effects:
    """Compare the moments after each sequence with all other moments.

    Args:
        moments: where the effect could follow.
        effect: what it is called.
        hit: whether it followed, (m,).
        min_sessions: sequences seen in fewer sessions are not tested.
        followed_only: leave out sequences that the effect never followed. They count as tests.
    """
    size, is_hit = len(moments.grams), moments.seen & hit
    pair_hits = sum_by(moments.pair, hit[moments.seen], len(moments.code))
    hits = sum_by(moments.code, pair_hits, size)
    testable = moments.in_sessions >= min_sessions
    chosen = (hits > 0) if followed_only else testable
    capped = int(chosen.sum()) > MAX_TESTED
    if capped:
        best = np.lexsort((np.arange(size), -moments.count, -moments.in_sessions))
        chosen = chosen & np.isin(np.arange(size), best[chosen[best]][:MAX_TESTED])
    codes = np.flatnonzero(chosen)
    n, x = moments.count[codes], hits[codes]
    per_session = _PerSession(moments.per_session, sum_by(moments.session, hit, moments.span))
    of_chosen = chosen[moments.code]
    of_pairs = _Pairs(
        np.searchsorted(codes, moments.code[of_chosen]),
        moments.pair_session[of_chosen],
        moments.pair_count[of_chosen],
        pair_hits[of_chosen],
    )
    mine, other = _design_effects(per_session, of_pairs, n, x)
    m, y = per_session.moments.sum() - n, per_session.hits.sum() - x
    found = _compared(_Rate(x, n, mine), _Rate(y, m, other))
    return Effects(
        grams=moments.grams,
        effect=effect,
        code=codes,
        count=n.astype(np.int64),
        hits=x.astype(np.int64),
        base_count=m.astype(np.int64),
        base_hits=y.astype(np.int64),
        lift=found.lift,
        low=found.low,
        high=found.high,
        p_value=np.where(testable[codes], found.p_value, 1.0),
        tested=testable[codes],
        tests=int(testable.sum()),
        hit_session=moments.session[is_hit],
        hit_code=moments.before[is_hit],
        capped=capped,
    )


class _PerSession(NamedTuple):
    """Moments and effects of each session (s,)."""

    moments: Floats
    hits: Floats


class _Pairs(NamedTuple):
    """Moments after a sequence in a session, and effects among them; each (p,)."""

    code: Ints
    session: Ints
    moments: Floats
    hits: Floats


def _design_effects(
    all_: _PerSession, pairs: _Pairs, count: Floats, hits: Floats
) -> tuple[Floats, Floats]:
    """Return the design effects after each sequence and elsewhere, each (g,), at least 1.

    The variance of a ratio of sums over sessions, by the jackknife, sum e_s^2 / (1 - n_s / n)^2 /
    n^2 with e_s = x_s - p n_s, over that of n independent observations, p (1 - p) / n. The
    leverage n_s / n matters: a session that makes up most of the moments draws p to itself, and
    its residual would look small.
    """
    size = len(count)
    code, session = pairs.code, pairs.session
    clusters = np.bincount(code, minlength=size).astype(float)
    rate = hits / np.maximum(count, 1)
    left = np.maximum(1 - pairs.moments / np.maximum(count[code], 1), 1e-9)
    own = ((pairs.hits - rate[code] * pairs.moments) / left) ** 2
    mine = _design_effect(sum_by(code, own, size), clusters, count, rate)
    # Elsewhere: every session as a whole, corrected for those where the sequence was seen.
    total = all_.moments.sum()
    other_count, other_hits = total - count, all_.hits.sum() - hits
    rate = other_hits / np.maximum(other_count, 1)
    weight = np.maximum(1 - all_.moments / max(total, 1), 1e-9) ** -2
    squares = (
        (weight * all_.hits**2).sum() - 2 * rate * (weight * all_.hits * all_.moments).sum()
        + rate**2 * (weight * all_.moments**2).sum()
    )  # fmt: skip
    whole = all_.hits[session] - rate[code] * all_.moments[session]
    rest = whole - (pairs.hits - rate[code] * pairs.moments)
    squares = squares + sum_by(code, weight[session] * (rest**2 - whole**2), size)
    emptied = sum_by(code, pairs.moments >= all_.moments[session], size)
    other_clusters = float((all_.moments > 0).sum()) - emptied
    other = _design_effect(np.maximum(squares, 0), other_clusters, other_count, rate)
    # Where the effect never followed, its clustering is that of the other side, as far as the
    # sequence comes more than once in a session.
    mine = np.where(hits > 0, mine, np.minimum(other, count / np.maximum(clusters, 1)))
    other = np.where(
        other_hits > 0, other, np.minimum(mine, other_count / np.maximum(other_clusters, 1))
    )
    return np.maximum(mine, 1.0), np.maximum(other, 1.0)


def _design_effect(squares: Floats, clusters: Floats, count: Floats, rate: Floats) -> Floats:
    simple = count * rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = squares / simple
    effect = np.where(simple > 0, effect, 1.0)
    # One session is one observation, however many calls it has.
    effect = np.where(clusters <= 1, np.maximum(count, 1), effect)
    return np.clip(effect, 1.0, np.maximum(count, 1.0))


class _RateRatio(NamedTuple):
    lift: Floats
    low: Floats
    high: Floats
    p_value: Floats


class _Rate(NamedTuple):
    """Hits among trials, each (n,), and by how much their variance is inflated (n,)."""

    hits: Floats
    trials: Floats
    design_effect: Floats

    def effective(self) -> tuple[Floats, Floats]:
        """Return as many hits and trials as there are independent ones."""
        return self.hits / self.design_effect, self.trials / self.design_effect


def _compared(here: _Rate, elsewhere: _Rate) -> _RateRatio:
    """Compare two rates, from their effective counts."""
    x, n = here.effective()
    y, m = elsewhere.effective()
    ratio = rate_ratio(x, n, y, m)
    few, of, rest, of_rest = (np.rint(values).astype(np.int64) for values in (x, n, y, m))
    of, of_rest = np.maximum(of, few), np.maximum(of_rest, rest)
    p_value = fisher_exact(few, of, few + rest, of + of_rest)
    return _RateRatio(*ratio, p_value)


def in_sessions(
    grams: Grams, effect: str, calls: Calls, *, known: NDArray[np.bool_], has: NDArray[np.bool_],
    min_sessions: int,
) -> Effects:  # fmt: skip
    """Compare the sessions with each sequence with all others.

    Args:
        grams: the sequences.
        effect: what the effect is called.
        calls: the calls.
        known: (s,) sessions whose outcome is known.
        has: (s,) sessions that have the effect.
        min_sessions: sequences seen in fewer sessions are not tested.
    """
    starts = np.flatnonzero((grams.code != NONE) & known[calls.session])
    span = len(known)
    pairs = np.unique(grams.code[starts] * span + calls.session[starts])
    code, session = pairs // span, pairs % span
    hit = has[session]
    size = len(grams)
    count = np.bincount(code, minlength=size)
    hits = sum_by(code, hit, size).astype(np.int64)
    testable = count >= min_sessions
    codes = np.flatnonzero(testable)
    capped = len(codes) > MAX_TESTED
    if capped:
        codes = np.sort(codes[np.lexsort((codes, -count[codes]))][:MAX_TESTED])
    # Sessions without any call have no sequences; they say nothing of those that have.
    called = np.zeros(span, bool)
    called[calls.session] = True
    total, total_hits = int((known & called).sum()), int((known & called & has).sum())
    n, x = count[codes], hits[codes]
    m, y = total - n, total_hits - x
    ratio = rate_ratio(*(values.astype(float) for values in (x, n, y, m)))
    every = np.full(len(codes), 1)
    return Effects(
        grams=grams,
        effect=effect,
        code=codes,
        count=n,
        hits=x,
        base_count=m,
        base_hits=y,
        lift=ratio.lift,
        low=ratio.low,
        high=ratio.high,
        p_value=fisher_exact(x, n, total_hits * every, total * every),
        tested=np.ones(len(codes), bool),
        tests=int(testable.sum()),
        hit_session=session[hit],
        hit_code=code[hit],
        capped=capped,
    )


def adjusted(families: list[Effects]) -> list[Floats]:
    """Return the q-values of several families of tests, adjusted for all of them together."""
    sizes = np.cumsum([len(family.code) for family in families])[:-1]
    tested = np.concatenate([f.tested for f in families]) if families else np.empty(0, bool)
    p_values = np.concatenate([f.p_value for f in families]) if families else np.empty(0)
    q_values = np.ones(len(p_values))
    tests = sum(family.tests for family in families)
    q_values[tested] = benjamini_hochberg(p_values[tested], tests)
    return np.split(q_values, sizes)
