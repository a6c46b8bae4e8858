import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import common_pb2 as _common_pb2
from mneme.v1 import knowledge_pb2 as _knowledge_pb2
from mneme.v1 import options_pb2 as _options_pb2
from mneme.v1 import reflection_pb2 as _reflection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ImportConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMPORT_CONFLICT_UNSPECIFIED: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_FAIL: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_SKIP: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_REPLACE: _ClassVar[ImportConflict]
IMPORT_CONFLICT_UNSPECIFIED: ImportConflict
IMPORT_CONFLICT_FAIL: ImportConflict
IMPORT_CONFLICT_SKIP: ImportConflict
IMPORT_CONFLICT_REPLACE: ImportConflict

class Lesson(_message.Message):
    __slots__ = ("id", "title", "content", "category", "importance", "agent_id", "project", "tags", "context", "source_session_id", "source_event_id", "access_count", "last_accessed_at", "created_at", "updated_at", "archived_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ACCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ACCESSED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    content: str
    category: str
    importance: _common_pb2.Importance
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    context: _struct_pb2.Struct
    source_session_id: str
    source_event_id: str
    access_count: int
    last_accessed_at: _timestamp_pb2.Timestamp
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    archived_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., content: _Optional[str] = ..., category: _Optional[str] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., context: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., source_session_id: _Optional[str] = ..., source_event_id: _Optional[str] = ..., access_count: _Optional[int] = ..., last_accessed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., archived_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateLessonRequest(_message.Message):
    __slots__ = ("title", "content", "category", "importance", "agent_id", "project", "tags", "context", "source_session_id", "source_event_id", "lesson_id")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    LESSON_ID_FIELD_NUMBER: _ClassVar[int]
    title: str
    content: str
    category: str
    importance: _common_pb2.Importance
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    context: _struct_pb2.Struct
    source_session_id: str
    source_event_id: str
    lesson_id: str
    def __init__(self, title: _Optional[str] = ..., content: _Optional[str] = ..., category: _Optional[str] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., context: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., source_session_id: _Optional[str] = ..., source_event_id: _Optional[str] = ..., lesson_id: _Optional[str] = ...) -> None: ...

class CreateLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class GetLessonRequest(_message.Message):
    __slots__ = ("lesson_id", "peek")
    LESSON_ID_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    lesson_id: str
    peek: bool
    def __init__(self, lesson_id: _Optional[str] = ..., peek: _Optional[bool] = ...) -> None: ...

class GetLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class LessonFilter(_message.Message):
    __slots__ = ("agent_id", "category", "importance", "project", "tags", "include_archived")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    category: str
    importance: _common_pb2.Importance
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    include_archived: bool
    def __init__(self, agent_id: _Optional[str] = ..., category: _Optional[str] = ..., importance: _Optional[_Union[_common_pb2.Importance, str]] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., include_archived: _Optional[bool] = ...) -> None: ...

class ListLessonsRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token", "words")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    filter: LessonFilter
    page_size: int
    page_token: str
    words: str
    def __init__(self, filter: _Optional[_Union[LessonFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., words: _Optional[str] = ...) -> None: ...

class ListLessonsResponse(_message.Message):
    __slots__ = ("lessons", "next_page_token", "total_size")
    LESSONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    lessons: _containers.RepeatedCompositeFieldContainer[Lesson]
    next_page_token: str
    total_size: int
    def __init__(self, lessons: _Optional[_Iterable[_Union[Lesson, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class SearchLessonsRequest(_message.Message):
    __slots__ = ("query", "filter", "limit", "min_score", "peek")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    query: str
    filter: LessonFilter
    limit: int
    min_score: float
    peek: bool
    def __init__(self, query: _Optional[str] = ..., filter: _Optional[_Union[LessonFilter, _Mapping]] = ..., limit: _Optional[int] = ..., min_score: _Optional[float] = ..., peek: _Optional[bool] = ...) -> None: ...

class FoundLesson(_message.Message):
    __slots__ = ("lesson", "score", "similarity")
    LESSON_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    score: float
    similarity: float
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ...) -> None: ...

class SearchLessonsResponse(_message.Message):
    __slots__ = ("results", "searched_count", "words_only")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundLesson]
    searched_count: int
    words_only: bool
    def __init__(self, results: _Optional[_Iterable[_Union[FoundLesson, _Mapping]]] = ..., searched_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...

class UpdateLessonRequest(_message.Message):
    __slots__ = ("lesson", "update_mask")
    LESSON_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class ArchiveLessonRequest(_message.Message):
    __slots__ = ("lesson_id", "etag")
    LESSON_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    lesson_id: str
    etag: str
    def __init__(self, lesson_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class ArchiveLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class UnarchiveLessonRequest(_message.Message):
    __slots__ = ("lesson_id", "etag")
    LESSON_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    lesson_id: str
    etag: str
    def __init__(self, lesson_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class UnarchiveLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class DeleteLessonRequest(_message.Message):
    __slots__ = ("lesson_id", "etag")
    LESSON_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    lesson_id: str
    etag: str
    def __init__(self, lesson_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteLessonResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...

class ImportLessonsRequest(_message.Message):
    __slots__ = ("lessons", "on_conflict")
    LESSONS_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    lessons: _containers.RepeatedCompositeFieldContainer[Lesson]
    on_conflict: ImportConflict
    def __init__(self, lessons: _Optional[_Iterable[_Union[Lesson, _Mapping]]] = ..., on_conflict: _Optional[_Union[ImportConflict, str]] = ...) -> None: ...

class ImportLessonsResponse(_message.Message):
    __slots__ = ("created_count", "replaced_count", "unchanged_count", "skipped_count", "lesson_ids")
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLACED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    LESSON_IDS_FIELD_NUMBER: _ClassVar[int]
    created_count: int
    replaced_count: int
    unchanged_count: int
    skipped_count: int
    lesson_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, created_count: _Optional[int] = ..., replaced_count: _Optional[int] = ..., unchanged_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., lesson_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportLessonsRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: LessonFilter
    def __init__(self, filter: _Optional[_Union[LessonFilter, _Mapping]] = ...) -> None: ...

class ExportLessonsResponse(_message.Message):
    __slots__ = ("lesson",)
    LESSON_FIELD_NUMBER: _ClassVar[int]
    lesson: Lesson
    def __init__(self, lesson: _Optional[_Union[Lesson, _Mapping]] = ...) -> None: ...
