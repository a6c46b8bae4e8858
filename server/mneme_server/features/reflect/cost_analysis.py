"""COST_ANALYSIS: what was spent, on what, and whether it rises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mneme._core.amounts import dollars
from numpy.typing import NDArray

from mneme_server.features.events.event_types import EventPart, playing
from mneme_server.features.events.history import Column, EventFact, HistoryReader
from mneme_server.features.reflect.circumstances import circumstances
from mneme_server.features.reflect.clocks import in_time
from mneme_server.features.reflect.history import Array, History, Ints, kind_is
from mneme_server.features.reflect.mix import Mix, said
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    CostAnalysis,
    CostAnalysisParams,
    CostlyOperation,
    CostPoint,
    CostShare,
    Insight,
    MixVerdict,
    Trend,
    TrendTest,
)
from mneme_server.features.reflect.settings import PriceTable
from mneme_server.features.reflect.time_series import (
    UNTESTED,
    Buckets,
    Series,
    allowing_for_mix,
    buckets_over,
    mean_by,
    ranks,
    scores_by,
    trend_tests,
)
from mneme_server.features.reflect.wording import moves, percent, plural, step_figures, steps, sure
from mneme_server.statistics.inference import Floats, sum_by

NEEDED = (
    Column.AGENT, Column.NAME, Column.MODEL, Column.COST, Column.INPUT_TOKENS, Column.OUTPUT_TOKENS,
)  # fmt: skip
_MAX_DESCRIPTION = 200


@dataclass(slots=True)
class _EventCosts:
    """What each event cost (n,): `cost` with estimates, which of it is `estimated`, and the events
    whose model has no price."""

    cost: Floats
    estimated: Floats
    unpriced: NDArray[np.bool_]
    is_asked: NDArray[np.bool_]
    has_cost: NDArray[np.bool_]


def cost_analysis(
    history: History,
    reader: HistoryReader,
    params: CostAnalysisParams,
    limit: int,
    prices: PriceTable,
) -> AnalysisFindings:
    """Add up what was spent."""
    spent = _spent(history, params.model, prices)
    rows = np.flatnonzero(spent.is_asked)
    total = float(spent.cost[rows].sum())
    told = _told(history, spent)
    sessions = np.flatnonzero(told)
    known = float(spent.cost[rows][told[history.session[rows]]].sum())
    in_order, of_clocks = in_time(history)
    dated = _spent(in_order, params.model, prices) if of_clocks else spent
    buckets = _buckets(in_order, np.flatnonzero(dated.is_asked), params)
    points, trend = _over_time(
        in_order,
        dated,
        np.flatnonzero(_told(in_order, dated)),
        buckets,
        Mix(circumstances(in_order, reader)),
    )
    shares = _CostShares(history, spent, total, limit)
    result = CostAnalysis(
        total_cost_usd=total,
        estimated_cost_usd=float(spent.estimated[rows].sum()),
        average_cost_per_session=known / len(sessions) if len(sessions) else 0.0,
        total_input_tokens=int(history[Column.INPUT_TOKENS][rows].sum()),
        total_output_tokens=int(history[Column.OUTPUT_TOKENS][rows].sum()),
        by_model=shares.by(history[Column.MODEL], history.models, "model"),
        by_tag=shares.by_tag(),
        by_tool=shares.by(history[Column.NAME], history.names, "tool"),
        by_agent=shares.by(history[Column.AGENT], history.agents, "agent"),
        over_time=points,
        cost_per_session=trend,
        most_expensive=_most_expensive(history, reader, spent, limit),
        unpriced_events=int(spent.unpriced.sum()),
        bucket_seconds=buckets.seconds if buckets else 0,
        costed_sessions=len(sessions),
    )
    notes = history.notes + of_clocks + _notes(result, history, spent, params) + shares.notes
    with_costs = len(np.unique(history.session[spent.has_cost]))
    what = "sessions" if with_costs == len(history.sessions) else "sessions with costs or tokens"
    return AnalysisFindings(result, _insights(result, with_costs, what), notes=notes)


def _spent(history: History, model: str, prices: PriceTable) -> _EventCosts:
    recorded = history[Column.COST]
    tokens = (history[Column.INPUT_TOKENS], history[Column.OUTPUT_TOKENS])
    is_asked = np.ones(len(history), bool)
    if model:
        asked = [i for i, name in enumerate(history.models) if name == model]
        is_asked = np.isin(history[Column.MODEL], asked)
    # A session that books its costs in events of their own has paid for its tokens there.
    booked = kind_is(history, *playing(EventPart.COST)) & (recorded > 0)
    books = np.zeros(len(history.sessions), bool)
    books[history.session[booked]] = True
    free = is_asked & (recorded == 0) & ((tokens[0] > 0) | (tokens[1] > 0))
    free &= ~books[history.session]
    known = [prices.price_of(name) for name in history.models]
    rates = np.array([(p.input, p.output) if p else (np.nan, np.nan) for p in known])
    rates = rates.reshape(-1, 2)[history[Column.MODEL]]
    estimate = tokens[0] * rates[:, 0] + tokens[1] * rates[:, 1]
    unpriced = free & np.isnan(estimate)
    estimated = np.where(free & ~unpriced, estimate, 0.0)
    cost = np.where(is_asked, recorded, 0.0) + estimated
    has_cost = is_asked & ((cost > 0) | (tokens[0] > 0) | (tokens[1] > 0))
    return _EventCosts(cost, estimated, unpriced, is_asked, has_cost)


def _told(history: History, spent: _EventCosts) -> NDArray[np.bool_]:
    """Return of which sessions (s,) it is known what they cost: not of those that say nothing of
    cost or tokens, or whose model has no price, which is not 0."""
    found = np.zeros(len(history.sessions), bool)
    found[history.session[spent.has_cost]] = True
    found[history.session[spent.unpriced]] = False
    return found


def _buckets(history: History, rows: Ints, params: CostAnalysisParams) -> Buckets | None:
    if not len(rows):
        return None
    times = history[Column.TIME][rows]
    return buckets_over(int(times.min()), int(times.max()), params.bucket)


def _over_time(
    history: History,
    spent: _EventCosts,
    sessions: Ints,
    buckets: Buckets | None,
    mix: Mix,
) -> tuple[tuple[CostPoint, ...], TrendTest]:
    if buckets is None:
        return (), UNTESTED
    rows = np.flatnonzero(spent.is_asked)
    place = buckets.place(history[Column.TIME][rows])
    cost = np.bincount(place, spent.cost[rows], minlength=buckets.count)
    span = len(history.sessions)
    pairs = np.unique(place * span + history.session[rows])
    seen = np.bincount(pairs // span, minlength=buckets.count)
    by_session = sum_by(history.session[rows], spent.cost[rows], span)
    # A session's cost counts where it began, even when it went on into later spans.
    first = np.full(span, np.iinfo(np.int64).max)
    np.minimum.at(first, history.session[rows], history[Column.TIME][rows])
    begun = sessions[first[sessions] <= buckets.last_us]
    mean = mean_by(buckets.place(first[begun]), by_session[begun], buckets.count)
    scores = scores_by(buckets.place(first[begun]), ranks(by_session[begun]), buckets.count)
    (trend,) = trend_tests([Series(mean, rising_is_better=False, scores=scores)], buckets)
    costs = np.full(span, np.nan)
    costs[begun] = by_session[begun]
    trend = allowing_for_mix(trend, mix, costs, history.sessions.start_us)
    points = tuple(
        CostPoint(
            start_us=buckets.start_us(i),
            cost_usd=float(cost[i]),
            session_count=int(seen[i]),
            cost_per_session=None if np.isnan(mean[i]) else float(mean[i]),
        )
        for i in np.flatnonzero(seen).tolist()
    )
    return points, trend


class _CostShares:
    """Parts of the cost."""

    def __init__(self, history: History, spent: _EventCosts, total: float, limit: int) -> None:
        self.notes: list[str] = []
        self._history = history
        self._spent = spent
        self._rows = np.flatnonzero(spent.has_cost)
        self._total = total
        self._limit = limit

    def by(self, codes: Array, texts: Sequence[str], what: str) -> tuple[CostShare, ...]:
        """Return the shares of each text."""
        return self._top(codes[self._rows], self._rows, list(texts), what)

    def by_tag(self) -> tuple[CostShare, ...]:
        """Return the shares of each label of the sessions; one of two labels counts for both."""
        tags: dict[str, int] = {"": 0}
        labels, sizes = [], []
        for of_session in self._history.sessions.tags:
            found = [tags.setdefault(tag, len(tags)) for tag in of_session] or [0]
            labels += found
            sizes.append(len(found))
        length = np.array(sizes, np.int64)
        start = np.cumsum(length) - length
        session = self._history.session[self._rows]
        repeats = length[session]
        rows = np.repeat(self._rows, repeats)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        codes = np.array(labels, np.int64)[np.repeat(start[session], repeats) + within]
        return self._top(codes, rows, list(tags), "label")

    def _top(self, codes: Array, rows: Ints, texts: list[str], what: str) -> tuple[CostShare, ...]:
        size = len(texts)
        columns = (Column.INPUT_TOKENS, Column.OUTPUT_TOKENS)
        cost = np.bincount(codes, self._spent.cost[rows], minlength=size)
        tokens = [
            np.bincount(codes, self._history[column][rows].astype(float), minlength=size)
            for column in columns
        ]
        count = np.bincount(codes, minlength=size)
        span = max(len(self._history.sessions), 1)
        pairs = np.unique(codes.astype(np.int64) * span + self._history.session[rows])
        sessions = np.bincount(pairs // span, minlength=size)
        order = sorted(
            np.flatnonzero(count).tolist(), key=lambda i: (-cost[i], -tokens[0][i], texts[i])
        )
        if len(order) > self._limit:
            self.notes.append(f"the {self._limit} dearest of {plural(len(order), what)} are shown")
        return tuple(
            CostShare(
                key=texts[i],
                cost_usd=float(cost[i]),
                share=_share(float(cost[i]), self._total),
                input_tokens=int(tokens[0][i]),
                output_tokens=int(tokens[1][i]),
                event_count=int(count[i]),
                session_count=int(sessions[i]),
            )
            for i in order[: self._limit]
        )


def _share(cost: float, total: float) -> float:
    """Return the share of a cost: of all of it 1, in whatever order it was added up."""
    return 1.0 if total and math.isclose(cost, total) else cost / total if total else 0.0


def _most_expensive(
    history: History, reader: HistoryReader, spent: _EventCosts, limit: int
) -> tuple[CostlyOperation, ...]:
    costly = np.flatnonzero(spent.cost > 0)
    cursors = history[Column.CURSOR]
    best = costly[np.lexsort((-cursors[costly], -spent.cost[costly]))][:limit]
    facts = reader.facts(cursors[best].tolist())
    found = []
    for row in best.tolist():
        fact = facts[int(cursors[row])]
        found.append(
            CostlyOperation(
                event_id=fact.id,
                session_id=fact.session_id,
                description=_description(fact),
                cost_usd=float(spent.cost[row]),
                model=fact.model,
            )
        )
    return tuple(found)


def _description(fact: EventFact) -> str:
    parts = [" ".join(part for part in (fact.kind, fact.name) if part)]
    if fact.input_tokens or fact.output_tokens:
        parts.append(f"{fact.input_tokens:,} tokens read, {fact.output_tokens:,} written")
    text = " ".join(fact.text.split())
    if text:
        parts.append(text)
    return "; ".join(parts)[:_MAX_DESCRIPTION]


def _notes(
    result: CostAnalysis, history: History, spent: _EventCosts, params: CostAnalysisParams
) -> list[str]:
    notes = []
    if result.unpriced_events:
        unpriced = np.unique(history[Column.MODEL][spent.unpriced])
        models = [history.models[i] or "(no model)" for i in unpriced[:5]]
        notes.append(
            f"{plural(result.unpriced_events, 'event')} with tokens but without a cost"
            f" {'is' if result.unpriced_events == 1 else 'are'} not counted, because"
            f" MNEME_MODEL_PRICES has no price for {', '.join(models)}"
            f"{' and others' if len(unpriced) > len(models) else ''}"
        )
    silent = len(history.sessions) - result.costed_sessions
    if not spent.has_cost.any() and len(history) and not params.model:
        notes.append("no event carries a cost or tokens")
    elif silent and not params.model:
        notes.append(
            f"{plural(silent, 'session')} left out of the average and the trend, because what"
            f" {'it' if silent == 1 else 'they'} cost is not known"
        )
    if params.model and not spent.is_asked.any():
        notes.append(f"no event names the model {params.model!r}")
    return notes


def _insights(result: CostAnalysis, with_costs: int, what: str) -> list[Insight]:
    """Return the findings; `with_costs` sessions, called `what`, are those that shares are of."""
    insights = []
    trend = result.cost_per_session
    mix = trend.mix
    of_mix = mix is not None and mix.verdict is not MixVerdict.WORK
    why = f"; {said(mix, dollars)}" if mix is not None and of_mix else ""
    if trend.step:
        insights.append(
            Insight(
                type="cost_step",
                summary=(
                    f"The cost of a session {steps(trend.step, dollars)};"
                    f" {sure(trend.step.q_value)}{why}."
                ),
                data=step_figures(trend.step),
                q_value=trend.step.q_value,
            )
        )
    elif trend.trend in (Trend.IMPROVING, Trend.DEGRADING) or of_mix:
        insights.append(
            Insight(
                type="cost_trend",
                summary=(
                    f"The cost of a session {moves(trend, dollars)}, on average"
                    f" {dollars(result.average_cost_per_session)}; {sure(trend.q_value)}{why}."
                ),
                data={
                    "slope_per_day": trend.slope_per_day,
                    "change": trend.change,
                    "days": trend.days,
                    "q_value": trend.q_value,
                },
                q_value=trend.q_value,
            )
        )
    if result.total_cost_usd:
        estimated = result.estimated_cost_usd
        insights.append(
            Insight(
                type="total_cost",
                summary=(
                    f"{dollars(result.total_cost_usd)} was spent"
                    + (f", {dollars(estimated)} of it estimated" if estimated else "")
                    + (
                        f"; on average {dollars(result.average_cost_per_session)} in"
                        f" {plural(result.costed_sessions, 'session')}."
                        if result.costed_sessions
                        else "."
                    )
                ),
                data={
                    "total_cost_usd": result.total_cost_usd,
                    "estimated_cost_usd": estimated,
                    "average_cost_per_session": result.average_cost_per_session,
                },
            )
        )
    for kind, word, shares in (
        ("cost_by_model", "model", result.by_model),
        ("cost_by_tag", "label", result.by_tag),
        ("cost_by_tool", "tool", result.by_tool),
    ):
        named = [share for share in shares if share.key and share.cost_usd]
        if len(named) > 1:  # That the only one is the dearest says nothing.
            insights.append(_dearest(kind, word, named[0], with_costs, what))
    dearest = result.most_expensive
    if len(dearest) > 1 and dearest[0].cost_usd > dearest[1].cost_usd:
        insights.append(_costliest(result.most_expensive[0]))
    return insights


def _dearest(kind: str, word: str, share: CostShare, sessions: int, what: str) -> Insight:
    # Whether a share of the cost is large depends on what it is a share of.
    where = f"in {percent(share.session_count / sessions)} of the {what}"
    return Insight(
        type=kind,
        summary=(
            f"The dearest {word} is {share.key}, with {dollars(share.cost_usd)}"
            f" ({percent(share.share)} of the cost, {where})."
        ),
        data={"key": share.key, "cost_usd": share.cost_usd, "share": share.share},
    )


def _costliest(operation: CostlyOperation) -> Insight:
    return Insight(
        type="expensive_operation",
        summary=(
            f"The dearest single event cost {dollars(operation.cost_usd)}:"
            f" {operation.description.rstrip('. ')}."
        ),
        data={"cost_usd": operation.cost_usd, "model": operation.model},
        session_ids=(operation.session_id,),
        event_ids=(operation.event_id,),
    )
