import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Episode(_message.Message):
    __slots__ = ("id", "session_id", "agent_id", "user_id", "project", "task", "input", "output", "critique", "reward", "success", "latency_ms", "tokens_used", "tools", "tags", "metadata", "occurred_at", "created_at", "filled_fields", "memory_ids", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FILLED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    agent_id: str
    user_id: str
    project: str
    task: str
    input: str
    output: str
    critique: str
    reward: float
    success: bool
    latency_ms: int
    tokens_used: int
    tools: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    occurred_at: _timestamp_pb2.Timestamp
    created_at: _timestamp_pb2.Timestamp
    filled_fields: _containers.RepeatedScalarFieldContainer[str]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    etag: str
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., task: _Optional[str] = ..., input: _Optional[str] = ..., output: _Optional[str] = ..., critique: _Optional[str] = ..., reward: _Optional[float] = ..., success: _Optional[bool] = ..., latency_ms: _Optional[int] = ..., tokens_used: _Optional[int] = ..., tools: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., filled_fields: _Optional[_Iterable[str]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., etag: _Optional[str] = ...) -> None: ...

class EpisodeFilter(_message.Message):
    __slots__ = ("session_id", "agent_id", "user_id", "project", "tags", "only_failures", "only_successes", "min_reward", "start_time", "end_time")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ONLY_FAILURES_FIELD_NUMBER: _ClassVar[int]
    ONLY_SUCCESSES_FIELD_NUMBER: _ClassVar[int]
    MIN_REWARD_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    agent_id: str
    user_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    only_failures: bool
    only_successes: bool
    min_reward: float
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., only_failures: _Optional[bool] = ..., only_successes: _Optional[bool] = ..., min_reward: _Optional[float] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateEpisodeRequest(_message.Message):
    __slots__ = ("session_id", "task", "input", "output", "critique", "reward", "success", "latency_ms", "tokens_used", "tags", "metadata", "tools", "agent_id", "user_id", "project", "occurred_at", "episode_id", "memory_ids")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    task: str
    input: str
    output: str
    critique: str
    reward: float
    success: bool
    latency_ms: int
    tokens_used: int
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    tools: _containers.RepeatedScalarFieldContainer[str]
    agent_id: str
    user_id: str
    project: str
    occurred_at: _timestamp_pb2.Timestamp
    episode_id: str
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_id: _Optional[str] = ..., task: _Optional[str] = ..., input: _Optional[str] = ..., output: _Optional[str] = ..., critique: _Optional[str] = ..., reward: _Optional[float] = ..., success: _Optional[bool] = ..., latency_ms: _Optional[int] = ..., tokens_used: _Optional[int] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., tools: _Optional[_Iterable[str]] = ..., agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., episode_id: _Optional[str] = ..., memory_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateEpisodeResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: Episode
    def __init__(self, episode: _Optional[_Union[Episode, _Mapping]] = ...) -> None: ...

class GetEpisodeRequest(_message.Message):
    __slots__ = ("episode_id",)
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    episode_id: str
    def __init__(self, episode_id: _Optional[str] = ...) -> None: ...

class GetEpisodeResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: Episode
    def __init__(self, episode: _Optional[_Union[Episode, _Mapping]] = ...) -> None: ...

class ListEpisodesRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: EpisodeFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[EpisodeFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEpisodesResponse(_message.Message):
    __slots__ = ("episodes", "next_page_token", "total_size")
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    episodes: _containers.RepeatedCompositeFieldContainer[Episode]
    next_page_token: str
    total_size: int
    def __init__(self, episodes: _Optional[_Iterable[_Union[Episode, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class SearchEpisodesRequest(_message.Message):
    __slots__ = ("task", "filter", "limit", "min_score")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    task: str
    filter: EpisodeFilter
    limit: int
    min_score: float
    def __init__(self, task: _Optional[str] = ..., filter: _Optional[_Union[EpisodeFilter, _Mapping]] = ..., limit: _Optional[int] = ..., min_score: _Optional[float] = ...) -> None: ...

class FoundEpisode(_message.Message):
    __slots__ = ("episode", "score", "similarity")
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    episode: Episode
    score: float
    similarity: float
    def __init__(self, episode: _Optional[_Union[Episode, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class CritiquePoint(_message.Message):
    __slots__ = ("text", "episode_ids", "failure_count", "success_count")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    text: str
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    failure_count: int
    success_count: int
    def __init__(self, text: _Optional[str] = ..., episode_ids: _Optional[_Iterable[str]] = ..., failure_count: _Optional[int] = ..., success_count: _Optional[int] = ...) -> None: ...

class CritiqueSummary(_message.Message):
    __slots__ = ("points", "more_count", "with_critique", "without_critique", "text")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    MORE_COUNT_FIELD_NUMBER: _ClassVar[int]
    WITH_CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    points: _containers.RepeatedCompositeFieldContainer[CritiquePoint]
    more_count: int
    with_critique: int
    without_critique: int
    text: str
    def __init__(self, points: _Optional[_Iterable[_Union[CritiquePoint, _Mapping]]] = ..., more_count: _Optional[int] = ..., with_critique: _Optional[int] = ..., without_critique: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class SearchEpisodesResponse(_message.Message):
    __slots__ = ("results", "critiques", "searched_count", "words_only")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    CRITIQUES_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundEpisode]
    critiques: CritiqueSummary
    searched_count: int
    words_only: bool
    def __init__(self, results: _Optional[_Iterable[_Union[FoundEpisode, _Mapping]]] = ..., critiques: _Optional[_Union[CritiqueSummary, _Mapping]] = ..., searched_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...

class DeleteEpisodeRequest(_message.Message):
    __slots__ = ("episode_id", "etag")
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    episode_id: str
    etag: str
    def __init__(self, episode_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteEpisodeResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: Episode
    def __init__(self, episode: _Optional[_Union[Episode, _Mapping]] = ...) -> None: ...
