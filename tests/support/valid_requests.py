"""A valid request of every RPC, of a world: what a test spoils, or sends as it is."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
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
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb

from support.making import add_edge, episode, event, lesson, record, skill
from support.world import ALL_MEMORIES, World, alert_rule, experiment, learning, new, pattern, seen


def _told_rule(world: World) -> str:
    """A rule that has a channel, which cannot be reached."""
    request = alert_rule(new("told"))
    request.notify_channels.append("https://nobody.invalid/")
    return str(world.api.alert.CreateAlertRule(request).rule.id)


def _new_experiment(world: World) -> str:
    made = world.api.causal.CreateExperiment(experiment(new("new")))
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
    session_id = new("ended")
    record(world.api, event("words", session_id))
    return session_id


def _new_learning(world: World) -> str:
    request = learning(new("policy"))
    return str(world.api.learning.StartSession(request).session.id)


def _taught(world: World) -> str:
    told = learning_pb.FeedbackRequest(
        session_id="policy", state=seen(), action=learning_pb2.Action(label="go"), reward=1
    )
    world.api.learning.Feedback(told)
    return "policy"


def _exported(world: World) -> str:
    session_id = _new_learning(world)
    world.api.learning.EndSession(
        learning_pb.LearningServiceEndSessionRequest(session_id=session_id)
    )
    return session_id


VALID: dict[str, Callable[[World], Message]] = {
    "mneme.v1.EventService/StartSession": lambda _: events_pb.StartSessionRequest(
        session_id=new("started")
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
        filter=ALL_MEMORIES
    ),
    "mneme.v1.MemoryService/SearchMemories": lambda _: memory_pb.SearchMemoriesRequest(
        query="words", filter=ALL_MEMORIES
    ),
    "mneme.v1.MemoryService/DeleteMemories": lambda _: memory_pb.DeleteMemoriesRequest(
        filter=ALL_MEMORIES, dry_run=True
    ),
    "mneme.v1.MemoryService/StorePattern": lambda _: pattern(new("pattern")),
    "mneme.v1.MemoryService/GetPattern": lambda _: pattern_pb.GetPatternRequest(name="pattern-0"),
    "mneme.v1.MemoryService/ListPatterns": lambda _: pattern_pb.ListPatternsRequest(),
    "mneme.v1.MemoryService/DeletePattern": lambda w: pattern_pb.DeletePatternRequest(
        name=w.api.memory.StorePattern(pattern(new("pattern"))).pattern.name
    ),
    "mneme.v1.MemoryService/SearchPattern": lambda _: memory_pb.SearchPatternRequest(
        name="pattern-0", filter=ALL_MEMORIES
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
    "mneme.v1.SkillService/CreateSkill": lambda _: skill_pb.CreateSkillRequest(name=new("created")),
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
        skill_id=skill(w.api, new("deleted")).id
    ),
    "mneme.v1.AlertService/CreateAlertRule": lambda _: alert_rule(new("created")),
    "mneme.v1.AlertService/GetAlertRule": lambda _: alert_pb.GetAlertRuleRequest(rule_id="rule-0"),
    "mneme.v1.AlertService/ListAlertRules": lambda _: alert_pb.ListAlertRulesRequest(),
    "mneme.v1.AlertService/UpdateAlertRule": lambda _: alert_pb.UpdateAlertRuleRequest(
        rule=alert_pb.AlertRule(id="rule-0", threshold=10),
        update_mask=FieldMask(paths=["threshold"]),
    ),
    "mneme.v1.AlertService/DeleteAlertRule": lambda w: alert_pb.DeleteAlertRuleRequest(
        rule_id=w.api.alert.CreateAlertRule(alert_rule(new("deleted"))).rule.id
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
        cause=new("new-cause"), effect="effect"
    ),
    "mneme.v1.CausalService/GetEdge": lambda _: causal_pb.GetEdgeRequest(edge_id="edge-0"),
    "mneme.v1.CausalService/ListEdges": lambda _: causal_pb.ListEdgesRequest(),
    "mneme.v1.CausalService/UpdateEdge": lambda _: causal_service_pb.UpdateEdgeRequest(
        edge=causal_pb.CausalEdge(id="edge-0", uplift=0.5), update_mask=FieldMask(paths=["uplift"])
    ),
    "mneme.v1.CausalService/DeleteEdge": lambda w: causal_pb.DeleteEdgeRequest(
        edge_id=add_edge(w.api, new("deleted"), "effect", 0.5).id
    ),
    "mneme.v1.CausalService/QueryEffects": lambda _: causal_pb.QueryEffectsRequest(),
    "mneme.v1.CausalService/CreateExperiment": lambda _: experiment(new("created")),
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
        session_id=new("asleep"),
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
        tenant_id=new("input-made")
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
    "mneme.v1.AdminService/WhoAmI": lambda _: admin_pb.WhoAmIRequest(),
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
    "mneme.v1.LearningService/StartSession": lambda _: learning(new("policy")),
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
        session_id="policy", state=seen(), allowed_actions=[learning_pb2.Action(label="go")]
    ),
    "mneme.v1.LearningService/Feedback": lambda _: learning_pb.FeedbackRequest(
        session_id="policy", state=seen(), action=learning_pb2.Action(label="go"), reward=1
    ),
    "mneme.v1.LearningService/RecordExperience": lambda _: learning_pb.RecordExperienceRequest(
        session_id="policy",
        steps=[
            learning_pb2.Experience(state=seen(), action=learning_pb2.Action(label="go"), reward=1)
        ],
    ),
    "mneme.v1.LearningService/RecordTrajectories": lambda _: learning_pb.RecordTrajectoriesRequest(
        session_id="policy",
        steps=[
            learning_pb2.Experience(state=seen(), action=learning_pb2.Action(label="go"), reward=1)
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
            learning_pb.ActState(state=seen(), allowed_actions=[learning_pb2.Action(label="go")])
        ],
        feedback=[learning_pb2.Experience(state=seen(), action=learning_pb2.Action(label="go"))],
    ),
    "mneme.v1.LearningService/Train": (lambda _: learning_pb.TrainRequest(session_id="policy")),
    "mneme.v1.LearningService/GetMetrics": (
        lambda _: learning_pb.GetMetricsRequest(session_id="policy")
    ),
    "mneme.v1.LearningService/Explain": lambda w: learning_pb.ExplainRequest(
        session_id=_taught(w), state=seen()
    ),
    "mneme.v1.LearningService/ShapeReward": lambda _: learning_pb.ShapeRewardRequest(
        session_id="policy", state=seen(), extrinsic_reward=1
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
    """Return a valid request of an RPC."""
    assert rpc in VALID, f"add a valid request of {rpc} to VALID in {__file__}"
    return VALID[rpc](world)
