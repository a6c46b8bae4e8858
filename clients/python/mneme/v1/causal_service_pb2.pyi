from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from mneme.v1 import causal_pb2 as _causal_pb2
from mneme.v1 import discovery_pb2 as _discovery_pb2
from mneme.v1 import experiment_pb2 as _experiment_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UpdateExperimentRequest(_message.Message):
    __slots__ = ("experiment", "update_mask")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    experiment: _experiment_pb2.Experiment
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, experiment: _Optional[_Union[_experiment_pb2.Experiment, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateExperimentResponse(_message.Message):
    __slots__ = ("experiment",)
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    experiment: _experiment_pb2.Experiment
    def __init__(self, experiment: _Optional[_Union[_experiment_pb2.Experiment, _Mapping]] = ...) -> None: ...

class UpdateEdgeRequest(_message.Message):
    __slots__ = ("edge", "update_mask")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    edge: _causal_pb2.CausalEdge
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, edge: _Optional[_Union[_causal_pb2.CausalEdge, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateEdgeResponse(_message.Message):
    __slots__ = ("edge",)
    EDGE_FIELD_NUMBER: _ClassVar[int]
    edge: _causal_pb2.CausalEdge
    def __init__(self, edge: _Optional[_Union[_causal_pb2.CausalEdge, _Mapping]] = ...) -> None: ...
