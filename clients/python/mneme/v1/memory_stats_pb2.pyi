from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CacheKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_KIND_UNSPECIFIED: _ClassVar[CacheKind]
    CACHE_KIND_EMBEDDINGS: _ClassVar[CacheKind]
    CACHE_KIND_SEARCH: _ClassVar[CacheKind]
    CACHE_KIND_PATTERNS: _ClassVar[CacheKind]
CACHE_KIND_UNSPECIFIED: CacheKind
CACHE_KIND_EMBEDDINGS: CacheKind
CACHE_KIND_SEARCH: CacheKind
CACHE_KIND_PATTERNS: CacheKind

class DatabaseInfo(_message.Message):
    __slots__ = ("tenant_id", "path", "size_bytes", "folder_bytes", "wal_mode", "schema_version", "engine")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLDER_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAL_MODE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    path: str
    size_bytes: int
    folder_bytes: int
    wal_mode: bool
    schema_version: str
    engine: str
    def __init__(self, tenant_id: _Optional[str] = ..., path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., folder_bytes: _Optional[int] = ..., wal_mode: _Optional[bool] = ..., schema_version: _Optional[str] = ..., engine: _Optional[str] = ...) -> None: ...

class MemoryCounts(_message.Message):
    __slots__ = ("vectors", "pending", "memories", "patterns", "episodes", "skills", "causal_edges", "certificates", "learning_sessions", "experiences", "events", "sessions", "lessons", "reflections")
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_EDGES_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    LEARNING_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    LESSONS_FIELD_NUMBER: _ClassVar[int]
    REFLECTIONS_FIELD_NUMBER: _ClassVar[int]
    vectors: int
    pending: int
    memories: int
    patterns: int
    episodes: int
    skills: int
    causal_edges: int
    certificates: int
    learning_sessions: int
    experiences: int
    events: int
    sessions: int
    lessons: int
    reflections: int
    def __init__(self, vectors: _Optional[int] = ..., pending: _Optional[int] = ..., memories: _Optional[int] = ..., patterns: _Optional[int] = ..., episodes: _Optional[int] = ..., skills: _Optional[int] = ..., causal_edges: _Optional[int] = ..., certificates: _Optional[int] = ..., learning_sessions: _Optional[int] = ..., experiences: _Optional[int] = ..., events: _Optional[int] = ..., sessions: _Optional[int] = ..., lessons: _Optional[int] = ..., reflections: _Optional[int] = ...) -> None: ...

class EmbeddingStats(_message.Message):
    __slots__ = ("model", "dimension", "cache_size", "cache_hits", "cache_misses", "cache_hit_rate")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    CACHE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CACHE_HITS_FIELD_NUMBER: _ClassVar[int]
    CACHE_MISSES_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_RATE_FIELD_NUMBER: _ClassVar[int]
    model: str
    dimension: int
    cache_size: int
    cache_hits: int
    cache_misses: int
    cache_hit_rate: float
    def __init__(self, model: _Optional[str] = ..., dimension: _Optional[int] = ..., cache_size: _Optional[int] = ..., cache_hits: _Optional[int] = ..., cache_misses: _Optional[int] = ..., cache_hit_rate: _Optional[float] = ...) -> None: ...

class NamedCount(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class MemoryDistribution(_message.Message):
    __slots__ = ("tags", "tag_count", "metadata_keys", "metadata_key_count")
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TAG_COUNT_FIELD_NUMBER: _ClassVar[int]
    METADATA_KEYS_FIELD_NUMBER: _ClassVar[int]
    METADATA_KEY_COUNT_FIELD_NUMBER: _ClassVar[int]
    tags: _containers.RepeatedCompositeFieldContainer[NamedCount]
    tag_count: int
    metadata_keys: _containers.RepeatedCompositeFieldContainer[NamedCount]
    metadata_key_count: int
    def __init__(self, tags: _Optional[_Iterable[_Union[NamedCount, _Mapping]]] = ..., tag_count: _Optional[int] = ..., metadata_keys: _Optional[_Iterable[_Union[NamedCount, _Mapping]]] = ..., metadata_key_count: _Optional[int] = ...) -> None: ...

class MemoryQuality(_message.Message):
    __slots__ = ("average_episode_reward", "average_skill_success_rate", "average_causal_confidence")
    AVERAGE_EPISODE_REWARD_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_SKILL_SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_CAUSAL_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    average_episode_reward: float
    average_skill_success_rate: float
    average_causal_confidence: float
    def __init__(self, average_episode_reward: _Optional[float] = ..., average_skill_success_rate: _Optional[float] = ..., average_causal_confidence: _Optional[float] = ...) -> None: ...

class GetMemoryStatsRequest(_message.Message):
    __slots__ = ("include_distribution", "include_quality")
    INCLUDE_DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_QUALITY_FIELD_NUMBER: _ClassVar[int]
    include_distribution: bool
    include_quality: bool
    def __init__(self, include_distribution: _Optional[bool] = ..., include_quality: _Optional[bool] = ...) -> None: ...

class ClearCacheRequest(_message.Message):
    __slots__ = ("caches", "older_than_days", "vacuum")
    CACHES_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_DAYS_FIELD_NUMBER: _ClassVar[int]
    VACUUM_FIELD_NUMBER: _ClassVar[int]
    caches: _containers.RepeatedScalarFieldContainer[CacheKind]
    older_than_days: float
    vacuum: bool
    def __init__(self, caches: _Optional[_Iterable[_Union[CacheKind, str]]] = ..., older_than_days: _Optional[float] = ..., vacuum: _Optional[bool] = ...) -> None: ...

class ClearedCache(_message.Message):
    __slots__ = ("cache", "count")
    CACHE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    cache: CacheKind
    count: int
    def __init__(self, cache: _Optional[_Union[CacheKind, str]] = ..., count: _Optional[int] = ...) -> None: ...

class ClearCacheResponse(_message.Message):
    __slots__ = ("cleared", "vacuumed", "reclaimed_bytes", "took_ms")
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    VACUUMED_FIELD_NUMBER: _ClassVar[int]
    RECLAIMED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    cleared: _containers.RepeatedCompositeFieldContainer[ClearedCache]
    vacuumed: bool
    reclaimed_bytes: int
    took_ms: float
    def __init__(self, cleared: _Optional[_Iterable[_Union[ClearedCache, _Mapping]]] = ..., vacuumed: _Optional[bool] = ..., reclaimed_bytes: _Optional[int] = ..., took_ms: _Optional[float] = ...) -> None: ...

class OpenMemoryRequest(_message.Message):
    __slots__ = ("dimension", "model", "reset", "confirm_tenant_id")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    dimension: int
    model: str
    reset: bool
    confirm_tenant_id: str
    def __init__(self, dimension: _Optional[int] = ..., model: _Optional[str] = ..., reset: _Optional[bool] = ..., confirm_tenant_id: _Optional[str] = ...) -> None: ...
