import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from mneme.v1 import learning_pb2 as _learning_pb2
from mneme.v1 import learning_import_pb2 as _learning_import_pb2
from mneme.v1 import learning_trust_pb2 as _learning_trust_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AlgorithmKey(_message.Message):
    __slots__ = ("name", "meaning", "number", "text", "whole", "low", "high", "choices")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    name: str
    meaning: str
    number: float
    text: str
    whole: bool
    low: float
    high: float
    choices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., meaning: _Optional[str] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., whole: _Optional[bool] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., choices: _Optional[_Iterable[str]] = ...) -> None: ...

class AlgorithmDescription(_message.Message):
    __slots__ = ("name", "summary", "source", "discrete_actions", "continuous_actions", "open_actions", "on_policy", "keys", "available", "missing")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DISCRETE_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    CONTINUOUS_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    OPEN_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    ON_POLICY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    name: str
    summary: str
    source: str
    discrete_actions: bool
    continuous_actions: bool
    open_actions: bool
    on_policy: bool
    keys: _containers.RepeatedCompositeFieldContainer[AlgorithmKey]
    available: bool
    missing: str
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ..., source: _Optional[str] = ..., discrete_actions: _Optional[bool] = ..., continuous_actions: _Optional[bool] = ..., open_actions: _Optional[bool] = ..., on_policy: _Optional[bool] = ..., keys: _Optional[_Iterable[_Union[AlgorithmKey, _Mapping]]] = ..., available: _Optional[bool] = ..., missing: _Optional[str] = ...) -> None: ...

class ListAlgorithmsRequest(_message.Message):
    __slots__ = ("algorithm",)
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    algorithm: str
    def __init__(self, algorithm: _Optional[str] = ...) -> None: ...

class ListAlgorithmsResponse(_message.Message):
    __slots__ = ("algorithms",)
    ALGORITHMS_FIELD_NUMBER: _ClassVar[int]
    algorithms: _containers.RepeatedCompositeFieldContainer[AlgorithmDescription]
    def __init__(self, algorithms: _Optional[_Iterable[_Union[AlgorithmDescription, _Mapping]]] = ...) -> None: ...

class StartLearningSessionRequest(_message.Message):
    __slots__ = ("session_id", "algorithm", "config", "state_space", "action_space", "seed", "learning")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    STATE_SPACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_SPACE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    LEARNING_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    algorithm: str
    config: _struct_pb2.Struct
    state_space: _learning_pb2.Space
    action_space: _learning_pb2.Space
    seed: int
    learning: _learning_pb2.LearningMode
    def __init__(self, session_id: _Optional[str] = ..., algorithm: _Optional[str] = ..., config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., state_space: _Optional[_Union[_learning_pb2.Space, _Mapping]] = ..., action_space: _Optional[_Union[_learning_pb2.Space, _Mapping]] = ..., seed: _Optional[int] = ..., learning: _Optional[_Union[_learning_pb2.LearningMode, str]] = ...) -> None: ...

class StartLearningSessionResponse(_message.Message):
    __slots__ = ("session", "resumed")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    session: _learning_pb2.LearningSession
    resumed: bool
    def __init__(self, session: _Optional[_Union[_learning_pb2.LearningSession, _Mapping]] = ..., resumed: _Optional[bool] = ...) -> None: ...

class GetLearningSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetLearningSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _learning_pb2.LearningSession
    def __init__(self, session: _Optional[_Union[_learning_pb2.LearningSession, _Mapping]] = ...) -> None: ...

class ListLearningSessionsRequest(_message.Message):
    __slots__ = ("algorithm", "status", "page_size", "page_token")
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    algorithm: str
    status: _learning_pb2.LearningStatus
    page_size: int
    page_token: str
    def __init__(self, algorithm: _Optional[str] = ..., status: _Optional[_Union[_learning_pb2.LearningStatus, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLearningSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.LearningSession]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[_learning_pb2.LearningSession, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteLearningSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class DeleteLearningSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _learning_pb2.LearningSession
    def __init__(self, session: _Optional[_Union[_learning_pb2.LearningSession, _Mapping]] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("session_id", "state", "explore", "allowed_actions", "actor_id", "target_return", "only_if_better")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXPLORE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    ACTOR_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_RETURN_FIELD_NUMBER: _ClassVar[int]
    ONLY_IF_BETTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    state: _learning_pb2.State
    explore: bool
    allowed_actions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Action]
    actor_id: str
    target_return: float
    only_if_better: _learning_trust_pb2.PolicyBaseline
    def __init__(self, session_id: _Optional[str] = ..., state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., explore: _Optional[bool] = ..., allowed_actions: _Optional[_Iterable[_Union[_learning_pb2.Action, _Mapping]]] = ..., actor_id: _Optional[str] = ..., target_return: _Optional[float] = ..., only_if_better: _Optional[_Union[_learning_trust_pb2.PolicyBaseline, _Mapping]] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("prediction", "gate")
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    prediction: _learning_pb2.Prediction
    gate: _learning_trust_pb2.GateVerdict
    def __init__(self, prediction: _Optional[_Union[_learning_pb2.Prediction, _Mapping]] = ..., gate: _Optional[_Union[_learning_trust_pb2.GateVerdict, _Mapping]] = ...) -> None: ...

class FeedbackRequest(_message.Message):
    __slots__ = ("session_id", "prediction_id", "state", "action", "reward", "next_state", "terminated", "truncated", "actor_id", "probability", "next_allowed_actions", "feedback_id", "allowed_actions")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
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
    FEEDBACK_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    prediction_id: str
    state: _learning_pb2.State
    action: _learning_pb2.Action
    reward: float
    next_state: _learning_pb2.State
    terminated: bool
    truncated: bool
    actor_id: str
    probability: float
    next_allowed_actions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Action]
    feedback_id: str
    allowed_actions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Action]
    def __init__(self, session_id: _Optional[str] = ..., prediction_id: _Optional[str] = ..., state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., reward: _Optional[float] = ..., next_state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., terminated: _Optional[bool] = ..., truncated: _Optional[bool] = ..., actor_id: _Optional[str] = ..., probability: _Optional[float] = ..., next_allowed_actions: _Optional[_Iterable[_Union[_learning_pb2.Action, _Mapping]]] = ..., feedback_id: _Optional[str] = ..., allowed_actions: _Optional[_Iterable[_Union[_learning_pb2.Action, _Mapping]]] = ...) -> None: ...

class FeedbackResponse(_message.Message):
    __slots__ = ("transition", "duplicate", "updates", "loss", "value_mean", "episode_reward", "episodes_completed")
    TRANSITION_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    VALUE_MEAN_FIELD_NUMBER: _ClassVar[int]
    EPISODE_REWARD_FIELD_NUMBER: _ClassVar[int]
    EPISODES_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    transition: int
    duplicate: bool
    updates: int
    loss: float
    value_mean: float
    episode_reward: float
    episodes_completed: int
    def __init__(self, transition: _Optional[int] = ..., duplicate: _Optional[bool] = ..., updates: _Optional[int] = ..., loss: _Optional[float] = ..., value_mean: _Optional[float] = ..., episode_reward: _Optional[float] = ..., episodes_completed: _Optional[int] = ...) -> None: ...

class ActState(_message.Message):
    __slots__ = ("state", "actor_id", "allowed_actions", "target_return")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTOR_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    TARGET_RETURN_FIELD_NUMBER: _ClassVar[int]
    state: _learning_pb2.State
    actor_id: str
    allowed_actions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Action]
    target_return: float
    def __init__(self, state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., actor_id: _Optional[str] = ..., allowed_actions: _Optional[_Iterable[_Union[_learning_pb2.Action, _Mapping]]] = ..., target_return: _Optional[float] = ...) -> None: ...

class ActRequest(_message.Message):
    __slots__ = ("session_id", "feedback", "states", "explore", "with_scores", "without_feedback", "only_if_better")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    EXPLORE_FIELD_NUMBER: _ClassVar[int]
    WITH_SCORES_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    ONLY_IF_BETTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    feedback: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Experience]
    states: _containers.RepeatedCompositeFieldContainer[ActState]
    explore: bool
    with_scores: bool
    without_feedback: bool
    only_if_better: _learning_trust_pb2.PolicyBaseline
    def __init__(self, session_id: _Optional[str] = ..., feedback: _Optional[_Iterable[_Union[_learning_pb2.Experience, _Mapping]]] = ..., states: _Optional[_Iterable[_Union[ActState, _Mapping]]] = ..., explore: _Optional[bool] = ..., with_scores: _Optional[bool] = ..., without_feedback: _Optional[bool] = ..., only_if_better: _Optional[_Union[_learning_trust_pb2.PolicyBaseline, _Mapping]] = ...) -> None: ...

class ActResponse(_message.Message):
    __slots__ = ("predictions", "transitions", "episodes_completed", "updates", "loss", "gate")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    EPISODES_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    predictions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Prediction]
    transitions: int
    episodes_completed: int
    updates: int
    loss: float
    gate: _learning_trust_pb2.GateVerdict
    def __init__(self, predictions: _Optional[_Iterable[_Union[_learning_pb2.Prediction, _Mapping]]] = ..., transitions: _Optional[int] = ..., episodes_completed: _Optional[int] = ..., updates: _Optional[int] = ..., loss: _Optional[float] = ..., gate: _Optional[_Union[_learning_trust_pb2.GateVerdict, _Mapping]] = ...) -> None: ...

class TrainRequest(_message.Message):
    __slots__ = ("session_id", "num_steps", "batch_size")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    num_steps: int
    batch_size: int
    def __init__(self, session_id: _Optional[str] = ..., num_steps: _Optional[int] = ..., batch_size: _Optional[int] = ...) -> None: ...

class TrainResponse(_message.Message):
    __slots__ = ("steps_completed", "num_steps", "updates", "loss", "value_mean", "gradient_norm", "steps_per_second", "training_time")
    STEPS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    VALUE_MEAN_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_NORM_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TRAINING_TIME_FIELD_NUMBER: _ClassVar[int]
    steps_completed: int
    num_steps: int
    updates: int
    loss: float
    value_mean: float
    gradient_norm: float
    steps_per_second: float
    training_time: _duration_pb2.Duration
    def __init__(self, steps_completed: _Optional[int] = ..., num_steps: _Optional[int] = ..., updates: _Optional[int] = ..., loss: _Optional[float] = ..., value_mean: _Optional[float] = ..., gradient_norm: _Optional[float] = ..., steps_per_second: _Optional[float] = ..., training_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RecordExperienceRequest(_message.Message):
    __slots__ = ("session_id", "steps", "trajectory_id", "metadata")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    steps: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Experience]
    trajectory_id: str
    metadata: _struct_pb2.Struct
    def __init__(self, session_id: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[_learning_pb2.Experience, _Mapping]]] = ..., trajectory_id: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RecordExperienceResponse(_message.Message):
    __slots__ = ("trajectory_id", "steps_recorded", "total_reward", "transitions", "updates", "experience_bytes", "utilization")
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    STEPS_RECORDED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCE_BYTES_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    steps_recorded: int
    total_reward: float
    transitions: int
    updates: int
    experience_bytes: int
    utilization: float
    def __init__(self, trajectory_id: _Optional[str] = ..., steps_recorded: _Optional[int] = ..., total_reward: _Optional[float] = ..., transitions: _Optional[int] = ..., updates: _Optional[int] = ..., experience_bytes: _Optional[int] = ..., utilization: _Optional[float] = ...) -> None: ...

class RecordTrajectoriesRequest(_message.Message):
    __slots__ = ("session_id", "steps", "trajectory_id", "metadata")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    steps: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Experience]
    trajectory_id: str
    metadata: _struct_pb2.Struct
    def __init__(self, session_id: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[_learning_pb2.Experience, _Mapping]]] = ..., trajectory_id: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RecordTrajectoriesResponse(_message.Message):
    __slots__ = ("acknowledged_count", "known_count", "steps_recorded", "trajectory_ids", "transitions", "updates", "experience_bytes", "utilization")
    ACKNOWLEDGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_COUNT_FIELD_NUMBER: _ClassVar[int]
    STEPS_RECORDED_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_IDS_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCE_BYTES_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    acknowledged_count: int
    known_count: int
    steps_recorded: int
    trajectory_ids: _containers.RepeatedScalarFieldContainer[str]
    transitions: int
    updates: int
    experience_bytes: int
    utilization: float
    def __init__(self, acknowledged_count: _Optional[int] = ..., known_count: _Optional[int] = ..., steps_recorded: _Optional[int] = ..., trajectory_ids: _Optional[_Iterable[str]] = ..., transitions: _Optional[int] = ..., updates: _Optional[int] = ..., experience_bytes: _Optional[int] = ..., utilization: _Optional[float] = ...) -> None: ...

class ListTrajectoriesRequest(_message.Message):
    __slots__ = ("session_id", "page_size", "page_token")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    page_size: int
    page_token: str
    def __init__(self, session_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTrajectoriesResponse(_message.Message):
    __slots__ = ("trajectories", "next_page_token")
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    trajectories: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Trajectory]
    next_page_token: str
    def __init__(self, trajectories: _Optional[_Iterable[_Union[_learning_pb2.Trajectory, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetLearningMetricsRequest(_message.Message):
    __slots__ = ("session_id", "window_size", "history_size", "evaluate")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_SIZE_FIELD_NUMBER: _ClassVar[int]
    HISTORY_SIZE_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    window_size: int
    history_size: int
    evaluate: bool
    def __init__(self, session_id: _Optional[str] = ..., window_size: _Optional[int] = ..., history_size: _Optional[int] = ..., evaluate: _Optional[bool] = ...) -> None: ...

class GetLearningMetricsResponse(_message.Message):
    __slots__ = ("metrics", "evaluation")
    METRICS_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    metrics: _learning_pb2.LearningMetrics
    evaluation: _learning_trust_pb2.OffPolicyEvaluation
    def __init__(self, metrics: _Optional[_Union[_learning_pb2.LearningMetrics, _Mapping]] = ..., evaluation: _Optional[_Union[_learning_trust_pb2.OffPolicyEvaluation, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("session_id", "state", "action", "allowed_actions")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    state: _learning_pb2.State
    action: _learning_pb2.Action
    allowed_actions: _containers.RepeatedCompositeFieldContainer[_learning_pb2.Action]
    def __init__(self, session_id: _Optional[str] = ..., state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., allowed_actions: _Optional[_Iterable[_Union[_learning_pb2.Action, _Mapping]]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("explanation",)
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    explanation: _learning_trust_pb2.Explanation
    def __init__(self, explanation: _Optional[_Union[_learning_trust_pb2.Explanation, _Mapping]] = ...) -> None: ...

class ShapeRewardRequest(_message.Message):
    __slots__ = ("session_id", "extrinsic_reward", "state", "next_state", "action", "terminated", "actor_id", "shaping_type", "shaping_weight", "potential_based")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRINSIC_REWARD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STATE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    ACTOR_ID_FIELD_NUMBER: _ClassVar[int]
    SHAPING_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPING_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    POTENTIAL_BASED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    extrinsic_reward: float
    state: _learning_pb2.State
    next_state: _learning_pb2.State
    action: _learning_pb2.Action
    terminated: bool
    actor_id: str
    shaping_type: _learning_trust_pb2.ShapingType
    shaping_weight: float
    potential_based: bool
    def __init__(self, session_id: _Optional[str] = ..., extrinsic_reward: _Optional[float] = ..., state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., next_state: _Optional[_Union[_learning_pb2.State, _Mapping]] = ..., action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., terminated: _Optional[bool] = ..., actor_id: _Optional[str] = ..., shaping_type: _Optional[_Union[_learning_trust_pb2.ShapingType, str]] = ..., shaping_weight: _Optional[float] = ..., potential_based: _Optional[bool] = ...) -> None: ...

class ShapeRewardResponse(_message.Message):
    __slots__ = ("extrinsic_reward", "intrinsic_reward", "shaped_reward", "components", "keeps_best_policy", "why")
    EXTRINSIC_REWARD_FIELD_NUMBER: _ClassVar[int]
    INTRINSIC_REWARD_FIELD_NUMBER: _ClassVar[int]
    SHAPED_REWARD_FIELD_NUMBER: _ClassVar[int]
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_BEST_POLICY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    extrinsic_reward: float
    intrinsic_reward: float
    shaped_reward: float
    components: _learning_trust_pb2.ShapingComponents
    keeps_best_policy: bool
    why: str
    def __init__(self, extrinsic_reward: _Optional[float] = ..., intrinsic_reward: _Optional[float] = ..., shaped_reward: _Optional[float] = ..., components: _Optional[_Union[_learning_trust_pb2.ShapingComponents, _Mapping]] = ..., keeps_best_policy: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("source_session_id", "target_session_id", "transfer_type", "similarity_threshold", "dry_run", "undo")
    SOURCE_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    source_session_id: str
    target_session_id: str
    transfer_type: _learning_trust_pb2.TransferType
    similarity_threshold: float
    dry_run: bool
    undo: bool
    def __init__(self, source_session_id: _Optional[str] = ..., target_session_id: _Optional[str] = ..., transfer_type: _Optional[_Union[_learning_trust_pb2.TransferType, str]] = ..., similarity_threshold: _Optional[float] = ..., dry_run: _Optional[bool] = ..., undo: _Optional[bool] = ...) -> None: ...

class TransferResponse(_message.Message):
    __slots__ = ("task_similarity", "parameters_transferred", "performance_baseline", "performance_after_transfer", "improvement", "gain", "worth", "applied")
    TASK_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_TRANSFERRED_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_BASELINE_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_AFTER_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    IMPROVEMENT_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    WORTH_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    task_similarity: _learning_trust_pb2.TaskSimilarity
    parameters_transferred: int
    performance_baseline: _learning_trust_pb2.OffPolicyEvaluation
    performance_after_transfer: _learning_trust_pb2.OffPolicyEvaluation
    improvement: float
    gain: _learning_trust_pb2.Estimate
    worth: str
    applied: bool
    def __init__(self, task_similarity: _Optional[_Union[_learning_trust_pb2.TaskSimilarity, _Mapping]] = ..., parameters_transferred: _Optional[int] = ..., performance_baseline: _Optional[_Union[_learning_trust_pb2.OffPolicyEvaluation, _Mapping]] = ..., performance_after_transfer: _Optional[_Union[_learning_trust_pb2.OffPolicyEvaluation, _Mapping]] = ..., improvement: _Optional[float] = ..., gain: _Optional[_Union[_learning_trust_pb2.Estimate, _Mapping]] = ..., worth: _Optional[str] = ..., applied: _Optional[bool] = ...) -> None: ...

class EndLearningSessionRequest(_message.Message):
    __slots__ = ("session_id", "skip_export", "min_performance", "skip_skill")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SKIP_EXPORT_FIELD_NUMBER: _ClassVar[int]
    MIN_PERFORMANCE_FIELD_NUMBER: _ClassVar[int]
    SKIP_SKILL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    skip_export: bool
    min_performance: float
    skip_skill: bool
    def __init__(self, session_id: _Optional[str] = ..., skip_export: _Optional[bool] = ..., min_performance: _Optional[float] = ..., skip_skill: _Optional[bool] = ...) -> None: ...

class EndLearningSessionResponse(_message.Message):
    __slots__ = ("session", "metrics", "model_path", "model_bytes", "meets_skill_bar", "session_duration", "skill_id", "skill_created")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    MODEL_PATH_FIELD_NUMBER: _ClassVar[int]
    MODEL_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEETS_SKILL_BAR_FIELD_NUMBER: _ClassVar[int]
    SESSION_DURATION_FIELD_NUMBER: _ClassVar[int]
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    SKILL_CREATED_FIELD_NUMBER: _ClassVar[int]
    session: _learning_pb2.LearningSession
    metrics: _learning_pb2.LearningMetrics
    model_path: str
    model_bytes: int
    meets_skill_bar: bool
    session_duration: _duration_pb2.Duration
    skill_id: str
    skill_created: bool
    def __init__(self, session: _Optional[_Union[_learning_pb2.LearningSession, _Mapping]] = ..., metrics: _Optional[_Union[_learning_pb2.LearningMetrics, _Mapping]] = ..., model_path: _Optional[str] = ..., model_bytes: _Optional[int] = ..., meets_skill_bar: _Optional[bool] = ..., session_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., skill_id: _Optional[str] = ..., skill_created: _Optional[bool] = ...) -> None: ...

class DownloadModelRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class DownloadModelResponse(_message.Message):
    __slots__ = ("model", "data")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    model: _learning_pb2.ExportedModel
    data: bytes
    def __init__(self, model: _Optional[_Union[_learning_pb2.ExportedModel, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...
