import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from mneme.v1 import reflection_pb2 as _reflection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GradeSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GRADE_SOURCE_UNSPECIFIED: _ClassVar[GradeSource]
    GRADE_SOURCE_AGENT: _ClassVar[GradeSource]
    GRADE_SOURCE_METADATA: _ClassVar[GradeSource]
    GRADE_SOURCE_GRADER: _ClassVar[GradeSource]
    GRADE_SOURCE_PERSON: _ClassVar[GradeSource]
GRADE_SOURCE_UNSPECIFIED: GradeSource
GRADE_SOURCE_AGENT: GradeSource
GRADE_SOURCE_METADATA: GradeSource
GRADE_SOURCE_GRADER: GradeSource
GRADE_SOURCE_PERSON: GradeSource

class Grade(_message.Message):
    __slots__ = ("id", "session_id", "outcome", "reward", "source", "grader", "comment", "graded_at", "recorded_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    GRADER_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    GRADED_AT_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    outcome: _reflection_pb2.Outcome
    reward: float
    source: GradeSource
    grader: str
    comment: str
    graded_at: _timestamp_pb2.Timestamp
    recorded_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ..., reward: _Optional[float] = ..., source: _Optional[_Union[GradeSource, str]] = ..., grader: _Optional[str] = ..., comment: _Optional[str] = ..., graded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NewGrade(_message.Message):
    __slots__ = ("id", "session_id", "outcome", "reward", "source", "grader", "comment", "graded_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    GRADER_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    GRADED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    outcome: _reflection_pb2.Outcome
    reward: float
    source: GradeSource
    grader: str
    comment: str
    graded_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., outcome: _Optional[_Union[_reflection_pb2.Outcome, str]] = ..., reward: _Optional[float] = ..., source: _Optional[_Union[GradeSource, str]] = ..., grader: _Optional[str] = ..., comment: _Optional[str] = ..., graded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecordGradesRequest(_message.Message):
    __slots__ = ("grades",)
    GRADES_FIELD_NUMBER: _ClassVar[int]
    grades: _containers.RepeatedCompositeFieldContainer[NewGrade]
    def __init__(self, grades: _Optional[_Iterable[_Union[NewGrade, _Mapping]]] = ...) -> None: ...

class RecordGradesResponse(_message.Message):
    __slots__ = ("grades", "recorded_count", "duplicate_count")
    GRADES_FIELD_NUMBER: _ClassVar[int]
    RECORDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    grades: _containers.RepeatedCompositeFieldContainer[Grade]
    recorded_count: int
    duplicate_count: int
    def __init__(self, grades: _Optional[_Iterable[_Union[Grade, _Mapping]]] = ..., recorded_count: _Optional[int] = ..., duplicate_count: _Optional[int] = ...) -> None: ...

class ListGradesRequest(_message.Message):
    __slots__ = ("session_id", "grader", "page_size", "page_token")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    GRADER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    grader: str
    page_size: int
    page_token: str
    def __init__(self, session_id: _Optional[str] = ..., grader: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGradesResponse(_message.Message):
    __slots__ = ("grades", "next_page_token")
    GRADES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    grades: _containers.RepeatedCompositeFieldContainer[Grade]
    next_page_token: str
    def __init__(self, grades: _Optional[_Iterable[_Union[Grade, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
