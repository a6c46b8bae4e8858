"""Requests that are wrong are refused with a code, a reason and the field that is at fault.

The cases are derived from the descriptors: every value of every request is given what its rules
forbid, and what no value may hold. A new RPC needs a valid request in `VALID`, and is tested from
then on.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import auth_pb2, learning_pb2, options_pb2
from mneme.v1 import causal_pb2 as causal_pb
from mneme.v1 import causal_service_pb2 as causal_service_pb
from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import discovery_pb2 as discovery_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import learning_import_pb2 as import_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import operation_pb2 as operation_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import METHODS, Api, Failure, grpc, refused
from support.contexts import eventually
from support.descriptors import Leaf, leaves, rules_of
from support.making import add_edge, episode, event, lesson, record, skill, struct
from support.operations import ended
from support.server import Keys, LocalServer

INVALID = grpc.StatusCode.INVALID_ARGUMENT
MARKER = "HERE-IS-THE-TEXT"
_UPDATES = ("/UpdateAlertRule", "/UpdateEdge", "/UpdateLesson", "/UpdateMemory", "/UpdateSkill")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class World:
    """A tenant with something in it, called with a key that may do everything."""

    api: Api
    keys: Keys
    certificate: certificate_pb.Certificate


@pytest.fixture(scope="module")
def world(server: LocalServer) -> World:
    tenant = server.keys.tenant("input")
    api = server.keys.key(tenant.tenant_id, *(s for s in auth_pb2.KeyScope.values() if s))
    for number in range(3):
        record(api, event("some words", f"session-{number}", id=f"event-{number}", agent_id="a"))
        record(api, event("more words", "session-0", agent_id=f"agent-{number}"))
        lesson(api, "A title", f"content {number}", lesson_id=f"lesson-{number}")
        api.memory.InsertMemory(
            memory_pb.InsertMemoryRequest(
                memory_id=f"memory-{number}", text=f"content {number}", metadata=struct(set=1)
            )
        )
        api.memory.StorePattern(_pattern(f"pattern-{number}"))
        reflection = reflection_pb.StoreReflectionRequest(
            session_id="session-0", task_description="a task", outcome=number + 1,
        )  # fmt: skip
        api.learn.StoreReflection(reflection)
        episode(api, f"task {number}", episode_id=f"episode-{number}")
        skill(api, f"skill-{number}", skill_id=f"skill-{number}")
        add_edge(api, f"cause-{number}", "effect", 0.5, edge_id=f"edge-{number}")
        api.causal.CreateExperiment(_experiment(f"experiment-{number}"))
        api.alert.CreateAlertRule(_alert_rule(f"rule-{number}"))
        server.keys.admin.admin.CreateTenant(
            admin_pb.CreateTenantRequest(tenant_id=f"input-page-{number}")
        )
        api.admin.StartBackup(admin_pb.StartBackupRequest(operation_id=f"operation-{number}"))
    for policy in ("policy-0", "policy"):
        api.learning.StartSession(_learning(policy))
        done = {"state": _seen(), "action": learning_pb2.Action(label="go")}
        api.learning.Feedback(learning_pb.FeedbackRequest(session_id=policy, **done))
        for _ in range(4):
            steps = [learning_pb2.Experience(**done)]
            told = learning_pb.RecordExperienceRequest(session_id=policy, steps=steps)
            api.learning.RecordExperience(told)
    asked = certificate_pb.RecallWithCertificateRequest(query="words")
    certificate = api.recall.RecallWithCertificate(asked).certificate
    # Whatever is recorded triggers the rules.
    history = alert_pb.ListAlertHistoryRequest()
    eventually(lambda: api.alert.ListAlertHistory(history), lambda seen: len(seen.entries) == 3)
    return World(api, server.keys, certificate)


@pytest.fixture(autouse=True)
def _operations_end(world: World) -> Iterator[None]:
    """Wait for what a test has started: a restore or a re-index is in the way of other calls."""
    yield
    unfinished = [operation_pb.OPERATION_STATE_QUEUED, operation_pb.OPERATION_STATE_RUNNING]
    asked = operations_pb.ListOperationsRequest(states=unfinished)
    for operation in world.api.operation.ListOperations(asked).operations:
        ended(world.api, operation.id)


def _pattern(name: str) -> pattern_pb.StorePatternRequest:
    return pattern_pb.StorePatternRequest(
        name=name, regex=pattern_pb.RegexPattern(expression=r"content \d")
    )


def _new(prefix: str) -> str:
    return f"{prefix}-{next(_numbers)}"


def _experiment(experiment_id: str) -> experiment_pb.CreateExperimentRequest:
    return experiment_pb.CreateExperimentRequest(
        experiment_id=experiment_id, name="name", cause="cause", effect="effect"
    )


def _alert_rule(rule_id: str) -> alert_pb.CreateAlertRuleRequest:
    return alert_pb.CreateAlertRuleRequest(
        rule_id=rule_id, name="name", condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS
    )


def _told_rule(world: World) -> str:
    """A rule that has a channel, which cannot be reached."""
    request = _alert_rule(_new("told"))
    request.notify_channels.append("https://nobody.invalid/")
    return str(world.api.alert.CreateAlertRule(request).rule.id)


def _new_experiment(world: World) -> str:
    made = world.api.causal.CreateExperiment(_experiment(_new("new")))
    return str(made.experiment.id)


def _new_tenant(world: World) -> str:
    return world.keys.tenant("input-gone").tenant_id


def _new_key_id(world: World) -> str:
    request = admin_pb.CreateApiKeyRequest(tenant_id=world.api.tenant_id, name="to revoke")
    return str(world.api.admin.CreateApiKey(request).api_key.id)


def _new_backup(world: World) -> str:
    return world.api.admin.Backup(admin_pb.BackupRequest()).path.rpartition("/")[2]


def _start_restore(world: World) -> admin_pb.StartRestoreRequest:
    tenant = _new_tenant(world)
    made = world.api.admin.Backup(admin_pb.BackupRequest(tenant_id=tenant))
    name = made.path.rpartition("/")[2]
    return admin_pb.StartRestoreRequest(tenant_id=tenant, backup=name)


def _new_session(world: World) -> str:
    return record(world.api, event("words", _new("ended")))[0].id and f"ended-{next(_numbers) - 1}"


_ALL_MEMORIES = memory_pb.MemoryFilter(where=[memory_pb.MetadataCondition(key="set", number=1)])


def _learning(session_id: str) -> learning_pb.LearningServiceStartSessionRequest:
    return learning_pb.LearningServiceStartSessionRequest(session_id=session_id, algorithm="linucb")


def _new_learning(world: World) -> str:
    request = _learning(_new("policy"))
    return str(world.api.learning.StartSession(request).session.id)


def _taught(world: World) -> str:
    told = learning_pb.FeedbackRequest(
        session_id="policy", state=_seen(), action=learning_pb2.Action(label="go"), reward=1
    )
    world.api.learning.Feedback(told)
    return "policy"


def _exported(world: World) -> str:
    session_id = _new_learning(world)
    world.api.learning.EndSession(
        learning_pb.LearningServiceEndSessionRequest(session_id=session_id)
    )
    return session_id


def _seen() -> learning_pb2.State:
    return learning_pb2.State(json=struct(size=1))


VALID: dict[str, Callable[[World], Message]] = {
    "mneme.v1.EventService/StartSession": lambda _: events_pb.StartSessionRequest(
        session_id=_new("started")
    ),
    "mneme.v1.EventService/EndSession": lambda w: events_pb.EndSessionRequest(
        session_id=_new_session(w)
    ),
    "mneme.v1.EventService/RecordEvents": lambda _: events_pb.RecordEventsRequest(
        events=[event("words", "session-0")]
    ),
    "mneme.v1.EventService/StreamEvents": lambda _: events_pb.StreamEventsRequest(
        event=event("words", "session-0")
    ),
    "mneme.v1.EventService/GetSession": lambda _: events_pb.GetSessionRequest(
        session_id="session-0"
    ),
    "mneme.v1.EventService/ListSessions": lambda _: events_pb.ListSessionsRequest(),
    "mneme.v1.EventService/ListEvents": lambda _: events_pb.ListEventsRequest(),
    "mneme.v1.EventService/ListAgents": lambda _: events_pb.ListAgentsRequest(),
    "mneme.v1.EventService/WatchEvents": lambda _: events_pb.WatchEventsRequest(),
    "mneme.v1.EventService/VerifyEvents": lambda _: events_pb.VerifyEventsRequest(),
    "mneme.v1.RecallService/Recall": lambda _: recall_pb.RecallRequest(query="words"),
    "mneme.v1.RecallService/RecallWithCertificate": lambda _: (
        certificate_pb.RecallWithCertificateRequest(query="words")
    ),
    "mneme.v1.RecallService/GetCertificate": lambda world: certificate_pb.GetCertificateRequest(
        certificate_id=world.certificate.id
    ),
    "mneme.v1.RecallService/VerifyCertificate": lambda world: (
        certificate_pb.VerifyCertificateRequest(json=world.certificate.json)
    ),
    "mneme.v1.ProofService/GetCheckpoint": lambda _: proof_pb.GetCheckpointRequest(),
    "mneme.v1.ProofService/GetConsistencyProof": lambda _: proof_pb.GetConsistencyProofRequest(
        old_size=1
    ),
    "mneme.v1.ProofService/GetInclusionProof": lambda _: proof_pb.GetInclusionProofRequest(
        source_type="lesson", source_id="lesson-0"
    ),
    "mneme.v1.ProofService/GetLogKeys": lambda _: proof_pb.GetLogKeysRequest(),
    "mneme.v1.ProofService/RotateLogKey": lambda _: proof_pb.RotateLogKeyRequest(),
    "mneme.v1.LearnService/CreateLesson": lambda _: learn_pb.CreateLessonRequest(
        title="A title", content="some content"
    ),
    "mneme.v1.MemoryService/InsertMemory": lambda _: memory_pb.InsertMemoryRequest(text="words"),
    "mneme.v1.MemoryService/InsertMemories": lambda _: memory_pb.InsertMemoriesRequest(
        memory=memory_pb.NewMemory(text="words")
    ),
    "mneme.v1.MemoryService/GetMemory": lambda _: memory_pb.GetMemoryRequest(memory_id="memory-0"),
    "mneme.v1.MemoryService/UpdateMemory": lambda _: memory_pb.UpdateMemoryRequest(
        memory=memory_pb.Memory(id="memory-0", text="other words"),
        update_mask=FieldMask(paths=["text"]),
    ),
    "mneme.v1.MemoryService/ListMemories": lambda _: memory_pb.ListMemoriesRequest(
        filter=_ALL_MEMORIES
    ),
    "mneme.v1.MemoryService/SearchMemories": lambda _: memory_pb.SearchMemoriesRequest(
        query="words", filter=_ALL_MEMORIES
    ),
    "mneme.v1.MemoryService/DeleteMemories": lambda _: memory_pb.DeleteMemoriesRequest(
        filter=_ALL_MEMORIES, dry_run=True
    ),
    "mneme.v1.MemoryService/StorePattern": lambda _: _pattern(_new("pattern")),
    "mneme.v1.MemoryService/GetPattern": lambda _: pattern_pb.GetPatternRequest(name="pattern-0"),
    "mneme.v1.MemoryService/ListPatterns": lambda _: pattern_pb.ListPatternsRequest(),
    "mneme.v1.MemoryService/DeletePattern": lambda w: pattern_pb.DeletePatternRequest(
        name=w.api.memory.StorePattern(_pattern(_new("pattern"))).pattern.name
    ),
    "mneme.v1.MemoryService/SearchPattern": lambda _: memory_pb.SearchPatternRequest(
        name="pattern-0", filter=_ALL_MEMORIES
    ),
    "mneme.v1.MemoryService/ReportPatternMatches": (
        lambda _: pattern_pb.ReportPatternMatchesRequest(
            name="pattern-0", verdicts=[pattern_pb.MatchVerdict(memory_id="memory-0", right=True)]
        )
    ),
    "mneme.v1.MemoryService/GetPatternStats": lambda _: pattern_pb.GetPatternStatsRequest(),
    "mneme.v1.MemoryService/InitMemory": lambda _: stats_pb.InitMemoryRequest(),
    "mneme.v1.MemoryService/GetStats": lambda _: stats_pb.MemoryServiceGetStatsRequest(),
    "mneme.v1.MemoryService/ClearCache": lambda _: stats_pb.ClearCacheRequest(),
    "mneme.v1.LearnService/GetLesson": lambda _: learn_pb.GetLessonRequest(lesson_id="lesson-0"),
    "mneme.v1.LearnService/ListLessons": lambda _: learn_pb.ListLessonsRequest(),
    "mneme.v1.LearnService/SearchLessons": lambda _: learn_pb.SearchLessonsRequest(query="words"),
    "mneme.v1.LearnService/UpdateLesson": lambda _: learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="lesson-0", title="A title"),
        update_mask=FieldMask(paths=["title"]),
    ),
    "mneme.v1.LearnService/DeleteLesson": lambda w: learn_pb.DeleteLessonRequest(
        lesson_id=lesson(w.api, "to archive").id
    ),
    "mneme.v1.LearnService/UndeleteLesson": lambda _: learn_pb.UndeleteLessonRequest(
        lesson_id="lesson-0"
    ),
    "mneme.v1.LearnService/ImportLessons": lambda _: learn_pb.ImportLessonsRequest(
        lessons=[learn_pb.Lesson(title="A title", content="imported")]
    ),
    "mneme.v1.LearnService/ExportLessons": lambda _: learn_pb.ExportLessonsRequest(),
    "mneme.v1.LearnService/StoreReflection": lambda _: reflection_pb.StoreReflectionRequest(
        session_id="session-0",
        task_description="a task",
        outcome=reflection_pb.OUTCOME_SUCCESS,
    ),
    "mneme.v1.LearnService/ListReflections": lambda _: reflection_pb.ListReflectionsRequest(),
    "mneme.v1.LearnService/SearchReflections": lambda _: reflection_pb.SearchReflectionsRequest(
        task_description="a task"
    ),
    "mneme.v1.LearnService/SummarizeReflections": (
        lambda _: reflection_pb.SummarizeReflectionsRequest()
    ),
    "mneme.v1.LearnService/LogKnowledge": lambda _: knowledge_pb.LogKnowledgeRequest(
        project="project",
        type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
        context="a task",
        lesson="a lesson",
    ),
    "mneme.v1.LearnService/QueryKnowledge": lambda _: knowledge_pb.QueryKnowledgeRequest(
        query="words"
    ),
    "mneme.v1.SkillService/StoreEpisode": lambda _: episode_pb.StoreEpisodeRequest(
        task="a task", success=True
    ),
    "mneme.v1.SkillService/GetEpisode": lambda _: episode_pb.GetEpisodeRequest(
        episode_id="episode-0"
    ),
    "mneme.v1.SkillService/ListEpisodes": lambda _: episode_pb.ListEpisodesRequest(),
    "mneme.v1.SkillService/RetrieveEpisodes": lambda _: episode_pb.RetrieveEpisodesRequest(
        task="a task"
    ),
    "mneme.v1.SkillService/DeleteEpisode": lambda w: episode_pb.DeleteEpisodeRequest(
        episode_id=episode(w.api, "to delete").id
    ),
    "mneme.v1.SkillService/ImportEpisodes": lambda _: skill_pb.ImportEpisodesRequest(
        episodes=[episode_pb.Episode(task="a task")]
    ),
    "mneme.v1.SkillService/ExportEpisodes": lambda _: skill_pb.ExportEpisodesRequest(),
    "mneme.v1.SkillService/CreateSkill": lambda _: skill_pb.CreateSkillRequest(
        name=_new("created")
    ),
    "mneme.v1.SkillService/GetSkill": lambda _: skill_pb.GetSkillRequest(skill_id="skill-0"),
    "mneme.v1.SkillService/UpdateSkill": lambda _: skill_pb.UpdateSkillRequest(
        skill=skill_pb.Skill(id="skill-0", name="skill-0"), update_mask=FieldMask(paths=["name"])
    ),
    "mneme.v1.SkillService/ListSkills": lambda _: skill_pb.ListSkillsRequest(),
    "mneme.v1.SkillService/SearchSkills": lambda _: skill_pb.SearchSkillsRequest(task="a task"),
    "mneme.v1.SkillService/RecordSkillUse": lambda _: skill_pb.RecordSkillUseRequest(
        skill_id="skill-0", success=True
    ),
    "mneme.v1.SkillService/LinkSkills": lambda _: skill_pb.LinkSkillsRequest(
        parent_skill_id="skill-0",
        child_skill_id="skill-1",
        relationship=skill_pb.SKILL_RELATIONSHIP_ALTERNATIVE,
    ),
    "mneme.v1.SkillService/UnlinkSkills": lambda _: skill_pb.UnlinkSkillsRequest(
        parent_skill_id="skill-0", child_skill_id="skill-1"
    ),
    "mneme.v1.SkillService/ConsolidateSkills": lambda _: skill_pb.ConsolidateSkillsRequest(
        dry_run=True
    ),
    "mneme.v1.SkillService/DeleteSkill": lambda w: skill_pb.DeleteSkillRequest(
        skill_id=skill(w.api, _new("deleted")).id
    ),
    "mneme.v1.AlertService/CreateAlertRule": lambda _: _alert_rule(_new("created")),
    "mneme.v1.AlertService/GetAlertRule": lambda _: alert_pb.GetAlertRuleRequest(rule_id="rule-0"),
    "mneme.v1.AlertService/ListAlertRules": lambda _: alert_pb.ListAlertRulesRequest(),
    "mneme.v1.AlertService/UpdateAlertRule": lambda _: alert_pb.UpdateAlertRuleRequest(
        rule=alert_pb.AlertRule(id="rule-0", threshold=10),
        update_mask=FieldMask(paths=["threshold"]),
    ),
    "mneme.v1.AlertService/DeleteAlertRule": lambda w: alert_pb.DeleteAlertRuleRequest(
        rule_id=w.api.alert.CreateAlertRule(_alert_rule(_new("deleted"))).rule.id
    ),
    "mneme.v1.AlertService/ListAlertHistory": lambda _: alert_pb.ListAlertHistoryRequest(),
    "mneme.v1.AlertService/TestAlertRule": lambda w: alert_pb.TestAlertRuleRequest(
        rule_id=_told_rule(w)
    ),
    "mneme.v1.AlertService/TryAlertRule": lambda _: alert_pb.TryAlertRuleRequest(
        rule=alert_pb.AlertRule(condition=alert_pb.ALERT_CONDITION_COST_EXCEEDS, threshold=1)
    ),
    "mneme.v1.AlertService/GetWebhookSecret": lambda _: alert_pb.GetWebhookSecretRequest(),
    "mneme.v1.AlertService/RotateWebhookSecret": lambda _: alert_pb.RotateWebhookSecretRequest(),
    "mneme.v1.CausalService/AddEdge": lambda _: causal_pb.AddEdgeRequest(
        cause=_new("new-cause"), effect="effect"
    ),
    "mneme.v1.CausalService/GetEdge": lambda _: causal_pb.GetEdgeRequest(edge_id="edge-0"),
    "mneme.v1.CausalService/ListEdges": lambda _: causal_pb.ListEdgesRequest(),
    "mneme.v1.CausalService/UpdateEdge": lambda _: causal_service_pb.UpdateEdgeRequest(
        edge=causal_pb.CausalEdge(id="edge-0", uplift=0.5), update_mask=FieldMask(paths=["uplift"])
    ),
    "mneme.v1.CausalService/DeleteEdge": lambda w: causal_pb.DeleteEdgeRequest(
        edge_id=add_edge(w.api, _new("deleted"), "effect", 0.5).id
    ),
    "mneme.v1.CausalService/QueryEffects": lambda _: causal_pb.QueryEffectsRequest(),
    "mneme.v1.CausalService/CreateExperiment": lambda _: _experiment(_new("created")),
    "mneme.v1.CausalService/GetExperiment": lambda _: experiment_pb.GetExperimentRequest(
        experiment_id="experiment-0"
    ),
    "mneme.v1.CausalService/ListExperiments": lambda _: experiment_pb.ListExperimentsRequest(),
    "mneme.v1.CausalService/AssignTreatment": lambda _: experiment_pb.AssignTreatmentRequest(
        experiment_id="experiment-0", subject="subject"
    ),
    "mneme.v1.CausalService/RecordObservation": lambda _: experiment_pb.RecordObservationRequest(
        experiment_id="experiment-0", outcome=1, treatment=True
    ),
    "mneme.v1.CausalService/AnalyzeExperiment": lambda _: experiment_pb.AnalyzeExperimentRequest(
        experiment_id="experiment-0"
    ),
    "mneme.v1.CausalService/ConcludeExperiment": lambda w: experiment_pb.ConcludeExperimentRequest(
        experiment_id=_new_experiment(w)
    ),
    "mneme.v1.CausalService/DeleteExperiment": lambda w: experiment_pb.DeleteExperimentRequest(
        experiment_id=_new_experiment(w)
    ),
    "mneme.v1.CausalService/Discover": lambda _: discovery_pb.DiscoverRequest(dry_run=True),
    "mneme.v1.CausalService/StartDiscover": lambda _: discovery_pb.StartDiscoverRequest(
        question=discovery_pb.DiscoverRequest(dry_run=True)
    ),
    "mneme.v1.CausalService/GetDiscoverySchedule": lambda _: (
        discovery_pb.GetDiscoveryScheduleRequest()
    ),
    "mneme.v1.CausalService/SetDiscoverySchedule": lambda _: (
        discovery_pb.SetDiscoveryScheduleRequest(question=discovery_pb.DiscoverRequest())
    ),
    "mneme.v1.ContextService/GetContext": lambda _: context_pb.GetContextRequest(topic="words"),
    "mneme.v1.ContextService/Sleep": lambda _: context_pb.SleepRequest(
        session_id=_new("asleep"),
        open_todos=[context_pb.Todo(content="to do")],
        decisions=[context_pb.Decision(decision="decided")],
        locked_contexts=[context_pb.LockedContext(label="label")],
    ),
    "mneme.v1.ContextService/WakeUp": lambda _: context_pb.WakeUpRequest(),
    "mneme.v1.ContextService/SearchSessions": lambda _: context_pb.SearchSessionsRequest(
        query="words"
    ),
    "mneme.v1.ContextService/GetTimeline": lambda _: context_pb.GetTimelineRequest(),
    "mneme.v1.ReflectService/Reflect": lambda _: reflect_pb.ReflectRequest(
        analysis=reflect_pb.ANALYSIS_ERROR_PATTERNS
    ),
    "mneme.v1.AdminService/CreateTenant": lambda _: admin_pb.CreateTenantRequest(
        tenant_id=_new("input-made")
    ),
    "mneme.v1.AdminService/ListTenants": lambda _: admin_pb.ListTenantsRequest(),
    "mneme.v1.AdminService/DeleteTenant": lambda w: admin_pb.DeleteTenantRequest(
        tenant_id=_new_tenant(w)
    ),
    "mneme.v1.AdminService/CreateApiKey": lambda w: admin_pb.CreateApiKeyRequest(
        tenant_id=w.api.tenant_id, name="another"
    ),
    "mneme.v1.AdminService/ListApiKeys": lambda _: admin_pb.ListApiKeysRequest(),
    "mneme.v1.AdminService/RevokeApiKey": lambda w: admin_pb.RevokeApiKeyRequest(
        api_key_id=_new_key_id(w)
    ),
    "mneme.v1.AdminService/GetStats": lambda _: admin_pb.GetStatsRequest(),
    "mneme.v1.AdminService/Backup": lambda _: admin_pb.BackupRequest(),
    "mneme.v1.AdminService/Restore": lambda w: admin_pb.RestoreRequest(backup=_new_backup(w)),
    "mneme.v1.AdminService/StartBackup": lambda _: admin_pb.StartBackupRequest(),
    "mneme.v1.AdminService/StartRestore": _start_restore,
    "mneme.v1.AdminService/StartDeleteTenant": lambda w: admin_pb.StartDeleteTenantRequest(
        tenant_id=_new_tenant(w)
    ),
    "mneme.v1.AdminService/StartReindex": lambda w: admin_pb.StartReindexRequest(
        tenant_id=_new_tenant(w)
    ),
    "mneme.v1.AdminService/StartMoveTenant": lambda w: admin_pb.StartMoveTenantRequest(
        tenant_id=_new_tenant(w)
    ),
    "mneme.v1.AdminService/Forget": lambda w: admin_pb.ForgetRequest(
        tenant_id=_new_tenant(w), user_id="ann"
    ),
    "mneme.v1.AdminService/StartForget": lambda w: admin_pb.StartForgetRequest(
        tenant_id=_new_tenant(w), user_id="ann"
    ),
    "mneme.v1.LearningService/DescribeAlgorithms": (
        lambda _: learning_pb.DescribeAlgorithmsRequest()
    ),
    "mneme.v1.LearningService/StartSession": lambda _: _learning(_new("policy")),
    "mneme.v1.LearningService/GetLearningSession": (
        lambda _: learning_pb.GetLearningSessionRequest(session_id="policy")
    ),
    "mneme.v1.LearningService/ListLearningSessions": (
        lambda _: learning_pb.ListLearningSessionsRequest()
    ),
    "mneme.v1.LearningService/DeleteLearningSession": (
        lambda w: learning_pb.DeleteLearningSessionRequest(session_id=_new_learning(w))
    ),
    "mneme.v1.LearningService/Predict": lambda _: learning_pb.PredictRequest(
        session_id="policy", state=_seen(), allowed_actions=[learning_pb2.Action(label="go")]
    ),
    "mneme.v1.LearningService/Feedback": lambda _: learning_pb.FeedbackRequest(
        session_id="policy", state=_seen(), action=learning_pb2.Action(label="go"), reward=1
    ),
    "mneme.v1.LearningService/RecordExperience": lambda _: learning_pb.RecordExperienceRequest(
        session_id="policy",
        steps=[
            learning_pb2.Experience(state=_seen(), action=learning_pb2.Action(label="go"), reward=1)
        ],
    ),
    "mneme.v1.LearningService/RecordTrajectories": lambda _: learning_pb.RecordTrajectoriesRequest(
        session_id="policy",
        steps=[
            learning_pb2.Experience(state=_seen(), action=learning_pb2.Action(label="go"), reward=1)
        ],
    ),
    "mneme.v1.LearningService/ListTrajectories": (
        lambda _: learning_pb.ListTrajectoriesRequest(session_id="policy")
    ),
    "mneme.v1.LearningService/ImportExperience": lambda _: import_pb.ImportExperienceRequest(
        session_id="policy", state_fields=[import_pb.StateField(path="project")]
    ),
    "mneme.v1.LearningService/Act": lambda _: learning_pb.ActRequest(
        session_id="policy",
        states=[
            learning_pb.ActState(state=_seen(), allowed_actions=[learning_pb2.Action(label="go")])
        ],
        feedback=[learning_pb2.Experience(state=_seen(), action=learning_pb2.Action(label="go"))],
    ),
    "mneme.v1.LearningService/Train": (lambda _: learning_pb.TrainRequest(session_id="policy")),
    "mneme.v1.LearningService/GetMetrics": (
        lambda _: learning_pb.GetMetricsRequest(session_id="policy")
    ),
    "mneme.v1.LearningService/Explain": lambda w: learning_pb.ExplainRequest(
        session_id=_taught(w), state=_seen()
    ),
    "mneme.v1.LearningService/ShapeReward": lambda _: learning_pb.ShapeRewardRequest(
        session_id="policy", state=_seen(), extrinsic_reward=1
    ),
    "mneme.v1.LearningService/Transfer": lambda w: learning_pb.TransferRequest(
        source_session_id=_taught(w), target_session_id=_new_learning(w), similarity_threshold=0
    ),
    "mneme.v1.LearningService/EndSession": (
        lambda w: learning_pb.LearningServiceEndSessionRequest(session_id=_new_learning(w))
    ),
    "mneme.v1.LearningService/DownloadModel": (
        lambda w: learning_pb.DownloadModelRequest(session_id=_exported(w))
    ),
    "mneme.v1.OperationService/GetOperation": lambda _: operations_pb.GetOperationRequest(
        operation_id="operation-0"
    ),
    "mneme.v1.OperationService/ListOperations": lambda _: operations_pb.ListOperationsRequest(),
    "mneme.v1.OperationService/WaitOperation": lambda _: operations_pb.WaitOperationRequest(
        operation_id="operation-0"
    ),
    "mneme.v1.OperationService/CancelOperation": lambda _: operations_pb.CancelOperationRequest(
        operation_id="operation-0"
    ),
}


def valid(rpc: str, world: World) -> Message:
    assert rpc in VALID, f"add a valid request of {rpc} to VALID in {__file__}"
    return VALID[rpc](world)


def test_every_valid_request_is_of_an_rpc() -> None:
    unknown = VALID.keys() - METHODS.keys()
    assert not unknown, f"VALID in {__file__} has requests of no RPC: {sorted(unknown)}"


every_rpc = pytest.mark.parametrize("rpc", sorted(METHODS))


@every_rpc
def test_the_valid_request_is_answered(rpc: str, world: World) -> None:
    world.api.call(rpc, valid(rpc, world))


@every_rpc
def test_fields_that_the_server_does_not_know_are_ignored(rpc: str, world: World) -> None:
    from_a_newer_client = bytes([0xFA, 0xFF, 0x7F, 3]) + b"new"  # Field 262,143, bytes.
    world.api.call(rpc, valid(rpc, world).SerializeToString() + from_a_newer_client)


@every_rpc
@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff", b"\x0a\xff\x01abc", b"\x0b"])
def test_bytes_that_are_no_message_are_refused(rpc: str, raw: bytes, world: World) -> None:
    with refused() as failure:
        world.api.call(rpc, raw)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_TYPE")
    _reads_well(failure)


@every_rpc
def test_an_empty_request_is_answered_or_names_what_is_missing(rpc: str, world: World) -> None:
    required = {
        leaf.steps[0].name
        for leaf in leaves(METHODS[rpc].input_type)
        if len(leaf.steps) == 1 and _is_required(leaf)
    }
    required |= {f.name for f in METHODS[rpc].input_type.fields if _must_be_set(f)}
    required |= {"lesson.id"} if rpc.endswith("/UpdateLesson") else set()
    required |= {"skill.id"} if rpc.endswith("/UpdateSkill") else set()
    required |= {"edge.id"} if rpc.endswith("/UpdateEdge") else set()
    required |= {"rule.condition"} if rpc.endswith("/TryAlertRule") else set()
    required |= {"rule.id"} if rpc.endswith("/UpdateAlertRule") else set()
    required |= {"task"} if rpc.endswith("/StoreEpisode") else set()  # Or a session's record.
    required |= {"memory.id"} if rpc.endswith("/UpdateMemory") else set()
    required |= {"memory_ids"} if rpc.endswith("/DeleteMemories") else set()  # Or a filter.
    required |= {"session_id"} if rpc.endswith("/Sleep") else set()  # Or a project.
    required |= {"user_id"} if rpc.endswith("Forget") else set()  # Or another way to name it.
    # Or a prediction, or a stream's.
    alone = rpc.endswith(("/Feedback", "/Act", "/RecordTrajectories"))
    required |= {"session_id"} if alone else set()
    required |= {"analysis"} if rpc.endswith("/Reflect") else set()  # Or parameters.
    if not required:
        world.api.call(rpc, b"")
        return
    with refused() as failure:
        world.api.call(rpc, b"")
    assert failure.code == INVALID
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    assert failure.fields.keys() <= required
    _reads_well(failure)


def _must_be_set(field: Any) -> bool:
    rules = rules_of(field)
    return rules is not None and (rules.required or rules.repeated.min_items > 0)


def _is_required(leaf: Leaf) -> bool:
    rules = leaf.rules
    if rules is None or leaf.field.is_repeated:
        return False
    if leaf.kind == "string":
        return bool(rules.min_len) or (
            rules.HasField("pattern") and not re.search(rules.pattern, "")
        )
    return leaf.kind == "enum" and 0 in rules.not_in


@dataclass(frozen=True)
class Case:
    """A request that must be refused: with one of `reasons`, naming one of `fields`."""

    name: str
    request: Message | bytes
    reasons: tuple[str, ...]
    fields: tuple[str, ...]


_FIELDS = [
    pytest.param(rpc, leaf, id=f"{rpc.rpartition('.')[2]}-{leaf.path}")
    for rpc in sorted(METHODS)
    for leaf in leaves(METHODS[rpc].input_type)
    if leaf.kind != "bool" and leaf.field.name not in ("start_time", "end_time")
]


@pytest.mark.parametrize(("rpc", "leaf"), _FIELDS)
def test_what_a_field_may_not_hold_is_refused(rpc: str, leaf: Leaf, world: World) -> None:
    if rpc.endswith(_UPDATES) and _of_the_resource(leaf) in _NOT_UPDATED:
        pytest.skip("the mask cannot name it, so it is not read")
    if rpc.endswith("/TryAlertRule") and _of_the_resource(leaf) in _NOT_TRIED:
        pytest.skip("it does not matter to what is tried, so it is not read")
    tried = 0
    for case in _cases(rpc, leaf, world):
        with refused() as failure:
            world.api.call(rpc, case.request)
        told = (case.name, failure.message)
        assert failure.code == INVALID, told
        assert failure.reason in case.reasons, told
        assert set(failure.fields) & set(case.fields), (*told, failure.fields)
        _reads_well(failure)
        tried += 1
    assert tried, "every field can be given something wrong"


_NOT_TRIED = {"name", "last_triggered_at", "created_at", "updated_at"}
_NOT_UPDATED = {
    "access_count", "last_accessed_at", "created_at", "updated_at", "archived_at",
    "superseded_by", "until", "record", "source_episode_ids", "findings", "cause", "effect",
    "origin", "low", "high", "state", "last_triggered_at",
}  # fmt: skip


def _of_the_resource(leaf: Leaf) -> str:
    """The field of an update's resource that a leaf is, or is part of: what the mask names."""
    return leaf.steps[1].name if len(leaf.steps) > 1 else ""


def _name_spaces(rpc: str, leaf: Leaf, request: Any) -> None:
    """Give the spaces of a request their keys, which are looked at first."""
    if rpc.endswith("LearningService/StartSession") and leaf.field.name != "key":
        for space in (request.state_space, request.action_space):
            for named in space.dict.spaces:
                named.key = named.key or "key"


def _request(rpc: str, leaf: Leaf, world: World, value: Any) -> Message:
    request = valid(rpc, world)
    if rpc.endswith("/Reflect") and len(leaf.steps) > 1:
        request.ClearField("analysis")  # The parameters say which it is.
    leaf.put(request, value)
    _name_spaces(rpc, leaf, request)
    if rpc.endswith(_UPDATES) and leaf.field.name not in ("id", "etag"):
        request.update_mask.paths[:] = [_of_the_resource(leaf)]
    return request


def _cases(rpc: str, leaf: Leaf, world: World) -> Iterator[Case]:
    def make(name: str, value: Any, *reasons: str, fields: tuple[str, ...] = ()) -> Case:
        request = _request(rpc, leaf, world, value)
        return Case(name, request, reasons, fields or (leaf.path,))

    if leaf.field.is_repeated:
        yield from _too_many(rpc, leaf, world)
    yield from _BY_KIND[leaf.kind](rpc, leaf, world, make)


def _too_many(rpc: str, leaf: Leaf, world: World) -> Iterator[Case]:
    limit = rules_of(leaf.field).repeated.max_items
    request = valid(rpc, world)
    value: Any = "x" if leaf.kind == "string" else 1
    getattr(leaf.holder(request), leaf.field.name).extend([value] * (limit + 1))
    _name_spaces(rpc, leaf, request)
    if rpc.endswith(_UPDATES):
        request.update_mask.paths[:] = [_of_the_resource(leaf)]
    yield Case("too many", request, ("OUT_OF_RANGE",), (leaf.list_path,))


def _texts(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    rules = leaf.rules
    wrong = ("INVALID_PARAMETER", "INVALID_FILTER")
    yield make("NUL", "a\0b", *wrong)
    marked = _request(rpc, leaf, world, MARKER).SerializeToString()
    broken = marked.replace(MARKER.encode(), b"\xff\xfe" + MARKER.encode()[2:])
    assert broken != marked
    yield Case("not UTF-8", broken, ("INVALID_TYPE",), (leaf.path,))
    limits = ("OUT_OF_RANGE", "INVALID_PARAMETER") if not rules.max_len else ("OUT_OF_RANGE",)
    longest = rules.max_len or 63
    yield make("too long", "1" * (longest + 1), *limits)
    yield make("5 MB", "1" * 5_000_000, *limits)
    if _is_required(leaf):
        yield make("missing", "", "MISSING_REQUIRED_FIELD")
    if rules.HasField("pattern") and "x1f" in rules.pattern:
        yield make("control character", "a\x1bb", "INVALID_PARAMETER")


def _enums(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    yield make("no such value", 9_999, "INVALID_PARAMETER")
    yield make("negative", -1, "INVALID_PARAMETER")
    if 0 in leaf.rules.not_in:
        yield make("unspecified", 0, "MISSING_REQUIRED_FIELD", "INVALID_PARAMETER")


def _numbers_of(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    rules = leaf.rules
    if leaf.kind != "double" or _is_bounded(rules):
        yield make("too small", min(rules.gte, 0) - 1, "OUT_OF_RANGE")
    if rules is not None and rules.HasField("lte"):
        yield make("too large", rules.lte + 1, "OUT_OF_RANGE")
    if leaf.kind == "double":
        bound = leaf.field.containing_type.full_name == "mneme.v1.BoxSpace"
        for number in (math.nan,) if bound else (math.nan, math.inf, -math.inf):
            yield make(str(number), number, "OUT_OF_RANGE", "INVALID_PARAMETER")


def _is_bounded(rules: Any) -> bool:
    return rules is not None and (rules.HasField("gte") or rules.HasField("gt"))


def _times(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    reasons = ("OUT_OF_RANGE", "INVALID_PARAMETER")
    for name, time in {
        "before 1970": Timestamp(seconds=-1),
        "after 9999": Timestamp(seconds=253_402_300_800),
        "the largest number": Timestamp(seconds=2**63 - 1),
        "the smallest number": Timestamp(seconds=-(2**63)),
        "too many nanoseconds": Timestamp(seconds=1, nanos=2_000_000_000),
        "negative nanoseconds": Timestamp(seconds=1, nanos=-1),
    }.items():
        yield make(name, time, *reasons)


def _durations(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    reasons = ("OUT_OF_RANGE", "INVALID_PARAMETER")
    for name, duration in {
        "negative": Duration(seconds=-1),
        "too long": Duration(seconds=315_360_000),
        "the largest number": Duration(seconds=2**63 - 1),
        "mixed signs": Duration(seconds=1, nanos=-1),
        "too many nanoseconds": Duration(seconds=1, nanos=2_000_000_000),
    }.items():
        yield make(name, duration, *reasons)


def _nested(levels: int) -> Struct:
    """Return an object that is so many levels deep."""
    made = inner = Struct()
    for _ in range(levels - 1):
        inner = inner.fields["deeper"].struct_value
    inner.fields["bottom"].bool_value = True
    return made


def _nested_lists(levels: int) -> Struct:
    made = Struct()
    value = made.fields["list"]
    for _ in range(levels - 1):
        value = value.list_value.values.add()
    value.bool_value = True
    return made


def _objects(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    for number in (math.nan, math.inf, -math.inf):
        made = Struct(fields={"number": Value(number_value=number)})
        yield make(f"holds {number}", made, "INVALID_PARAMETER")
    yield make("33 levels", _nested(33), "OUT_OF_RANGE")
    yield make("33 levels of lists", _nested_lists(33), "OUT_OF_RANGE")
    yield make("NUL in a text", struct(text="a\0b"), "INVALID_PARAMETER")
    yield make("NUL in a key", struct(**{"a\0b": 1}), "INVALID_PARAMETER")
    yield make("5 MB", struct(text="x" * 5_000_000), "OUT_OF_RANGE")
    limit = 2**20 if leaf.field.name == "payload" else 2**16
    yield make("just too large", struct(text="x" * limit), "OUT_OF_RANGE")
    deep = _request(rpc, leaf, world, struct(marker=MARKER)).SerializeToString()
    deeper = _deepened(rpc, leaf, world, 2_000)
    yield Case("2,000 levels", deeper, ("OUT_OF_RANGE",), (leaf.path,))
    broken = deep.replace(MARKER.encode(), b"\xff\xfe" + MARKER.encode()[2:])
    yield Case("not UTF-8", broken, ("INVALID_TYPE",), (leaf.path,))


def _deepened(rpc: str, leaf: Leaf, world: World, levels: int) -> bytes:
    """Return a request with an object deeper than a parser can make it."""
    inner = b""
    for _ in range(levels):
        # Value{struct_value: Struct{fields: {key: "k", value: Value{...}}}}
        entry = b"\x0a\x01k" + _block(2, inner)
        inner = _block(5, _block(1, entry))
    made = _block(1, b"\x0a\x01k" + _block(2, inner))
    raw = _block(leaf.field.number, made)
    for step in reversed(leaf.steps[:-1]):
        raw = _block(step.number, raw)
    return raw if leaf.steps[:-1] else valid(rpc, world).SerializeToString() + raw


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


_BY_KIND: dict[str, Callable[..., Iterator[Case]]] = {
    "string": _texts,
    "enum": _enums,
    "int": _numbers_of,
    "double": _numbers_of,
    "google.protobuf.Timestamp": _times,
    "google.protobuf.Duration": _durations,
    "google.protobuf.Struct": _objects,
}


def _reads_well(failure: Failure) -> None:
    """A message is for people: short, without the insides of the server, and with a domain."""
    assert failure.domain == "mneme.v1"
    assert failure.metadata["request_id"]
    assert 10 < len(failure.message) < 2_000
    for inside in ("Traceback", "Error(", "object at 0x", "sqlite", "protovalidate", "<class"):
        assert inside not in failure.message
    assert not re.search(r"\bNone\b|\w+_pb2|[^\x20-\x7e]", failure.message), failure.message


_RANGES = sorted(rpc for rpc, m in METHODS.items() if "start_time" in m.input_type.fields_by_name)


@pytest.mark.parametrize("rpc", _RANGES)
def test_a_range_that_ends_before_it_starts_is_refused(rpc: str, world: World) -> None:
    request: Any = valid(rpc, world)
    request.start_time.FromSeconds(2_000)
    request.end_time.FromSeconds(1_999)
    with refused() as failure:
        world.api.call(rpc, request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_FILTER")
    assert failure.field == "end_time"
    _reads_well(failure)


@pytest.mark.parametrize("rpc", _RANGES)
@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize(
    "time",
    [
        Timestamp(seconds=2**63 - 1),
        Timestamp(seconds=-(2**63)),
        Timestamp(seconds=1, nanos=2_000_000_000),
        Timestamp(seconds=1, nanos=-1),
    ],
)
def test_a_filter_takes_any_time_as_that_of_the_earliest_or_latest_memory(
    rpc: str, field: str, time: Timestamp, world: World
) -> None:
    request: Any = valid(rpc, world)
    everything = world.api.call(rpc, request)[0]
    getattr(request, field).CopyFrom(time)
    filtered = world.api.call(rpc, request)[0]
    lets_all_through = (time.seconds > 0) == (field == "end_time") and abs(time.seconds) > 1
    lets_all_through |= abs(time.seconds) == 1 and field == "start_time"
    assert _items(filtered) == (_items(everything) if lets_all_through else 0)


def _items(answer: Any) -> int:
    """Return how many of what was asked for came: what the answer's first list holds."""
    first = next(field for field in answer.DESCRIPTOR.fields if field.is_repeated)
    return len(getattr(answer, first.name))


_PAGED = sorted(rpc for rpc, m in METHODS.items() if "page_token" in m.input_type.fields_by_name)


def _first_token(rpc: str, world: World) -> str:
    request: Any = valid(rpc, world)
    request.page_size = 1
    token: str = world.api.call(rpc, request)[0].next_page_token  # type: ignore[attr-defined]
    assert token, "the tests need a second page"
    return token


def _page_token_is_refused(rpc: str, world: World, token: str, request: Any = None) -> None:
    request = valid(rpc, world) if request is None else request
    request.page_token = token
    with refused() as failure:
        world.api.call(rpc, request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_FILTER"), token
    assert failure.field == "page_token"
    _reads_well(failure)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_damaged_page_token_is_refused(rpc: str, world: World) -> None:
    token = _first_token(rpc, world)
    raw = bytearray(base64.urlsafe_b64decode(token))
    for place in range(len(raw)):
        flipped = bytearray(raw)
        flipped[place] ^= 1
        _page_token_is_refused(rpc, world, base64.urlsafe_b64encode(flipped).decode())
    for broken in (token[:-4], token[4:], token + token, "!", "é", "a", "/w==", " " + token):
        _page_token_is_refused(rpc, world, broken)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_that_was_made_up_is_refused(rpc: str, world: World) -> None:
    for made_up in (b"[" * 1_400, b'{"a":' * 200, json.dumps([10**400, "x"]).encode(), b"null"):
        token = base64.urlsafe_b64encode(b"\0" * 9 + made_up).decode()
        _page_token_is_refused(rpc, world, token)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_of_another_rpc_is_refused(rpc: str, world: World) -> None:
    for other in _PAGED:
        if other != rpc:
            _page_token_is_refused(rpc, world, _first_token(other, world))


_OTHER_FILTERS: dict[str, dict[str, Any]] = {
    "ListSessions": {"agent_id": "a"},
    "ListEvents": {"session_id": "session-0"},
    "ListLessons": {"filter": learn_pb.LessonFilter(category="general")},
    "ListMemories": {"filter": _ALL_MEMORIES, "include_superseded": True},
    "GetPatternStats": {"name": "pattern-0"},
    "ListApiKeys": {"include_revoked": True},
    "ListOperations": {"kind": "backup"},
    "ListReflections": {"filter": reflection_pb.ReflectionFilter(session_id="session-0")},
    "ListEpisodes": {"filter": episode_pb.EpisodeFilter(session_id="session-0")},
    "ListSkills": {"filter": skill_pb.SkillFilter(project="project")},
    "ListAlertRules": {"state": alert_pb.ALERT_STATE_OK},
    "ListAlertHistory": {"rule_id": "rule-0"},
    "ListEdges": {"filter": causal_pb.EdgeFilter(effect="effect")},
    "ListExperiments": {"status": experiment_pb.EXPERIMENT_STATUS_RUNNING},
    "GetTimeline": {"agent_id": "a"},
    "ListLearningSessions": {"algorithm": "sarsa"},
    "ListTrajectories": {"session_id": "policy-0"},
}


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_of_other_filters_is_refused(rpc: str, world: World) -> None:
    method = METHODS[rpc]
    filters = {f.name for f in method.input_type.fields} - {"page_size", "page_token"}
    if not filters:
        pytest.skip(f"{method.name} has no filters")
    request = GetMessageClass(method.input_type)(**_OTHER_FILTERS[method.name])
    _page_token_is_refused(rpc, world, _first_token(rpc, world), request)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_serves_pages_of_any_size(rpc: str, world: World) -> None:
    request: Any = valid(rpc, world)
    request.page_token = _first_token(rpc, world)
    request.page_size = 2
    assert world.api.call(rpc, request)[0].ListFields()


UNKNOWN = {
    # RPC: the field that names what must exist, and the reason when it does not.
    "mneme.v1.EventService/EndSession": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/GetSession": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.EventService/VerifyEvents": ("session_id", "SESSION_NOT_FOUND"),
    "mneme.v1.RecallService/GetCertificate": ("certificate_id", "NOT_FOUND"),
    "mneme.v1.ProofService/GetInclusionProof": ("source_id", "NOT_FOUND"),
    "mneme.v1.ProofService/RotateLogKey": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.LearnService/GetLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UpdateLesson": ("lesson.id", "NOT_FOUND"),
    "mneme.v1.LearnService/DeleteLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.LearnService/UndeleteLesson": ("lesson_id", "NOT_FOUND"),
    "mneme.v1.SkillService/GetEpisode": ("episode_id", "NOT_FOUND"),
    "mneme.v1.SkillService/DeleteEpisode": ("episode_id", "NOT_FOUND"),
    "mneme.v1.MemoryService/GetMemory": ("memory_id", "NOT_FOUND"),
    "mneme.v1.MemoryService/UpdateMemory": ("memory.id", "NOT_FOUND"),
    "mneme.v1.MemoryService/ReportPatternMatches": ("verdicts[0].memory_id", "NOT_FOUND"),
    **{
        f"mneme.v1.LearningService/{rpc}": ("session_id", "SESSION_NOT_FOUND")
        for rpc in (
            "Act",
            "DeleteLearningSession",
            "DownloadModel",
            "EndSession",
            "Explain",
            "Feedback",
            "GetLearningSession",
            "GetMetrics",
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
    "mneme.v1.AdminService/StartBackup": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/StartRestore": ("backup", "NOT_FOUND"),
    "mneme.v1.AdminService/StartDeleteTenant": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/StartReindex": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/StartMoveTenant": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/Forget": ("tenant_id", "NOT_FOUND"),
    "mneme.v1.AdminService/StartForget": ("tenant_id", "NOT_FOUND"),
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
    "mneme.v1.EventService/WatchEvents": "its ids are filters: what is watched may come later",
    "mneme.v1.RecallService/Recall": "its ids are filters",
    "mneme.v1.RecallService/RecallWithCertificate": "its ids are filters",
    "mneme.v1.LearnService/CreateLesson": "it makes the lesson; its sources need not be stored",
    "mneme.v1.LearnService/ImportLessons": "it makes the lessons; their sources need not be stored",
    "mneme.v1.LearnService/ListLessons": "its ids are filters",
    "mneme.v1.LearnService/SearchLessons": "its ids are filters",
    "mneme.v1.LearnService/ExportLessons": "its ids are filters",
    "mneme.v1.LearnService/StoreReflection": "it makes the reflection",
    "mneme.v1.LearnService/ListReflections": "its ids are filters",
    "mneme.v1.LearnService/SearchReflections": "its ids are filters",
    "mneme.v1.LearnService/SummarizeReflections": "its ids are filters",
    "mneme.v1.LearnService/LogKnowledge": "it makes the entry, and agents need no declaration",
    "mneme.v1.MemoryService/InsertMemory": "it makes the memory; users need no declaration",
    "mneme.v1.MemoryService/InsertMemories": "it makes the memory; users need no declaration",
    "mneme.v1.MemoryService/ListMemories": "its ids are filters",
    "mneme.v1.MemoryService/SearchMemories": "its ids are filters",
    "mneme.v1.MemoryService/DeleteMemories": "what does not exist is deleted",
    "mneme.v1.MemoryService/SearchPattern": "its ids are filters",
    "mneme.v1.MemoryService/InitMemory": "it names a tenant only to confirm",
    "mneme.v1.ContextService/GetContext": "its ids are filters",
    "mneme.v1.ContextService/Sleep": "it opens the session",
    "mneme.v1.ContextService/WakeUp": "its ids are filters",
    "mneme.v1.ContextService/SearchSessions": "its ids are filters",
    "mneme.v1.ContextService/GetTimeline": "its ids are filters",
    "mneme.v1.SkillService/StoreEpisode": "it makes the episode; its session need not be recorded",
    "mneme.v1.SkillService/ImportEpisodes": "it makes the episodes",
    "mneme.v1.SkillService/ListEpisodes": "its ids are filters",
    "mneme.v1.SkillService/RetrieveEpisodes": "its ids are filters",
    "mneme.v1.SkillService/ExportEpisodes": "its ids are filters",
    "mneme.v1.SkillService/ConsolidateSkills": "its ids are filters",
    "mneme.v1.CausalService/Discover": "its ids are filters",
    "mneme.v1.CausalService/StartDiscover": "its ids are filters",
    "mneme.v1.CausalService/SetDiscoverySchedule": "its ids are filters",
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
    _reads_well(failure)


def test_a_batch_of_no_events_and_one_of_too_many_are_refused(world: World) -> None:
    for number, reason in ((0, "MISSING_REQUIRED_FIELD"), (1_001, "OUT_OF_RANGE")):
        with refused() as failure:
            record(world.api, *[event("words", "batch")] * number)
        assert (failure.code, failure.reason) == (INVALID, reason)
        assert failure.field == "events"
        _reads_well(failure)


def test_the_place_of_a_bad_event_in_its_batch_is_named_and_nothing_is_recorded(
    world: World,
) -> None:
    with refused() as failure:
        record(world.api, event("good", "half"), event("good", "half"), event("bad", ""))
    assert failure.field == "events[2].session_id"
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    with refused() as failure:
        world.api.events.GetSession(events_pb.GetSessionRequest(session_id="half"))
    assert failure.reason == "SESSION_NOT_FOUND"


def test_all_bad_fields_of_a_request_are_named_at_once(world: World) -> None:
    with refused() as failure:
        record(world.api, event("", "", "", cost_usd=-1), event("fine", "x" * 201))
    assert failure.fields.keys() == {
        "events[0].session_id", "events[0].event_type", "events[0].cost_usd",
        "events[1].session_id",
    }  # fmt: skip


def test_one_id_twice_in_a_batch_is_one_event_or_a_conflict(world: World) -> None:
    same = [event("the same", "twice", id="twice-1", at=1)] * 2
    first, second = record(world.api, *same)
    assert (first.duplicate, second.duplicate) == (False, True)
    assert (first.sequence, first.hash) == (second.sequence, second.hash)
    with refused() as failure:
        record(
            world.api,
            event("one", "twice", id="twice-2", at=1),
            event("other", "twice", id="twice-2", at=1),
        )
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS")
    assert failure.field == "events[1].id"
    _reads_well(failure)


@pytest.mark.parametrize(
    "path", ["id", "access_count", "created_at", "archived_at", "nonsense", "lesson.title", "", "*"]
)
def test_an_update_mask_that_names_what_cannot_be_changed_is_refused(
    path: str, world: World
) -> None:
    request = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="lesson-0", title="new"),
        update_mask=FieldMask(paths=["title", path]),
    )
    with refused() as failure:
        world.api.learn.UpdateLesson(request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_PARAMETER")
    assert failure.field == "update_mask"
    _reads_well(failure)


def test_an_update_without_a_mask_is_refused(world: World) -> None:
    for mask in (None, FieldMask()):
        with refused() as failure:
            world.api.learn.UpdateLesson(
                learn_pb.UpdateLessonRequest(
                    lesson=learn_pb.Lesson(id="lesson-0", title="new"), update_mask=mask
                )
            )
        assert (failure.code, failure.reason) == (INVALID, "MISSING_REQUIRED_FIELD")
        assert failure.field == "update_mask"


def test_json_of_32_levels_and_of_nearly_its_size_is_kept_as_it_is(world: World) -> None:
    payloads = [_nested(32), _nested_lists(31), struct(text="x" * (2**20 - 100))]
    record(world.api, *[event("", "large", payload=None) for _ in ()] or [
        events_pb.NewEvent(session_id="large", event_type="custom", payload=payload)
        for payload in payloads
    ])  # fmt: skip
    answer = world.api.events.ListEvents(events_pb.ListEventsRequest(session_id="large"))
    assert [found.payload for found in answer.events] == payloads


@pytest.mark.parametrize("cursor", ["9" * 20, str(2**64), str(2**63)])
def test_a_cursor_that_no_event_can_have_is_refused(cursor: str, world: World) -> None:
    with refused() as failure:
        list(world.api.events.WatchEvents(events_pb.WatchEventsRequest(after_cursor=cursor)))
    assert (failure.code, failure.reason) == (INVALID, "INVALID_PARAMETER")
    assert failure.field == "after_cursor"
    _reads_well(failure)


def test_a_message_larger_than_the_server_takes_is_refused(world: World) -> None:
    with refused() as failure:
        world.api.call("mneme.v1.EventService/GetSession", b"\0" * (17 * 2**20))
    assert failure.code == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_numbers_in_a_payload_that_no_counter_can_hold_stay_in_the_payload(world: World) -> None:
    payload = struct(
        input_tokens=1e300, output_tokens=-5, cost_usd=1e300, duration_ms=1e300, name="tool"
    )
    record(world.api, event("words", "huge", payload=payload))
    (kept,) = world.api.events.ListEvents(events_pb.ListEventsRequest(session_id="huge")).events
    assert kept.payload == payload
    assert (kept.input_tokens, kept.output_tokens, kept.cost_usd) == (0, 0, 0)
    assert not kept.HasField("duration")


@pytest.mark.parametrize("path", ["/mneme.v1.EventService/Nonsense", "/no.Such/Service"])
def test_a_call_that_does_not_exist_is_unimplemented(path: str, world: World) -> None:
    call = world.api.channel.unary_unary(path)
    with pytest.raises(grpc.RpcError) as error:
        call(b"", timeout=10)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]
