import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import common_pb2 as _common_pb2
from mneme.v1 import event_service_pb2 as _event_service_pb2
from mneme.v1 import learn_service_pb2 as _learn_service_pb2
from mneme.v1 import options_pb2 as _options_pb2
from mneme.v1 import reflection_pb2 as _reflection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ContextFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_FORMAT_UNSPECIFIED: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_MARKDOWN: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_XML: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_MESSAGES: _ClassVar[ContextFormat]

class ContextOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_OUTCOME_UNSPECIFIED: _ClassVar[ContextOutcome]
    CONTEXT_OUTCOME_FOUND: _ClassVar[ContextOutcome]
    CONTEXT_OUTCOME_NOTHING_STORED: _ClassVar[ContextOutcome]
    CONTEXT_OUTCOME_NOTHING_SURE: _ClassVar[ContextOutcome]
    CONTEXT_OUTCOME_NOTHING_FITS: _ClassVar[ContextOutcome]
    CONTEXT_OUTCOME_ONLY_PINNED: _ClassVar[ContextOutcome]

class ProfileReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROFILE_REASON_UNSPECIFIED: _ClassVar[ProfileReason]
    PROFILE_REASON_PINNED: _ClassVar[ProfileReason]
    PROFILE_REASON_STABLE: _ClassVar[ProfileReason]
    PROFILE_REASON_RECENT: _ClassVar[ProfileReason]

class HandoverList(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HANDOVER_LIST_UNSPECIFIED: _ClassVar[HandoverList]
    HANDOVER_LIST_PROGRESS: _ClassVar[HandoverList]
    HANDOVER_LIST_COMPLETED_TODOS: _ClassVar[HandoverList]
    HANDOVER_LIST_OPEN_TODOS: _ClassVar[HandoverList]
    HANDOVER_LIST_DECISIONS: _ClassVar[HandoverList]
    HANDOVER_LIST_FILES: _ClassVar[HandoverList]
    HANDOVER_LIST_UNRESOLVED_ERRORS: _ClassVar[HandoverList]
CONTEXT_FORMAT_UNSPECIFIED: ContextFormat
CONTEXT_FORMAT_MARKDOWN: ContextFormat
CONTEXT_FORMAT_XML: ContextFormat
CONTEXT_FORMAT_MESSAGES: ContextFormat
CONTEXT_OUTCOME_UNSPECIFIED: ContextOutcome
CONTEXT_OUTCOME_FOUND: ContextOutcome
CONTEXT_OUTCOME_NOTHING_STORED: ContextOutcome
CONTEXT_OUTCOME_NOTHING_SURE: ContextOutcome
CONTEXT_OUTCOME_NOTHING_FITS: ContextOutcome
CONTEXT_OUTCOME_ONLY_PINNED: ContextOutcome
PROFILE_REASON_UNSPECIFIED: ProfileReason
PROFILE_REASON_PINNED: ProfileReason
PROFILE_REASON_STABLE: ProfileReason
PROFILE_REASON_RECENT: ProfileReason
HANDOVER_LIST_UNSPECIFIED: HandoverList
HANDOVER_LIST_PROGRESS: HandoverList
HANDOVER_LIST_COMPLETED_TODOS: HandoverList
HANDOVER_LIST_OPEN_TODOS: HandoverList
HANDOVER_LIST_DECISIONS: HandoverList
HANDOVER_LIST_FILES: HandoverList
HANDOVER_LIST_UNRESOLVED_ERRORS: HandoverList

class SessionSummary(_message.Message):
    __slots__ = ("session_id", "summary", "topics", "tool_sequence", "error_summary", "outcome", "updated_at")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    TOOL_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    summary: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    tool_sequence: _containers.RepeatedScalarFieldContainer[str]
    error_summary: str
    outcome: _reflection_pb2.Outcome
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, session_id: _Optional[str] = ..., summary: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., tool_sequence: _Optional[_Iterable[str]] = ..., error_summary: _Optional[str] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class KeyEvent(_message.Message):
    __slots__ = ("event_id", "event_type", "summary", "timestamp")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    event_type: str
    summary: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, event_id: _Optional[str] = ..., event_type: _Optional[str] = ..., summary: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetContextRequest(_message.Message):
    __slots__ = ("topic", "user_id", "agent_id", "project", "start_time", "end_time", "limit", "without_experience", "peek", "only_own", "token_budget", "format", "min_confidence", "reference_time", "time_zone")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_EXPERIENCE_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    ONLY_OWN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    user_id: str
    agent_id: str
    project: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    limit: int
    without_experience: bool
    peek: bool
    only_own: bool
    token_budget: int
    format: ContextFormat
    min_confidence: float
    reference_time: _timestamp_pb2.Timestamp
    time_zone: str
    def __init__(self, topic: _Optional[str] = ..., user_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limit: _Optional[int] = ..., without_experience: _Optional[bool] = ..., peek: _Optional[bool] = ..., only_own: _Optional[bool] = ..., token_budget: _Optional[int] = ..., format: _Optional[_Union[ContextFormat, str]] = ..., min_confidence: _Optional[float] = ..., reference_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ...) -> None: ...

class ContextEpisode(_message.Message):
    __slots__ = ("episode_id", "task", "success", "reward", "critique", "occurred_at", "score", "similarity")
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    episode_id: str
    task: str
    success: bool
    reward: float
    critique: str
    occurred_at: _timestamp_pb2.Timestamp
    score: float
    similarity: float
    def __init__(self, episode_id: _Optional[str] = ..., task: _Optional[str] = ..., success: _Optional[bool] = ..., reward: _Optional[float] = ..., critique: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class ContextSkill(_message.Message):
    __slots__ = ("skill_id", "name", "description", "use_count", "success_count", "success_low", "success_high", "score", "similarity")
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    USE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_LOW_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_HIGH_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    name: str
    description: str
    use_count: int
    success_count: int
    success_low: float
    success_high: float
    score: float
    similarity: float
    def __init__(self, skill_id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., use_count: _Optional[int] = ..., success_count: _Optional[int] = ..., success_low: _Optional[float] = ..., success_high: _Optional[float] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class ContextSession(_message.Message):
    __slots__ = ("session_id", "summary", "relevance_score", "similarity", "started_at", "ended_at", "key_events", "agent_id", "outcome")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_EVENTS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    summary: str
    relevance_score: float
    similarity: float
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    key_events: _containers.RepeatedCompositeFieldContainer[KeyEvent]
    agent_id: str
    outcome: _reflection_pb2.Outcome
    def __init__(self, session_id: _Optional[str] = ..., summary: _Optional[str] = ..., relevance_score: _Optional[float] = ..., similarity: _Optional[float] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key_events: _Optional[_Iterable[_Union[KeyEvent, _Mapping]]] = ..., agent_id: _Optional[str] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ...) -> None: ...

class GetContextResponse(_message.Message):
    __slots__ = ("sessions", "lessons", "reflections", "total_sessions", "text", "words_only", "episodes", "skills", "outcome", "items", "token_count", "left_out_count", "messages")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    LESSONS_FIELD_NUMBER: _ClassVar[int]
    REFLECTIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[ContextSession]
    lessons: _containers.RepeatedCompositeFieldContainer[_learn_service_pb2.FoundLesson]
    reflections: _containers.RepeatedCompositeFieldContainer[_reflection_pb2.FoundReflection]
    total_sessions: int
    text: str
    words_only: bool
    episodes: _containers.RepeatedCompositeFieldContainer[ContextEpisode]
    skills: _containers.RepeatedCompositeFieldContainer[ContextSkill]
    outcome: ContextOutcome
    items: _containers.RepeatedCompositeFieldContainer[ContextItem]
    token_count: int
    left_out_count: int
    messages: _containers.RepeatedCompositeFieldContainer[ContextMessage]
    def __init__(self, sessions: _Optional[_Iterable[_Union[ContextSession, _Mapping]]] = ..., lessons: _Optional[_Iterable[_Union[_learn_service_pb2.FoundLesson, _Mapping]]] = ..., reflections: _Optional[_Iterable[_Union[_reflection_pb2.FoundReflection, _Mapping]]] = ..., total_sessions: _Optional[int] = ..., text: _Optional[str] = ..., words_only: _Optional[bool] = ..., episodes: _Optional[_Iterable[_Union[ContextEpisode, _Mapping]]] = ..., skills: _Optional[_Iterable[_Union[ContextSkill, _Mapping]]] = ..., outcome: _Optional[_Union[ContextOutcome, str]] = ..., items: _Optional[_Iterable[_Union[ContextItem, _Mapping]]] = ..., token_count: _Optional[int] = ..., left_out_count: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[ContextMessage, _Mapping]]] = ...) -> None: ...

class ContextMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class ContextAttempts(_message.Message):
    __slots__ = ("task", "tried_count", "succeeded_count", "failed_count", "differed", "session_ids")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TRIED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DIFFERED_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    task: str
    tried_count: int
    succeeded_count: int
    failed_count: int
    differed: str
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[str] = ..., tried_count: _Optional[int] = ..., succeeded_count: _Optional[int] = ..., failed_count: _Optional[int] = ..., differed: _Optional[str] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ContextItem(_message.Message):
    __slots__ = ("kind", "source_id", "text", "timestamp", "worth", "similarity", "session_id", "role", "token_count", "attempts", "excerpt", "pinned")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    WORTH_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    EXCERPT_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    kind: str
    source_id: str
    text: str
    timestamp: _timestamp_pb2.Timestamp
    worth: float
    similarity: float
    session_id: str
    role: str
    token_count: int
    attempts: ContextAttempts
    excerpt: bool
    pinned: bool
    def __init__(self, kind: _Optional[str] = ..., source_id: _Optional[str] = ..., text: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., worth: _Optional[float] = ..., similarity: _Optional[float] = ..., session_id: _Optional[str] = ..., role: _Optional[str] = ..., token_count: _Optional[int] = ..., attempts: _Optional[_Union[ContextAttempts, _Mapping]] = ..., excerpt: _Optional[bool] = ..., pinned: _Optional[bool] = ...) -> None: ...

class GetProfileRequest(_message.Message):
    __slots__ = ("user_id", "token_budget", "format", "agent_id", "project")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    token_budget: int
    format: ContextFormat
    agent_id: str
    project: str
    def __init__(self, user_id: _Optional[str] = ..., token_budget: _Optional[int] = ..., format: _Optional[_Union[ContextFormat, str]] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ...) -> None: ...

class ProfileItem(_message.Message):
    __slots__ = ("memory_id", "text", "reason", "since", "last_said", "confirmed_count", "importance", "agent_id", "project", "session_id", "token_count")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SAID_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_COUNT_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    text: str
    reason: ProfileReason
    since: _timestamp_pb2.Timestamp
    last_said: _timestamp_pb2.Timestamp
    confirmed_count: int
    importance: _common_pb2.Importance
    agent_id: str
    project: str
    session_id: str
    token_count: int
    def __init__(self, memory_id: _Optional[str] = ..., text: _Optional[str] = ..., reason: _Optional[_Union[ProfileReason, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_said: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confirmed_count: _Optional[int] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., session_id: _Optional[str] = ..., token_count: _Optional[int] = ...) -> None: ...

class GetProfileResponse(_message.Message):
    __slots__ = ("items", "text", "token_count", "left_out_count", "messages")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ProfileItem]
    text: str
    token_count: int
    left_out_count: int
    messages: _containers.RepeatedCompositeFieldContainer[ContextMessage]
    def __init__(self, items: _Optional[_Iterable[_Union[ProfileItem, _Mapping]]] = ..., text: _Optional[str] = ..., token_count: _Optional[int] = ..., left_out_count: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[ContextMessage, _Mapping]]] = ...) -> None: ...

class Todo(_message.Message):
    __slots__ = ("content", "priority")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    content: str
    priority: int
    def __init__(self, content: _Optional[str] = ..., priority: _Optional[int] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("decision", "rationale")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_FIELD_NUMBER: _ClassVar[int]
    decision: str
    rationale: str
    def __init__(self, decision: _Optional[str] = ..., rationale: _Optional[str] = ...) -> None: ...

class LockedContext(_message.Message):
    __slots__ = ("label", "version")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    label: str
    version: str
    def __init__(self, label: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class SleepRequest(_message.Message):
    __slots__ = ("session_id", "project", "progress", "completed_todos", "open_todos", "decisions", "locked_contexts", "files", "agent_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_TODOS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TODOS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    LOCKED_CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    project: str
    progress: _containers.RepeatedScalarFieldContainer[str]
    completed_todos: _containers.RepeatedScalarFieldContainer[str]
    open_todos: _containers.RepeatedCompositeFieldContainer[Todo]
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    locked_contexts: _containers.RepeatedCompositeFieldContainer[LockedContext]
    files: _containers.RepeatedScalarFieldContainer[str]
    agent_id: str
    def __init__(self, session_id: _Optional[str] = ..., project: _Optional[str] = ..., progress: _Optional[_Iterable[str]] = ..., completed_todos: _Optional[_Iterable[str]] = ..., open_todos: _Optional[_Iterable[_Union[Todo, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., locked_contexts: _Optional[_Iterable[_Union[LockedContext, _Mapping]]] = ..., files: _Optional[_Iterable[str]] = ..., agent_id: _Optional[str] = ...) -> None: ...

class CollectedEntry(_message.Message):
    __slots__ = ("kind", "index", "event_ids")
    KIND_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    kind: HandoverList
    index: int
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kind: _Optional[_Union[HandoverList, str]] = ..., index: _Optional[int] = ..., event_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Handover(_message.Message):
    __slots__ = ("session_id", "project", "progress", "completed_todos", "open_todos", "decisions", "locked_contexts", "files", "tools", "duration_seconds", "summary", "created_at", "agent_id", "unresolved_errors", "collected")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_TODOS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TODOS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    LOCKED_CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    DURATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    UNRESOLVED_ERRORS_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    project: str
    progress: _containers.RepeatedScalarFieldContainer[str]
    completed_todos: _containers.RepeatedScalarFieldContainer[str]
    open_todos: _containers.RepeatedCompositeFieldContainer[Todo]
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    locked_contexts: _containers.RepeatedCompositeFieldContainer[LockedContext]
    files: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    duration_seconds: int
    summary: str
    created_at: _timestamp_pb2.Timestamp
    agent_id: str
    unresolved_errors: _containers.RepeatedScalarFieldContainer[str]
    collected: _containers.RepeatedCompositeFieldContainer[CollectedEntry]
    def __init__(self, session_id: _Optional[str] = ..., project: _Optional[str] = ..., progress: _Optional[_Iterable[str]] = ..., completed_todos: _Optional[_Iterable[str]] = ..., open_todos: _Optional[_Iterable[_Union[Todo, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., locked_contexts: _Optional[_Iterable[_Union[LockedContext, _Mapping]]] = ..., files: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., duration_seconds: _Optional[int] = ..., summary: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_id: _Optional[str] = ..., unresolved_errors: _Optional[_Iterable[str]] = ..., collected: _Optional[_Iterable[_Union[CollectedEntry, _Mapping]]] = ...) -> None: ...

class SleepResponse(_message.Message):
    __slots__ = ("handover", "stored")
    HANDOVER_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    handover: Handover
    stored: bool
    def __init__(self, handover: _Optional[_Union[Handover, _Mapping]] = ..., stored: _Optional[bool] = ...) -> None: ...

class WakeUpRequest(_message.Message):
    __slots__ = ("project", "limit", "agent_id", "min_similarity", "without_experience", "user_id")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    MIN_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_EXPERIENCE_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    project: str
    limit: int
    agent_id: str
    min_similarity: float
    without_experience: bool
    user_id: str
    def __init__(self, project: _Optional[str] = ..., limit: _Optional[int] = ..., agent_id: _Optional[str] = ..., min_similarity: _Optional[float] = ..., without_experience: _Optional[bool] = ..., user_id: _Optional[str] = ...) -> None: ...

class RelatedSession(_message.Message):
    __slots__ = ("session_id", "summary", "created_at", "similarity", "recency", "importance", "score", "files", "tools", "contexts")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    summary: str
    created_at: _timestamp_pb2.Timestamp
    similarity: float
    recency: float
    importance: float
    score: float
    files: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    contexts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_id: _Optional[str] = ..., summary: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., similarity: _Optional[float] = ..., recency: _Optional[float] = ..., importance: _Optional[float] = ..., score: _Optional[float] = ..., files: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., contexts: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkPattern(_message.Message):
    __slots__ = ("type", "description", "session_ids", "event_ids")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    type: str
    description: str
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[str] = ..., description: _Optional[str] = ..., session_ids: _Optional[_Iterable[str]] = ..., event_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Suggestion(_message.Message):
    __slots__ = ("type", "description", "session_ids", "event_ids", "lesson_ids", "reflection_ids", "episode_ids", "skill_ids")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    LESSON_IDS_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_IDS_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    SKILL_IDS_FIELD_NUMBER: _ClassVar[int]
    type: str
    description: str
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    lesson_ids: _containers.RepeatedScalarFieldContainer[str]
    reflection_ids: _containers.RepeatedScalarFieldContainer[str]
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    skill_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[str] = ..., description: _Optional[str] = ..., session_ids: _Optional[_Iterable[str]] = ..., event_ids: _Optional[_Iterable[str]] = ..., lesson_ids: _Optional[_Iterable[str]] = ..., reflection_ids: _Optional[_Iterable[str]] = ..., episode_ids: _Optional[_Iterable[str]] = ..., skill_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class WakeUpResponse(_message.Message):
    __slots__ = ("last_handover", "related", "patterns", "suggestions", "text", "sessions_considered", "last_summary", "not_compared", "profile")
    LAST_HANDOVER_FIELD_NUMBER: _ClassVar[int]
    RELATED_FIELD_NUMBER: _ClassVar[int]
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_CONSIDERED_FIELD_NUMBER: _ClassVar[int]
    LAST_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NOT_COMPARED_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    last_handover: Handover
    related: _containers.RepeatedCompositeFieldContainer[RelatedSession]
    patterns: _containers.RepeatedCompositeFieldContainer[WorkPattern]
    suggestions: _containers.RepeatedCompositeFieldContainer[Suggestion]
    text: str
    sessions_considered: int
    last_summary: SessionSummary
    not_compared: bool
    profile: _containers.RepeatedCompositeFieldContainer[ProfileItem]
    def __init__(self, last_handover: _Optional[_Union[Handover, _Mapping]] = ..., related: _Optional[_Iterable[_Union[RelatedSession, _Mapping]]] = ..., patterns: _Optional[_Iterable[_Union[WorkPattern, _Mapping]]] = ..., suggestions: _Optional[_Iterable[_Union[Suggestion, _Mapping]]] = ..., text: _Optional[str] = ..., sessions_considered: _Optional[int] = ..., last_summary: _Optional[_Union[SessionSummary, _Mapping]] = ..., not_compared: _Optional[bool] = ..., profile: _Optional[_Iterable[_Union[ProfileItem, _Mapping]]] = ...) -> None: ...

class SearchSessionsRequest(_message.Message):
    __slots__ = ("query", "project", "agent_id", "user_id", "start_time", "end_time", "limit", "min_score", "reference_time", "time_zone")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    query: str
    project: str
    agent_id: str
    user_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    limit: int
    min_score: float
    reference_time: _timestamp_pb2.Timestamp
    time_zone: str
    def __init__(self, query: _Optional[str] = ..., project: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limit: _Optional[int] = ..., min_score: _Optional[float] = ..., reference_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ...) -> None: ...

class FoundSession(_message.Message):
    __slots__ = ("session", "summary", "score", "similarity")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    session: _event_service_pb2.Session
    summary: SessionSummary
    score: float
    similarity: float
    def __init__(self, session: _Optional[_Union[_event_service_pb2.Session, _Mapping]] = ..., summary: _Optional[_Union[SessionSummary, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class SearchSessionsResponse(_message.Message):
    __slots__ = ("results", "searched_count", "words_only")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundSession]
    searched_count: int
    words_only: bool
    def __init__(self, results: _Optional[_Iterable[_Union[FoundSession, _Mapping]]] = ..., searched_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...

class GetTimelineRequest(_message.Message):
    __slots__ = ("project", "agent_id", "start_time", "end_time", "links", "page_size", "page_token", "user_id")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    project: str
    agent_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    links: int
    page_size: int
    page_token: str
    user_id: str
    def __init__(self, project: _Optional[str] = ..., agent_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., links: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., user_id: _Optional[str] = ...) -> None: ...

class SessionLink(_message.Message):
    __slots__ = ("session_id", "similarity")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    similarity: float
    def __init__(self, session_id: _Optional[str] = ..., similarity: _Optional[float] = ...) -> None: ...

class TimelineEntry(_message.Message):
    __slots__ = ("session", "summary", "related")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RELATED_FIELD_NUMBER: _ClassVar[int]
    session: _event_service_pb2.Session
    summary: SessionSummary
    related: _containers.RepeatedCompositeFieldContainer[SessionLink]
    def __init__(self, session: _Optional[_Union[_event_service_pb2.Session, _Mapping]] = ..., summary: _Optional[_Union[SessionSummary, _Mapping]] = ..., related: _Optional[_Iterable[_Union[SessionLink, _Mapping]]] = ...) -> None: ...

class GetTimelineResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[TimelineEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[TimelineEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
