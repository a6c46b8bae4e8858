import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StructureOf(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STRUCTURE_OF_UNSPECIFIED: _ClassVar[StructureOf]
    STRUCTURE_OF_METADATA: _ClassVar[StructureOf]
    STRUCTURE_OF_TEXT: _ClassVar[StructureOf]
STRUCTURE_OF_UNSPECIFIED: StructureOf
STRUCTURE_OF_METADATA: StructureOf
STRUCTURE_OF_TEXT: StructureOf

class RegexPattern(_message.Message):
    __slots__ = ("expression",)
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    expression: str
    def __init__(self, expression: _Optional[str] = ...) -> None: ...

class SemanticPattern(_message.Message):
    __slots__ = ("text", "threshold")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    text: str
    threshold: float
    def __init__(self, text: _Optional[str] = ..., threshold: _Optional[float] = ...) -> None: ...

class StructuralPattern(_message.Message):
    __slots__ = ("schema", "target")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    schema: _struct_pb2.Struct
    target: StructureOf
    def __init__(self, schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., target: _Optional[_Union[StructureOf, str]] = ...) -> None: ...

class Pattern(_message.Message):
    __slots__ = ("id", "name", "description", "regex", "semantic", "structural", "created_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    STRUCTURAL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    description: str
    regex: RegexPattern
    semantic: SemanticPattern
    structural: StructuralPattern
    created_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., regex: _Optional[_Union[RegexPattern, _Mapping]] = ..., semantic: _Optional[_Union[SemanticPattern, _Mapping]] = ..., structural: _Optional[_Union[StructuralPattern, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class PatternStats(_message.Message):
    __slots__ = ("pattern", "uses", "match_count", "average_ms", "last_used_at", "right_count", "wrong_count", "success_rate", "lower_bound", "upper_bound")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    MATCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_COUNT_FIELD_NUMBER: _ClassVar[int]
    WRONG_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_FIELD_NUMBER: _ClassVar[int]
    UPPER_BOUND_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    uses: int
    match_count: int
    average_ms: float
    last_used_at: _timestamp_pb2.Timestamp
    right_count: int
    wrong_count: int
    success_rate: float
    lower_bound: float
    upper_bound: float
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ..., uses: _Optional[int] = ..., match_count: _Optional[int] = ..., average_ms: _Optional[float] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., right_count: _Optional[int] = ..., wrong_count: _Optional[int] = ..., success_rate: _Optional[float] = ..., lower_bound: _Optional[float] = ..., upper_bound: _Optional[float] = ...) -> None: ...

class PatternMatch(_message.Message):
    __slots__ = ("text", "start", "end", "groups")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    text: str
    start: int
    end: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class CreatePatternRequest(_message.Message):
    __slots__ = ("name", "description", "regex", "semantic", "structural", "pattern_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    STRUCTURAL_FIELD_NUMBER: _ClassVar[int]
    PATTERN_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    regex: RegexPattern
    semantic: SemanticPattern
    structural: StructuralPattern
    pattern_id: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., regex: _Optional[_Union[RegexPattern, _Mapping]] = ..., semantic: _Optional[_Union[SemanticPattern, _Mapping]] = ..., structural: _Optional[_Union[StructuralPattern, _Mapping]] = ..., pattern_id: _Optional[str] = ...) -> None: ...

class CreatePatternResponse(_message.Message):
    __slots__ = ("pattern",)
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ...) -> None: ...

class GetPatternRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetPatternResponse(_message.Message):
    __slots__ = ("pattern",)
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ...) -> None: ...

class ListPatternsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPatternsResponse(_message.Message):
    __slots__ = ("patterns", "next_page_token", "total_size")
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    patterns: _containers.RepeatedCompositeFieldContainer[Pattern]
    next_page_token: str
    total_size: int
    def __init__(self, patterns: _Optional[_Iterable[_Union[Pattern, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class UpdatePatternRequest(_message.Message):
    __slots__ = ("pattern", "update_mask")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdatePatternResponse(_message.Message):
    __slots__ = ("pattern",)
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ...) -> None: ...

class DeletePatternRequest(_message.Message):
    __slots__ = ("name", "etag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    etag: str
    def __init__(self, name: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeletePatternResponse(_message.Message):
    __slots__ = ("pattern",)
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    pattern: Pattern
    def __init__(self, pattern: _Optional[_Union[Pattern, _Mapping]] = ...) -> None: ...

class MatchVerdict(_message.Message):
    __slots__ = ("memory_id", "right")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    right: bool
    def __init__(self, memory_id: _Optional[str] = ..., right: _Optional[bool] = ...) -> None: ...

class RecordPatternMatchesRequest(_message.Message):
    __slots__ = ("name", "verdicts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    verdicts: _containers.RepeatedCompositeFieldContainer[MatchVerdict]
    def __init__(self, name: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[MatchVerdict, _Mapping]]] = ...) -> None: ...

class RecordPatternMatchesResponse(_message.Message):
    __slots__ = ("stats",)
    STATS_FIELD_NUMBER: _ClassVar[int]
    stats: PatternStats
    def __init__(self, stats: _Optional[_Union[PatternStats, _Mapping]] = ...) -> None: ...

class ListPatternStatsRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPatternStatsResponse(_message.Message):
    __slots__ = ("stats", "next_page_token")
    STATS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    stats: _containers.RepeatedCompositeFieldContainer[PatternStats]
    next_page_token: str
    def __init__(self, stats: _Optional[_Iterable[_Union[PatternStats, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
