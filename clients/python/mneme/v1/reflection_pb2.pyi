import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_SUCCESS: _ClassVar[Outcome]
    OUTCOME_PARTIAL: _ClassVar[Outcome]
    OUTCOME_FAILURE: _ClassVar[Outcome]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_SUCCESS: Outcome
OUTCOME_PARTIAL: Outcome
OUTCOME_FAILURE: Outcome

class Reflection(_message.Message):
    __slots__ = ("id", "session_id", "project", "agent_id", "task_description", "attempt_number", "outcome", "what_worked", "what_did_not_work", "next_strategy", "tags", "related_entity_ids", "applied_reflection_ids", "created_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    WHAT_WORKED_FIELD_NUMBER: _ClassVar[int]
    WHAT_DID_NOT_WORK_FIELD_NUMBER: _ClassVar[int]
    NEXT_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    RELATED_ENTITY_IDS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_REFLECTION_IDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    project: str
    agent_id: str
    task_description: str
    attempt_number: int
    outcome: Outcome
    what_worked: _containers.RepeatedScalarFieldContainer[str]
    what_did_not_work: _containers.RepeatedScalarFieldContainer[str]
    next_strategy: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    related_entity_ids: _containers.RepeatedScalarFieldContainer[str]
    applied_reflection_ids: _containers.RepeatedScalarFieldContainer[str]
    created_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., project: _Optional[str] = ..., agent_id: _Optional[str] = ..., task_description: _Optional[str] = ..., attempt_number: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., what_worked: _Optional[_Iterable[str]] = ..., what_did_not_work: _Optional[_Iterable[str]] = ..., next_strategy: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., related_entity_ids: _Optional[_Iterable[str]] = ..., applied_reflection_ids: _Optional[_Iterable[str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateReflectionRequest(_message.Message):
    __slots__ = ("session_id", "project", "task_description", "attempt_number", "outcome", "what_worked", "what_did_not_work", "next_strategy", "tags", "agent_id", "related_entity_ids", "applied_reflection_ids", "reflection_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TASK_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    WHAT_WORKED_FIELD_NUMBER: _ClassVar[int]
    WHAT_DID_NOT_WORK_FIELD_NUMBER: _ClassVar[int]
    NEXT_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    RELATED_ENTITY_IDS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_REFLECTION_IDS_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    project: str
    task_description: str
    attempt_number: int
    outcome: Outcome
    what_worked: _containers.RepeatedScalarFieldContainer[str]
    what_did_not_work: _containers.RepeatedScalarFieldContainer[str]
    next_strategy: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    agent_id: str
    related_entity_ids: _containers.RepeatedScalarFieldContainer[str]
    applied_reflection_ids: _containers.RepeatedScalarFieldContainer[str]
    reflection_id: str
    def __init__(self, session_id: _Optional[str] = ..., project: _Optional[str] = ..., task_description: _Optional[str] = ..., attempt_number: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., what_worked: _Optional[_Iterable[str]] = ..., what_did_not_work: _Optional[_Iterable[str]] = ..., next_strategy: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., agent_id: _Optional[str] = ..., related_entity_ids: _Optional[_Iterable[str]] = ..., applied_reflection_ids: _Optional[_Iterable[str]] = ..., reflection_id: _Optional[str] = ...) -> None: ...

class CreateReflectionResponse(_message.Message):
    __slots__ = ("reflection", "pruned_count")
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    PRUNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    pruned_count: int
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ..., pruned_count: _Optional[int] = ...) -> None: ...

class GetReflectionRequest(_message.Message):
    __slots__ = ("reflection_id",)
    REFLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    reflection_id: str
    def __init__(self, reflection_id: _Optional[str] = ...) -> None: ...

class GetReflectionResponse(_message.Message):
    __slots__ = ("reflection",)
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ...) -> None: ...

class UpdateReflectionRequest(_message.Message):
    __slots__ = ("reflection", "update_mask")
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateReflectionResponse(_message.Message):
    __slots__ = ("reflection",)
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ...) -> None: ...

class DeleteReflectionRequest(_message.Message):
    __slots__ = ("reflection_id", "etag")
    REFLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    reflection_id: str
    etag: str
    def __init__(self, reflection_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteReflectionResponse(_message.Message):
    __slots__ = ("reflection",)
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ...) -> None: ...

class ReflectionFilter(_message.Message):
    __slots__ = ("session_id", "project", "agent_id", "outcomes", "tags", "user_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    project: str
    agent_id: str
    outcomes: _containers.RepeatedScalarFieldContainer[Outcome]
    tags: _containers.RepeatedScalarFieldContainer[str]
    user_id: str
    def __init__(self, session_id: _Optional[str] = ..., project: _Optional[str] = ..., agent_id: _Optional[str] = ..., outcomes: _Optional[_Iterable[_Union[Outcome, str]]] = ..., tags: _Optional[_Iterable[str]] = ..., user_id: _Optional[str] = ...) -> None: ...

class ListReflectionsRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: ReflectionFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[ReflectionFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReflectionsResponse(_message.Message):
    __slots__ = ("reflections", "next_page_token", "total_size", "text")
    REFLECTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    reflections: _containers.RepeatedCompositeFieldContainer[Reflection]
    next_page_token: str
    total_size: int
    text: str
    def __init__(self, reflections: _Optional[_Iterable[_Union[Reflection, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class SearchReflectionsRequest(_message.Message):
    __slots__ = ("task_description", "filter", "limit", "min_score", "peek")
    TASK_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    task_description: str
    filter: ReflectionFilter
    limit: int
    min_score: float
    peek: bool
    def __init__(self, task_description: _Optional[str] = ..., filter: _Optional[_Union[ReflectionFilter, _Mapping]] = ..., limit: _Optional[int] = ..., min_score: _Optional[float] = ..., peek: _Optional[bool] = ...) -> None: ...

class FoundReflection(_message.Message):
    __slots__ = ("reflection", "score", "similarity")
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    reflection: Reflection
    score: float
    similarity: float
    def __init__(self, reflection: _Optional[_Union[Reflection, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class SearchReflectionsResponse(_message.Message):
    __slots__ = ("results", "text", "searched_count", "words_only")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundReflection]
    text: str
    searched_count: int
    words_only: bool
    def __init__(self, results: _Optional[_Iterable[_Union[FoundReflection, _Mapping]]] = ..., text: _Optional[str] = ..., searched_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...

class SummarizeReflectionsRequest(_message.Message):
    __slots__ = ("project", "session_id", "limit", "user_id")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    project: str
    session_id: str
    limit: int
    user_id: str
    def __init__(self, project: _Optional[str] = ..., session_id: _Optional[str] = ..., limit: _Optional[int] = ..., user_id: _Optional[str] = ...) -> None: ...

class Theme(_message.Message):
    __slots__ = ("text", "count", "reflection_ids", "variants")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_IDS_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    count: int
    reflection_ids: _containers.RepeatedScalarFieldContainer[str]
    variants: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., count: _Optional[int] = ..., reflection_ids: _Optional[_Iterable[str]] = ..., variants: _Optional[_Iterable[str]] = ...) -> None: ...

class ReflectionMetrics(_message.Message):
    __slots__ = ("store_count", "search_count", "hit_rate", "outcome_improvement_rate", "cross_session_reuse")
    STORE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEARCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    HIT_RATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_IMPROVEMENT_RATE_FIELD_NUMBER: _ClassVar[int]
    CROSS_SESSION_REUSE_FIELD_NUMBER: _ClassVar[int]
    store_count: int
    search_count: int
    hit_rate: float
    outcome_improvement_rate: float
    cross_session_reuse: int
    def __init__(self, store_count: _Optional[int] = ..., search_count: _Optional[int] = ..., hit_rate: _Optional[float] = ..., outcome_improvement_rate: _Optional[float] = ..., cross_session_reuse: _Optional[int] = ...) -> None: ...

class SummarizeReflectionsResponse(_message.Message):
    __slots__ = ("total_reflections", "success_rate", "common_failures", "effective_strategies", "recent_lessons", "metrics")
    TOTAL_REFLECTIONS_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    COMMON_FAILURES_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_STRATEGIES_FIELD_NUMBER: _ClassVar[int]
    RECENT_LESSONS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    total_reflections: int
    success_rate: float
    common_failures: _containers.RepeatedCompositeFieldContainer[Theme]
    effective_strategies: _containers.RepeatedCompositeFieldContainer[Theme]
    recent_lessons: _containers.RepeatedCompositeFieldContainer[Reflection]
    metrics: ReflectionMetrics
    def __init__(self, total_reflections: _Optional[int] = ..., success_rate: _Optional[float] = ..., common_failures: _Optional[_Iterable[_Union[Theme, _Mapping]]] = ..., effective_strategies: _Optional[_Iterable[_Union[Theme, _Mapping]]] = ..., recent_lessons: _Optional[_Iterable[_Union[Reflection, _Mapping]]] = ..., metrics: _Optional[_Union[ReflectionMetrics, _Mapping]] = ...) -> None: ...
