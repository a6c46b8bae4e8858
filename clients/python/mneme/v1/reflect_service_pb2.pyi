import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Analysis(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANALYSIS_UNSPECIFIED: _ClassVar[Analysis]
    ANALYSIS_ERROR_PATTERNS: _ClassVar[Analysis]
    ANALYSIS_TOOL_SEQUENCES: _ClassVar[Analysis]
    ANALYSIS_COST_ANALYSIS: _ClassVar[Analysis]
    ANALYSIS_PERFORMANCE_TRENDS: _ClassVar[Analysis]
    ANALYSIS_SESSION_COMPARISON: _ClassVar[Analysis]

class Trend(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TREND_UNSPECIFIED: _ClassVar[Trend]
    TREND_IMPROVING: _ClassVar[Trend]
    TREND_STABLE: _ClassVar[Trend]
    TREND_DEGRADING: _ClassVar[Trend]

class Baseline(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BASELINE_UNSPECIFIED: _ClassVar[Baseline]
    BASELINE_ALL_CALLS: _ClassVar[Baseline]
    BASELINE_SAME_TOOL: _ClassVar[Baseline]

class Bucket(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUCKET_UNSPECIFIED: _ClassVar[Bucket]
    BUCKET_HOUR: _ClassVar[Bucket]
    BUCKET_DAY: _ClassVar[Bucket]
    BUCKET_WEEK: _ClassVar[Bucket]
ANALYSIS_UNSPECIFIED: Analysis
ANALYSIS_ERROR_PATTERNS: Analysis
ANALYSIS_TOOL_SEQUENCES: Analysis
ANALYSIS_COST_ANALYSIS: Analysis
ANALYSIS_PERFORMANCE_TRENDS: Analysis
ANALYSIS_SESSION_COMPARISON: Analysis
TREND_UNSPECIFIED: Trend
TREND_IMPROVING: Trend
TREND_STABLE: Trend
TREND_DEGRADING: Trend
BASELINE_UNSPECIFIED: Baseline
BASELINE_ALL_CALLS: Baseline
BASELINE_SAME_TOOL: Baseline
BUCKET_UNSPECIFIED: Bucket
BUCKET_HOUR: Bucket
BUCKET_DAY: Bucket
BUCKET_WEEK: Bucket

class ErrorPatternsParams(_message.Message):
    __slots__ = ("tool", "min_count", "window", "examples", "baseline")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    MIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    tool: str
    min_count: int
    window: int
    examples: int
    baseline: Baseline
    def __init__(self, tool: _Optional[str] = ..., min_count: _Optional[int] = ..., window: _Optional[int] = ..., examples: _Optional[int] = ..., baseline: _Optional[_Union[Baseline, str]] = ...) -> None: ...

class ToolSequencesParams(_message.Message):
    __slots__ = ("min_length", "max_length", "min_support")
    MIN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MIN_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    min_length: int
    max_length: int
    min_support: int
    def __init__(self, min_length: _Optional[int] = ..., max_length: _Optional[int] = ..., min_support: _Optional[int] = ...) -> None: ...

class CostAnalysisParams(_message.Message):
    __slots__ = ("model", "bucket")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    model: str
    bucket: Bucket
    def __init__(self, model: _Optional[str] = ..., bucket: _Optional[_Union[Bucket, str]] = ...) -> None: ...

class PerformanceTrendsParams(_message.Message):
    __slots__ = ("bucket",)
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    bucket: Bucket
    def __init__(self, bucket: _Optional[_Union[Bucket, str]] = ...) -> None: ...

class SessionComparisonParams(_message.Message):
    __slots__ = ("recent_days", "recent_sessions")
    RECENT_DAYS_FIELD_NUMBER: _ClassVar[int]
    RECENT_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    recent_days: float
    recent_sessions: int
    def __init__(self, recent_days: _Optional[float] = ..., recent_sessions: _Optional[int] = ...) -> None: ...

class ReflectRequest(_message.Message):
    __slots__ = ("analysis", "agent_id", "start_time", "end_time", "limit", "project", "user_id", "tags", "error_patterns", "tool_sequences", "cost_analysis", "performance_trends", "session_comparison")
    ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ERROR_PATTERNS_FIELD_NUMBER: _ClassVar[int]
    TOOL_SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    COST_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_TRENDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMPARISON_FIELD_NUMBER: _ClassVar[int]
    analysis: Analysis
    agent_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    limit: int
    project: str
    user_id: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    error_patterns: ErrorPatternsParams
    tool_sequences: ToolSequencesParams
    cost_analysis: CostAnalysisParams
    performance_trends: PerformanceTrendsParams
    session_comparison: SessionComparisonParams
    def __init__(self, analysis: _Optional[_Union[Analysis, str]] = ..., agent_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limit: _Optional[int] = ..., project: _Optional[str] = ..., user_id: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., error_patterns: _Optional[_Union[ErrorPatternsParams, _Mapping]] = ..., tool_sequences: _Optional[_Union[ToolSequencesParams, _Mapping]] = ..., cost_analysis: _Optional[_Union[CostAnalysisParams, _Mapping]] = ..., performance_trends: _Optional[_Union[PerformanceTrendsParams, _Mapping]] = ..., session_comparison: _Optional[_Union[SessionComparisonParams, _Mapping]] = ...) -> None: ...

class Interval(_message.Message):
    __slots__ = ("low", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: float
    high: float
    def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class Insight(_message.Message):
    __slots__ = ("type", "summary", "data", "confidence", "session_ids", "event_ids", "q_value")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    type: str
    summary: str
    data: _struct_pb2.Struct
    confidence: float
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    q_value: float
    def __init__(self, type: _Optional[str] = ..., summary: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., confidence: _Optional[float] = ..., session_ids: _Optional[_Iterable[str]] = ..., event_ids: _Optional[_Iterable[str]] = ..., q_value: _Optional[float] = ...) -> None: ...

class ReflectMetadata(_message.Message):
    __slots__ = ("sessions_analyzed", "events_analyzed", "start_time", "end_time", "truncated", "notes")
    SESSIONS_ANALYZED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_ANALYZED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    sessions_analyzed: int
    events_analyzed: int
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    truncated: bool
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sessions_analyzed: _Optional[int] = ..., events_analyzed: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., truncated: _Optional[bool] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class ReflectResponse(_message.Message):
    __slots__ = ("analysis", "insights", "metadata", "caveat", "error_patterns", "tool_sequences", "cost_analysis", "performance_trends", "session_comparison")
    ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    INSIGHTS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CAVEAT_FIELD_NUMBER: _ClassVar[int]
    ERROR_PATTERNS_FIELD_NUMBER: _ClassVar[int]
    TOOL_SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    COST_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_TRENDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMPARISON_FIELD_NUMBER: _ClassVar[int]
    analysis: Analysis
    insights: _containers.RepeatedCompositeFieldContainer[Insight]
    metadata: ReflectMetadata
    caveat: str
    error_patterns: ErrorPatterns
    tool_sequences: ToolSequences
    cost_analysis: CostAnalysis
    performance_trends: PerformanceTrends
    session_comparison: SessionComparison
    def __init__(self, analysis: _Optional[_Union[Analysis, str]] = ..., insights: _Optional[_Iterable[_Union[Insight, _Mapping]]] = ..., metadata: _Optional[_Union[ReflectMetadata, _Mapping]] = ..., caveat: _Optional[str] = ..., error_patterns: _Optional[_Union[ErrorPatterns, _Mapping]] = ..., tool_sequences: _Optional[_Union[ToolSequences, _Mapping]] = ..., cost_analysis: _Optional[_Union[CostAnalysis, _Mapping]] = ..., performance_trends: _Optional[_Union[PerformanceTrends, _Mapping]] = ..., session_comparison: _Optional[_Union[SessionComparison, _Mapping]] = ...) -> None: ...

class SequenceEffect(_message.Message):
    __slots__ = ("tools", "count", "effect_count", "lift", "lift_interval", "q_value", "session_ids", "effect", "base_rate", "tested", "base_count", "base_effect_count", "sure")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EFFECT_COUNT_FIELD_NUMBER: _ClassVar[int]
    LIFT_FIELD_NUMBER: _ClassVar[int]
    LIFT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    BASE_RATE_FIELD_NUMBER: _ClassVar[int]
    TESTED_FIELD_NUMBER: _ClassVar[int]
    BASE_COUNT_FIELD_NUMBER: _ClassVar[int]
    BASE_EFFECT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SURE_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedScalarFieldContainer[str]
    count: int
    effect_count: int
    lift: float
    lift_interval: Interval
    q_value: float
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    effect: str
    base_rate: float
    tested: bool
    base_count: int
    base_effect_count: int
    sure: bool
    def __init__(self, tools: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ..., effect_count: _Optional[int] = ..., lift: _Optional[float] = ..., lift_interval: _Optional[_Union[Interval, _Mapping]] = ..., q_value: _Optional[float] = ..., session_ids: _Optional[_Iterable[str]] = ..., effect: _Optional[str] = ..., base_rate: _Optional[float] = ..., tested: _Optional[bool] = ..., base_count: _Optional[int] = ..., base_effect_count: _Optional[int] = ..., sure: _Optional[bool] = ...) -> None: ...

class OutcomeSplit(_message.Message):
    __slots__ = ("sessions", "successes", "success_interval", "other_sessions", "other_successes", "other_success_interval", "difference_interval", "q_value", "tested", "sure")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SUCCESSES_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    OTHER_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    OTHER_SUCCESSES_FIELD_NUMBER: _ClassVar[int]
    OTHER_SUCCESS_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    TESTED_FIELD_NUMBER: _ClassVar[int]
    SURE_FIELD_NUMBER: _ClassVar[int]
    sessions: int
    successes: int
    success_interval: Interval
    other_sessions: int
    other_successes: int
    other_success_interval: Interval
    difference_interval: Interval
    q_value: float
    tested: bool
    sure: bool
    def __init__(self, sessions: _Optional[int] = ..., successes: _Optional[int] = ..., success_interval: _Optional[_Union[Interval, _Mapping]] = ..., other_sessions: _Optional[int] = ..., other_successes: _Optional[int] = ..., other_success_interval: _Optional[_Union[Interval, _Mapping]] = ..., difference_interval: _Optional[_Union[Interval, _Mapping]] = ..., q_value: _Optional[float] = ..., tested: _Optional[bool] = ..., sure: _Optional[bool] = ...) -> None: ...

class Recovery(_message.Message):
    __slots__ = ("kind", "tools", "sessions", "session_ids", "error_event_id", "event_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    kind: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    sessions: int
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    error_event_id: str
    event_id: str
    def __init__(self, kind: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., sessions: _Optional[int] = ..., session_ids: _Optional[_Iterable[str]] = ..., error_event_id: _Optional[str] = ..., event_id: _Optional[str] = ...) -> None: ...

class OutcomeGroup(_message.Message):
    __slots__ = ("key", "outcome", "session_ids")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    key: str
    outcome: OutcomeSplit
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., outcome: _Optional[_Union[OutcomeSplit, _Mapping]] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class OutcomeBy(_message.Message):
    __slots__ = ("dimension", "groups", "group_count", "q_value", "tested")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    TESTED_FIELD_NUMBER: _ClassVar[int]
    dimension: str
    groups: _containers.RepeatedCompositeFieldContainer[OutcomeGroup]
    group_count: int
    q_value: float
    tested: bool
    def __init__(self, dimension: _Optional[str] = ..., groups: _Optional[_Iterable[_Union[OutcomeGroup, _Mapping]]] = ..., group_count: _Optional[int] = ..., q_value: _Optional[float] = ..., tested: _Optional[bool] = ...) -> None: ...

class ErrorExample(_message.Message):
    __slots__ = ("event_id", "session_id", "message", "timestamp")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    session_id: str
    message: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, event_id: _Optional[str] = ..., session_id: _Optional[str] = ..., message: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ErrorPattern(_message.Message):
    __slots__ = ("template", "tool_name", "count", "sessions_affected", "first_seen", "last_seen", "rate", "preceding", "examples", "outcome", "recoveries")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_AFFECTED_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    PRECEDING_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RECOVERIES_FIELD_NUMBER: _ClassVar[int]
    template: str
    tool_name: str
    count: int
    sessions_affected: int
    first_seen: _timestamp_pb2.Timestamp
    last_seen: _timestamp_pb2.Timestamp
    rate: float
    preceding: _containers.RepeatedCompositeFieldContainer[SequenceEffect]
    examples: _containers.RepeatedCompositeFieldContainer[ErrorExample]
    outcome: OutcomeSplit
    recoveries: _containers.RepeatedCompositeFieldContainer[Recovery]
    def __init__(self, template: _Optional[str] = ..., tool_name: _Optional[str] = ..., count: _Optional[int] = ..., sessions_affected: _Optional[int] = ..., first_seen: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_seen: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rate: _Optional[float] = ..., preceding: _Optional[_Iterable[_Union[SequenceEffect, _Mapping]]] = ..., examples: _Optional[_Iterable[_Union[ErrorExample, _Mapping]]] = ..., outcome: _Optional[_Union[OutcomeSplit, _Mapping]] = ..., recoveries: _Optional[_Iterable[_Union[Recovery, _Mapping]]] = ...) -> None: ...

class ErrorPatterns(_message.Message):
    __slots__ = ("patterns", "pattern_count", "error_count", "outcome")
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    patterns: _containers.RepeatedCompositeFieldContainer[ErrorPattern]
    pattern_count: int
    error_count: int
    outcome: OutcomeSplit
    def __init__(self, patterns: _Optional[_Iterable[_Union[ErrorPattern, _Mapping]]] = ..., pattern_count: _Optional[int] = ..., error_count: _Optional[int] = ..., outcome: _Optional[_Union[OutcomeSplit, _Mapping]] = ...) -> None: ...

class SequenceCount(_message.Message):
    __slots__ = ("tools", "count", "sessions", "support")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedScalarFieldContainer[str]
    count: int
    sessions: int
    support: float
    def __init__(self, tools: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ..., sessions: _Optional[int] = ..., support: _Optional[float] = ...) -> None: ...

class ToolLoop(_message.Message):
    __slots__ = ("tool", "arguments", "longest_run", "runs", "session_ids")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_RUN_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments: str
    longest_run: int
    runs: int
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tool: _Optional[str] = ..., arguments: _Optional[str] = ..., longest_run: _Optional[int] = ..., runs: _Optional[int] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ToolUse(_message.Message):
    __slots__ = ("tool", "count", "sessions", "failed")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    tool: str
    count: int
    sessions: int
    failed: int
    def __init__(self, tool: _Optional[str] = ..., count: _Optional[int] = ..., sessions: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class ToolSequences(_message.Message):
    __slots__ = ("common", "before_errors", "before_success", "before_failure", "average_length", "loops", "sequence_count", "tools")
    COMMON_FIELD_NUMBER: _ClassVar[int]
    BEFORE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_SUCCESS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FAILURE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LOOPS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    common: _containers.RepeatedCompositeFieldContainer[SequenceCount]
    before_errors: _containers.RepeatedCompositeFieldContainer[SequenceEffect]
    before_success: _containers.RepeatedCompositeFieldContainer[SequenceEffect]
    before_failure: _containers.RepeatedCompositeFieldContainer[SequenceEffect]
    average_length: float
    loops: _containers.RepeatedCompositeFieldContainer[ToolLoop]
    sequence_count: int
    tools: _containers.RepeatedCompositeFieldContainer[ToolUse]
    def __init__(self, common: _Optional[_Iterable[_Union[SequenceCount, _Mapping]]] = ..., before_errors: _Optional[_Iterable[_Union[SequenceEffect, _Mapping]]] = ..., before_success: _Optional[_Iterable[_Union[SequenceEffect, _Mapping]]] = ..., before_failure: _Optional[_Iterable[_Union[SequenceEffect, _Mapping]]] = ..., average_length: _Optional[float] = ..., loops: _Optional[_Iterable[_Union[ToolLoop, _Mapping]]] = ..., sequence_count: _Optional[int] = ..., tools: _Optional[_Iterable[_Union[ToolUse, _Mapping]]] = ...) -> None: ...

class CostShare(_message.Message):
    __slots__ = ("key", "cost_usd", "share", "input_tokens", "output_tokens", "event_count", "session_count")
    KEY_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    key: str
    cost_usd: float
    share: float
    input_tokens: int
    output_tokens: int
    event_count: int
    session_count: int
    def __init__(self, key: _Optional[str] = ..., cost_usd: _Optional[float] = ..., share: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., event_count: _Optional[int] = ..., session_count: _Optional[int] = ...) -> None: ...

class CostPoint(_message.Message):
    __slots__ = ("start_time", "cost_usd", "session_count", "cost_per_session")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    COST_PER_SESSION_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    cost_usd: float
    session_count: int
    cost_per_session: float
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cost_usd: _Optional[float] = ..., session_count: _Optional[int] = ..., cost_per_session: _Optional[float] = ...) -> None: ...

class CostlyOperation(_message.Message):
    __slots__ = ("event_id", "session_id", "description", "cost_usd", "model")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    session_id: str
    description: str
    cost_usd: float
    model: str
    def __init__(self, event_id: _Optional[str] = ..., session_id: _Optional[str] = ..., description: _Optional[str] = ..., cost_usd: _Optional[float] = ..., model: _Optional[str] = ...) -> None: ...

class TrendTest(_message.Message):
    __slots__ = ("trend", "slope_per_day", "slope_interval", "q_value", "points", "change", "days", "step", "small")
    TREND_FIELD_NUMBER: _ClassVar[int]
    SLOPE_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    SLOPE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SMALL_FIELD_NUMBER: _ClassVar[int]
    trend: Trend
    slope_per_day: float
    slope_interval: Interval
    q_value: float
    points: int
    change: float
    days: float
    step: TrendStep
    small: bool
    def __init__(self, trend: _Optional[_Union[Trend, str]] = ..., slope_per_day: _Optional[float] = ..., slope_interval: _Optional[_Union[Interval, _Mapping]] = ..., q_value: _Optional[float] = ..., points: _Optional[int] = ..., change: _Optional[float] = ..., days: _Optional[float] = ..., step: _Optional[_Union[TrendStep, _Mapping]] = ..., small: _Optional[bool] = ...) -> None: ...

class TrendStep(_message.Message):
    __slots__ = ("since", "before", "after", "difference", "interval", "q_value")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    before: TrendLevel
    after: TrendLevel
    difference: float
    interval: Interval
    q_value: float
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[_Union[TrendLevel, _Mapping]] = ..., after: _Optional[_Union[TrendLevel, _Mapping]] = ..., difference: _Optional[float] = ..., interval: _Optional[_Union[Interval, _Mapping]] = ..., q_value: _Optional[float] = ...) -> None: ...

class TrendLevel(_message.Message):
    __slots__ = ("value", "hits", "trials")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    value: float
    hits: int
    trials: int
    def __init__(self, value: _Optional[float] = ..., hits: _Optional[int] = ..., trials: _Optional[int] = ...) -> None: ...

class CostAnalysis(_message.Message):
    __slots__ = ("total_cost_usd", "estimated_cost_usd", "average_cost_per_session", "total_input_tokens", "total_output_tokens", "by_model", "by_tag", "by_tool", "by_agent", "over_time", "cost_per_session", "most_expensive", "unpriced_events", "bucket_seconds", "costed_sessions")
    TOTAL_COST_USD_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_COST_USD_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_COST_PER_SESSION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BY_MODEL_FIELD_NUMBER: _ClassVar[int]
    BY_TAG_FIELD_NUMBER: _ClassVar[int]
    BY_TOOL_FIELD_NUMBER: _ClassVar[int]
    BY_AGENT_FIELD_NUMBER: _ClassVar[int]
    OVER_TIME_FIELD_NUMBER: _ClassVar[int]
    COST_PER_SESSION_FIELD_NUMBER: _ClassVar[int]
    MOST_EXPENSIVE_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    BUCKET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COSTED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    total_cost_usd: float
    estimated_cost_usd: float
    average_cost_per_session: float
    total_input_tokens: int
    total_output_tokens: int
    by_model: _containers.RepeatedCompositeFieldContainer[CostShare]
    by_tag: _containers.RepeatedCompositeFieldContainer[CostShare]
    by_tool: _containers.RepeatedCompositeFieldContainer[CostShare]
    by_agent: _containers.RepeatedCompositeFieldContainer[CostShare]
    over_time: _containers.RepeatedCompositeFieldContainer[CostPoint]
    cost_per_session: TrendTest
    most_expensive: _containers.RepeatedCompositeFieldContainer[CostlyOperation]
    unpriced_events: int
    bucket_seconds: int
    costed_sessions: int
    def __init__(self, total_cost_usd: _Optional[float] = ..., estimated_cost_usd: _Optional[float] = ..., average_cost_per_session: _Optional[float] = ..., total_input_tokens: _Optional[int] = ..., total_output_tokens: _Optional[int] = ..., by_model: _Optional[_Iterable[_Union[CostShare, _Mapping]]] = ..., by_tag: _Optional[_Iterable[_Union[CostShare, _Mapping]]] = ..., by_tool: _Optional[_Iterable[_Union[CostShare, _Mapping]]] = ..., by_agent: _Optional[_Iterable[_Union[CostShare, _Mapping]]] = ..., over_time: _Optional[_Iterable[_Union[CostPoint, _Mapping]]] = ..., cost_per_session: _Optional[_Union[TrendTest, _Mapping]] = ..., most_expensive: _Optional[_Iterable[_Union[CostlyOperation, _Mapping]]] = ..., unpriced_events: _Optional[int] = ..., bucket_seconds: _Optional[int] = ..., costed_sessions: _Optional[int] = ...) -> None: ...

class PerformancePoint(_message.Message):
    __slots__ = ("start_time", "session_count", "success_rate", "errors_per_session", "latency_p50_ms", "latency_p95_ms", "sessions_per_hour", "latency_mean_ms", "known_count", "error_count", "told_count", "timed_count")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    ERRORS_PER_SESSION_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P50_MS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P95_MS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MEAN_MS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOLD_COUNT_FIELD_NUMBER: _ClassVar[int]
    TIMED_COUNT_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    session_count: int
    success_rate: float
    errors_per_session: float
    latency_p50_ms: float
    latency_p95_ms: float
    sessions_per_hour: float
    latency_mean_ms: float
    known_count: int
    error_count: int
    told_count: int
    timed_count: int
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_count: _Optional[int] = ..., success_rate: _Optional[float] = ..., errors_per_session: _Optional[float] = ..., latency_p50_ms: _Optional[float] = ..., latency_p95_ms: _Optional[float] = ..., sessions_per_hour: _Optional[float] = ..., latency_mean_ms: _Optional[float] = ..., known_count: _Optional[int] = ..., error_count: _Optional[int] = ..., told_count: _Optional[int] = ..., timed_count: _Optional[int] = ...) -> None: ...

class PerformanceTrends(_message.Message):
    __slots__ = ("points", "success_rate", "latency", "throughput", "error_rate", "bucket_seconds", "latency_p95", "overall")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_RATE_FIELD_NUMBER: _ClassVar[int]
    BUCKET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P95_FIELD_NUMBER: _ClassVar[int]
    OVERALL_FIELD_NUMBER: _ClassVar[int]
    points: _containers.RepeatedCompositeFieldContainer[PerformancePoint]
    success_rate: TrendTest
    latency: TrendTest
    throughput: TrendTest
    error_rate: TrendTest
    bucket_seconds: int
    latency_p95: TrendTest
    overall: PerformancePoint
    def __init__(self, points: _Optional[_Iterable[_Union[PerformancePoint, _Mapping]]] = ..., success_rate: _Optional[_Union[TrendTest, _Mapping]] = ..., latency: _Optional[_Union[TrendTest, _Mapping]] = ..., throughput: _Optional[_Union[TrendTest, _Mapping]] = ..., error_rate: _Optional[_Union[TrendTest, _Mapping]] = ..., bucket_seconds: _Optional[int] = ..., latency_p95: _Optional[_Union[TrendTest, _Mapping]] = ..., overall: _Optional[_Union[PerformancePoint, _Mapping]] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ("measure", "recent_mean", "earlier_mean", "difference", "difference_interval", "effect_size", "q_value", "trend", "recent_count", "earlier_count", "differs")
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    RECENT_MEAN_FIELD_NUMBER: _ClassVar[int]
    EARLIER_MEAN_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    EFFECT_SIZE_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    TREND_FIELD_NUMBER: _ClassVar[int]
    RECENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    EARLIER_COUNT_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_FIELD_NUMBER: _ClassVar[int]
    measure: str
    recent_mean: float
    earlier_mean: float
    difference: float
    difference_interval: Interval
    effect_size: float
    q_value: float
    trend: Trend
    recent_count: int
    earlier_count: int
    differs: bool
    def __init__(self, measure: _Optional[str] = ..., recent_mean: _Optional[float] = ..., earlier_mean: _Optional[float] = ..., difference: _Optional[float] = ..., difference_interval: _Optional[_Union[Interval, _Mapping]] = ..., effect_size: _Optional[float] = ..., q_value: _Optional[float] = ..., trend: _Optional[_Union[Trend, str]] = ..., recent_count: _Optional[int] = ..., earlier_count: _Optional[int] = ..., differs: _Optional[bool] = ...) -> None: ...

class ErrorChange(_message.Message):
    __slots__ = ("template", "tool_name", "sessions", "q_value")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    template: str
    tool_name: str
    sessions: int
    q_value: float
    def __init__(self, template: _Optional[str] = ..., tool_name: _Optional[str] = ..., sessions: _Optional[int] = ..., q_value: _Optional[float] = ...) -> None: ...

class SessionComparison(_message.Message):
    __slots__ = ("recent_count", "earlier_count", "split_time", "comparisons", "new_errors", "gone_errors", "outcomes")
    RECENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    EARLIER_COUNT_FIELD_NUMBER: _ClassVar[int]
    SPLIT_TIME_FIELD_NUMBER: _ClassVar[int]
    COMPARISONS_FIELD_NUMBER: _ClassVar[int]
    NEW_ERRORS_FIELD_NUMBER: _ClassVar[int]
    GONE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    recent_count: int
    earlier_count: int
    split_time: _timestamp_pb2.Timestamp
    comparisons: _containers.RepeatedCompositeFieldContainer[Comparison]
    new_errors: _containers.RepeatedCompositeFieldContainer[ErrorChange]
    gone_errors: _containers.RepeatedCompositeFieldContainer[ErrorChange]
    outcomes: _containers.RepeatedCompositeFieldContainer[OutcomeBy]
    def __init__(self, recent_count: _Optional[int] = ..., earlier_count: _Optional[int] = ..., split_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., comparisons: _Optional[_Iterable[_Union[Comparison, _Mapping]]] = ..., new_errors: _Optional[_Iterable[_Union[ErrorChange, _Mapping]]] = ..., gone_errors: _Optional[_Iterable[_Union[ErrorChange, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[OutcomeBy, _Mapping]]] = ...) -> None: ...
