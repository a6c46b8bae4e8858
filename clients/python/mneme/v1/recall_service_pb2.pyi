import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import certificate_pb2 as _certificate_pb2
from mneme.v1 import common_pb2 as _common_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RecallMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_MODE_UNSPECIFIED: _ClassVar[RecallMode]
    RECALL_MODE_HYBRID: _ClassVar[RecallMode]
    RECALL_MODE_DENSE: _ClassVar[RecallMode]
    RECALL_MODE_LEXICAL: _ClassVar[RecallMode]

class RecallOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_OUTCOME_UNSPECIFIED: _ClassVar[RecallOutcome]
    RECALL_OUTCOME_FOUND: _ClassVar[RecallOutcome]
    RECALL_OUTCOME_NOTHING_STORED: _ClassVar[RecallOutcome]
    RECALL_OUTCOME_NOTHING_MATCHES_FILTERS: _ClassVar[RecallOutcome]
    RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE: _ClassVar[RecallOutcome]
    RECALL_OUTCOME_NOTHING_CONFIDENT: _ClassVar[RecallOutcome]

class Reranking(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RERANKING_UNSPECIFIED: _ClassVar[Reranking]
    RERANKING_DONE: _ClassVar[Reranking]
    RERANKING_LATE: _ClassVar[Reranking]
    RERANKING_FAILED: _ClassVar[Reranking]
RECALL_MODE_UNSPECIFIED: RecallMode
RECALL_MODE_HYBRID: RecallMode
RECALL_MODE_DENSE: RecallMode
RECALL_MODE_LEXICAL: RecallMode
RECALL_OUTCOME_UNSPECIFIED: RecallOutcome
RECALL_OUTCOME_FOUND: RecallOutcome
RECALL_OUTCOME_NOTHING_STORED: RecallOutcome
RECALL_OUTCOME_NOTHING_MATCHES_FILTERS: RecallOutcome
RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE: RecallOutcome
RECALL_OUTCOME_NOTHING_CONFIDENT: RecallOutcome
RERANKING_UNSPECIFIED: Reranking
RERANKING_DONE: Reranking
RERANKING_LATE: Reranking
RERANKING_FAILED: Reranking

class RankingWeights(_message.Message):
    __slots__ = ("neighbors", "session", "recency", "importance", "repeated")
    NEIGHBORS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    neighbors: float
    session: float
    recency: float
    importance: float
    repeated: float
    def __init__(self, neighbors: _Optional[float] = ..., session: _Optional[float] = ..., recency: _Optional[float] = ..., importance: _Optional[float] = ..., repeated: _Optional[float] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("query", "scopes", "agent_id", "session_id", "user_id", "project", "start_time", "end_time", "tags", "limit", "min_score", "mode", "explain", "weights", "event_types", "min_severity", "name", "author", "context_turns", "every_copy", "min_confidence", "rerank", "include_archived", "any_tags", "only_own", "reference_time", "time_zone", "include_superseded")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SEVERITY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TURNS_FIELD_NUMBER: _ClassVar[int]
    EVERY_COPY_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    ANY_TAGS_FIELD_NUMBER: _ClassVar[int]
    ONLY_OWN_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    query: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    agent_id: str
    session_id: str
    user_id: str
    project: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    tags: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    min_score: float
    mode: RecallMode
    explain: bool
    weights: RankingWeights
    event_types: _containers.RepeatedScalarFieldContainer[str]
    min_severity: _common_pb2.Severity
    name: str
    author: str
    context_turns: int
    every_copy: bool
    min_confidence: float
    rerank: bool
    include_archived: bool
    any_tags: _containers.RepeatedScalarFieldContainer[str]
    only_own: bool
    reference_time: _timestamp_pb2.Timestamp
    time_zone: str
    include_superseded: bool
    def __init__(self, query: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., min_score: _Optional[float] = ..., mode: _Optional[_Union[RecallMode, str]] = ..., explain: _Optional[bool] = ..., weights: _Optional[_Union[RankingWeights, _Mapping]] = ..., event_types: _Optional[_Iterable[str]] = ..., min_severity: _Optional[_Union[_common_pb2.Severity, str]] = ..., name: _Optional[str] = ..., author: _Optional[str] = ..., context_turns: _Optional[int] = ..., every_copy: _Optional[bool] = ..., min_confidence: _Optional[float] = ..., rerank: _Optional[bool] = ..., include_archived: _Optional[bool] = ..., any_tags: _Optional[_Iterable[str]] = ..., only_own: _Optional[bool] = ..., reference_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., include_superseded: _Optional[bool] = ...) -> None: ...

class ScoreTerm(_message.Message):
    __slots__ = ("name", "value", "contribution")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    contribution: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., contribution: _Optional[float] = ...) -> None: ...

class ScoreSteps(_message.Message):
    __slots__ = ("sum", "highest", "evidence")
    SUM_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    sum: float
    highest: float
    evidence: float
    def __init__(self, sum: _Optional[float] = ..., highest: _Optional[float] = ..., evidence: _Optional[float] = ...) -> None: ...

class RecallTurn(_message.Message):
    __slots__ = ("source_id", "event_type", "author", "text", "timestamp")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    event_type: str
    author: str
    text: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, source_id: _Optional[str] = ..., event_type: _Optional[str] = ..., author: _Optional[str] = ..., text: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecallVersion(_message.Message):
    __slots__ = ("source_id", "timestamp")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, source_id: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecallResult(_message.Message):
    __slots__ = ("source_type", "source_id", "score", "similarity", "text", "timestamp", "session_id", "agent_id", "metadata", "terms", "text_truncated", "copies", "first_time", "last_time", "before", "after", "older", "newer", "steps", "passage")
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    TEXT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TIME_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    OLDER_FIELD_NUMBER: _ClassVar[int]
    NEWER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PASSAGE_FIELD_NUMBER: _ClassVar[int]
    source_type: str
    source_id: str
    score: float
    similarity: float
    text: str
    timestamp: _timestamp_pb2.Timestamp
    session_id: str
    agent_id: str
    metadata: _struct_pb2.Struct
    terms: _containers.RepeatedCompositeFieldContainer[ScoreTerm]
    text_truncated: bool
    copies: int
    first_time: _timestamp_pb2.Timestamp
    last_time: _timestamp_pb2.Timestamp
    before: _containers.RepeatedCompositeFieldContainer[RecallTurn]
    after: _containers.RepeatedCompositeFieldContainer[RecallTurn]
    older: RecallVersion
    newer: RecallVersion
    steps: ScoreSteps
    passage: _common_pb2.Passage
    def __init__(self, source_type: _Optional[str] = ..., source_id: _Optional[str] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ..., text: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., terms: _Optional[_Iterable[_Union[ScoreTerm, _Mapping]]] = ..., text_truncated: _Optional[bool] = ..., copies: _Optional[int] = ..., first_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[_Iterable[_Union[RecallTurn, _Mapping]]] = ..., after: _Optional[_Iterable[_Union[RecallTurn, _Mapping]]] = ..., older: _Optional[_Union[RecallVersion, _Mapping]] = ..., newer: _Optional[_Union[RecallVersion, _Mapping]] = ..., steps: _Optional[_Union[ScoreSteps, _Mapping]] = ..., passage: _Optional[_Union[_common_pb2.Passage, _Mapping]] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("results", "total_results", "outcome", "searched_count", "pending_count", "candidates_capped", "words_only", "partial", "confidence", "reranking")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_CAPPED_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    RERANKING_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RecallResult]
    total_results: int
    outcome: RecallOutcome
    searched_count: int
    pending_count: int
    candidates_capped: bool
    words_only: bool
    partial: bool
    confidence: float
    reranking: Reranking
    def __init__(self, results: _Optional[_Iterable[_Union[RecallResult, _Mapping]]] = ..., total_results: _Optional[int] = ..., outcome: _Optional[_Union[RecallOutcome, str]] = ..., searched_count: _Optional[int] = ..., pending_count: _Optional[int] = ..., candidates_capped: _Optional[bool] = ..., words_only: _Optional[bool] = ..., partial: _Optional[bool] = ..., confidence: _Optional[float] = ..., reranking: _Optional[_Union[Reranking, str]] = ...) -> None: ...
