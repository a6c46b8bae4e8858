from buf.validate import validate_pb2 as _validate_pb2
from mneme.v1 import episode_pb2 as _episode_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EpisodeConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EPISODE_CONFLICT_UNSPECIFIED: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_FAIL: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_SKIP: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_REPLACE: _ClassVar[EpisodeConflict]
EPISODE_CONFLICT_UNSPECIFIED: EpisodeConflict
EPISODE_CONFLICT_FAIL: EpisodeConflict
EPISODE_CONFLICT_SKIP: EpisodeConflict
EPISODE_CONFLICT_REPLACE: EpisodeConflict

class ImportEpisodesRequest(_message.Message):
    __slots__ = ("episodes", "on_conflict")
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    episodes: _containers.RepeatedCompositeFieldContainer[_episode_pb2.Episode]
    on_conflict: EpisodeConflict
    def __init__(self, episodes: _Optional[_Iterable[_Union[_episode_pb2.Episode, _Mapping]]] = ..., on_conflict: _Optional[_Union[EpisodeConflict, str]] = ...) -> None: ...

class ImportEpisodesResponse(_message.Message):
    __slots__ = ("created_count", "replaced_count", "unchanged_count", "skipped_count", "episode_ids")
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLACED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    created_count: int
    replaced_count: int
    unchanged_count: int
    skipped_count: int
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, created_count: _Optional[int] = ..., replaced_count: _Optional[int] = ..., unchanged_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., episode_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportEpisodesRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: _episode_pb2.EpisodeFilter
    def __init__(self, filter: _Optional[_Union[_episode_pb2.EpisodeFilter, _Mapping]] = ...) -> None: ...

class ExportEpisodesResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: _episode_pb2.Episode
    def __init__(self, episode: _Optional[_Union[_episode_pb2.Episode, _Mapping]] = ...) -> None: ...
