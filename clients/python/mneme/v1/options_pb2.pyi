from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.rpc import code_pb2 as _code_pb2
from mneme.v1 import auth_pb2 as _auth_pb2
from mneme.v1 import errors_pb2 as _errors_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
BRINGS_KINDS_FIELD_NUMBER: _ClassVar[int]
brings_kinds: _descriptor.FieldDescriptor
REQUIRED_SCOPE_FIELD_NUMBER: _ClassVar[int]
required_scope: _descriptor.FieldDescriptor
ANY_SCOPE_FIELD_NUMBER: _ClassVar[int]
any_scope: _descriptor.FieldDescriptor
ALSO_READS_FIELD_NUMBER: _ClassVar[int]
also_reads: _descriptor.FieldDescriptor
COST_FIELD_NUMBER: _ClassVar[int]
cost: _descriptor.FieldDescriptor
LONG_LIVED_FIELD_NUMBER: _ClassVar[int]
long_lived: _descriptor.FieldDescriptor
RESUMED_BY_FIELD_NUMBER: _ClassVar[int]
resumed_by: _descriptor.FieldDescriptor
ERRORS_FIELD_NUMBER: _ClassVar[int]
errors: _descriptor.FieldDescriptor
STARTS_FIELD_NUMBER: _ClassVar[int]
starts: _descriptor.FieldDescriptor
ALSO_CALLED_FIELD_NUMBER: _ClassVar[int]
also_called: _descriptor.FieldDescriptor
DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
default_value: _descriptor.FieldDescriptor
CHANGEABLE_FIELD_NUMBER: _ClassVar[int]
changeable: _descriptor.FieldDescriptor
MADE_WHEN_EMPTY_FIELD_NUMBER: _ClassVar[int]
made_when_empty: _descriptor.FieldDescriptor
KNOWN_FIELD_NUMBER: _ClassVar[int]
known: _descriptor.FieldDescriptor
NAMES_KIND_FIELD_NUMBER: _ClassVar[int]
names_kind: _descriptor.FieldDescriptor
NARROWS_FIELD_NUMBER: _ClassVar[int]
narrows: _descriptor.FieldDescriptor
NOT_BLANK_FIELD_NUMBER: _ClassVar[int]
not_blank: _descriptor.FieldDescriptor
JSON_LIMITS_FIELD_NUMBER: _ClassVar[int]
json_limits: _descriptor.FieldDescriptor

class CallError(_message.Message):
    __slots__ = ("code", "reason", "when")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    code: _code_pb2.Code
    reason: _errors_pb2.ErrorReason
    when: str
    def __init__(self, code: _Optional[_Union[_code_pb2.Code, str]] = ..., reason: _Optional[_Union[_errors_pb2.ErrorReason, str]] = ..., when: _Optional[str] = ...) -> None: ...

class KnownName(_message.Message):
    __slots__ = ("name", "meaning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    name: str
    meaning: str
    def __init__(self, name: _Optional[str] = ..., meaning: _Optional[str] = ...) -> None: ...

class KnownNames(_message.Message):
    __slots__ = ("set", "names")
    SET_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    set: str
    names: _containers.RepeatedCompositeFieldContainer[KnownName]
    def __init__(self, set: _Optional[str] = ..., names: _Optional[_Iterable[_Union[KnownName, _Mapping]]] = ...) -> None: ...

class JsonLimits(_message.Message):
    __slots__ = ("max_bytes", "max_depth")
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    max_bytes: int
    max_depth: int
    def __init__(self, max_bytes: _Optional[int] = ..., max_depth: _Optional[int] = ...) -> None: ...

class BroughtKind(_message.Message):
    __slots__ = ("name", "meaning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    name: str
    meaning: str
    def __init__(self, name: _Optional[str] = ..., meaning: _Optional[str] = ...) -> None: ...

class Resumption(_message.Message):
    __slots__ = ("place", "after")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    place: str
    after: str
    def __init__(self, place: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class StartedOperation(_message.Message):
    __slots__ = ("kind", "response")
    KIND_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    response: str
    def __init__(self, kind: _Optional[str] = ..., response: _Optional[str] = ...) -> None: ...

class CallCost(_message.Message):
    __slots__ = ("large", "by", "small_up_to")
    LARGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    SMALL_UP_TO_FIELD_NUMBER: _ClassVar[int]
    large: bool
    by: str
    small_up_to: int
    def __init__(self, large: _Optional[bool] = ..., by: _Optional[str] = ..., small_up_to: _Optional[int] = ...) -> None: ...
