import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetCheckpointRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCheckpointResponse(_message.Message):
    __slots__ = ("note", "origin", "size", "root_hash", "verifier_key", "previous_note")
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROOT_HASH_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_KEY_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_NOTE_FIELD_NUMBER: _ClassVar[int]
    note: str
    origin: str
    size: int
    root_hash: bytes
    verifier_key: str
    previous_note: str
    def __init__(self, note: _Optional[str] = ..., origin: _Optional[str] = ..., size: _Optional[int] = ..., root_hash: _Optional[bytes] = ..., verifier_key: _Optional[str] = ..., previous_note: _Optional[str] = ...) -> None: ...

class GetConsistencyProofRequest(_message.Message):
    __slots__ = ("old_size", "new_size")
    OLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEW_SIZE_FIELD_NUMBER: _ClassVar[int]
    old_size: int
    new_size: int
    def __init__(self, old_size: _Optional[int] = ..., new_size: _Optional[int] = ...) -> None: ...

class GetConsistencyProofResponse(_message.Message):
    __slots__ = ("old_size", "new_size", "hashes", "origin")
    OLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEW_SIZE_FIELD_NUMBER: _ClassVar[int]
    HASHES_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    old_size: int
    new_size: int
    hashes: _containers.RepeatedScalarFieldContainer[bytes]
    origin: str
    def __init__(self, old_size: _Optional[int] = ..., new_size: _Optional[int] = ..., hashes: _Optional[_Iterable[bytes]] = ..., origin: _Optional[str] = ...) -> None: ...

class GetInclusionProofRequest(_message.Message):
    __slots__ = ("leaf_index", "source_type", "source_id", "size")
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    source_type: str
    source_id: str
    size: int
    def __init__(self, leaf_index: _Optional[int] = ..., source_type: _Optional[str] = ..., source_id: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class GetInclusionProofResponse(_message.Message):
    __slots__ = ("leaf_index", "size", "leaf_hash", "hashes", "origin", "source_type", "source_id", "forgotten_at")
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LEAF_HASH_FIELD_NUMBER: _ClassVar[int]
    HASHES_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_AT_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    size: int
    leaf_hash: bytes
    hashes: _containers.RepeatedScalarFieldContainer[bytes]
    origin: str
    source_type: str
    source_id: str
    forgotten_at: _timestamp_pb2.Timestamp
    def __init__(self, leaf_index: _Optional[int] = ..., size: _Optional[int] = ..., leaf_hash: _Optional[bytes] = ..., hashes: _Optional[_Iterable[bytes]] = ..., origin: _Optional[str] = ..., source_type: _Optional[str] = ..., source_id: _Optional[str] = ..., forgotten_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListLogKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLogKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[LogKey]
    def __init__(self, keys: _Optional[_Iterable[_Union[LogKey, _Mapping]]] = ...) -> None: ...

class LogKey(_message.Message):
    __slots__ = ("number", "verifier_key", "created_at", "retired_at", "introduction")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_KEY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    RETIRED_AT_FIELD_NUMBER: _ClassVar[int]
    INTRODUCTION_FIELD_NUMBER: _ClassVar[int]
    number: int
    verifier_key: str
    created_at: _timestamp_pb2.Timestamp
    retired_at: _timestamp_pb2.Timestamp
    introduction: str
    def __init__(self, number: _Optional[int] = ..., verifier_key: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., introduction: _Optional[str] = ...) -> None: ...

class RotateLogKeyRequest(_message.Message):
    __slots__ = ("tenant_id",)
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    def __init__(self, tenant_id: _Optional[str] = ...) -> None: ...

class RotateLogKeyResponse(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: LogKey
    def __init__(self, key: _Optional[_Union[LogKey, _Mapping]] = ...) -> None: ...
