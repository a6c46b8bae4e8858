"""An id of what is not there is not found, unless it need not be there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from mneme.v1 import options_pb2
from support.api import METHODS, grpc, reads_well, refused
from support.descriptors import leaves
from support.valid_requests import valid
from support.world import World

UNKNOWN = {
    # RPC: the field that names what must exist, and the reason when it does not.
    "mneme.v1.EventService/EndSession": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/GradeSession": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/RecordGrades": ("grades[0].session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/GetSession": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/VerifyEvents": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.RecallService/GetCertificate": ("certificate_id", "NOT_FOUND"),
    "mneme.v1.ProofService/GetInclusionProof": ("source_id", "NOT_FOUND"),
    "mneme.v1.ProofService/RotateLogKey": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.LearnService/GetLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UpdateLesson": ("lesson.id", "NOT_FOUND"),
    "mneme.v1.LearnService/ArchiveLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UnarchiveLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/DeleteLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/GetReflection": ("reflection_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UpdateReflection": ("reflection.id", "NOT_FOUND"),
    "mneme.v1.LearnService/DeleteReflection": ("reflection_id", "NOT_FOUND"),
    "mneme.v1.LearnService/GetKnowledge": ("entry_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UpdateKnowledge": ("entry.id", "NOT_FOUND"),
    "mneme.v1.LearnService/DeleteKnowledge": ("entry_id", "NOT_FOUND"),
    "mneme.v1.SkillService/GetEpisode": ("episode_id", "NOT_FOUND"),
    "mneme.v1.SkillService/UpdateEpisode": ("episode.id", "NOT_FOUND"),
    "mneme.v1.SkillService/DeleteEpisode": ("episode_id", "NOT_FOUND"),
    "mneme.v1.MemoryService/GetMemory": ("memory_id", "NOT_FOUND"),
    "mneme.v1.MemoryService/UpdateMemory": ("memory.id", "NOT_FOUND"),
    "mneme.v1.MemoryService/UpdatePattern": ("pattern.id", "NOT_FOUND"),
    "mneme.v1.MemoryService/RecordPatternMatches": ("verdicts[0].memory_id", "NOT_FOUND"),
    **{
        f"mneme.v1.LearningService/{rpc}": ("session_id", "SESSION_NOT_FOUND")
        for rpc in (
            "Act",
            "DeleteLearningSession",
            "DownloadModel",
            "EndLearningSession",
            "Explain",
            "Feedback",
            "GetLearningSession",
            "GetLearningMetrics",
            "ImportExperience",
            "ListTrajectories",
            "Predict",
            "RecordExperience",
            "RecordTrajectories",
            "ShapeReward",
            "Train",
        )
    },
    "mneme.v1.SkillService/GetSkill": ("skill_id", "NOT_FOUND"),
    "mneme.v1.SkillService/UpdateSkill": ("skill.id", "NOT_FOUND"),
    "mneme.v1.SkillService/RecordSkillUse": ("skill_id", "NOT_FOUND"),
    "mneme.v1.SkillService/LinkSkills": ("child_skill_id", "NOT_FOUND"),
    "mneme.v1.SkillService/UnlinkSkills": ("parent_skill_id", "NOT_FOUND"),
    "mneme.v1.SkillService/DeleteSkill": ("skill_id", "NOT_FOUND"),
    "mneme.v1.AlertService/GetAlertRule": ("rule_id", "NOT_FOUND"),
    "mneme.v1.AlertService/UpdateAlertRule": ("rule.id", "NOT_FOUND"),
    "mneme.v1.AlertService/DeleteAlertRule": ("rule_id", "NOT_FOUND"),
    "mneme.v1.AlertService/TestAlertRule": ("rule_id", "NOT_FOUND"),
    "mneme.v1.AlertService/TryAlertRule": ("rule_id", "NOT_FOUND"),
    "mneme.v1.CausalService/GetEdge": ("edge_id", "NOT_FOUND"),
    "mneme.v1.CausalService/UpdateEdge": ("edge.id", "NOT_FOUND"),
    "mneme.v1.CausalService/DeleteEdge": ("edge_id", "NOT_FOUND"),
    "mneme.v1.CausalService/UpdateExperiment": ("experiment.id", "NOT_FOUND"),
    **{
        f"mneme.v1.CausalService/{rpc}": ("experiment_id", "NOT_FOUND")
        for rpc in (
            "AnalyzeExperiment",
            "AssignTreatment",
            "ConcludeExperiment",
            "DeleteExperiment",
            "GetExperiment",
            "RecordObservation",
        )
    },
    "mneme.v1.LearningService/Transfer": ("source_session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.AdminService/DeleteTenant": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/CreateApiKey": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/ListApiKeys": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/RevokeApiKey": ("api_key_id", "NOT_FOUND"),
    "mneme.v1.AdminService/GetStats": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/Backup": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/Restore": ("backup", "NOT_FOUND"),
    "mneme.v1.AdminService/Reindex": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/MoveTenant": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/Forget": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.OperationService/GetOperation": ("operation_id", "NOT_FOUND"),
    "mneme.v1.OperationService/WaitOperation": ("operation_id", "NOT_FOUND"),
    "mneme.v1.OperationService/CancelOperation": ("operation_id", "NOT_FOUND"),
}
MAY_BE_UNKNOWN = {
    "mneme.v1.AlertService/CreateAlertRule": "it makes the rule; agents need no declaration",
    "mneme.v1.AlertService/ListAlertHistory": "its id is a filter: deleted rules have some",
    "mneme.v1.EventService/StartSession": "it makes the session, and agents need no declaration",
    "mneme.v1.EventService/RecordEvents": "it makes the event, and opens its session",
    "mneme.v1.EventService/StreamEvents": "it makes the event, and opens its session",
    "mneme.v1.EventService/ListSessions": "its ids are filters",
    "mneme.v1.EventService/ListEvents": "its ids are filters",
    "mneme.v1.EventService/ListGrades": "its ids are filters",
    "mneme.v1.EventService/WatchEvents": "its ids are filters: what is watched may come later",
    "mneme.v1.RecallService/Recall": "its ids are filters",
    "mneme.v1.RecallService/RecallWithCertificate": "its ids are filters",
    "mneme.v1.LearnService/CreateLesson": "it makes the lesson; its sources need not be stored",
    "mneme.v1.LearnService/ImportLessons": "it makes the lessons; their sources need not be stored",
    "mneme.v1.LearnService/ListLessons": "its ids are filters",
    "mneme.v1.LearnService/SearchLessons": "its ids are filters",
    "mneme.v1.LearnService/ExportLessons": "its ids are filters",
    "mneme.v1.LearnService/CreateReflection": "it makes the reflection",
    "mneme.v1.LearnService/ListReflections": "its ids are filters",
    "mneme.v1.LearnService/SearchReflections": "its ids are filters",
    "mneme.v1.LearnService/SummarizeReflections": "its ids are filters",
    "mneme.v1.LearnService/CreateKnowledge": "it makes the entry, and agents need no declaration",
    "mneme.v1.MemoryService/CreateMemory": "it makes the memory; users need no declaration",
    "mneme.v1.MemoryService/CreateMemories": "it makes the memory; users need no declaration",
    "mneme.v1.MemoryService/ListMemories": "its ids are filters",
    "mneme.v1.MemoryService/SearchMemories": "its ids are filters",
    "mneme.v1.MemoryService/DeleteMemories": "what does not exist is deleted",
    "mneme.v1.MemoryService/MatchPattern": "its ids are filters",
    "mneme.v1.MemoryService/OpenMemory": "it names a tenant only to confirm",
    "mneme.v1.ContextService/GetContext": "its ids are filters",
    "mneme.v1.ContextService/GetProfile": "its ids are filters; users need no declaration",
    "mneme.v1.ContextService/Sleep": "it opens the session",
    "mneme.v1.ContextService/WakeUp": "its ids are filters",
    "mneme.v1.ContextService/SearchSessions": "its ids are filters",
    "mneme.v1.ContextService/GetTimeline": "its ids are filters",
    "mneme.v1.SkillService/CreateEpisode": "it makes the episode; its session need not be recorded",
    "mneme.v1.SkillService/ImportEpisodes": "it makes the episodes",
    "mneme.v1.SkillService/ListEpisodes": "its ids are filters",
    "mneme.v1.SkillService/SearchEpisodes": "its ids are filters",
    "mneme.v1.SkillService/ExportEpisodes": "its ids are filters",
    "mneme.v1.SkillService/ConsolidateSkills": "its ids are filters",
    "mneme.v1.CausalService/Discover": "its ids are filters",
    "mneme.v1.CausalService/UpdateDiscoverySchedule": "its ids are filters",
    "mneme.v1.ReflectService/Reflect": "its ids are filters",
    "mneme.v1.AdminService/CreateTenant": "it makes the tenant",
    "mneme.v1.OperationService/ListOperations": "its id is a filter: deleted tenants have some",
}


def test_every_rpc_with_an_id_says_what_an_unknown_one_means() -> None:
    with_ids = {
        rpc
        for rpc, method in METHODS.items()
        if any(_names_what_is_there(leaf.field) for leaf in leaves(method.input_type))
    }
    missing = with_ids - UNKNOWN.keys() - MAY_BE_UNKNOWN.keys()
    assert not missing, f"add {sorted(missing)} to UNKNOWN or MAY_BE_UNKNOWN in {__file__}"
    assert UNKNOWN.keys() | MAY_BE_UNKNOWN.keys() <= with_ids
    assert not UNKNOWN.keys() & MAY_BE_UNKNOWN.keys()


def _names_what_is_there(field: FieldDescriptor) -> bool:
    """Whether it is an id, and not that of what the call makes."""
    made: Any = options_pb2.made_when_empty
    return bool(re.search(r"(^|_)id$", field.name)) and not field.GetOptions().Extensions[made]


@pytest.mark.parametrize("rpc", sorted(UNKNOWN))
@pytest.mark.parametrize("unknown", ["no-such-thing", "1", "01jm0000000000000000000000"])
def test_an_unknown_id_is_not_found(rpc: str, unknown: str, world: World) -> None:
    path, reason = UNKNOWN[rpc]
    request = valid(rpc, world)
    (leaf,) = (leaf for leaf in leaves(METHODS[rpc].input_type) if leaf.path == path)
    leaf.put(request, unknown)
    with refused() as failure:
        world.api.call(rpc, request)
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, reason)
    assert failure.field.rpartition(".")[2] == path.rpartition(".")[2] or path.endswith(".id")
    assert unknown in failure.message
    reads_well(failure)
