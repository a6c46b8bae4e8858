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

class KnowledgeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KNOWLEDGE_TYPE_UNSPECIFIED: _ClassVar[KnowledgeType]
    KNOWLEDGE_TYPE_ERROR: _ClassVar[KnowledgeType]
    KNOWLEDGE_TYPE_SUCCESS: _ClassVar[KnowledgeType]
    KNOWLEDGE_TYPE_PATTERN: _ClassVar[KnowledgeType]
KNOWLEDGE_TYPE_UNSPECIFIED: KnowledgeType
KNOWLEDGE_TYPE_ERROR: KnowledgeType
KNOWLEDGE_TYPE_SUCCESS: KnowledgeType
KNOWLEDGE_TYPE_PATTERN: KnowledgeType

class SuccessRate(_message.Message):
    __slots__ = ("successes", "tries")
    SUCCESSES_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    successes: int
    tries: int
    def __init__(self, successes: _Optional[int] = ..., tries: _Optional[int] = ...) -> None: ...

class KnowledgeEntry(_message.Message):
    __slots__ = ("id", "project", "agent_id", "type", "context", "command", "lesson", "success_rate", "tags", "timestamp", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    LESSON_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    project: str
    agent_id: str
    type: KnowledgeType
    context: str
    command: str
    lesson: str
    success_rate: SuccessRate
    tags: _containers.RepeatedScalarFieldContainer[str]
    timestamp: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., project: _Optional[str] = ..., agent_id: _Optional[str] = ..., type: _Optional[_Union[KnowledgeType, str]] = ..., context: _Optional[str] = ..., command: _Optional[str] = ..., lesson: _Optional[str] = ..., success_rate: _Optional[_Union[SuccessRate, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateKnowledgeRequest(_message.Message):
    __slots__ = ("project", "agent_id", "type", "context", "command", "lesson", "success_rate", "tags", "timestamp", "entry_id")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    LESSON_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    project: str
    agent_id: str
    type: KnowledgeType
    context: str
    command: str
    lesson: str
    success_rate: SuccessRate
    tags: _containers.RepeatedScalarFieldContainer[str]
    timestamp: _timestamp_pb2.Timestamp
    entry_id: str
    def __init__(self, project: _Optional[str] = ..., agent_id: _Optional[str] = ..., type: _Optional[_Union[KnowledgeType, str]] = ..., context: _Optional[str] = ..., command: _Optional[str] = ..., lesson: _Optional[str] = ..., success_rate: _Optional[_Union[SuccessRate, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., entry_id: _Optional[str] = ...) -> None: ...

class CreateKnowledgeResponse(_message.Message):
    __slots__ = ("entry", "duplicate")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    duplicate: bool
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class GetKnowledgeRequest(_message.Message):
    __slots__ = ("entry_id",)
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    entry_id: str
    def __init__(self, entry_id: _Optional[str] = ...) -> None: ...

class GetKnowledgeResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ...) -> None: ...

class KnowledgeFilter(_message.Message):
    __slots__ = ("project", "type", "tags")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    project: str
    type: KnowledgeType
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, project: _Optional[str] = ..., type: _Optional[_Union[KnowledgeType, str]] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class ListKnowledgeRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: KnowledgeFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[KnowledgeFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListKnowledgeResponse(_message.Message):
    __slots__ = ("entries", "next_page_token", "total_size")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[KnowledgeEntry]
    next_page_token: str
    total_size: int
    def __init__(self, entries: _Optional[_Iterable[_Union[KnowledgeEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class UpdateKnowledgeRequest(_message.Message):
    __slots__ = ("entry", "update_mask")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateKnowledgeResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ...) -> None: ...

class DeleteKnowledgeRequest(_message.Message):
    __slots__ = ("entry_id", "etag")
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    entry_id: str
    etag: str
    def __init__(self, entry_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteKnowledgeResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ...) -> None: ...

class SearchKnowledgeRequest(_message.Message):
    __slots__ = ("query", "filter", "limit", "token_budget")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    query: str
    filter: KnowledgeFilter
    limit: int
    token_budget: int
    def __init__(self, query: _Optional[str] = ..., filter: _Optional[_Union[KnowledgeFilter, _Mapping]] = ..., limit: _Optional[int] = ..., token_budget: _Optional[int] = ...) -> None: ...

class FoundKnowledge(_message.Message):
    __slots__ = ("entry", "score", "similarity", "success_lower_bound")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_LOWER_BOUND_FIELD_NUMBER: _ClassVar[int]
    entry: KnowledgeEntry
    score: float
    similarity: float
    success_lower_bound: float
    def __init__(self, entry: _Optional[_Union[KnowledgeEntry, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ..., success_lower_bound: _Optional[float] = ...) -> None: ...

class SearchKnowledgeResponse(_message.Message):
    __slots__ = ("entries", "markdown", "token_count", "omitted_count", "words_only")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MARKDOWN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    OMITTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[FoundKnowledge]
    markdown: str
    token_count: int
    omitted_count: int
    words_only: bool
    def __init__(self, entries: _Optional[_Iterable[_Union[FoundKnowledge, _Mapping]]] = ..., markdown: _Optional[str] = ..., token_count: _Optional[int] = ..., omitted_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...
