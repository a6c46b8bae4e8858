"""The reflect service's messages, from and to the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

from mneme.v1 import reflect_service_pb2 as pb

from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.reflect import model
from mneme_server.features.reflect.model import (
    BucketSpan,
    CostAnalysisParams,
    ErrorPatternsParams,
    Params,
    PerformanceTrendsParams,
    RateBaseline,
    SessionComparisonParams,
    ToolSequencesParams,
)
from mneme_server.statistics.distributions import Interval

_PARAMS: Mapping[str, Callable[..., Params]] = {
    "error_patterns": ErrorPatternsParams,
    "tool_sequences": ToolSequencesParams,
    "cost_analysis": CostAnalysisParams,
    "performance_trends": PerformanceTrendsParams,
    "session_comparison": SessionComparisonParams,
}


history_filter = MessageReader(
    pb.ReflectRequest, HistoryFilter, unread=["analysis", "limit", *_PARAMS]
)
"""Return the filter of a request."""


def params_field(request: pb.ReflectRequest) -> str:
    """Return the name of the field that holds a request's parameters, or would hold them."""
    return request.WhichOneof("params") or model.Analysis(request.analysis).name.lower()


def params(request: pb.ReflectRequest) -> Params:
    """Return a request's parameters, which say what analysis it asks for."""
    name = params_field(request)
    # The fields are the domain's by name; those that are not set have its defaults.
    given = {field.name: value for field, value in getattr(request, name).ListFields()}
    for enum_field, kind in (("baseline", RateBaseline), ("bucket", BucketSpan)):
        if enum_field in given:
            given[enum_field] = kind(given[enum_field])
    return _PARAMS[name](**given)


def _interval(interval: Interval) -> pb.Interval | None:
    """Return an interval; None where there is none."""
    if not math.isfinite(interval.low + interval.high):
        return None
    return pb.Interval(low=interval.low, high=interval.high)


def _level(level: model.Level) -> pb.TrendLevel:
    return pb.TrendLevel(**level._asdict())


_insight = message_writer(
    model.Insight,
    pb.Insight,
    made={"confidence": lambda one: 1.0 if one.q_value is None else 1 - one.q_value},
    unshown=["strength"],
)
_effect = message_writer(
    model.SequenceEffect,
    pb.SequenceEffect,
    made={
        "lift": lambda effect: effect.lift if effect.has_ratio else 0.0,
        "lift_interval": lambda effect: (
            _interval(effect.lift_interval) if effect.has_ratio else None
        ),
        "sure": lambda effect: effect.is_sure,
    },
    unshown=["lift", "lift_interval", "leads_only", "expected", "tasks"],
)
_split = message_writer(
    model.OutcomeSplit,
    pb.OutcomeSplit,
    spelled={
        "interval": "success_interval",
        "other_interval": "other_success_interval",
        "difference": "difference_interval",
    },
    parts=dict.fromkeys(
        ("success_interval", "other_success_interval", "difference_interval"), _interval
    ),
    made={
        "q_value": lambda split: split.q_value if split.tested else 1.0,
        "sure": lambda split: split.is_sure,
    },
    unshown=["q_value", "expected", "tasks"],
)
_step = message_writer(
    model.TrendStep,
    pb.TrendStep,
    parts={"before": _level, "after": _level, "interval": _interval},
    made={"difference": lambda step: step.size},
)
_trend = message_writer(
    model.TrendTest,
    pb.TrendTest,
    parts={"slope_interval": _interval, "step": _step},
    unshown=["mix"],
)
_error_pattern = message_writer(
    model.ErrorPattern,
    pb.ErrorPattern,
    parts={"preceding": _effect, "outcome": _split},
    unshown=["session_ids", "recovered", "failed_sessions", "ends_sessions"],
)
_error_patterns = message_writer(
    model.ErrorPatterns, pb.ErrorPatterns, parts={"patterns": _error_pattern, "outcome": _split}
)
_tool_sequences = message_writer(
    model.ToolSequences,
    pb.ToolSequences,
    parts={
        "common": message_writer(model.SequenceCount, pb.SequenceCount, unshown=["session_ids"]),
        **dict.fromkeys(("before_errors", "before_success", "before_failure"), _effect),
    },
)
_cost_analysis = message_writer(
    model.CostAnalysis, pb.CostAnalysis, parts={"cost_per_session": _trend}
)
_performance_trends = message_writer(
    model.PerformanceTrends,
    pb.PerformanceTrends,
    parts=dict.fromkeys(
        ("success_rate", "latency", "latency_p95", "throughput", "error_rate"), _trend
    ),
)
_comparison = message_writer(
    model.MeasureComparison,
    pb.Comparison,
    parts={"difference_interval": _interval},
    unshown=["mix"],
)
_change = message_writer(model.ErrorChange, pb.ErrorChange, unshown=["session_ids"])
_group = message_writer(
    model.OutcomeGroup, pb.OutcomeGroup, spelled={"split": "outcome"}, parts={"outcome": _split}
)
_outcome_by = message_writer(
    model.OutcomeBy,
    pb.OutcomeBy,
    parts={"groups": _group},
    made={
        "tested": lambda by: not math.isnan(by.q_value),
        "q_value": lambda by: 1.0 if math.isnan(by.q_value) else by.q_value,
    },
    unshown=["q_value", "excess", "best", "worst"],
)
_session_comparison = message_writer(
    model.SessionComparison,
    pb.SessionComparison,
    parts={
        "comparisons": _comparison,
        "new_errors": _change,
        "gone_errors": _change,
        "outcomes": _outcome_by,
    },
)
_coverage = message_writer(
    model.AnalysisCoverage,
    pb.ReflectMetadata,
    spelled={
        "sessions": "sessions_analyzed",
        "events": "events_analyzed",
        "first_us": "start_time",
        "last_us": "end_time",
    },
)


def reflect_response(report: model.AnalysisReport) -> pb.ReflectResponse:
    """Return the message of an answer."""
    message = pb.ReflectResponse(
        analysis=cast("pb.Analysis", report.analysis),
        insights=map(_insight, report.insights),
        metadata=_coverage(report.coverage),
        caveat=report.caveat,
    )
    match report.result:
        case model.ErrorPatterns() as result:
            message.error_patterns.CopyFrom(_error_patterns(result))
        case model.ToolSequences() as result:
            message.tool_sequences.CopyFrom(_tool_sequences(result))
        case model.CostAnalysis() as result:
            message.cost_analysis.CopyFrom(_cost_analysis(result))
        case model.PerformanceTrends() as result:
            message.performance_trends.CopyFrom(_performance_trends(result))
        case model.SessionComparison() as result:
            message.session_comparison.CopyFrom(_session_comparison(result))
    return message
