from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Importance(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMPORTANCE_UNSPECIFIED: _ClassVar[Importance]
    IMPORTANCE_LOW: _ClassVar[Importance]
    IMPORTANCE_NORMAL: _ClassVar[Importance]
    IMPORTANCE_HIGH: _ClassVar[Importance]
    IMPORTANCE_CRITICAL: _ClassVar[Importance]

class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEVERITY_UNSPECIFIED: _ClassVar[Severity]
    SEVERITY_DEBUG: _ClassVar[Severity]
    SEVERITY_INFO: _ClassVar[Severity]
    SEVERITY_WARN: _ClassVar[Severity]
    SEVERITY_ERROR: _ClassVar[Severity]
    SEVERITY_CRITICAL: _ClassVar[Severity]
IMPORTANCE_UNSPECIFIED: Importance
IMPORTANCE_LOW: Importance
IMPORTANCE_NORMAL: Importance
IMPORTANCE_HIGH: Importance
IMPORTANCE_CRITICAL: Importance
SEVERITY_UNSPECIFIED: Severity
SEVERITY_DEBUG: Severity
SEVERITY_INFO: Severity
SEVERITY_WARN: Severity
SEVERITY_ERROR: Severity
SEVERITY_CRITICAL: Severity

class Passage(_message.Message):
    __slots__ = ("text", "start", "end", "headings")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    HEADINGS_FIELD_NUMBER: _ClassVar[int]
    text: str
    start: int
    end: int
    headings: str
    def __init__(self, text: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., headings: _Optional[str] = ...) -> None: ...
