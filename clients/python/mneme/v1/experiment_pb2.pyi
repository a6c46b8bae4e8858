import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import causal_pb2 as _causal_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExperimentStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPERIMENT_STATUS_UNSPECIFIED: _ClassVar[ExperimentStatus]
    EXPERIMENT_STATUS_RUNNING: _ClassVar[ExperimentStatus]
    EXPERIMENT_STATUS_COMPLETED: _ClassVar[ExperimentStatus]
EXPERIMENT_STATUS_UNSPECIFIED: ExperimentStatus
EXPERIMENT_STATUS_RUNNING: ExperimentStatus
EXPERIMENT_STATUS_COMPLETED: ExperimentStatus

class Experiment(_message.Message):
    __slots__ = ("id", "name", "cause", "effect", "description", "block_size", "treated_per_block", "seed", "metadata", "status", "assigned_count", "observation_count", "result", "edge_id", "created_at", "completed_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    TREATED_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    cause: str
    effect: str
    description: str
    block_size: int
    treated_per_block: int
    seed: str
    metadata: _struct_pb2.Struct
    status: ExperimentStatus
    assigned_count: int
    observation_count: int
    result: ExperimentResult
    edge_id: str
    created_at: _timestamp_pb2.Timestamp
    completed_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., cause: _Optional[str] = ..., effect: _Optional[str] = ..., description: _Optional[str] = ..., block_size: _Optional[int] = ..., treated_per_block: _Optional[int] = ..., seed: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., status: _Optional[_Union[ExperimentStatus, str]] = ..., assigned_count: _Optional[int] = ..., observation_count: _Optional[int] = ..., result: _Optional[_Union[ExperimentResult, _Mapping]] = ..., edge_id: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class ExperimentArm(_message.Message):
    __slots__ = ("count", "mean", "deviation")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    count: int
    mean: float
    deviation: float
    def __init__(self, count: _Optional[int] = ..., mean: _Optional[float] = ..., deviation: _Optional[float] = ...) -> None: ...

class ExperimentResult(_message.Message):
    __slots__ = ("treatment", "control", "uplift", "p_value", "low", "high", "sequential_low", "sequential_high", "not_assigned_count", "notes")
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    UPLIFT_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    SEQUENTIAL_LOW_FIELD_NUMBER: _ClassVar[int]
    SEQUENTIAL_HIGH_FIELD_NUMBER: _ClassVar[int]
    NOT_ASSIGNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    treatment: ExperimentArm
    control: ExperimentArm
    uplift: float
    p_value: float
    low: float
    high: float
    sequential_low: float
    sequential_high: float
    not_assigned_count: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, treatment: _Optional[_Union[ExperimentArm, _Mapping]] = ..., control: _Optional[_Union[ExperimentArm, _Mapping]] = ..., uplift: _Optional[float] = ..., p_value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., sequential_low: _Optional[float] = ..., sequential_high: _Optional[float] = ..., not_assigned_count: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateExperimentRequest(_message.Message):
    __slots__ = ("name", "cause", "effect", "description", "block_size", "treated_per_block", "seed", "metadata", "experiment_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    TREATED_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    cause: str
    effect: str
    description: str
    block_size: int
    treated_per_block: int
    seed: str
    metadata: _struct_pb2.Struct
    experiment_id: str
    def __init__(self, name: _Optional[str] = ..., cause: _Optional[str] = ..., effect: _Optional[str] = ..., description: _Optional[str] = ..., block_size: _Optional[int] = ..., treated_per_block: _Optional[int] = ..., seed: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., experiment_id: _Optional[str] = ...) -> None: ...

class CreateExperimentResponse(_message.Message):
    __slots__ = ("experiment",)
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ...) -> None: ...

class GetExperimentRequest(_message.Message):
    __slots__ = ("experiment_id",)
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    def __init__(self, experiment_id: _Optional[str] = ...) -> None: ...

class GetExperimentResponse(_message.Message):
    __slots__ = ("experiment",)
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ...) -> None: ...

class ListExperimentsRequest(_message.Message):
    __slots__ = ("status", "page_size", "page_token")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    status: ExperimentStatus
    page_size: int
    page_token: str
    def __init__(self, status: _Optional[_Union[ExperimentStatus, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListExperimentsResponse(_message.Message):
    __slots__ = ("experiments", "next_page_token", "total_size")
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    experiments: _containers.RepeatedCompositeFieldContainer[Experiment]
    next_page_token: str
    total_size: int
    def __init__(self, experiments: _Optional[_Iterable[_Union[Experiment, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class AssignTreatmentRequest(_message.Message):
    __slots__ = ("experiment_id", "subject", "stratum")
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    STRATUM_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    subject: str
    stratum: str
    def __init__(self, experiment_id: _Optional[str] = ..., subject: _Optional[str] = ..., stratum: _Optional[str] = ...) -> None: ...

class AssignTreatmentResponse(_message.Message):
    __slots__ = ("treatment", "already_assigned", "assigned_at")
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_AT_FIELD_NUMBER: _ClassVar[int]
    treatment: bool
    already_assigned: bool
    assigned_at: _timestamp_pb2.Timestamp
    def __init__(self, treatment: _Optional[bool] = ..., already_assigned: _Optional[bool] = ..., assigned_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecordObservationRequest(_message.Message):
    __slots__ = ("experiment_id", "outcome", "subject", "treatment", "context", "observed_at", "observation_id")
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    outcome: float
    subject: str
    treatment: bool
    context: _struct_pb2.Struct
    observed_at: _timestamp_pb2.Timestamp
    observation_id: str
    def __init__(self, experiment_id: _Optional[str] = ..., outcome: _Optional[float] = ..., subject: _Optional[str] = ..., treatment: _Optional[bool] = ..., context: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., observed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., observation_id: _Optional[str] = ...) -> None: ...

class RecordObservationResponse(_message.Message):
    __slots__ = ("observation_id", "treatment", "observation_count")
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    observation_id: str
    treatment: bool
    observation_count: int
    def __init__(self, observation_id: _Optional[str] = ..., treatment: _Optional[bool] = ..., observation_count: _Optional[int] = ...) -> None: ...

class AnalyzeExperimentRequest(_message.Message):
    __slots__ = ("experiment_id",)
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    def __init__(self, experiment_id: _Optional[str] = ...) -> None: ...

class AnalyzeExperimentResponse(_message.Message):
    __slots__ = ("experiment", "result")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    result: ExperimentResult
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ..., result: _Optional[_Union[ExperimentResult, _Mapping]] = ...) -> None: ...

class ConcludeExperimentRequest(_message.Message):
    __slots__ = ("experiment_id", "without_edge")
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_EDGE_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    without_edge: bool
    def __init__(self, experiment_id: _Optional[str] = ..., without_edge: _Optional[bool] = ...) -> None: ...

class ConcludeExperimentResponse(_message.Message):
    __slots__ = ("experiment", "edge")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    edge: _causal_pb2.CausalEdge
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ..., edge: _Optional[_Union[_causal_pb2.CausalEdge, _Mapping]] = ...) -> None: ...

class DeleteExperimentRequest(_message.Message):
    __slots__ = ("experiment_id", "etag")
    EXPERIMENT_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    experiment_id: str
    etag: str
    def __init__(self, experiment_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteExperimentResponse(_message.Message):
    __slots__ = ("experiment",)
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ...) -> None: ...
