import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import common_pb2 as _common_pb2
from mneme.v1 import grade_pb2 as _grade_pb2
from mneme.v1 import options_pb2 as _options_pb2
from mneme.v1 import reflection_pb2 as _reflection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATUS_UNSPECIFIED: _ClassVar[SessionStatus]
    SESSION_STATUS_ACTIVE: _ClassVar[SessionStatus]
    SESSION_STATUS_COMPLETED: _ClassVar[SessionStatus]
    SESSION_STATUS_ERROR: _ClassVar[SessionStatus]
SESSION_STATUS_UNSPECIFIED: SessionStatus
SESSION_STATUS_ACTIVE: SessionStatus
SESSION_STATUS_COMPLETED: SessionStatus
SESSION_STATUS_ERROR: SessionStatus

class Session(_message.Message):
    __slots__ = ("id", "agent_id", "agent_name", "user_id", "project", "tags", "metadata", "status", "started_at", "ended_at", "last_event_at", "event_count", "tool_call_count", "error_count", "llm_call_count", "total_cost_usd", "total_input_tokens", "total_output_tokens", "head_hash", "system", "outcome", "outcome_by", "reward")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_AT_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    LLM_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COST_USD_FIELD_NUMBER: _ClassVar[int]
    TOTAL_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HEAD_HASH_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_BY_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent_id: str
    agent_name: str
    user_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    status: SessionStatus
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    last_event_at: _timestamp_pb2.Timestamp
    event_count: int
    tool_call_count: int
    error_count: int
    llm_call_count: int
    total_cost_usd: float
    total_input_tokens: int
    total_output_tokens: int
    head_hash: str
    system: bool
    outcome: _reflection_pb2.Outcome
    outcome_by: _grade_pb2.GradeSource
    reward: float
    def __init__(self, id: _Optional[str] = ..., agent_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., status: _Optional[_Union[SessionStatus, str]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_event_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event_count: _Optional[int] = ..., tool_call_count: _Optional[int] = ..., error_count: _Optional[int] = ..., llm_call_count: _Optional[int] = ..., total_cost_usd: _Optional[float] = ..., total_input_tokens: _Optional[int] = ..., total_output_tokens: _Optional[int] = ..., head_hash: _Optional[str] = ..., system: _Optional[bool] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ..., outcome_by: _Optional[_Union[_grade_pb2.GradeSource, str]] = ..., reward: _Optional[float] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("id", "name", "first_seen_at", "last_seen_at", "session_count", "event_count", "tool_call_count", "error_count", "total_cost_usd")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COST_USD_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    first_seen_at: _timestamp_pb2.Timestamp
    last_seen_at: _timestamp_pb2.Timestamp
    session_count: int
    event_count: int
    tool_call_count: int
    error_count: int
    total_cost_usd: float
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., first_seen_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_seen_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_count: _Optional[int] = ..., event_count: _Optional[int] = ..., tool_call_count: _Optional[int] = ..., error_count: _Optional[int] = ..., total_cost_usd: _Optional[float] = ...) -> None: ...

class NewEvent(_message.Message):
    __slots__ = ("id", "session_id", "agent_id", "event_type", "severity", "timestamp", "text", "payload", "metadata", "name", "call_id", "error", "model", "input_tokens", "output_tokens", "cost_usd", "duration", "searchable")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    SEARCHABLE_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    agent_id: str
    event_type: str
    severity: _common_pb2.Severity
    timestamp: _timestamp_pb2.Timestamp
    text: str
    payload: _struct_pb2.Struct
    metadata: _struct_pb2.Struct
    name: str
    call_id: str
    error: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration: _duration_pb2.Duration
    searchable: bool
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., event_type: _Optional[str] = ..., severity: _Optional[_Union[_common_pb2.Severity, str]] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., text: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., name: _Optional[str] = ..., call_id: _Optional[str] = ..., error: _Optional[str] = ..., model: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., searchable: _Optional[bool] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("id", "session_id", "agent_id", "event_type", "severity", "timestamp", "text", "payload", "metadata", "name", "call_id", "error", "model", "input_tokens", "output_tokens", "cost_usd", "duration", "searchable", "sequence", "recorded_at", "prev_hash", "hash", "hash_version", "salt", "commitment")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    SEARCHABLE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    PREV_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_VERSION_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    agent_id: str
    event_type: str
    severity: _common_pb2.Severity
    timestamp: _timestamp_pb2.Timestamp
    text: str
    payload: _struct_pb2.Struct
    metadata: _struct_pb2.Struct
    name: str
    call_id: str
    error: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration: _duration_pb2.Duration
    searchable: bool
    sequence: int
    recorded_at: _timestamp_pb2.Timestamp
    prev_hash: str
    hash: str
    hash_version: int
    salt: bytes
    commitment: str
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., event_type: _Optional[str] = ..., severity: _Optional[_Union[_common_pb2.Severity, str]] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., text: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., name: _Optional[str] = ..., call_id: _Optional[str] = ..., error: _Optional[str] = ..., model: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., searchable: _Optional[bool] = ..., sequence: _Optional[int] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., prev_hash: _Optional[str] = ..., hash: _Optional[str] = ..., hash_version: _Optional[int] = ..., salt: _Optional[bytes] = ..., commitment: _Optional[str] = ...) -> None: ...

class StartSessionRequest(_message.Message):
    __slots__ = ("session_id", "agent_id", "agent_name", "user_id", "project", "tags", "metadata", "started_at")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    agent_id: str
    agent_name: str
    user_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    started_at: _timestamp_pb2.Timestamp
    def __init__(self, session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StartSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ("session_id", "status", "ended_at", "observed")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    status: SessionStatus
    ended_at: _timestamp_pb2.Timestamp
    observed: bool
    def __init__(self, session_id: _Optional[str] = ..., status: _Optional[_Union[SessionStatus, str]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., observed: _Optional[bool] = ...) -> None: ...

class EndSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class GradeSessionRequest(_message.Message):
    __slots__ = ("session_id", "outcome", "reward", "source", "grader", "comment", "graded_at", "grade_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    GRADER_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    GRADED_AT_FIELD_NUMBER: _ClassVar[int]
    GRADE_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    outcome: _reflection_pb2.Outcome
    reward: float
    source: _grade_pb2.GradeSource
    grader: str
    comment: str
    graded_at: _timestamp_pb2.Timestamp
    grade_id: str
    def __init__(self, session_id: _Optional[str] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ..., reward: _Optional[float] = ..., source: _Optional[_Union[_grade_pb2.GradeSource, str]] = ..., grader: _Optional[str] = ..., comment: _Optional[str] = ..., graded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., grade_id: _Optional[str] = ...) -> None: ...

class GradeSessionResponse(_message.Message):
    __slots__ = ("session", "grade")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    session: Session
    grade: _grade_pb2.Grade
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., grade: _Optional[_Union[_grade_pb2.Grade, _Mapping]] = ...) -> None: ...

class RecordEventsRequest(_message.Message):
    __slots__ = ("events", "wait_indexed", "observed")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    WAIT_INDEXED_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[NewEvent]
    wait_indexed: bool
    observed: bool
    def __init__(self, events: _Optional[_Iterable[_Union[NewEvent, _Mapping]]] = ..., wait_indexed: _Optional[bool] = ..., observed: _Optional[bool] = ...) -> None: ...

class EventReceipt(_message.Message):
    __slots__ = ("id", "sequence", "hash", "duplicate")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    id: str
    sequence: int
    hash: str
    duplicate: bool
    def __init__(self, id: _Optional[str] = ..., sequence: _Optional[int] = ..., hash: _Optional[str] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class RecordEventsResponse(_message.Message):
    __slots__ = ("receipts", "recorded_count", "duplicate_count")
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[EventReceipt]
    recorded_count: int
    duplicate_count: int
    def __init__(self, receipts: _Optional[_Iterable[_Union[EventReceipt, _Mapping]]] = ..., recorded_count: _Optional[int] = ..., duplicate_count: _Optional[int] = ...) -> None: ...

class StreamEventsRequest(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: NewEvent
    def __init__(self, event: _Optional[_Union[NewEvent, _Mapping]] = ...) -> None: ...

class StreamEventsResponse(_message.Message):
    __slots__ = ("recorded_count", "duplicate_count", "acknowledged_count")
    RECORDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    recorded_count: int
    duplicate_count: int
    acknowledged_count: int
    def __init__(self, recorded_count: _Optional[int] = ..., duplicate_count: _Optional[int] = ..., acknowledged_count: _Optional[int] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "project", "status", "tags", "start_time", "end_time", "page_size", "page_token", "include_system", "outcome")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    project: str
    status: SessionStatus
    tags: _containers.RepeatedScalarFieldContainer[str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    include_system: bool
    outcome: _reflection_pb2.Outcome
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., status: _Optional[_Union[SessionStatus, str]] = ..., tags: _Optional[_Iterable[str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_system: _Optional[bool] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token", "total_size")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_page_token: str
    total_size: int
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("session_id", "agent_id", "event_types", "min_severity", "name", "start_time", "end_time", "descending", "page_size", "page_token", "project")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SEVERITY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    agent_id: str
    event_types: _containers.RepeatedScalarFieldContainer[str]
    min_severity: _common_pb2.Severity
    name: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    descending: bool
    page_size: int
    page_token: str
    project: str
    def __init__(self, session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., event_types: _Optional[_Iterable[str]] = ..., min_severity: _Optional[_Union[_common_pb2.Severity, str]] = ..., name: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., descending: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., project: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    next_page_token: str
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("session_id", "agent_id", "event_types", "min_severity", "after_cursor", "project")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SEVERITY_FIELD_NUMBER: _ClassVar[int]
    AFTER_CURSOR_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    agent_id: str
    event_types: _containers.RepeatedScalarFieldContainer[str]
    min_severity: _common_pb2.Severity
    after_cursor: str
    project: str
    def __init__(self, session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., event_types: _Optional[_Iterable[str]] = ..., min_severity: _Optional[_Union[_common_pb2.Severity, str]] = ..., after_cursor: _Optional[str] = ..., project: _Optional[str] = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ("event", "cursor")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    event: Event
    cursor: str
    def __init__(self, event: _Optional[_Union[Event, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class VerifyEventsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class BrokenChain(_message.Message):
    __slots__ = ("session_id", "event_id", "sequence", "reason")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    event_id: str
    sequence: int
    reason: str
    def __init__(self, session_id: _Optional[str] = ..., event_id: _Optional[str] = ..., sequence: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class VerifyEventsResponse(_message.Message):
    __slots__ = ("valid", "sessions_checked", "events_checked", "broken_chains", "broken_count", "head_hash", "events_forgotten")
    VALID_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_CHECKED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_CHECKED_FIELD_NUMBER: _ClassVar[int]
    BROKEN_CHAINS_FIELD_NUMBER: _ClassVar[int]
    BROKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    HEAD_HASH_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    sessions_checked: int
    events_checked: int
    broken_chains: _containers.RepeatedCompositeFieldContainer[BrokenChain]
    broken_count: int
    head_hash: str
    events_forgotten: int
    def __init__(self, valid: _Optional[bool] = ..., sessions_checked: _Optional[int] = ..., events_checked: _Optional[int] = ..., broken_chains: _Optional[_Iterable[_Union[BrokenChain, _Mapping]]] = ..., broken_count: _Optional[int] = ..., head_hash: _Optional[str] = ..., events_forgotten: _Optional[int] = ...) -> None: ...
