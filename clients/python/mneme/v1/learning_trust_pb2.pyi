from buf.validate import validate_pb2 as _validate_pb2
from mneme.v1 import learning_pb2 as _learning_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Propensities(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROPENSITIES_UNSPECIFIED: _ClassVar[Propensities]
    PROPENSITIES_RECORDED: _ClassVar[Propensities]
    PROPENSITIES_ESTIMATED: _ClassVar[Propensities]
    PROPENSITIES_PARTLY_ESTIMATED: _ClassVar[Propensities]

class AttributionMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTRIBUTION_METHOD_UNSPECIFIED: _ClassVar[AttributionMethod]
    ATTRIBUTION_METHOD_EXACT: _ClassVar[AttributionMethod]
    ATTRIBUTION_METHOD_SAMPLED: _ClassVar[AttributionMethod]

class ShapingType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHAPING_TYPE_UNSPECIFIED: _ClassVar[ShapingType]
    SHAPING_TYPE_CURIOSITY: _ClassVar[ShapingType]
    SHAPING_TYPE_NOVELTY: _ClassVar[ShapingType]
    SHAPING_TYPE_PROGRESS: _ClassVar[ShapingType]
    SHAPING_TYPE_NONE: _ClassVar[ShapingType]

class TransferType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSFER_TYPE_UNSPECIFIED: _ClassVar[TransferType]
    TRANSFER_TYPE_FULL: _ClassVar[TransferType]
    TRANSFER_TYPE_FREEZE_ENCODER: _ClassVar[TransferType]
    TRANSFER_TYPE_FINE_TUNE: _ClassVar[TransferType]
PROPENSITIES_UNSPECIFIED: Propensities
PROPENSITIES_RECORDED: Propensities
PROPENSITIES_ESTIMATED: Propensities
PROPENSITIES_PARTLY_ESTIMATED: Propensities
ATTRIBUTION_METHOD_UNSPECIFIED: AttributionMethod
ATTRIBUTION_METHOD_EXACT: AttributionMethod
ATTRIBUTION_METHOD_SAMPLED: AttributionMethod
SHAPING_TYPE_UNSPECIFIED: ShapingType
SHAPING_TYPE_CURIOSITY: ShapingType
SHAPING_TYPE_NOVELTY: ShapingType
SHAPING_TYPE_PROGRESS: ShapingType
SHAPING_TYPE_NONE: ShapingType
TRANSFER_TYPE_UNSPECIFIED: TransferType
TRANSFER_TYPE_FULL: TransferType
TRANSFER_TYPE_FREEZE_ENCODER: TransferType
TRANSFER_TYPE_FINE_TUNE: TransferType

class Estimate(_message.Message):
    __slots__ = ("value", "low", "high")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    value: float
    low: float
    high: float
    def __init__(self, value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class OffPolicyEvaluation(_message.Message):
    __slots__ = ("summary", "refused", "episodes", "decisions", "effective_sample_size", "overlap", "propensities", "behaviour", "weighted_importance_sampling", "doubly_robust", "gain", "modelled", "steps_read", "truncated")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    PROPENSITIES_FIELD_NUMBER: _ClassVar[int]
    BEHAVIOUR_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_IMPORTANCE_SAMPLING_FIELD_NUMBER: _ClassVar[int]
    DOUBLY_ROBUST_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    MODELLED_FIELD_NUMBER: _ClassVar[int]
    STEPS_READ_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    summary: str
    refused: str
    episodes: int
    decisions: int
    effective_sample_size: float
    overlap: float
    propensities: Propensities
    behaviour: Estimate
    weighted_importance_sampling: Estimate
    doubly_robust: Estimate
    gain: Estimate
    modelled: Estimate
    steps_read: int
    truncated: bool
    def __init__(self, summary: _Optional[str] = ..., refused: _Optional[str] = ..., episodes: _Optional[int] = ..., decisions: _Optional[int] = ..., effective_sample_size: _Optional[float] = ..., overlap: _Optional[float] = ..., propensities: _Optional[_Union[Propensities, str]] = ..., behaviour: _Optional[_Union[Estimate, _Mapping]] = ..., weighted_importance_sampling: _Optional[_Union[Estimate, _Mapping]] = ..., doubly_robust: _Optional[_Union[Estimate, _Mapping]] = ..., gain: _Optional[_Union[Estimate, _Mapping]] = ..., modelled: _Optional[_Union[Estimate, _Mapping]] = ..., steps_read: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class FeatureImportance(_message.Message):
    __slots__ = ("feature", "value", "importance", "low", "high")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    feature: str
    value: str
    importance: float
    low: float
    high: float
    def __init__(self, feature: _Optional[str] = ..., value: _Optional[str] = ..., importance: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class FeatureChange(_message.Message):
    __slots__ = ("feature", "value")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    feature: str
    value: str
    def __init__(self, feature: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Counterfactual(_message.Message):
    __slots__ = ("changes", "predicted_action", "confidence", "distance")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_ACTION_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[FeatureChange]
    predicted_action: _learning_pb2.Action
    confidence: float
    distance: float
    def __init__(self, changes: _Optional[_Iterable[_Union[FeatureChange, _Mapping]]] = ..., predicted_action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., confidence: _Optional[float] = ..., distance: _Optional[float] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("action", "chosen_action", "confidence", "measure", "score", "typical", "method", "feature_importance", "counterfactuals", "decision_path", "unknown")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_ACTION_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    FEATURE_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    COUNTERFACTUALS_FIELD_NUMBER: _ClassVar[int]
    DECISION_PATH_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    action: _learning_pb2.Action
    chosen_action: _learning_pb2.Action
    confidence: float
    measure: str
    score: float
    typical: float
    method: AttributionMethod
    feature_importance: _containers.RepeatedCompositeFieldContainer[FeatureImportance]
    counterfactuals: _containers.RepeatedCompositeFieldContainer[Counterfactual]
    decision_path: _containers.RepeatedScalarFieldContainer[str]
    unknown: str
    def __init__(self, action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., chosen_action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., confidence: _Optional[float] = ..., measure: _Optional[str] = ..., score: _Optional[float] = ..., typical: _Optional[float] = ..., method: _Optional[_Union[AttributionMethod, str]] = ..., feature_importance: _Optional[_Iterable[_Union[FeatureImportance, _Mapping]]] = ..., counterfactuals: _Optional[_Iterable[_Union[Counterfactual, _Mapping]]] = ..., decision_path: _Optional[_Iterable[str]] = ..., unknown: _Optional[str] = ...) -> None: ...

class ShapingComponents(_message.Message):
    __slots__ = ("curiosity_bonus", "novelty_bonus", "progress_bonus")
    CURIOSITY_BONUS_FIELD_NUMBER: _ClassVar[int]
    NOVELTY_BONUS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_BONUS_FIELD_NUMBER: _ClassVar[int]
    curiosity_bonus: float
    novelty_bonus: float
    progress_bonus: float
    def __init__(self, curiosity_bonus: _Optional[float] = ..., novelty_bonus: _Optional[float] = ..., progress_bonus: _Optional[float] = ...) -> None: ...

class TaskSimilarity(_message.Message):
    __slots__ = ("overall", "features", "actions", "states", "rewards", "why", "reward_agreement")
    OVERALL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    REWARD_AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    overall: float
    features: float
    actions: float
    states: float
    rewards: float
    why: str
    reward_agreement: Estimate
    def __init__(self, overall: _Optional[float] = ..., features: _Optional[float] = ..., actions: _Optional[float] = ..., states: _Optional[float] = ..., rewards: _Optional[float] = ..., why: _Optional[str] = ..., reward_agreement: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class PolicyBaseline(_message.Message):
    __slots__ = ("action", "first_steps", "behaviour", "lowest_reward", "highest_reward")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEPS_FIELD_NUMBER: _ClassVar[int]
    BEHAVIOUR_FIELD_NUMBER: _ClassVar[int]
    LOWEST_REWARD_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_REWARD_FIELD_NUMBER: _ClassVar[int]
    action: _learning_pb2.Action
    first_steps: int
    behaviour: bool
    lowest_reward: float
    highest_reward: float
    def __init__(self, action: _Optional[_Union[_learning_pb2.Action, _Mapping]] = ..., first_steps: _Optional[int] = ..., behaviour: _Optional[bool] = ..., lowest_reward: _Optional[float] = ..., highest_reward: _Optional[float] = ...) -> None: ...

class GateVerdict(_message.Message):
    __slots__ = ("trusts_policy", "decisions", "gain", "why", "rewards_beyond_range")
    TRUSTS_POLICY_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    REWARDS_BEYOND_RANGE_FIELD_NUMBER: _ClassVar[int]
    trusts_policy: bool
    decisions: int
    gain: Estimate
    why: str
    rewards_beyond_range: int
    def __init__(self, trusts_policy: _Optional[bool] = ..., decisions: _Optional[int] = ..., gain: _Optional[_Union[Estimate, _Mapping]] = ..., why: _Optional[str] = ..., rewards_beyond_range: _Optional[int] = ...) -> None: ...
