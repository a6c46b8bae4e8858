import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AccessLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCESS_LEVEL_UNSPECIFIED: _ClassVar[AccessLevel]
    ACCESS_LEVEL_PUBLIC: _ClassVar[AccessLevel]
    ACCESS_LEVEL_INTERNAL: _ClassVar[AccessLevel]
    ACCESS_LEVEL_CONFIDENTIAL: _ClassVar[AccessLevel]
    ACCESS_LEVEL_RESTRICTED: _ClassVar[AccessLevel]

class RecallReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_REASON_UNSPECIFIED: _ClassVar[RecallReason]
    RECALL_REASON_SEMANTIC_MATCH: _ClassVar[RecallReason]
    RECALL_REASON_CAUSAL_LINK: _ClassVar[RecallReason]
    RECALL_REASON_PREREQUISITE: _ClassVar[RecallReason]
    RECALL_REASON_CONSTRAINT: _ClassVar[RecallReason]

class CertifiedStateKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CERTIFIED_STATE_KIND_UNSPECIFIED: _ClassVar[CertifiedStateKind]
    CERTIFIED_STATE_KIND_UNCHANGED: _ClassVar[CertifiedStateKind]
    CERTIFIED_STATE_KIND_CHANGED: _ClassVar[CertifiedStateKind]
    CERTIFIED_STATE_KIND_REMOVED: _ClassVar[CertifiedStateKind]
    CERTIFIED_STATE_KIND_FORGOTTEN: _ClassVar[CertifiedStateKind]
ACCESS_LEVEL_UNSPECIFIED: AccessLevel
ACCESS_LEVEL_PUBLIC: AccessLevel
ACCESS_LEVEL_INTERNAL: AccessLevel
ACCESS_LEVEL_CONFIDENTIAL: AccessLevel
ACCESS_LEVEL_RESTRICTED: AccessLevel
RECALL_REASON_UNSPECIFIED: RecallReason
RECALL_REASON_SEMANTIC_MATCH: RecallReason
RECALL_REASON_CAUSAL_LINK: RecallReason
RECALL_REASON_PREREQUISITE: RecallReason
RECALL_REASON_CONSTRAINT: RecallReason
CERTIFIED_STATE_KIND_UNSPECIFIED: CertifiedStateKind
CERTIFIED_STATE_KIND_UNCHANGED: CertifiedStateKind
CERTIFIED_STATE_KIND_CHANGED: CertifiedStateKind
CERTIFIED_STATE_KIND_REMOVED: CertifiedStateKind
CERTIFIED_STATE_KIND_FORGOTTEN: CertifiedStateKind

class RecallWithCertificateRequest(_message.Message):
    __slots__ = ("query", "scopes", "limit", "alpha", "beta", "gamma", "agent_id", "session_id", "user_id", "project", "start_time", "end_time", "tags", "access_level")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    GAMMA_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_LEVEL_FIELD_NUMBER: _ClassVar[int]
    query: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    alpha: float
    beta: float
    gamma: float
    agent_id: str
    session_id: str
    user_id: str
    project: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    tags: _containers.RepeatedScalarFieldContainer[str]
    access_level: AccessLevel
    def __init__(self, query: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., alpha: _Optional[float] = ..., beta: _Optional[float] = ..., gamma: _Optional[float] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., access_level: _Optional[_Union[AccessLevel, str]] = ...) -> None: ...

class RecallWithCertificateResponse(_message.Message):
    __slots__ = ("results", "certificate", "redundancy", "completeness", "uplift_known", "searched_count", "search_ms", "proof_ms", "partial")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    COMPLETENESS_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_KNOWN_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    PROOF_MS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CertifiedResult]
    certificate: Certificate
    redundancy: float
    completeness: float
    uplift_known: bool
    searched_count: int
    search_ms: float
    proof_ms: float
    partial: bool
    def __init__(self, results: _Optional[_Iterable[_Union[CertifiedResult, _Mapping]]] = ..., certificate: _Optional[_Union[Certificate, _Mapping]] = ..., redundancy: _Optional[float] = ..., completeness: _Optional[float] = ..., uplift_known: _Optional[bool] = ..., searched_count: _Optional[int] = ..., search_ms: _Optional[float] = ..., proof_ms: _Optional[float] = ..., partial: _Optional[bool] = ...) -> None: ...

class CertifiedResult(_message.Message):
    __slots__ = ("source_type", "source_id", "text", "score", "similarity", "uplift", "latency", "reason", "necessity", "path", "minimal", "leaf_index")
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NECESSITY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MINIMAL_FIELD_NUMBER: _ClassVar[int]
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    source_type: str
    source_id: str
    text: str
    score: float
    similarity: float
    uplift: float
    latency: float
    reason: RecallReason
    necessity: float
    path: _containers.RepeatedScalarFieldContainer[str]
    minimal: bool
    leaf_index: int
    def __init__(self, source_type: _Optional[str] = ..., source_id: _Optional[str] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ..., uplift: _Optional[float] = ..., latency: _Optional[float] = ..., reason: _Optional[_Union[RecallReason, str]] = ..., necessity: _Optional[float] = ..., path: _Optional[_Iterable[str]] = ..., minimal: _Optional[bool] = ..., leaf_index: _Optional[int] = ...) -> None: ...

class Certificate(_message.Message):
    __slots__ = ("id", "json", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    json: str
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., json: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetCertificateRequest(_message.Message):
    __slots__ = ("certificate_id",)
    CERTIFICATE_ID_FIELD_NUMBER: _ClassVar[int]
    certificate_id: str
    def __init__(self, certificate_id: _Optional[str] = ...) -> None: ...

class GetCertificateResponse(_message.Message):
    __slots__ = ("certificate",)
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    certificate: Certificate
    def __init__(self, certificate: _Optional[_Union[Certificate, _Mapping]] = ...) -> None: ...

class VerifyCertificateRequest(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class VerifyCertificateResponse(_message.Message):
    __slots__ = ("valid", "problems", "results", "created_at")
    VALID_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    problems: _containers.RepeatedCompositeFieldContainer[CertificateProblem]
    results: _containers.RepeatedCompositeFieldContainer[CertifiedState]
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, valid: _Optional[bool] = ..., problems: _Optional[_Iterable[_Union[CertificateProblem, _Mapping]]] = ..., results: _Optional[_Iterable[_Union[CertifiedState, _Mapping]]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CertificateProblem(_message.Message):
    __slots__ = ("part", "message")
    PART_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    part: str
    message: str
    def __init__(self, part: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class CertifiedState(_message.Message):
    __slots__ = ("source_type", "source_id", "state", "leaf_index", "newest_leaf_index", "forgotten_at")
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    NEWEST_LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_AT_FIELD_NUMBER: _ClassVar[int]
    source_type: str
    source_id: str
    state: CertifiedStateKind
    leaf_index: int
    newest_leaf_index: int
    forgotten_at: _timestamp_pb2.Timestamp
    def __init__(self, source_type: _Optional[str] = ..., source_id: _Optional[str] = ..., state: _Optional[_Union[CertifiedStateKind, str]] = ..., leaf_index: _Optional[int] = ..., newest_leaf_index: _Optional[int] = ..., forgotten_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
