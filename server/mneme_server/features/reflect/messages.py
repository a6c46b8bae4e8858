"""The reflect service's messages, from and to the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

from mneme.v1 import reflect_service_pb2 as pb

from mneme_server.edge.grpc.conversions import struct_of_object, time_range, to_timestamp
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


def history_filter(request: pb.ReflectRequest) -> HistoryFilter:
    """Return the filter of a request."""
    start_us, end_us = time_range(request)
    return HistoryFilter(
        agent_id=request.agent_id,
        user_id=request.user_id,
        project=request.project,
        tags=tuple(request.tags),
        start_us=start_us,
        end_us=end_us,
    )


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


def reflect_response(report: model.AnalysisReport) -> pb.ReflectResponse:
    """Return the message of an answer."""
    looked_at = report.coverage
    message = pb.ReflectResponse(
        analysis=cast("pb.Analysis", report.analysis),
        insights=[_insight(insight) for insight in report.insights],
        metadata=pb.ReflectMetadata(
            sessions_analyzed=looked_at.sessions,
            events_analyzed=looked_at.events,
            start_time=None if looked_at.first_us is None else to_timestamp(looked_at.first_us),
            end_time=None if looked_at.last_us is None else to_timestamp(looked_at.last_us),
            truncated=looked_at.truncated,
            notes=looked_at.notes,
        ),
        caveat=report.caveat,
    )
    _set_result(report.result, message)
    return message


def _set_result(result: model.Result, message: pb.ReflectResponse) -> None:
    match result:
        case model.ErrorPatterns():
            message.error_patterns.CopyFrom(_error_patterns(result))
        case model.ToolSequences():
            message.tool_sequences.CopyFrom(_tool_sequences(result))
        case model.CostAnalysis():
            message.cost_analysis.CopyFrom(_cost_analysis(result))
        case model.PerformanceTrends():
            message.performance_trends.CopyFrom(_performance_trends(result))
        case model.SessionComparison():
            message.session_comparison.CopyFrom(_session_comparison(result))


def _error_patterns(result: model.ErrorPatterns) -> pb.ErrorPatterns:
    return pb.ErrorPatterns(
        patterns=[_pattern(pattern) for pattern in result.patterns],
        pattern_count=result.pattern_count,
        error_count=result.error_count,
        outcome=_split(result.outcome),
    )


def _pattern(pattern: model.ErrorPattern) -> pb.ErrorPattern:
    return pb.ErrorPattern(
        template=pattern.template,
        tool_name=pattern.tool_name,
        count=pattern.count,
        sessions_affected=pattern.sessions_affected,
        first_seen=to_timestamp(pattern.first_seen_us),
        last_seen=to_timestamp(pattern.last_seen_us),
        rate=pattern.rate,
        preceding=[_effect(effect) for effect in pattern.preceding],
        examples=[
            pb.ErrorExample(
                event_id=example.event_id,
                session_id=example.session_id,
                message=example.message,
                timestamp=to_timestamp(example.timestamp_us),
            )
            for example in pattern.examples
        ],
        outcome=_split(pattern.outcome),
        recoveries=map(_recovery, pattern.recoveries),
    )


def _tool_sequences(result: model.ToolSequences) -> pb.ToolSequences:
    return pb.ToolSequences(
        common=[
            pb.SequenceCount(
                tools=found.tools,
                count=found.count,
                sessions=found.sessions,
                support=found.support,
            )
            for found in result.common
        ],
        before_errors=[_effect(effect) for effect in result.before_errors],
        before_success=[_effect(effect) for effect in result.before_success],
        before_failure=[_effect(effect) for effect in result.before_failure],
        average_length=result.average_length,
        loops=[
            pb.ToolLoop(
                tool=loop.tool,
                arguments=loop.arguments,
                longest_run=loop.longest_run,
                runs=loop.runs,
                session_ids=loop.session_ids,
            )
            for loop in result.loops
        ],
        sequence_count=result.sequence_count,
        tools=[
            pb.ToolUse(tool=use.tool, count=use.count, sessions=use.sessions, failed=use.failed)
            for use in result.tools
        ],
    )


def _cost_analysis(result: model.CostAnalysis) -> pb.CostAnalysis:
    return pb.CostAnalysis(
        total_cost_usd=result.total_cost_usd,
        estimated_cost_usd=result.estimated_cost_usd,
        average_cost_per_session=result.average_cost_per_session,
        total_input_tokens=result.total_input_tokens,
        total_output_tokens=result.total_output_tokens,
        by_model=map(_share, result.by_model),
        by_tag=map(_share, result.by_tag),
        by_tool=map(_share, result.by_tool),
        by_agent=map(_share, result.by_agent),
        over_time=[
            pb.CostPoint(
                start_time=to_timestamp(point.start_us),
                cost_usd=point.cost_usd,
                session_count=point.session_count,
                cost_per_session=point.cost_per_session,
            )
            for point in result.over_time
        ],
        cost_per_session=_trend(result.cost_per_session),
        most_expensive=[
            pb.CostlyOperation(
                event_id=operation.event_id,
                session_id=operation.session_id,
                description=operation.description,
                cost_usd=operation.cost_usd,
                model=operation.model,
            )
            for operation in result.most_expensive
        ],
        unpriced_events=result.unpriced_events,
        bucket_seconds=result.bucket_seconds,
        costed_sessions=result.costed_sessions,
    )


def _share(share: model.CostShare) -> pb.CostShare:
    return pb.CostShare(
        key=share.key,
        cost_usd=share.cost_usd,
        share=share.share,
        input_tokens=share.input_tokens,
        output_tokens=share.output_tokens,
        event_count=share.event_count,
        session_count=share.session_count,
    )


def _performance_trends(result: model.PerformanceTrends) -> pb.PerformanceTrends:
    return pb.PerformanceTrends(
        points=map(_point, result.points),
        success_rate=_trend(result.success_rate),
        latency=_trend(result.latency),
        latency_p95=_trend(result.latency_p95),
        throughput=_trend(result.throughput),
        error_rate=_trend(result.error_rate),
        bucket_seconds=result.bucket_seconds,
        overall=_point(result.overall) if result.overall else None,
    )


def _point(point: model.PerformancePoint) -> pb.PerformancePoint:
    return pb.PerformancePoint(
        start_time=to_timestamp(point.start_us),
        session_count=point.session_count,
        known_count=point.known_count,
        told_count=point.told_count,
        timed_count=point.timed_count,
        error_count=point.error_count,
        success_rate=point.success_rate,
        errors_per_session=point.errors_per_session,
        latency_p50_ms=point.latency_p50_ms,
        latency_p95_ms=point.latency_p95_ms,
        latency_mean_ms=point.latency_mean_ms,
        sessions_per_hour=point.sessions_per_hour,
    )


def _session_comparison(result: model.SessionComparison) -> pb.SessionComparison:
    return pb.SessionComparison(
        recent_count=result.recent_count,
        earlier_count=result.earlier_count,
        split_time=None if result.split_us is None else to_timestamp(result.split_us),
        comparisons=[_comparison(comparison) for comparison in result.comparisons],
        new_errors=map(_change, result.new_errors),
        gone_errors=map(_change, result.gone_errors),
        outcomes=map(_outcome_by, result.outcomes),
    )


def _comparison(comparison: model.MeasureComparison) -> pb.Comparison:
    return pb.Comparison(
        measure=comparison.measure,
        recent_mean=comparison.recent_mean,
        earlier_mean=comparison.earlier_mean,
        difference=comparison.difference,
        difference_interval=_interval(comparison.difference_interval),
        effect_size=comparison.effect_size,
        q_value=comparison.q_value,
        trend=cast("pb.Trend", comparison.trend),
        recent_count=comparison.recent_count,
        earlier_count=comparison.earlier_count,
        differs=comparison.differs,
    )


def _change(change: model.ErrorChange) -> pb.ErrorChange:
    return pb.ErrorChange(
        template=change.template,
        tool_name=change.tool_name,
        sessions=change.sessions,
        q_value=change.q_value,
    )


def _insight(insight: model.Insight) -> pb.Insight:
    return pb.Insight(
        type=insight.type,
        summary=insight.summary,
        data=struct_of_object(insight.data),
        confidence=1.0 if insight.q_value is None else 1 - insight.q_value,
        q_value=insight.q_value,
        session_ids=insight.session_ids,
        event_ids=insight.event_ids,
    )


def _interval(interval: Interval) -> pb.Interval | None:
    """Return an interval; None where there is none."""
    if not math.isfinite(interval.low + interval.high):
        return None
    return pb.Interval(low=interval.low, high=interval.high)


def _trend(test: model.TrendTest) -> pb.TrendTest:
    return pb.TrendTest(
        trend=cast("pb.Trend", test.trend),
        slope_per_day=test.slope_per_day,
        slope_interval=_interval(test.slope_interval),
        q_value=test.q_value,
        points=test.points,
        change=test.change,
        days=test.days,
        step=_step(test.step) if test.step else None,
        small=test.small,
    )


def _step(step: model.TrendStep) -> pb.TrendStep:
    return pb.TrendStep(
        since=to_timestamp(step.since_us),
        before=pb.TrendLevel(**step.before._asdict()),
        after=pb.TrendLevel(**step.after._asdict()),
        difference=step.size,
        interval=_interval(step.interval),
        q_value=step.q_value,
    )


def _effect(effect: model.SequenceEffect) -> pb.SequenceEffect:
    return pb.SequenceEffect(
        tools=effect.tools,
        count=effect.count,
        effect_count=effect.effect_count,
        lift=effect.lift if effect.has_ratio else 0.0,
        lift_interval=_interval(effect.lift_interval) if effect.has_ratio else None,
        q_value=effect.q_value,
        session_ids=effect.session_ids,
        effect=effect.effect,
        base_rate=effect.base_rate,
        tested=effect.tested,
        base_count=effect.base_count,
        base_effect_count=effect.base_effect_count,
        sure=effect.is_sure,
    )


def _split(split: model.OutcomeSplit | None) -> pb.OutcomeSplit | None:
    if split is None:
        return None
    return pb.OutcomeSplit(
        sessions=split.sessions,
        successes=split.successes,
        success_interval=_interval(split.interval),
        other_sessions=split.other_sessions,
        other_successes=split.other_successes,
        other_success_interval=_interval(split.other_interval),
        difference_interval=_interval(split.difference),
        q_value=split.q_value if split.tested else 1.0,
        tested=split.tested,
        sure=split.is_sure,
    )


def _recovery(way: model.Recovery) -> pb.Recovery:
    return pb.Recovery(
        kind=way.kind,
        tools=way.tools,
        sessions=way.sessions,
        session_ids=way.session_ids,
        error_event_id=way.error_event_id,
        event_id=way.event_id,
    )


def _outcome_by(by: model.OutcomeBy) -> pb.OutcomeBy:
    tested = not math.isnan(by.q_value)
    return pb.OutcomeBy(
        dimension=by.dimension,
        groups=[
            pb.OutcomeGroup(
                key=group.key, outcome=_split(group.split), session_ids=group.session_ids
            )
            for group in by.groups
        ],
        group_count=by.group_count,
        q_value=by.q_value if tested else 1.0,
        tested=tested,
    )
