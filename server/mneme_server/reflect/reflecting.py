"""Reflecting: one analysis over a tenant's record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.corpus.tenant import Tenants
from mneme_server.reflect import (
    cost_analysis,
    error_patterns,
    params,
    performance_trends,
    session_comparison,
    tool_sequences,
)
from mneme_server.reflect.history import History, load
from mneme_server.reflect.model import Analysis, Findings, Reflection, Scope
from mneme_server.reflect.ports import Column, HistoryFilter, HistoryReader, ReflectUnit
from mneme_server.reflect.prices import PriceTable

AT_ONCE = 2
"""Analyses that run at the same time: each holds a million events in some hundred megabytes, and
keeps a core busy."""
CAVEAT = (
    "What goes together need not cause each other: these are counts and comparisons of what was"
    " recorded, no experiments."
)
_PATIENCE_S = 10.0
_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an analysis reads, and how it is run on that."""

    columns: Sequence[Column]
    run: Callable[[History, HistoryReader], Findings]


@dataclass(frozen=True, slots=True)
class Reflect:
    """Runs analyses.

    Args:
        tenants: the tenants' memories.
        prices: what tokens cost.
        patience_s: how long an analysis waits for others to end, in seconds.
    """

    tenants: Tenants[ReflectUnit]
    prices: PriceTable = field(default_factory=PriceTable)
    patience_s: float = _PATIENCE_S
    _free: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))

    def __call__(
        self,
        tenant_id: str,
        analysis: Analysis,
        filter_: HistoryFilter,
        given: JsonObject,
        limit: int,
    ) -> Reflection:
        """Run one analysis on the part of the tenant's record that the filter selects.

        Raises:
            InvalidArgument: a parameter is wrong, or one that the analysis does not know.
            ResourceExhausted: as many analyses as may run at once are running.
        """
        plan = _plan(analysis, given, limit, self.prices)
        with (
            self._turn(),
            self.tenants.open(tenant_id) as memory,
            memory.read() as unit,
        ):
            history = load(unit.history, filter_, plan.columns)
            findings = plan.run(history, unit.history)
        return Reflection(
            analysis=analysis,
            result=findings.result,
            insights=tuple(findings.insights),
            scope=_scope(history, findings),
            caveat=CAVEAT if findings.insights else "",
        )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._free.acquire(timeout=self.patience_s):
            raise ResourceExhausted(
                f"{AT_ONCE} analyses are running, as many as may run at once; try again later",
                reason=Reason.RATE_LIMITED,
                retry_after_s=_RETRY_S,
            )
        try:
            yield
        finally:
            self._free.release()


def _plan(analysis: Analysis, given: JsonObject, limit: int, prices: PriceTable) -> _Plan:
    """Read the parameters, before anything else is read."""
    plans: Mapping[Analysis, Callable[[], _Plan]] = {
        Analysis.ERROR_PATTERNS: lambda: _errors(given, limit),
        Analysis.TOOL_SEQUENCES: lambda: _sequences(given, limit),
        Analysis.COST_ANALYSIS: lambda: _costs(given, limit, prices),
        Analysis.PERFORMANCE_TRENDS: lambda: _trends(given),
        Analysis.SESSION_COMPARISON: lambda: _comparison(given, limit),
    }
    return plans[analysis]()


def _errors(given: JsonObject, limit: int) -> _Plan:
    asked = params.error_params(given)
    return _Plan(
        error_patterns.NEEDED,
        lambda history, reader: error_patterns.error_patterns(history, reader, asked, limit),
    )


def _sequences(given: JsonObject, limit: int) -> _Plan:
    asked = params.sequence_params(given)
    return _Plan(
        tool_sequences.NEEDED,
        lambda history, reader: tool_sequences.tool_sequences(history, reader, asked, limit),
    )


def _costs(given: JsonObject, limit: int, prices: PriceTable) -> _Plan:
    asked = params.cost_params(given)
    return _Plan(
        cost_analysis.NEEDED,
        lambda history, reader: cost_analysis.cost_analysis(history, reader, asked, limit, prices),
    )


def _trends(given: JsonObject) -> _Plan:
    asked = params.trend_params(given)
    return _Plan(
        performance_trends.NEEDED,
        lambda history, _reader: performance_trends.performance_trends(history, asked),
    )


def _comparison(given: JsonObject, limit: int) -> _Plan:
    asked = params.comparison_params(given)
    return _Plan(
        session_comparison.NEEDED,
        lambda history, _reader: session_comparison.session_comparison(history, asked, limit),
    )


def _scope(history: History, findings: Findings) -> Scope:
    times = history[Column.TIME]
    return Scope(
        sessions=len(history.sessions),
        events=len(history),
        first_us=int(times.min()) if len(times) else None,
        last_us=int(times.max()) if len(times) else None,
        truncated=bool(findings.caps),
        notes=(*findings.caps, *findings.notes),
    )
