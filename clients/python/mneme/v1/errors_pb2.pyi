from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.rpc import code_pb2 as _code_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_PARAMETER: _ClassVar[ErrorReason]
    ERROR_REASON_MISSING_REQUIRED_FIELD: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_TYPE: _ClassVar[ErrorReason]
    ERROR_REASON_OUT_OF_RANGE: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_FILTER: _ClassVar[ErrorReason]
    ERROR_REASON_API_KEY_MISSING: _ClassVar[ErrorReason]
    ERROR_REASON_API_KEY_INVALID: _ClassVar[ErrorReason]
    ERROR_REASON_SCOPE_MISSING: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_ALREADY_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_SESSION_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_CONSTRAINT_VIOLATION: _ClassVar[ErrorReason]
    ERROR_REASON_ETAG_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_RATE_LIMITED: _ClassVar[ErrorReason]
    ERROR_REASON_QUEUE_FULL: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_STREAMS: _ClassVar[ErrorReason]
    ERROR_REASON_QUOTA_EXCEEDED: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_CALLS: _ClassVar[ErrorReason]
    ERROR_REASON_DATABASE_ERROR: _ClassVar[ErrorReason]
    ERROR_REASON_SCHEMA_ERROR: _ClassVar[ErrorReason]
    ERROR_REASON_TRANSACTION_FAILED: _ClassVar[ErrorReason]
    ERROR_REASON_DATA_DAMAGED: _ClassVar[ErrorReason]
    ERROR_REASON_EMBEDDING_FAILED: _ClassVar[ErrorReason]
    ERROR_REASON_MODEL_NOT_LOADED: _ClassVar[ErrorReason]
    ERROR_REASON_DIMENSION_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_ALGORITHM_NOT_SUPPORTED: _ClassVar[ErrorReason]
    ERROR_REASON_MODEL_NOT_TRAINED: _ClassVar[ErrorReason]
    ERROR_REASON_CONVERGENCE_FAILED: _ClassVar[ErrorReason]
    ERROR_REASON_INITIALIZATION_FAILED: _ClassVar[ErrorReason]
    ERROR_REASON_INTERNAL_ERROR: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_INVALID_PARAMETER: ErrorReason
ERROR_REASON_MISSING_REQUIRED_FIELD: ErrorReason
ERROR_REASON_INVALID_TYPE: ErrorReason
ERROR_REASON_OUT_OF_RANGE: ErrorReason
ERROR_REASON_INVALID_FILTER: ErrorReason
ERROR_REASON_API_KEY_MISSING: ErrorReason
ERROR_REASON_API_KEY_INVALID: ErrorReason
ERROR_REASON_SCOPE_MISSING: ErrorReason
ERROR_REASON_NOT_FOUND: ErrorReason
ERROR_REASON_ALREADY_EXISTS: ErrorReason
ERROR_REASON_SESSION_NOT_FOUND: ErrorReason
ERROR_REASON_CONSTRAINT_VIOLATION: ErrorReason
ERROR_REASON_ETAG_MISMATCH: ErrorReason
ERROR_REASON_RATE_LIMITED: ErrorReason
ERROR_REASON_QUEUE_FULL: ErrorReason
ERROR_REASON_TOO_MANY_STREAMS: ErrorReason
ERROR_REASON_QUOTA_EXCEEDED: ErrorReason
ERROR_REASON_TOO_MANY_CALLS: ErrorReason
ERROR_REASON_DATABASE_ERROR: ErrorReason
ERROR_REASON_SCHEMA_ERROR: ErrorReason
ERROR_REASON_TRANSACTION_FAILED: ErrorReason
ERROR_REASON_DATA_DAMAGED: ErrorReason
ERROR_REASON_EMBEDDING_FAILED: ErrorReason
ERROR_REASON_MODEL_NOT_LOADED: ErrorReason
ERROR_REASON_DIMENSION_MISMATCH: ErrorReason
ERROR_REASON_ALGORITHM_NOT_SUPPORTED: ErrorReason
ERROR_REASON_MODEL_NOT_TRAINED: ErrorReason
ERROR_REASON_CONVERGENCE_FAILED: ErrorReason
ERROR_REASON_INITIALIZATION_FAILED: ErrorReason
ERROR_REASON_INTERNAL_ERROR: ErrorReason
CODES_FIELD_NUMBER: _ClassVar[int]
codes: _descriptor.FieldDescriptor
