import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import learning_pb2 as _learning_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RecordKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECORD_KIND_UNSPECIFIED: _ClassVar[RecordKind]
    RECORD_KIND_SESSIONS: _ClassVar[RecordKind]
    RECORD_KIND_EPISODES: _ClassVar[RecordKind]

class ActionSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_SOURCE_UNSPECIFIED: _ClassVar[ActionSource]
    ACTION_SOURCE_TOOL: _ClassVar[ActionSource]
    ACTION_SOURCE_TAG: _ClassVar[ActionSource]
    ACTION_SOURCE_FIELD: _ClassVar[ActionSource]
RECORD_KIND_UNSPECIFIED: RecordKind
RECORD_KIND_SESSIONS: RecordKind
RECORD_KIND_EPISODES: RecordKind
ACTION_SOURCE_UNSPECIFIED: ActionSource
ACTION_SOURCE_TOOL: ActionSource
ACTION_SOURCE_TAG: ActionSource
ACTION_SOURCE_FIELD: ActionSource

class RecordSelection(_message.Message):
    __slots__ = ("agent_id", "user_id", "project", "tags", "start_time", "end_time")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StateField(_message.Message):
    __slots__ = ("name", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class ImportExperienceRequest(_message.Message):
    __slots__ = ("session_id", "kind", "selection", "state_fields", "action_source", "action_name", "reward_field", "failed_call_reward", "dry_run", "example_count")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    ACTION_SOURCE_FIELD_NUMBER: _ClassVar[int]
    ACTION_NAME_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_FIELD_NUMBER: _ClassVar[int]
    FAILED_CALL_REWARD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    kind: RecordKind
    selection: RecordSelection
    state_fields: _containers.RepeatedCompositeFieldContainer[StateField]
    action_source: ActionSource
    action_name: str
    reward_field: str
    failed_call_reward: float
    dry_run: bool
    example_count: int
    def __init__(self, session_id: _Optional[str] = ..., kind: _Optional[_Union[RecordKind, str]] = ..., selection: _Optional[_Union[RecordSelection, _Mapping]] = ..., state_fields: _Optional[_Iterable[_Union[StateField, _Mapping]]] = ..., action_source: _Optional[_Union[ActionSource, str]] = ..., action_name: _Optional[str] = ..., reward_field: _Optional[str] = ..., failed_call_reward: _Optional[float] = ..., dry_run: _Optional[bool] = ..., example_count: _Optional[int] = ...) -> None: ...

class SkippedRecords(_message.Message):
    __slots__ = ("reason", "count", "examples")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    examples: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ..., examples: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportedTrajectory(_message.Message):
    __slots__ = ("record_id", "steps", "step_count", "total_reward")
    RECORD_ID_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    record_id: str
    steps: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Experience]
    step_count: int
    total_reward: float
    def __init__(self, record_id: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[_learning_pb2.Experience, _Mapping]]] = ..., step_count: _Optional[int] = ..., total_reward: _Optional[float] = ...) -> None: ...

class ImportExperienceResponse(_message.Message):
    __slots__ = ("records_read", "records", "imported", "known", "steps", "skipped", "examples", "actions", "transitions", "dry_run")
    RECORDS_READ_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    records_read: int
    records: int
    imported: int
    known: int
    steps: int
    skipped: _containers.RepeatedCompositeFieldContainer[SkippedRecords]
    examples: _containers.RepeatedCompositeFieldContainer[ImportedTrajectory]
    actions: _containers.RepeatedCompositeFieldContainer[ActionCount]
    transitions: int
    dry_run: bool
    def __init__(self, records_read: _Optional[int] = ..., records: _Optional[int] = ..., imported: _Optional[int] = ..., known: _Optional[int] = ..., steps: _Optional[int] = ..., skipped: _Optional[_Iterable[_Union[SkippedRecords, _Mapping]]] = ..., examples: _Optional[_Iterable[_Union[ImportedTrajectory, _Mapping]]] = ..., actions: _Optional[_Iterable[_Union[ActionCount, _Mapping]]] = ..., transitions: _Optional[int] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ActionCount(_message.Message):
    __slots__ = ("action", "count", "mean_reward")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MEAN_REWARD_FIELD_NUMBER: _ClassVar[int]
    action: _learning_pb2.Action
    count: int
    mean_reward: float
    def __init__(self, action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., count: _Optional[int] = ..., mean_reward: _Optional[float] = ...) -> None: ...
