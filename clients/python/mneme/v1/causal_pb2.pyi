import datetime

from buf.validate import validate_pb2 as _validate_pb2
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

class EdgeOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EDGE_ORIGIN_UNSPECIFIED: _ClassVar[EdgeOrigin]
    EDGE_ORIGIN_STATED: _ClassVar[EdgeOrigin]
    EDGE_ORIGIN_EXPERIMENT: _ClassVar[EdgeOrigin]
    EDGE_ORIGIN_DISCOVERED: _ClassVar[EdgeOrigin]
EDGE_ORIGIN_UNSPECIFIED: EdgeOrigin
EDGE_ORIGIN_STATED: EdgeOrigin
EDGE_ORIGIN_EXPERIMENT: EdgeOrigin
EDGE_ORIGIN_DISCOVERED: EdgeOrigin

class CausalEdge(_message.Message):
    __slots__ = ("id", "cause", "effect", "uplift", "confidence", "sample_size", "evidence_ids", "experiment_ids", "confounder_score", "mechanism", "metadata", "origin", "low", "high", "created_at", "updated_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_IDS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    CONFOUNDER_SCORE_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    cause: str
    effect: str
    uplift: float
    confidence: float
    sample_size: int
    evidence_ids: _containers.RepeatedScalarFieldContainer[str]
    experiment_ids: _containers.RepeatedScalarFieldContainer[str]
    confounder_score: float
    mechanism: str
    metadata: _struct_pb2.Struct
    origin: EdgeOrigin
    low: float
    high: float
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., cause: _Optional[str] = ..., effect: _Optional[str] = ..., uplift: _Optional[float] = ..., confidence: _Optional[float] = ..., sample_size: _Optional[int] = ..., evidence_ids: _Optional[_Iterable[str]] = ..., experiment_ids: _Optional[_Iterable[str]] = ..., confounder_score: _Optional[float] = ..., mechanism: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., origin: _Optional[_Union[EdgeOrigin, str]] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateEdgeRequest(_message.Message):
    __slots__ = ("cause", "effect", "uplift", "confidence", "sample_size", "evidence_ids", "experiment_ids", "confounder_score", "mechanism", "metadata", "edge_id")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_IDS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    CONFOUNDER_SCORE_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    cause: str
    effect: str
    uplift: float
    confidence: float
    sample_size: int
    evidence_ids: _containers.RepeatedScalarFieldContainer[str]
    experiment_ids: _containers.RepeatedScalarFieldContainer[str]
    confounder_score: float
    mechanism: str
    metadata: _struct_pb2.Struct
    edge_id: str
    def __init__(self, cause: _Optional[str] = ..., effect: _Optional[str] = ..., uplift: _Optional[float] = ..., confidence: _Optional[float] = ..., sample_size: _Optional[int] = ..., evidence_ids: _Optional[_Iterable[str]] = ..., experiment_ids: _Optional[_Iterable[str]] = ..., confounder_score: _Optional[float] = ..., mechanism: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., edge_id: _Optional[str] = ...) -> None: ...

class CreateEdgeResponse(_message.Message):
    __slots__ = ("edge",)
    EDGE_FIELD_NUMBER: _ClassVar[int]
    edge: CausalEdge
    def __init__(self, edge: _Optional[_Union[CausalEdge, _Mapping]] = ...) -> None: ...

class GetEdgeRequest(_message.Message):
    __slots__ = ("edge_id",)
    EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    edge_id: str
    def __init__(self, edge_id: _Optional[str] = ...) -> None: ...

class GetEdgeResponse(_message.Message):
    __slots__ = ("edge",)
    EDGE_FIELD_NUMBER: _ClassVar[int]
    edge: CausalEdge
    def __init__(self, edge: _Optional[_Union[CausalEdge, _Mapping]] = ...) -> None: ...

class EdgeFilter(_message.Message):
    __slots__ = ("cause", "effect", "origin", "min_confidence")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    cause: str
    effect: str
    origin: EdgeOrigin
    min_confidence: float
    def __init__(self, cause: _Optional[str] = ..., effect: _Optional[str] = ..., origin: _Optional[_Union[EdgeOrigin, str]] = ..., min_confidence: _Optional[float] = ...) -> None: ...

class ListEdgesRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: EdgeFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[EdgeFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEdgesResponse(_message.Message):
    __slots__ = ("edges", "next_page_token", "total_size")
    EDGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    edges: _containers.RepeatedCompositeFieldContainer[CausalEdge]
    next_page_token: str
    total_size: int
    def __init__(self, edges: _Optional[_Iterable[_Union[CausalEdge, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class DeleteEdgeRequest(_message.Message):
    __slots__ = ("edge_id", "etag")
    EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    edge_id: str
    etag: str
    def __init__(self, edge_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteEdgeResponse(_message.Message):
    __slots__ = ("edge",)
    EDGE_FIELD_NUMBER: _ClassVar[int]
    edge: CausalEdge
    def __init__(self, edge: _Optional[_Union[CausalEdge, _Mapping]] = ...) -> None: ...

class TraceEffectsRequest(_message.Message):
    __slots__ = ("cause", "effect", "min_confidence", "min_uplift", "limit", "max_length")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MIN_UPLIFT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    cause: str
    effect: str
    min_confidence: float
    min_uplift: float
    limit: int
    max_length: int
    def __init__(self, cause: _Optional[str] = ..., effect: _Optional[str] = ..., min_confidence: _Optional[float] = ..., min_uplift: _Optional[float] = ..., limit: _Optional[int] = ..., max_length: _Optional[int] = ...) -> None: ...

class CausalChain(_message.Message):
    __slots__ = ("cause", "effect", "uplift", "confidence", "path")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    cause: str
    effect: str
    uplift: float
    confidence: float
    path: _containers.RepeatedCompositeFieldContainer[CausalEdge]
    def __init__(self, cause: _Optional[str] = ..., effect: _Optional[str] = ..., uplift: _Optional[float] = ..., confidence: _Optional[float] = ..., path: _Optional[_Iterable[_Union[CausalEdge, _Mapping]]] = ...) -> None: ...

class TraceEffectsResponse(_message.Message):
    __slots__ = ("chains", "total_chains", "assumption", "truncated")
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CHAINS_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTION_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[CausalChain]
    total_chains: int
    assumption: str
    truncated: bool
    def __init__(self, chains: _Optional[_Iterable[_Union[CausalChain, _Mapping]]] = ..., total_chains: _Optional[int] = ..., assumption: _Optional[str] = ..., truncated: _Optional[bool] = ...) -> None: ...
