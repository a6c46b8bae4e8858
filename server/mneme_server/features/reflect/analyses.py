"""Analyses over a tenant's record: what an agent's own record says about how it works."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mneme_server.common import deadline
from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.common.fairness import FairGate
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.events.history import Column, HistoryFilter, HistoryReader
from mneme_server.features.events.store.history import SqlHistory
from mneme_server.features.reflect import (
    cost_analysis,
    error_patterns,
    performance_trends,
    session_comparison,
    tool_sequences,
)
from mneme_server.features.reflect.history import History, load
from mneme_server.features.reflect.model import (
    Analysis,
    AnalysisCoverage,
    AnalysisFindings,
    AnalysisReport,
    CostAnalysisParams,
    ErrorPatternsParams,
    Params,
    PerformanceTrendsParams,
    SessionComparisonParams,
    ToolSequencesParams,
)
from mneme_server.features.reflect.settings import PriceTable

AT_ONCE = 2
"""Analyses that run at the same time: each holds a million events in some hundred megabytes, and
keeps a core busy."""
CAVEAT = (
    "What goes together need not cause each other: these are counts and comparisons of what was"
    " recorded, no experiments."
)
_COUNTS = frozenset(
    ("total_cost", "cost_by_model", "cost_by_tag", "cost_by_tool", "expensive_operation",
     "common_sequence", "tool_loop", "unmarked_error")
)  # fmt: skip
"""Findings that only count what there is."""
_PATIENCE_S = 10.0
_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class _AnalysisPlan:
    """What an analysis reads, and how it is run on that."""

    analysis: Analysis
    columns: Sequence[Column]
    run: Callable[[History, HistoryReader], AnalysisFindings]


class _AnalysisTurns:
    """Who runs an analysis. A tenant whose others are under way is refused after a while; one that
    waits for those of other tenants is not: its turn comes.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._gate = FairGate(AT_ONCE)
        self._changing = threading.Lock()
        self._asked: Counter[str] = Counter()

    @contextmanager
    def turn(self, tenant_id: str) -> Iterator[None]:
        """Run an analysis in the block.

        Raises:
            ResourceExhausted: others of the tenant's are under way.
            Abandoned: nobody waits for it any more.
        """
        with self._changing:
            self._asked[tenant_id] += 1
        try:
            self._enter(tenant_id)
            try:
                yield
            finally:
                self._gate.leave()
        finally:
            with self._changing:
                self._asked -= Counter([tenant_id])  # Forgets who has none left.

    def _enter(self, tenant_id: str) -> None:
        while not self._gate.enter(patience_s=self._patience_s):
            if self._asked[tenant_id] > 1:
                raise ResourceExhausted(
                    f"{AT_ONCE} analyses may run at once, and others of this tenant are already"
                    " running; try again later",
                    reason=Reason.RATE_LIMITED,
                    retry_after_s=_RETRY_S,
                )


@dataclass(frozen=True, slots=True)
class Analyses:
    """Runs analyses.

    Args:
        tenants: the tenants' memories.
        prices: what tokens cost.
        patience_s: how long an analysis waits for others of its tenant to end, in seconds.
    """

    tenants: OpenTenants
    prices: PriceTable = field(default_factory=PriceTable)
    patience_s: float = _PATIENCE_S
    _turns: _AnalysisTurns = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_turns", _AnalysisTurns(self.patience_s))

    def run(
        self, tenant_id: str, params: Params, filter_: HistoryFilter, limit: int
    ) -> AnalysisReport:
        """Run the analysis that the parameters are for, on what the filter selects of the record.

        Raises:
            InvalidArgument: the `bucket` cuts the range into too many spans.
            ResourceExhausted: as many analyses as may run at once are running, some of them the
                tenant's.
            Abandoned: nobody waits for the answer any more.
        """
        plan = _plan(params, limit, self.prices)
        with (
            self.tenants.open(tenant_id) as tenant,  # Which may take long: others take turns.
            self._turns.turn(tenant_id),
            tenant.read() as unit,
        ):
            history = load(unit.get(SqlHistory), filter_, plan.columns)
            deadline.check()
            findings = plan.run(history, unit.get(SqlHistory))
        return AnalysisReport(
            analysis=plan.analysis,
            result=findings.result,
            insights=tuple(findings.insights),
            coverage=_coverage(history, findings),
            caveat=CAVEAT if any(i.type not in _COUNTS for i in findings.insights) else "",
        )


def _plan(params: Params, limit: int, prices: PriceTable) -> _AnalysisPlan:
    match params:
        case ErrorPatternsParams():
            return _AnalysisPlan(
                Analysis.ERROR_PATTERNS,
                error_patterns.NEEDED,
                lambda history, reader: error_patterns.error_patterns(
                    history, reader, params, limit
                ),
            )
        case ToolSequencesParams():
            return _AnalysisPlan(
                Analysis.TOOL_SEQUENCES,
                tool_sequences.NEEDED,
                lambda history, reader: tool_sequences.tool_sequences(
                    history, reader, params, limit
                ),
            )
        case CostAnalysisParams():
            return _AnalysisPlan(
                Analysis.COST_ANALYSIS,
                cost_analysis.NEEDED,
                lambda history, reader: cost_analysis.cost_analysis(
                    history, reader, params, limit, prices
                ),
            )
        case PerformanceTrendsParams():
            return _AnalysisPlan(
                Analysis.PERFORMANCE_TRENDS,
                performance_trends.NEEDED,
                lambda history, reader: performance_trends.performance_trends(
                    history, reader, params
                ),
            )
        case SessionComparisonParams():
            return _AnalysisPlan(
                Analysis.SESSION_COMPARISON,
                session_comparison.NEEDED,
                lambda history, reader: session_comparison.session_comparison(
                    history, reader, params, limit
                ),
            )


def _coverage(history: History, findings: AnalysisFindings) -> AnalysisCoverage:
    times = history[Column.TIME]
    return AnalysisCoverage(
        sessions=len(history.sessions),
        events=len(history),
        first_us=int(times.min()) if len(times) else None,
        last_us=int(times.max()) if len(times) else None,
        truncated=bool(findings.caps),
        notes=(*findings.caps, *findings.notes),
    )
