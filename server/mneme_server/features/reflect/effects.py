"""The effects of sequences of tools: how much likelier something is after one than elsewhere.

What follows a sequence is compared with what the same tool does elsewhere, at the same place in a
session; sessions with one, with sessions of the same length, agent, labels and time. Calls of one
session are alike, and sessions of one task: see `statistics.association`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.reflect.calls import Calls, Grams
from mneme_server.features.reflect.circumstances import Circumstances
from mneme_server.features.reflect.history import NONE, Ints, SessionColumns
from mneme_server.features.reflect.model import SequenceEffect
from mneme_server.statistics.association import (
    LEAST_CLUSTERS,
    Associated,
    Associations,
    Likeness,
    Traits,
    joined,
)
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import Floats, benjamini_hochberg, sum_by

MIN_SESSIONS = 3
"""Sessions that a sequence must be seen in to be tested."""
_SINGLE = 0.9
"""How much of the rate of false findings is left to single tools."""
_OWN_LENGTH = 0.3
"""Of how sessions differ in length, the share that may be left without a sequence's calls."""
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
    expected: Floats
    lift: Floats
    low: Floats
    high: Floats
    p_value: Floats
    tested: NDArray[np.bool_]
    tests: int
    hit_session: Ints
    hit_code: Ints
    tasks_of: Callable[[Ints], int]
    capped: bool = False

    def strength(self) -> Floats:
        """Return each one's strength (e,), as `SequenceEffect.strength` says."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(self.low > 1, self.hits * (1 - 1 / self.low), 0.0)
            expected = self.count * self.expected
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
            expected=float(self.expected[i]),
            tasks=self.tasks_of(self.hit_session[self.hit_code == code]),
            lift=float(self.lift[i]),
            lift_interval=Interval(float(self.low[i]), float(self.high[i])),
            q_value=q_value,
            tested=bool(self.tested[i]),
            session_ids=sessions.newest(self.hit_session[self.hit_code == code]),
        )


class Moments:
    """Where an effect could follow, each (m,): the session, and the sequence before it or `NONE`.

    What does not depend on what follows is computed once: a hundred errors are looked for after a
    million calls.

    Args:
        grams: the sequences.
        known: what is known of the sessions.
        session: that of each moment.
        before: the sequence before it.
        design: what else is known of each moment (m, d).
        min_sessions: sequences seen in fewer sessions are not tested,
        all_: but listed if this is set.
    """

    def __init__(
        self,
        grams: Grams,
        known: Circumstances,
        session: Ints,
        before: Ints,
        *,
        design: Floats,
        min_sessions: int,
        all_: bool = False,
    ) -> None:
        self.grams = grams
        self.known = known
        self.session = session
        self.before = before
        seen = np.flatnonzero(before != NONE)
        span = int(session.max()) + 1 if len(session) else 1
        pairs = np.unique(before[seen] * span + session[seen])
        self.in_sessions = np.bincount(pairs // span, minlength=len(grams))
        self.testable, self.capped = _testable(self.in_sessions, 1 if all_ else min_sessions)
        self.tests = int((self.in_sessions >= min_sessions).sum())
        kept = seen[self.testable[before[seen]]]
        self.codes = np.flatnonzero(self.testable)
        self.counted = self.in_sessions[self.codes] >= min_sessions
        likenesses = [Likeness(_dense(session), min_sessions)]
        if known.repeats:
            likenesses.insert(0, Likeness(_dense(known.task[session]), LEAST_CLUSTERS))
        traits = Traits(kept, np.searchsorted(self.codes, before[kept]), len(self.codes))
        self._compared = Associations(traits, design, likenesses)

    def associated(self, hit: NDArray[np.bool_]) -> Associated:
        """Return how the effect (m,) goes with each of `codes`."""
        return self._compared.of(hit.astype(np.float64))


def _testable(in_sessions: Ints, least: int) -> tuple[NDArray[np.bool_], bool]:
    """Return which sequences are tested, those in the most sessions, and whether some are not."""
    found = in_sessions >= least
    capped = int(found.sum()) > MAX_TESTED
    if capped:
        codes = np.arange(len(in_sessions))
        best = np.lexsort((codes, -in_sessions))[:MAX_TESTED]
        found = found & np.isin(codes, best)
    return found, capped


def after_sequences(
    moments: Moments, effect: str, hit: NDArray[np.bool_], *, followed_only: bool = False
) -> Effects:
    """Compare the moments after each sequence with all other moments.

    Args:
        moments: where the effect could follow.
        effect: what it is called.
        hit: whether it followed, (m,).
        followed_only: leave out sequences that the effect never followed. They count as tests.
    """
    found = moments.associated(hit)
    is_hit = (moments.before != NONE) & hit
    chosen = found.hits > 0 if followed_only else np.ones(len(moments.codes), bool)
    untestable = int((~found.tested & moments.counted).sum())
    return _effects(
        moments.grams, effect, moments.codes, found, chosen,
        tests=moments.tests - untestable, capped=moments.capped,
        total=(len(hit), int(hit.sum())),
        hit_session=moments.session[is_hit], hit_code=moments.before[is_hit],
        tasks_of=moments.known.tasks_if_repeated,
    )  # fmt: skip


def in_sessions(
    grams: Grams, effect: str, calls: Calls, known: Circumstances, *,
    counted: NDArray[np.bool_], has: NDArray[np.bool_], min_sessions: int,
) -> Effects:  # fmt: skip
    """Compare the sessions with each sequence with all others that called tools.

    Args:
        grams: the sequences.
        effect: what the effect is called.
        calls: the calls.
        known: what is known of the sessions.
        counted: (s,) sessions whose outcome is known.
        has: (s,) sessions that have the effect.
        min_sessions: sequences seen in fewer sessions are not tested.
    """
    called = np.zeros(len(counted), bool)
    called[calls.session] = True
    chosen = np.flatnonzero(counted & called)
    starts = np.flatnonzero((grams.code != NONE) & counted[calls.session])
    span = len(counted)
    pairs = np.unique(grams.code[starts] * span + calls.session[starts])
    code, session = pairs // span, pairs % span
    count = np.bincount(code, minlength=len(grams))
    testable, capped = _testable(count, min_sessions)
    codes, kept = np.flatnonzero(testable), testable[code]
    traits = Traits(
        np.searchsorted(chosen, session[kept]), np.searchsorted(codes, code[kept]), len(codes)
    )
    likenesses, outcome = known.likenesses(chosen, min_sessions), has[chosen].astype(np.float64)
    found = Associations(traits, known.design(chosen), likenesses).of(outcome)
    lengthens = _lengthens(calls, grams.length, traits, chosen)
    if lengthens.any():
        shorter = known.design(chosen, without_length=True)
        plainer = Associations(traits, shorter, likenesses).of(outcome)
        found = joined(found, plainer, lengthens)
    hit = has[session]
    return _effects(
        grams, effect, codes, found, np.ones(len(codes), bool),
        # What all sessions have, or all but a few, cannot be tested, whatever comes of them.
        tests=int((count >= min_sessions).sum() - (~found.tested).sum()), capped=capped,
        total=(len(chosen), int(has[chosen].sum())), hit_session=session[hit], hit_code=code[hit],
        tasks_of=known.tasks_if_repeated,
    )  # fmt: skip


def _lengthens(calls: Calls, length: int, traits: Traits, chosen: Ints) -> NDArray[np.bool_]:
    """Tell of which sequences (t,) it is that sessions are longer or shorter: without their calls
    all would be about as long. Then sessions as long as these are those that have it, too."""
    if not len(chosen):
        return np.zeros(traits.kinds, bool)
    size = np.bincount(calls.session)[chosen].astype(np.float64)
    count, own = float(len(chosen)), float(length)
    mine = np.bincount(traits.code, minlength=traits.kinds)
    of_mine = sum_by(traits.code, size[traits.unit], traits.kinds)
    mean = (size.sum() - own * mine) / count
    squares = (size**2).sum() - 2 * own * of_mine + own**2 * mine
    found: NDArray[np.bool_] = squares / count - mean**2 <= _OWN_LENGTH * size.var()
    return found


def _effects(
    grams: Grams,
    effect: str,
    codes: Ints,
    found: Associated,
    chosen: NDArray[np.bool_],
    *,
    tests: int,
    capped: bool,
    total: tuple[int, int],
    hit_session: Ints,
    hit_code: Ints,
    tasks_of: Callable[[Ints], int],
) -> Effects:
    lift, low, high = (values[chosen] for values in found.ratio())
    count, hits = found.count[chosen], np.rint(found.hits[chosen]).astype(np.int64)
    return Effects(
        grams=grams,
        effect=effect,
        code=codes[chosen],
        count=count,
        hits=hits,
        base_count=total[0] - count,
        base_hits=total[1] - hits,
        expected=found.base[chosen],
        lift=lift,
        low=low,
        high=high,
        p_value=found.p_value[chosen],
        tested=found.tested[chosen],
        tests=tests,
        hit_session=hit_session,
        hit_code=hit_code,
        tasks_of=tasks_of,
        capped=capped,
    )


def _dense(codes: Ints) -> Ints:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def adjusted(families: list[Effects]) -> list[Floats]:
    """Return the q-values of several families of tests: those of single tools adjusted for each
    other, and those of sequences, which are many more, for all of theirs. Of what is said in error
    nearly all is left to the tools, so that the two together keep the rate."""
    q_values = [np.ones(len(family.code)) for family in families]
    for is_single in (True, False):
        places = [i for i, one in enumerate(families) if (one.grams.length == 1) == is_single]
        if not places:
            continue
        tested = [families[i].tested for i in places]
        p_values = [families[i].p_value[mine] for i, mine in zip(places, tested, strict=True)]
        tests = sum(families[i].tests for i in places)
        together = np.concatenate([np.empty(0), *p_values])
        weight = _SINGLE if is_single else 1 - _SINGLE
        found = np.minimum(1.0, benjamini_hochberg(together, tests) / weight)
        ends = np.cumsum([len(some) for some in p_values])[:-1]
        for i, mine, some in zip(places, tested, np.split(found, ends), strict=True):
            q_values[i][mine] = some
    return q_values
