import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import episode_pb2 as _episode_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EpisodeConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EPISODE_CONFLICT_UNSPECIFIED: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_FAIL: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_SKIP: _ClassVar[EpisodeConflict]
    EPISODE_CONFLICT_REPLACE: _ClassVar[EpisodeConflict]

class SkillRelationship(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_RELATIONSHIP_UNSPECIFIED: _ClassVar[SkillRelationship]
    SKILL_RELATIONSHIP_PREREQUISITE: _ClassVar[SkillRelationship]
    SKILL_RELATIONSHIP_ALTERNATIVE: _ClassVar[SkillRelationship]
    SKILL_RELATIONSHIP_REFINEMENT: _ClassVar[SkillRelationship]
    SKILL_RELATIONSHIP_COMPOSITION: _ClassVar[SkillRelationship]

class SkillTrait(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_TRAIT_UNSPECIFIED: _ClassVar[SkillTrait]
    SKILL_TRAIT_TOOL: _ClassVar[SkillTrait]
    SKILL_TRAIT_TAG: _ClassVar[SkillTrait]
    SKILL_TRAIT_ERROR: _ClassVar[SkillTrait]

class SkillChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_CHANGE_UNSPECIFIED: _ClassVar[SkillChange]
    SKILL_CHANGE_CREATED: _ClassVar[SkillChange]
    SKILL_CHANGE_UPDATED: _ClassVar[SkillChange]
    SKILL_CHANGE_UNCHANGED: _ClassVar[SkillChange]
EPISODE_CONFLICT_UNSPECIFIED: EpisodeConflict
EPISODE_CONFLICT_FAIL: EpisodeConflict
EPISODE_CONFLICT_SKIP: EpisodeConflict
EPISODE_CONFLICT_REPLACE: EpisodeConflict
SKILL_RELATIONSHIP_UNSPECIFIED: SkillRelationship
SKILL_RELATIONSHIP_PREREQUISITE: SkillRelationship
SKILL_RELATIONSHIP_ALTERNATIVE: SkillRelationship
SKILL_RELATIONSHIP_REFINEMENT: SkillRelationship
SKILL_RELATIONSHIP_COMPOSITION: SkillRelationship
SKILL_TRAIT_UNSPECIFIED: SkillTrait
SKILL_TRAIT_TOOL: SkillTrait
SKILL_TRAIT_TAG: SkillTrait
SKILL_TRAIT_ERROR: SkillTrait
SKILL_CHANGE_UNSPECIFIED: SkillChange
SKILL_CHANGE_CREATED: SkillChange
SKILL_CHANGE_UPDATED: SkillChange
SKILL_CHANGE_UNCHANGED: SkillChange

class UpdateEpisodeRequest(_message.Message):
    __slots__ = ("episode", "update_mask")
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    episode: _episode_pb2.Episode
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, episode: _Optional[_Union[_episode_pb2.Episode, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateEpisodeResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: _episode_pb2.Episode
    def __init__(self, episode: _Optional[_Union[_episode_pb2.Episode, _Mapping]] = ...) -> None: ...

class ImportEpisodesRequest(_message.Message):
    __slots__ = ("episodes", "on_conflict")
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    episodes: _containers.RepeatedCompositeFieldContainer[_episode_pb2.Episode]
    on_conflict: EpisodeConflict
    def __init__(self, episodes: _Optional[_Iterable[_Union[_episode_pb2.Episode, _Mapping]]] = ..., on_conflict: _Optional[_Union[EpisodeConflict, str]] = ...) -> None: ...

class ImportEpisodesResponse(_message.Message):
    __slots__ = ("created_count", "replaced_count", "unchanged_count", "skipped_count", "episode_ids")
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLACED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    created_count: int
    replaced_count: int
    unchanged_count: int
    skipped_count: int
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, created_count: _Optional[int] = ..., replaced_count: _Optional[int] = ..., unchanged_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., episode_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportEpisodesRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: _episode_pb2.EpisodeFilter
    def __init__(self, filter: _Optional[_Union[_episode_pb2.EpisodeFilter, _Mapping]] = ...) -> None: ...

class ExportEpisodesResponse(_message.Message):
    __slots__ = ("episode",)
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    episode: _episode_pb2.Episode
    def __init__(self, episode: _Optional[_Union[_episode_pb2.Episode, _Mapping]] = ...) -> None: ...

class SkillSignature(_message.Message):
    __slots__ = ("inputs", "outputs")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    inputs: _struct_pb2.Struct
    outputs: _struct_pb2.Struct
    def __init__(self, inputs: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., outputs: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SkillRecord(_message.Message):
    __slots__ = ("uses", "successes", "success_rate", "lower_bound", "upper_bound", "average_reward", "average_latency_ms", "last_used_at", "episode_count")
    USES_FIELD_NUMBER: _ClassVar[int]
    SUCCESSES_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_FIELD_NUMBER: _ClassVar[int]
    UPPER_BOUND_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_REWARD_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    uses: int
    successes: int
    success_rate: float
    lower_bound: float
    upper_bound: float
    average_reward: float
    average_latency_ms: float
    last_used_at: _timestamp_pb2.Timestamp
    episode_count: int
    def __init__(self, uses: _Optional[int] = ..., successes: _Optional[int] = ..., success_rate: _Optional[float] = ..., lower_bound: _Optional[float] = ..., upper_bound: _Optional[float] = ..., average_reward: _Optional[float] = ..., average_latency_ms: _Optional[float] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., episode_count: _Optional[int] = ...) -> None: ...

class SkillWay(_message.Message):
    __slots__ = ("tools", "success_count")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedScalarFieldContainer[str]
    success_count: int
    def __init__(self, tools: _Optional[_Iterable[str]] = ..., success_count: _Optional[int] = ...) -> None: ...

class SkillDifference(_message.Message):
    __slots__ = ("trait", "name", "success_count", "failure_count", "q_value")
    TRAIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    Q_VALUE_FIELD_NUMBER: _ClassVar[int]
    trait: SkillTrait
    name: str
    success_count: int
    failure_count: int
    q_value: float
    def __init__(self, trait: _Optional[_Union[SkillTrait, str]] = ..., name: _Optional[str] = ..., success_count: _Optional[int] = ..., failure_count: _Optional[int] = ..., q_value: _Optional[float] = ...) -> None: ...

class SkillFindings(_message.Message):
    __slots__ = ("attempt_count", "success_count", "example_task", "example_output", "example_episode_id", "ways", "shared", "differences", "compared_count", "critiques")
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_TASK_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    WAYS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    COMPARED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CRITIQUES_FIELD_NUMBER: _ClassVar[int]
    attempt_count: int
    success_count: int
    example_task: str
    example_output: str
    example_episode_id: str
    ways: _containers.RepeatedCompositeFieldContainer[SkillWay]
    shared: _containers.RepeatedCompositeFieldContainer[SkillDifference]
    differences: _containers.RepeatedCompositeFieldContainer[SkillDifference]
    compared_count: int
    critiques: _containers.RepeatedCompositeFieldContainer[_episode_pb2.CritiquePoint]
    def __init__(self, attempt_count: _Optional[int] = ..., success_count: _Optional[int] = ..., example_task: _Optional[str] = ..., example_output: _Optional[str] = ..., example_episode_id: _Optional[str] = ..., ways: _Optional[_Iterable[_Union[SkillWay, _Mapping]]] = ..., shared: _Optional[_Iterable[_Union[SkillDifference, _Mapping]]] = ..., differences: _Optional[_Iterable[_Union[SkillDifference, _Mapping]]] = ..., compared_count: _Optional[int] = ..., critiques: _Optional[_Iterable[_Union[_episode_pb2.CritiquePoint, _Mapping]]] = ...) -> None: ...

class Skill(_message.Message):
    __slots__ = ("id", "name", "description", "signature", "code", "project", "tags", "metadata", "claimed_success_rate", "record", "source_episode_ids", "findings", "created_at", "updated_at", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    description: str
    signature: SkillSignature
    code: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    claimed_success_rate: float
    record: SkillRecord
    source_episode_ids: _containers.RepeatedScalarFieldContainer[str]
    findings: SkillFindings
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., signature: _Optional[_Union[SkillSignature, _Mapping]] = ..., code: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., claimed_success_rate: _Optional[float] = ..., record: _Optional[_Union[SkillRecord, _Mapping]] = ..., source_episode_ids: _Optional[_Iterable[str]] = ..., findings: _Optional[_Union[SkillFindings, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateSkillRequest(_message.Message):
    __slots__ = ("name", "description", "signature", "code", "project", "tags", "metadata", "claimed_success_rate", "source_episode_ids", "skill_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    signature: SkillSignature
    code: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    claimed_success_rate: float
    source_episode_ids: _containers.RepeatedScalarFieldContainer[str]
    skill_id: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., signature: _Optional[_Union[SkillSignature, _Mapping]] = ..., code: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., claimed_success_rate: _Optional[float] = ..., source_episode_ids: _Optional[_Iterable[str]] = ..., skill_id: _Optional[str] = ...) -> None: ...

class CreateSkillResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class SkillLink(_message.Message):
    __slots__ = ("parent_skill_id", "parent_name", "child_skill_id", "child_name", "relationship", "weight", "metadata")
    PARENT_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_NAME_FIELD_NUMBER: _ClassVar[int]
    CHILD_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_NAME_FIELD_NUMBER: _ClassVar[int]
    RELATIONSHIP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    parent_skill_id: str
    parent_name: str
    child_skill_id: str
    child_name: str
    relationship: SkillRelationship
    weight: float
    metadata: _struct_pb2.Struct
    def __init__(self, parent_skill_id: _Optional[str] = ..., parent_name: _Optional[str] = ..., child_skill_id: _Optional[str] = ..., child_name: _Optional[str] = ..., relationship: _Optional[_Union[SkillRelationship, str]] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class GetSkillRequest(_message.Message):
    __slots__ = ("skill_id",)
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    def __init__(self, skill_id: _Optional[str] = ...) -> None: ...

class GetSkillResponse(_message.Message):
    __slots__ = ("skill", "links")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    links: _containers.RepeatedCompositeFieldContainer[SkillLink]
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., links: _Optional[_Iterable[_Union[SkillLink, _Mapping]]] = ...) -> None: ...

class UpdateSkillRequest(_message.Message):
    __slots__ = ("skill", "update_mask")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateSkillResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class SkillFilter(_message.Message):
    __slots__ = ("project", "tags", "min_success_rate")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    MIN_SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    min_success_rate: float
    def __init__(self, project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., min_success_rate: _Optional[float] = ...) -> None: ...

class ListSkillsRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: SkillFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[SkillFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSkillsResponse(_message.Message):
    __slots__ = ("skills", "next_page_token", "total_size")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    next_page_token: str
    total_size: int
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class SearchSkillsRequest(_message.Message):
    __slots__ = ("task", "filter", "limit")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    task: str
    filter: SkillFilter
    limit: int
    def __init__(self, task: _Optional[str] = ..., filter: _Optional[_Union[SkillFilter, _Mapping]] = ..., limit: _Optional[int] = ...) -> None: ...

class FoundSkill(_message.Message):
    __slots__ = ("skill", "score", "relevance", "similarity", "links")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    score: float
    relevance: float
    similarity: float
    links: _containers.RepeatedCompositeFieldContainer[SkillLink]
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., score: _Optional[float] = ..., relevance: _Optional[float] = ..., similarity: _Optional[float] = ..., links: _Optional[_Iterable[_Union[SkillLink, _Mapping]]] = ...) -> None: ...

class SearchSkillsResponse(_message.Message):
    __slots__ = ("results", "searched_count", "words_only")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundSkill]
    searched_count: int
    words_only: bool
    def __init__(self, results: _Optional[_Iterable[_Union[FoundSkill, _Mapping]]] = ..., searched_count: _Optional[int] = ..., words_only: _Optional[bool] = ...) -> None: ...

class RecordSkillUseRequest(_message.Message):
    __slots__ = ("skill_id", "success", "reward", "latency_ms", "used_at", "use_id")
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    USED_AT_FIELD_NUMBER: _ClassVar[int]
    USE_ID_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    success: bool
    reward: float
    latency_ms: int
    used_at: _timestamp_pb2.Timestamp
    use_id: str
    def __init__(self, skill_id: _Optional[str] = ..., success: _Optional[bool] = ..., reward: _Optional[float] = ..., latency_ms: _Optional[int] = ..., used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., use_id: _Optional[str] = ...) -> None: ...

class RecordSkillUseResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class LinkSkillsRequest(_message.Message):
    __slots__ = ("parent_skill_id", "child_skill_id", "relationship", "weight", "metadata")
    PARENT_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    RELATIONSHIP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    parent_skill_id: str
    child_skill_id: str
    relationship: SkillRelationship
    weight: float
    metadata: _struct_pb2.Struct
    def __init__(self, parent_skill_id: _Optional[str] = ..., child_skill_id: _Optional[str] = ..., relationship: _Optional[_Union[SkillRelationship, str]] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class LinkSkillsResponse(_message.Message):
    __slots__ = ("link",)
    LINK_FIELD_NUMBER: _ClassVar[int]
    link: SkillLink
    def __init__(self, link: _Optional[_Union[SkillLink, _Mapping]] = ...) -> None: ...

class UnlinkSkillsRequest(_message.Message):
    __slots__ = ("parent_skill_id", "child_skill_id", "relationship")
    PARENT_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    RELATIONSHIP_FIELD_NUMBER: _ClassVar[int]
    parent_skill_id: str
    child_skill_id: str
    relationship: SkillRelationship
    def __init__(self, parent_skill_id: _Optional[str] = ..., child_skill_id: _Optional[str] = ..., relationship: _Optional[_Union[SkillRelationship, str]] = ...) -> None: ...

class UnlinkSkillsResponse(_message.Message):
    __slots__ = ("removed_count",)
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    def __init__(self, removed_count: _Optional[int] = ...) -> None: ...

class DeleteSkillRequest(_message.Message):
    __slots__ = ("skill_id", "etag")
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    etag: str
    def __init__(self, skill_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteSkillResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class ConsolidateSkillsRequest(_message.Message):
    __slots__ = ("min_attempts", "min_reward", "dry_run", "filter")
    MIN_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MIN_REWARD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    min_attempts: int
    min_reward: float
    dry_run: bool
    filter: _episode_pb2.EpisodeFilter
    def __init__(self, min_attempts: _Optional[int] = ..., min_reward: _Optional[float] = ..., dry_run: _Optional[bool] = ..., filter: _Optional[_Union[_episode_pb2.EpisodeFilter, _Mapping]] = ...) -> None: ...

class ConsolidatedSkill(_message.Message):
    __slots__ = ("skill", "change")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    change: SkillChange
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., change: _Optional[_Union[SkillChange, str]] = ...) -> None: ...

class ConsolidateSkillsResponse(_message.Message):
    __slots__ = ("skills", "created_count", "updated_count", "unchanged_count", "episode_count", "not_embedded_count", "group_count", "truncated")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOT_EMBEDDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[ConsolidatedSkill]
    created_count: int
    updated_count: int
    unchanged_count: int
    episode_count: int
    not_embedded_count: int
    group_count: int
    truncated: bool
    def __init__(self, skills: _Optional[_Iterable[_Union[ConsolidatedSkill, _Mapping]]] = ..., created_count: _Optional[int] = ..., updated_count: _Optional[int] = ..., unchanged_count: _Optional[int] = ..., episode_count: _Optional[int] = ..., not_embedded_count: _Optional[int] = ..., group_count: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...
