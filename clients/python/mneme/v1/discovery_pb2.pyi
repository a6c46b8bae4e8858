import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import episode_pb2 as _episode_pb2
from mneme.v1 import operation_pb2 as _operation_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FdrMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FDR_METHOD_UNSPECIFIED: _ClassVar[FdrMethod]
    FDR_METHOD_BENJAMINI_HOCHBERG: _ClassVar[FdrMethod]
    FDR_METHOD_BENJAMINI_YEKUTIELI: _ClassVar[FdrMethod]

class DiscoveryChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISCOVERY_CHANGE_UNSPECIFIED: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_CREATED: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_UPDATED: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_UNCHANGED: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_KEPT: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_CIRCLE: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_NOT_SURE: _ClassVar[DiscoveryChange]
    DISCOVERY_CHANGE_RARELY_SUCCEEDS: _ClassVar[DiscoveryChange]

class DiscoveryRefusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISCOVERY_REFUSAL_UNSPECIFIED: _ClassVar[DiscoveryRefusal]
    DISCOVERY_REFUSAL_TOO_FEW: _ClassVar[DiscoveryRefusal]
    DISCOVERY_REFUSAL_NO_OVERLAP: _ClassVar[DiscoveryRefusal]
    DISCOVERY_REFUSAL_NEVER_DIFFERS: _ClassVar[DiscoveryRefusal]

class NotAdjustedReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOT_ADJUSTED_REASON_UNSPECIFIED: _ClassVar[NotAdjustedReason]
    NOT_ADJUSTED_REASON_SAME_IN_ALL: _ClassVar[NotAdjustedReason]
    NOT_ADJUSTED_REASON_TOO_FEW_ALIKE: _ClassVar[NotAdjustedReason]
FDR_METHOD_UNSPECIFIED: FdrMethod
FDR_METHOD_BENJAMINI_HOCHBERG: FdrMethod
FDR_METHOD_BENJAMINI_YEKUTIELI: FdrMethod
DISCOVERY_CHANGE_UNSPECIFIED: DiscoveryChange
DISCOVERY_CHANGE_CREATED: DiscoveryChange
DISCOVERY_CHANGE_UPDATED: DiscoveryChange
DISCOVERY_CHANGE_UNCHANGED: DiscoveryChange
DISCOVERY_CHANGE_KEPT: DiscoveryChange
DISCOVERY_CHANGE_CIRCLE: DiscoveryChange
DISCOVERY_CHANGE_NOT_SURE: DiscoveryChange
DISCOVERY_CHANGE_RARELY_SUCCEEDS: DiscoveryChange
DISCOVERY_REFUSAL_UNSPECIFIED: DiscoveryRefusal
DISCOVERY_REFUSAL_TOO_FEW: DiscoveryRefusal
DISCOVERY_REFUSAL_NO_OVERLAP: DiscoveryRefusal
DISCOVERY_REFUSAL_NEVER_DIFFERS: DiscoveryRefusal
NOT_ADJUSTED_REASON_UNSPECIFIED: NotAdjustedReason
NOT_ADJUSTED_REASON_SAME_IN_ALL: NotAdjustedReason
NOT_ADJUSTED_REASON_TOO_FEW_ALIKE: NotAdjustedReason

class DiscoveryQuestion(_message.Message):
    __slots__ = ("filter", "adjust_for", "min_attempts", "min_success_rate", "min_confidence", "min_sample_size", "fdr", "fdr_method", "dry_run", "include_tools")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ADJUST_FOR_FIELD_NUMBER: _ClassVar[int]
    MIN_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MIN_SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MIN_SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    FDR_FIELD_NUMBER: _ClassVar[int]
    FDR_METHOD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    filter: _episode_pb2.EpisodeFilter
    adjust_for: _containers.RepeatedScalarFieldContainer[str]
    min_attempts: int
    min_success_rate: float
    min_confidence: float
    min_sample_size: int
    fdr: float
    fdr_method: FdrMethod
    dry_run: bool
    include_tools: bool
    def __init__(self, filter: _Optional[_Union[_episode_pb2.EpisodeFilter, _Mapping]] = ..., adjust_for: _Optional[_Iterable[str]] = ..., min_attempts: _Optional[int] = ..., min_success_rate: _Optional[float] = ..., min_confidence: _Optional[float] = ..., min_sample_size: _Optional[int] = ..., fdr: _Optional[float] = ..., fdr_method: _Optional[_Union[FdrMethod, str]] = ..., dry_run: _Optional[bool] = ..., include_tools: _Optional[bool] = ...) -> None: ...

class DiscoveredEffect(_message.Message):
    __slots__ = ("cause", "outcome", "uplift", "low", "high", "p_value", "q_value", "confidence", "mean_with", "mean_without", "plain_difference", "confounder_score", "treated_count", "control_count", "overlap", "change", "edge_id")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MEAN_WITH_FIELD_NUMBER: _ClassVar[int]
    MEAN_WITHOUT_FIELD_NUMBER: _ClassVar[int]
    PLAIN_DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    CONFOUNDER_SCORE_FIELD_NUMBER: _ClassVar[int]
    TREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_COUNT_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    cause: str
    outcome: str
    uplift: float
    low: float
    high: float
    p_value: float
    q_value: float
    confidence: float
    mean_with: float
    mean_without: float
    plain_difference: float
    confounder_score: float
    treated_count: int
    control_count: int
    overlap: float
    change: DiscoveryChange
    edge_id: str
    def __init__(self, cause: _Optional[str] = ..., outcome: _Optional[str] = ..., uplift: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., p_value: _Optional[float] = ..., q_value: _Optional[float] = ..., confidence: _Optional[float] = ..., mean_with: _Optional[float] = ..., mean_without: _Optional[float] = ..., plain_difference: _Optional[float] = ..., confounder_score: _Optional[float] = ..., treated_count: _Optional[int] = ..., control_count: _Optional[int] = ..., overlap: _Optional[float] = ..., change: _Optional[_Union[DiscoveryChange, str]] = ..., edge_id: _Optional[str] = ...) -> None: ...

class RefusedCause(_message.Message):
    __slots__ = ("cause", "outcome", "why", "treated_count", "control_count", "overlap")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    TREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_COUNT_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    cause: str
    outcome: str
    why: DiscoveryRefusal
    treated_count: int
    control_count: int
    overlap: float
    def __init__(self, cause: _Optional[str] = ..., outcome: _Optional[str] = ..., why: _Optional[_Union[DiscoveryRefusal, str]] = ..., treated_count: _Optional[int] = ..., control_count: _Optional[int] = ..., overlap: _Optional[float] = ...) -> None: ...

class NotAdjusted(_message.Message):
    __slots__ = ("name", "why")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    why: NotAdjustedReason
    def __init__(self, name: _Optional[str] = ..., why: _Optional[_Union[NotAdjustedReason, str]] = ...) -> None: ...

class DiscoverResult(_message.Message):
    __slots__ = ("findings", "refused_causes", "tested_count", "refused_count", "removed_count", "episode_count", "not_embedded_count", "adjusted_for", "truncated", "not_adjusted_for")
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_CAUSES_FIELD_NUMBER: _ClassVar[int]
    TESTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOT_EMBEDDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    ADJUSTED_FOR_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NOT_ADJUSTED_FOR_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[DiscoveredEffect]
    refused_causes: _containers.RepeatedCompositeFieldContainer[RefusedCause]
    tested_count: int
    refused_count: int
    removed_count: int
    episode_count: int
    not_embedded_count: int
    adjusted_for: _containers.RepeatedScalarFieldContainer[str]
    truncated: bool
    not_adjusted_for: _containers.RepeatedCompositeFieldContainer[NotAdjusted]
    def __init__(self, findings: _Optional[_Iterable[_Union[DiscoveredEffect, _Mapping]]] = ..., refused_causes: _Optional[_Iterable[_Union[RefusedCause, _Mapping]]] = ..., tested_count: _Optional[int] = ..., refused_count: _Optional[int] = ..., removed_count: _Optional[int] = ..., episode_count: _Optional[int] = ..., not_embedded_count: _Optional[int] = ..., adjusted_for: _Optional[_Iterable[str]] = ..., truncated: _Optional[bool] = ..., not_adjusted_for: _Optional[_Iterable[_Union[NotAdjusted, _Mapping]]] = ...) -> None: ...

class DiscoverRequest(_message.Message):
    __slots__ = ("question", "operation_id")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    question: DiscoveryQuestion
    operation_id: str
    def __init__(self, question: _Optional[_Union[DiscoveryQuestion, _Mapping]] = ..., operation_id: _Optional[str] = ...) -> None: ...

class DiscoverResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _operation_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_operation_pb2.Operation, _Mapping]] = ...) -> None: ...

class DiscoverySchedule(_message.Message):
    __slots__ = ("enabled", "time", "question", "next_run_at", "last_run_at", "last_operation_id")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    NEXT_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    time: str
    question: DiscoveryQuestion
    next_run_at: _timestamp_pb2.Timestamp
    last_run_at: _timestamp_pb2.Timestamp
    last_operation_id: str
    def __init__(self, enabled: _Optional[bool] = ..., time: _Optional[str] = ..., question: _Optional[_Union[DiscoveryQuestion, _Mapping]] = ..., next_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_operation_id: _Optional[str] = ...) -> None: ...

class GetDiscoveryScheduleRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetDiscoveryScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: DiscoverySchedule
    def __init__(self, schedule: _Optional[_Union[DiscoverySchedule, _Mapping]] = ...) -> None: ...

class UpdateDiscoveryScheduleRequest(_message.Message):
    __slots__ = ("enabled", "time", "question")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    time: str
    question: DiscoveryQuestion
    def __init__(self, enabled: _Optional[bool] = ..., time: _Optional[str] = ..., question: _Optional[_Union[DiscoveryQuestion, _Mapping]] = ...) -> None: ...

class UpdateDiscoveryScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: DiscoverySchedule
    def __init__(self, schedule: _Optional[_Union[DiscoverySchedule, _Mapping]] = ...) -> None: ...
