import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import duration_pb2 as _duration_pb2
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

class LearningMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEARNING_MODE_UNSPECIFIED: _ClassVar[LearningMode]
    LEARNING_MODE_INLINE: _ClassVar[LearningMode]
    LEARNING_MODE_BACKGROUND: _ClassVar[LearningMode]

class LearningStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEARNING_STATUS_UNSPECIFIED: _ClassVar[LearningStatus]
    LEARNING_STATUS_ACTIVE: _ClassVar[LearningStatus]
    LEARNING_STATUS_ENDED: _ClassVar[LearningStatus]

class ConvergenceStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVERGENCE_STATUS_UNSPECIFIED: _ClassVar[ConvergenceStatus]
    CONVERGENCE_STATUS_INITIALIZING: _ClassVar[ConvergenceStatus]
    CONVERGENCE_STATUS_LEARNING: _ClassVar[ConvergenceStatus]
    CONVERGENCE_STATUS_CONVERGING: _ClassVar[ConvergenceStatus]
    CONVERGENCE_STATUS_CONVERGED: _ClassVar[ConvergenceStatus]
    CONVERGENCE_STATUS_SETTLED: _ClassVar[ConvergenceStatus]

class LossTrend(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_TREND_UNSPECIFIED: _ClassVar[LossTrend]
    LOSS_TREND_DECREASING: _ClassVar[LossTrend]
    LOSS_TREND_STABLE: _ClassVar[LossTrend]
    LOSS_TREND_INCREASING: _ClassVar[LossTrend]
LEARNING_MODE_UNSPECIFIED: LearningMode
LEARNING_MODE_INLINE: LearningMode
LEARNING_MODE_BACKGROUND: LearningMode
LEARNING_STATUS_UNSPECIFIED: LearningStatus
LEARNING_STATUS_ACTIVE: LearningStatus
LEARNING_STATUS_ENDED: LearningStatus
CONVERGENCE_STATUS_UNSPECIFIED: ConvergenceStatus
CONVERGENCE_STATUS_INITIALIZING: ConvergenceStatus
CONVERGENCE_STATUS_LEARNING: ConvergenceStatus
CONVERGENCE_STATUS_CONVERGING: ConvergenceStatus
CONVERGENCE_STATUS_CONVERGED: ConvergenceStatus
CONVERGENCE_STATUS_SETTLED: ConvergenceStatus
LOSS_TREND_UNSPECIFIED: LossTrend
LOSS_TREND_DECREASING: LossTrend
LOSS_TREND_STABLE: LossTrend
LOSS_TREND_INCREASING: LossTrend

class Numbers(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("json", "numbers", "number", "label")
    JSON_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    json: _struct_pb2.Struct
    numbers: Numbers
    number: int
    label: str
    def __init__(self, json: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., numbers: _Optional[_Union[Numbers, _Mapping]] = ..., number: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("label", "number", "numbers", "json")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    label: str
    number: int
    numbers: Numbers
    json: _struct_pb2.Struct
    def __init__(self, label: _Optional[str] = ..., number: _Optional[int] = ..., numbers: _Optional[_Union[Numbers, _Mapping]] = ..., json: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class DiscreteSpace(_message.Message):
    __slots__ = ("n", "labels")
    N_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    n: int
    labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, n: _Optional[int] = ..., labels: _Optional[_Iterable[str]] = ...) -> None: ...

class MultiDiscreteSpace(_message.Message):
    __slots__ = ("sizes",)
    SIZES_FIELD_NUMBER: _ClassVar[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class BoxSpace(_message.Message):
    __slots__ = ("low", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: _containers.RepeatedScalarFieldContainer[float]
    high: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, low: _Optional[_Iterable[float]] = ..., high: _Optional[_Iterable[float]] = ...) -> None: ...

class OpenLabelsSpace(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenObjectSpace(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NamedSpace(_message.Message):
    __slots__ = ("key", "discrete", "multi_discrete", "box", "open_labels")
    KEY_FIELD_NUMBER: _ClassVar[int]
    DISCRETE_FIELD_NUMBER: _ClassVar[int]
    MULTI_DISCRETE_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    OPEN_LABELS_FIELD_NUMBER: _ClassVar[int]
    key: str
    discrete: DiscreteSpace
    multi_discrete: MultiDiscreteSpace
    box: BoxSpace
    open_labels: OpenLabelsSpace
    def __init__(self, key: _Optional[str] = ..., discrete: _Optional[_Union[DiscreteSpace, _Mapping]] = ..., multi_discrete: _Optional[_Union[MultiDiscreteSpace, _Mapping]] = ..., box: _Optional[_Union[BoxSpace, _Mapping]] = ..., open_labels: _Optional[_Union[OpenLabelsSpace, _Mapping]] = ...) -> None: ...

class DictSpace(_message.Message):
    __slots__ = ("spaces",)
    SPACES_FIELD_NUMBER: _ClassVar[int]
    spaces: _containers.RepeatedCompositeFieldContainer[NamedSpace]
    def __init__(self, spaces: _Optional[_Iterable[_Union[NamedSpace, _Mapping]]] = ...) -> None: ...

class Space(_message.Message):
    __slots__ = ("discrete", "multi_discrete", "box", "dict", "open_labels", "open_object")
    DISCRETE_FIELD_NUMBER: _ClassVar[int]
    MULTI_DISCRETE_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    DICT_FIELD_NUMBER: _ClassVar[int]
    OPEN_LABELS_FIELD_NUMBER: _ClassVar[int]
    OPEN_OBJECT_FIELD_NUMBER: _ClassVar[int]
    discrete: DiscreteSpace
    multi_discrete: MultiDiscreteSpace
    box: BoxSpace
    dict: DictSpace
    open_labels: OpenLabelsSpace
    open_object: OpenObjectSpace
    def __init__(self, discrete: _Optional[_Union[DiscreteSpace, _Mapping]] = ..., multi_discrete: _Optional[_Union[MultiDiscreteSpace, _Mapping]] = ..., box: _Optional[_Union[BoxSpace, _Mapping]] = ..., dict: _Optional[_Union[DictSpace, _Mapping]] = ..., open_labels: _Optional[_Union[OpenLabelsSpace, _Mapping]] = ..., open_object: _Optional[_Union[OpenObjectSpace, _Mapping]] = ...) -> None: ...

class Experience(_message.Message):
    __slots__ = ("prediction_id", "state", "action", "reward", "next_state", "terminated", "truncated", "actor_id", "probability", "next_allowed_actions", "allowed_actions")
    PREDICTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    NEXT_STATE_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    ACTOR_ID_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    NEXT_ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    prediction_id: str
    state: State
    action: Action
    reward: float
    next_state: State
    terminated: bool
    truncated: bool
    actor_id: str
    probability: float
    next_allowed_actions: _containers.RepeatedCompositeFieldContainer[Action]
    allowed_actions: _containers.RepeatedCompositeFieldContainer[Action]
    def __init__(self, prediction_id: _Optional[str] = ..., state: _Optional[_Union[State, _Mapping]] = ..., action: _Optional[_Union[Action, _Mapping]] = ..., reward: _Optional[float] = ..., next_state: _Optional[_Union[State, _Mapping]] = ..., terminated: _Optional[bool] = ..., truncated: _Optional[bool] = ..., actor_id: _Optional[str] = ..., probability: _Optional[float] = ..., next_allowed_actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., allowed_actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ...) -> None: ...

class Trajectory(_message.Message):
    __slots__ = ("id", "metadata", "steps", "total_reward", "first_transition", "recorded_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    FIRST_TRANSITION_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    metadata: _struct_pb2.Struct
    steps: int
    total_reward: float
    first_transition: int
    recorded_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., steps: _Optional[int] = ..., total_reward: _Optional[float] = ..., first_transition: _Optional[int] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LearningSession(_message.Message):
    __slots__ = ("id", "algorithm", "config", "state_space", "action_space", "seed", "learning", "status", "trained", "transitions", "learned", "episodes_completed", "total_reward", "avg_reward", "known_actions", "experience_bytes", "created_at", "updated_at", "ended_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    STATE_SPACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_SPACE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    LEARNING_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TRAINED_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    EPISODES_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    KNOWN_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    algorithm: str
    config: _struct_pb2.Struct
    state_space: Space
    action_space: Space
    seed: int
    learning: LearningMode
    status: LearningStatus
    trained: bool
    transitions: int
    learned: int
    episodes_completed: int
    total_reward: float
    avg_reward: float
    known_actions: _containers.RepeatedCompositeFieldContainer[Action]
    experience_bytes: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., algorithm: _Optional[str] = ..., config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., state_space: _Optional[_Union[Space, _Mapping]] = ..., action_space: _Optional[_Union[Space, _Mapping]] = ..., seed: _Optional[int] = ..., learning: _Optional[_Union[LearningMode, str]] = ..., status: _Optional[_Union[LearningStatus, str]] = ..., trained: _Optional[bool] = ..., transitions: _Optional[int] = ..., learned: _Optional[int] = ..., episodes_completed: _Optional[int] = ..., total_reward: _Optional[float] = ..., avg_reward: _Optional[float] = ..., known_actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., experience_bytes: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ActionScore(_message.Message):
    __slots__ = ("action", "value", "probability")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    action: Action
    value: float
    probability: float
    def __init__(self, action: _Optional[_Union[Action, _Mapping]] = ..., value: _Optional[float] = ..., probability: _Optional[float] = ...) -> None: ...

class Prediction(_message.Message):
    __slots__ = ("prediction_id", "action", "confidence", "probability", "explored", "trained", "actions")
    PREDICTION_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    EXPLORED_FIELD_NUMBER: _ClassVar[int]
    TRAINED_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    prediction_id: str
    action: Action
    confidence: float
    probability: float
    explored: bool
    trained: bool
    actions: _containers.RepeatedCompositeFieldContainer[ActionScore]
    def __init__(self, prediction_id: _Optional[str] = ..., action: _Optional[_Union[Action, _Mapping]] = ..., confidence: _Optional[float] = ..., probability: _Optional[float] = ..., explored: _Optional[bool] = ..., trained: _Optional[bool] = ..., actions: _Optional[_Iterable[_Union[ActionScore, _Mapping]]] = ...) -> None: ...

class MetricsPoint(_message.Message):
    __slots__ = ("episode", "transitions", "episode_reward", "moving_avg_reward", "loss", "value_mean", "gradient_norm", "exploration_rate", "recorded_at")
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    EPISODE_REWARD_FIELD_NUMBER: _ClassVar[int]
    MOVING_AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    VALUE_MEAN_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_NORM_FIELD_NUMBER: _ClassVar[int]
    EXPLORATION_RATE_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    episode: int
    transitions: int
    episode_reward: float
    moving_avg_reward: float
    loss: float
    value_mean: float
    gradient_norm: float
    exploration_rate: float
    recorded_at: _timestamp_pb2.Timestamp
    def __init__(self, episode: _Optional[int] = ..., transitions: _Optional[int] = ..., episode_reward: _Optional[float] = ..., moving_avg_reward: _Optional[float] = ..., loss: _Optional[float] = ..., value_mean: _Optional[float] = ..., gradient_norm: _Optional[float] = ..., exploration_rate: _Optional[float] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BestPolicy(_message.Message):
    __slots__ = ("avg_reward", "episode", "recent_avg_reward", "chooses")
    AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    RECENT_AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    CHOOSES_FIELD_NUMBER: _ClassVar[int]
    avg_reward: float
    episode: int
    recent_avg_reward: float
    chooses: bool
    def __init__(self, avg_reward: _Optional[float] = ..., episode: _Optional[int] = ..., recent_avg_reward: _Optional[float] = ..., chooses: _Optional[bool] = ...) -> None: ...

class LearningMetrics(_message.Message):
    __slots__ = ("episodes_completed", "transitions", "total_reward", "avg_reward", "moving_avg_reward", "convergence_score", "convergence_status", "loss_trend", "exploration_rate", "updates", "training_time", "history", "best_policy", "notes")
    EPISODES_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    MOVING_AVG_REWARD_FIELD_NUMBER: _ClassVar[int]
    CONVERGENCE_SCORE_FIELD_NUMBER: _ClassVar[int]
    CONVERGENCE_STATUS_FIELD_NUMBER: _ClassVar[int]
    LOSS_TREND_FIELD_NUMBER: _ClassVar[int]
    EXPLORATION_RATE_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    TRAINING_TIME_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    BEST_POLICY_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    episodes_completed: int
    transitions: int
    total_reward: float
    avg_reward: float
    moving_avg_reward: float
    convergence_score: float
    convergence_status: ConvergenceStatus
    loss_trend: LossTrend
    exploration_rate: float
    updates: int
    training_time: _duration_pb2.Duration
    history: _containers.RepeatedCompositeFieldContainer[MetricsPoint]
    best_policy: BestPolicy
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, episodes_completed: _Optional[int] = ..., transitions: _Optional[int] = ..., total_reward: _Optional[float] = ..., avg_reward: _Optional[float] = ..., moving_avg_reward: _Optional[float] = ..., convergence_score: _Optional[float] = ..., convergence_status: _Optional[_Union[ConvergenceStatus, str]] = ..., loss_trend: _Optional[_Union[LossTrend, str]] = ..., exploration_rate: _Optional[float] = ..., updates: _Optional[int] = ..., training_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., history: _Optional[_Iterable[_Union[MetricsPoint, _Mapping]]] = ..., best_policy: _Optional[_Union[BestPolicy, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportedModel(_message.Message):
    __slots__ = ("name", "size_bytes", "sha256", "exported_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    EXPORTED_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    sha256: str
    exported_at: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., exported_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
