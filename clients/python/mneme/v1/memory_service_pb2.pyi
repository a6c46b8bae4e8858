import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import common_pb2 as _common_pb2
from mneme.v1 import memory_stats_pb2 as _memory_stats_pb2
from mneme.v1 import options_pb2 as _options_pb2
from mneme.v1 import pattern_pb2 as _pattern_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetadataComparison(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METADATA_COMPARISON_UNSPECIFIED: _ClassVar[MetadataComparison]
    METADATA_COMPARISON_EQUAL: _ClassVar[MetadataComparison]
    METADATA_COMPARISON_LESS: _ClassVar[MetadataComparison]
    METADATA_COMPARISON_AT_MOST: _ClassVar[MetadataComparison]
    METADATA_COMPARISON_MORE: _ClassVar[MetadataComparison]
    METADATA_COMPARISON_AT_LEAST: _ClassVar[MetadataComparison]

class VectorIndexKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VECTOR_INDEX_KIND_UNSPECIFIED: _ClassVar[VectorIndexKind]
    VECTOR_INDEX_KIND_EXACT: _ClassVar[VectorIndexKind]
    VECTOR_INDEX_KIND_HNSW: _ClassVar[VectorIndexKind]
METADATA_COMPARISON_UNSPECIFIED: MetadataComparison
METADATA_COMPARISON_EQUAL: MetadataComparison
METADATA_COMPARISON_LESS: MetadataComparison
METADATA_COMPARISON_AT_MOST: MetadataComparison
METADATA_COMPARISON_MORE: MetadataComparison
METADATA_COMPARISON_AT_LEAST: MetadataComparison
VECTOR_INDEX_KIND_UNSPECIFIED: VectorIndexKind
VECTOR_INDEX_KIND_EXACT: VectorIndexKind
VECTOR_INDEX_KIND_HNSW: VectorIndexKind

class Memory(_message.Message):
    __slots__ = ("id", "text", "tags", "metadata", "user_id", "agent_id", "project", "importance", "since", "supersedes", "superseded_by", "until", "created_at", "updated_at", "etag", "pinned", "confirmed_count", "last_said")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_SAID_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    user_id: str
    agent_id: str
    project: str
    importance: _common_pb2.Importance
    since: _timestamp_pb2.Timestamp
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    superseded_by: str
    until: _timestamp_pb2.Timestamp
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    etag: str
    pinned: bool
    confirmed_count: int
    last_said: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., user_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., supersedes: _Optional[_Iterable[str]] = ..., superseded_by: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., pinned: _Optional[bool] = ..., confirmed_count: _Optional[int] = ..., last_said: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NewMemory(_message.Message):
    __slots__ = ("text", "user_id", "agent_id", "project", "tags", "metadata", "importance", "since", "supersedes", "id", "keep_copy", "pinned")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_COPY_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    text: str
    user_id: str
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: _common_pb2.Importance
    since: _timestamp_pb2.Timestamp
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    id: str
    keep_copy: bool
    pinned: bool
    def __init__(self, text: _Optional[str] = ..., user_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., supersedes: _Optional[_Iterable[str]] = ..., id: _Optional[str] = ..., keep_copy: _Optional[bool] = ..., pinned: _Optional[bool] = ...) -> None: ...

class CreateMemoryRequest(_message.Message):
    __slots__ = ("text", "user_id", "agent_id", "project", "tags", "metadata", "importance", "since", "supersedes", "memory_id", "keep_copy", "similar_limit", "wait_indexed", "pinned")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_COPY_FIELD_NUMBER: _ClassVar[int]
    SIMILAR_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WAIT_INDEXED_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    text: str
    user_id: str
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: _common_pb2.Importance
    since: _timestamp_pb2.Timestamp
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    memory_id: str
    keep_copy: bool
    similar_limit: int
    wait_indexed: bool
    pinned: bool
    def __init__(self, text: _Optional[str] = ..., user_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., supersedes: _Optional[_Iterable[str]] = ..., memory_id: _Optional[str] = ..., keep_copy: _Optional[bool] = ..., similar_limit: _Optional[int] = ..., wait_indexed: _Optional[bool] = ..., pinned: _Optional[bool] = ...) -> None: ...

class FoundMemory(_message.Message):
    __slots__ = ("memory", "similarity", "causal_uplift", "score", "passage")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_UPLIFT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PASSAGE_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    similarity: float
    causal_uplift: float
    score: float
    passage: _common_pb2.Passage
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., similarity: _Optional[float] = ..., causal_uplift: _Optional[float] = ..., score: _Optional[float] = ..., passage: _Optional[_Union[_common_pb2.Passage, _Mapping]] = ...) -> None: ...

class InsertionFigures(_message.Message):
    __slots__ = ("cache_hits", "cache_misses", "queued_count", "embedding_ms", "writing_ms", "vectors_per_second", "embedding_dimension")
    CACHE_HITS_FIELD_NUMBER: _ClassVar[int]
    CACHE_MISSES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MS_FIELD_NUMBER: _ClassVar[int]
    WRITING_MS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIMENSION_FIELD_NUMBER: _ClassVar[int]
    cache_hits: int
    cache_misses: int
    queued_count: int
    embedding_ms: float
    writing_ms: float
    vectors_per_second: float
    embedding_dimension: int
    def __init__(self, cache_hits: _Optional[int] = ..., cache_misses: _Optional[int] = ..., queued_count: _Optional[int] = ..., embedding_ms: _Optional[float] = ..., writing_ms: _Optional[float] = ..., vectors_per_second: _Optional[float] = ..., embedding_dimension: _Optional[int] = ...) -> None: ...

class CreateMemoryResponse(_message.Message):
    __slots__ = ("memory", "already_known", "differing", "similar", "similar_unknown", "superseded", "figures")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    ALREADY_KNOWN_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_FIELD_NUMBER: _ClassVar[int]
    SIMILAR_FIELD_NUMBER: _ClassVar[int]
    SIMILAR_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    already_known: bool
    differing: _containers.RepeatedScalarFieldContainer[str]
    similar: _containers.RepeatedCompositeFieldContainer[FoundMemory]
    similar_unknown: bool
    superseded: _containers.RepeatedCompositeFieldContainer[Memory]
    figures: InsertionFigures
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., already_known: _Optional[bool] = ..., differing: _Optional[_Iterable[str]] = ..., similar: _Optional[_Iterable[_Union[FoundMemory, _Mapping]]] = ..., similar_unknown: _Optional[bool] = ..., superseded: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., figures: _Optional[_Union[InsertionFigures, _Mapping]] = ...) -> None: ...

class CreateMemoriesRequest(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: NewMemory
    def __init__(self, memory: _Optional[_Union[NewMemory, _Mapping]] = ...) -> None: ...

class MemoryReceipt(_message.Message):
    __slots__ = ("memory_id", "already_known")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_KNOWN_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    already_known: bool
    def __init__(self, memory_id: _Optional[str] = ..., already_known: _Optional[bool] = ...) -> None: ...

class CreateMemoriesResponse(_message.Message):
    __slots__ = ("inserted_count", "known_count", "acknowledged_count", "receipts", "figures")
    INSERTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    inserted_count: int
    known_count: int
    acknowledged_count: int
    receipts: _containers.RepeatedCompositeFieldContainer[MemoryReceipt]
    figures: InsertionFigures
    def __init__(self, inserted_count: _Optional[int] = ..., known_count: _Optional[int] = ..., acknowledged_count: _Optional[int] = ..., receipts: _Optional[_Iterable[_Union[MemoryReceipt, _Mapping]]] = ..., figures: _Optional[_Union[InsertionFigures, _Mapping]] = ...) -> None: ...

class GetMemoryRequest(_message.Message):
    __slots__ = ("memory_id",)
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    def __init__(self, memory_id: _Optional[str] = ...) -> None: ...

class GetMemoryResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ...) -> None: ...

class UpdateMemoryRequest(_message.Message):
    __slots__ = ("memory", "update_mask")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateMemoryResponse(_message.Message):
    __slots__ = ("memory", "already_known", "known_memory_id")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    ALREADY_KNOWN_FIELD_NUMBER: _ClassVar[int]
    KNOWN_MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    already_known: bool
    known_memory_id: str
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., already_known: _Optional[bool] = ..., known_memory_id: _Optional[str] = ...) -> None: ...

class MetadataCondition(_message.Message):
    __slots__ = ("key", "comparison", "text", "number", "truth")
    KEY_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    key: str
    comparison: MetadataComparison
    text: str
    number: float
    truth: bool
    def __init__(self, key: _Optional[str] = ..., comparison: _Optional[_Union[MetadataComparison, str]] = ..., text: _Optional[str] = ..., number: _Optional[float] = ..., truth: _Optional[bool] = ...) -> None: ...

class MemoryFilter(_message.Message):
    __slots__ = ("user_id", "agent_id", "project", "tags", "any_tags", "metadata", "where", "start_time", "end_time", "min_age_days")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ANY_TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MIN_AGE_DAYS_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    any_tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    where: _containers.RepeatedCompositeFieldContainer[MetadataCondition]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    min_age_days: float
    def __init__(self, user_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., any_tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., where: _Optional[_Iterable[_Union[MetadataCondition, _Mapping]]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., min_age_days: _Optional[float] = ...) -> None: ...

class ListMemoriesRequest(_message.Message):
    __slots__ = ("filter", "include_superseded", "page_size", "page_token", "only_pinned")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ONLY_PINNED_FIELD_NUMBER: _ClassVar[int]
    filter: MemoryFilter
    include_superseded: bool
    page_size: int
    page_token: str
    only_pinned: bool
    def __init__(self, filter: _Optional[_Union[MemoryFilter, _Mapping]] = ..., include_superseded: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., only_pinned: _Optional[bool] = ...) -> None: ...

class ListMemoriesResponse(_message.Message):
    __slots__ = ("memories", "next_page_token", "total_size")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[Memory]
    next_page_token: str
    total_size: int
    def __init__(self, memories: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class SearchMemoriesRequest(_message.Message):
    __slots__ = ("query", "filter", "limit", "min_similarity", "include_superseded", "rerank", "only_own")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    ONLY_OWN_FIELD_NUMBER: _ClassVar[int]
    query: str
    filter: MemoryFilter
    limit: int
    min_similarity: float
    include_superseded: bool
    rerank: bool
    only_own: bool
    def __init__(self, query: _Optional[str] = ..., filter: _Optional[_Union[MemoryFilter, _Mapping]] = ..., limit: _Optional[int] = ..., min_similarity: _Optional[float] = ..., include_superseded: _Optional[bool] = ..., rerank: _Optional[bool] = ..., only_own: _Optional[bool] = ...) -> None: ...

class SearchMemoriesResponse(_message.Message):
    __slots__ = ("results", "total_matches", "matches_capped", "searched_count", "pending_count", "index_kind", "embedding_ms", "search_ms", "partial", "rerank_ms")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MATCHES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_CAPPED_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    INDEX_KIND_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MS_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    RERANK_MS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundMemory]
    total_matches: int
    matches_capped: bool
    searched_count: int
    pending_count: int
    index_kind: VectorIndexKind
    embedding_ms: float
    search_ms: float
    partial: bool
    rerank_ms: float
    def __init__(self, results: _Optional[_Iterable[_Union[FoundMemory, _Mapping]]] = ..., total_matches: _Optional[int] = ..., matches_capped: _Optional[bool] = ..., searched_count: _Optional[int] = ..., pending_count: _Optional[int] = ..., index_kind: _Optional[_Union[VectorIndexKind, str]] = ..., embedding_ms: _Optional[float] = ..., search_ms: _Optional[float] = ..., partial: _Optional[bool] = ..., rerank_ms: _Optional[float] = ...) -> None: ...

class DeleteMemoriesRequest(_message.Message):
    __slots__ = ("memory_ids", "filter", "dry_run", "cascade")
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    filter: MemoryFilter
    dry_run: bool
    cascade: bool
    def __init__(self, memory_ids: _Optional[_Iterable[str]] = ..., filter: _Optional[_Union[MemoryFilter, _Mapping]] = ..., dry_run: _Optional[bool] = ..., cascade: _Optional[bool] = ...) -> None: ...

class DeleteMemoriesResponse(_message.Message):
    __slots__ = ("deleted_count", "vector_count", "memory_ids", "restored_ids", "took_ms", "dry_run", "episode_count", "episode_ids", "skill_count", "skill_ids", "causal_edge_count", "causal_edge_ids")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    RESTORED_IDS_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    EPISODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    SKILL_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKILL_IDS_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_EDGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    vector_count: int
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    restored_ids: _containers.RepeatedScalarFieldContainer[str]
    took_ms: float
    dry_run: bool
    episode_count: int
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    skill_count: int
    skill_ids: _containers.RepeatedScalarFieldContainer[str]
    causal_edge_count: int
    causal_edge_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, deleted_count: _Optional[int] = ..., vector_count: _Optional[int] = ..., memory_ids: _Optional[_Iterable[str]] = ..., restored_ids: _Optional[_Iterable[str]] = ..., took_ms: _Optional[float] = ..., dry_run: _Optional[bool] = ..., episode_count: _Optional[int] = ..., episode_ids: _Optional[_Iterable[str]] = ..., skill_count: _Optional[int] = ..., skill_ids: _Optional[_Iterable[str]] = ..., causal_edge_count: _Optional[int] = ..., causal_edge_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class MatchedMemory(_message.Message):
    __slots__ = ("memory", "matches", "similarity")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    matches: _containers.RepeatedCompositeFieldContainer[_pattern_pb2.PatternMatch]
    similarity: float
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., matches: _Optional[_Iterable[_Union[_pattern_pb2.PatternMatch, _Mapping]]] = ..., similarity: _Optional[float] = ...) -> None: ...

class MatchPatternRequest(_message.Message):
    __slots__ = ("name", "filter", "limit", "include_superseded", "omit_matches", "peek")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    OMIT_MATCHES_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    name: str
    filter: MemoryFilter
    limit: int
    include_superseded: bool
    omit_matches: bool
    peek: bool
    def __init__(self, name: _Optional[str] = ..., filter: _Optional[_Union[MemoryFilter, _Mapping]] = ..., limit: _Optional[int] = ..., include_superseded: _Optional[bool] = ..., omit_matches: _Optional[bool] = ..., peek: _Optional[bool] = ...) -> None: ...

class MatchPatternResponse(_message.Message):
    __slots__ = ("results", "total_matches", "matches_capped", "searched_count", "search_ms", "partial")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MATCHES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_CAPPED_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[MatchedMemory]
    total_matches: int
    matches_capped: bool
    searched_count: int
    search_ms: float
    partial: bool
    def __init__(self, results: _Optional[_Iterable[_Union[MatchedMemory, _Mapping]]] = ..., total_matches: _Optional[int] = ..., matches_capped: _Optional[bool] = ..., searched_count: _Optional[int] = ..., search_ms: _Optional[float] = ..., partial: _Optional[bool] = ...) -> None: ...

class IndexStats(_message.Message):
    __slots__ = ("kind", "memory_bytes", "disk_bytes", "average_search_ms", "search_count", "vector_bytes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    SEARCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_BYTES_FIELD_NUMBER: _ClassVar[int]
    kind: VectorIndexKind
    memory_bytes: int
    disk_bytes: int
    average_search_ms: float
    search_count: int
    vector_bytes: int
    def __init__(self, kind: _Optional[_Union[VectorIndexKind, str]] = ..., memory_bytes: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., average_search_ms: _Optional[float] = ..., search_count: _Optional[int] = ..., vector_bytes: _Optional[int] = ...) -> None: ...

class GetMemoryStatsResponse(_message.Message):
    __slots__ = ("database", "counts", "embeddings", "index", "distribution", "quality", "took_ms")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    database: _memory_stats_pb2.DatabaseInfo
    counts: _memory_stats_pb2.MemoryCounts
    embeddings: _memory_stats_pb2.EmbeddingStats
    index: IndexStats
    distribution: _memory_stats_pb2.MemoryDistribution
    quality: _memory_stats_pb2.MemoryQuality
    took_ms: float
    def __init__(self, database: _Optional[_Union[_memory_stats_pb2.DatabaseInfo, _Mapping]] = ..., counts: _Optional[_Union[_memory_stats_pb2.MemoryCounts, _Mapping]] = ..., embeddings: _Optional[_Union[_memory_stats_pb2.EmbeddingStats, _Mapping]] = ..., index: _Optional[_Union[IndexStats, _Mapping]] = ..., distribution: _Optional[_Union[_memory_stats_pb2.MemoryDistribution, _Mapping]] = ..., quality: _Optional[_Union[_memory_stats_pb2.MemoryQuality, _Mapping]] = ..., took_ms: _Optional[float] = ...) -> None: ...

class OpenMemoryResponse(_message.Message):
    __slots__ = ("database", "counts", "embeddings", "index", "capabilities", "backup", "took_ms")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    database: _memory_stats_pb2.DatabaseInfo
    counts: _memory_stats_pb2.MemoryCounts
    embeddings: _memory_stats_pb2.EmbeddingStats
    index: IndexStats
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    backup: str
    took_ms: float
    def __init__(self, database: _Optional[_Union[_memory_stats_pb2.DatabaseInfo, _Mapping]] = ..., counts: _Optional[_Union[_memory_stats_pb2.MemoryCounts, _Mapping]] = ..., embeddings: _Optional[_Union[_memory_stats_pb2.EmbeddingStats, _Mapping]] = ..., index: _Optional[_Union[IndexStats, _Mapping]] = ..., capabilities: _Optional[_Iterable[str]] = ..., backup: _Optional[str] = ..., took_ms: _Optional[float] = ...) -> None: ...
