"""Who may call what."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from mneme.v1 import auth_pb2, event_service_pb2
from mneme_server.common.identity import ALL_SCOPES, KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.methods import methods_of
from support.sources import Given
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Client, Edge, all_methods

GET = "EventService/GetSession"
REQUEST = event_service_pb2.GetSessionRequest(session_id="s")

SCOPES = {
    "AlertService/CreateAlertRule": "write",
    "AlertService/GetAlertRule": "read",
    "AlertService/ListAlertRules": "read",
    "AlertService/UpdateAlertRule": "write",
    "AlertService/DeleteAlertRule": "write",
    "AlertService/ListAlertHistory": "read",
    "AlertService/GetWebhookSecret": "write",
    "AlertService/TestAlertRule": "write",
    "AlertService/TryAlertRule": "read",
    "AlertService/RotateWebhookSecret": "write",
    "EventService/StartSession": "write",
    "EventService/EndSession": "write",
    "EventService/GradeSession": "write",
    "EventService/RecordGrades": "write",
    "EventService/ListGrades": "read",
    "EventService/RecordEvents": "write",
    "EventService/StreamEvents": "write",
    "EventService/GetSession": "read",
    "EventService/ListSessions": "read",
    "EventService/ListEvents": "read",
    "EventService/ListAgents": "read",
    "EventService/WatchEvents": "read",
    "EventService/VerifyEvents": "read",
    "RecallService/Recall": "read",
    "RecallService/RecallWithCertificate": "read",
    "RecallService/GetCertificate": "read",
    "RecallService/VerifyCertificate": "read",
    "ProofService/GetCheckpoint": "read",
    "ProofService/GetConsistencyProof": "read",
    "ProofService/GetInclusionProof": "read",
    "ProofService/ListLogKeys": "read",
    "ProofService/RotateLogKey": "admin",
    "MemoryService/CreateMemory": "write",
    "MemoryService/CreateMemories": "write",
    "MemoryService/GetMemory": "read",
    "MemoryService/UpdateMemory": "write",
    "MemoryService/ListMemories": "read",
    "MemoryService/SearchMemories": "read",
    "MemoryService/DeleteMemories": "write",
    "MemoryService/CreatePattern": "write",
    "MemoryService/GetPattern": "read",
    "MemoryService/ListPatterns": "read",
    "MemoryService/UpdatePattern": "write",
    "MemoryService/DeletePattern": "write",
    "MemoryService/MatchPattern": "read",
    "MemoryService/RecordPatternMatches": "write",
    "MemoryService/ListPatternStats": "read",
    "MemoryService/OpenMemory": "write",
    "MemoryService/GetMemoryStats": "read",
    "MemoryService/ClearCache": "write",
    "LearningService/ListAlgorithms": "learn",
    "LearningService/StartLearningSession": "learn",
    "LearningService/GetLearningSession": "learn",
    "LearningService/ListLearningSessions": "learn",
    "LearningService/DeleteLearningSession": "learn",
    "LearningService/Predict": "learn",
    "LearningService/Feedback": "learn",
    "LearningService/RecordExperience": "learn",
    "LearningService/Act": "learn",
    "LearningService/Train": "learn",
    "LearningService/GetLearningMetrics": "learn",
    "LearningService/Explain": "learn",
    "LearningService/ShapeReward": "learn",
    "LearningService/Transfer": "learn",
    "LearningService/EndLearningSession": "learn",
    "LearnService/CreateLesson": "write",
    "LearnService/GetLesson": "read",
    "LearnService/ListLessons": "read",
    "LearnService/SearchLessons": "read",
    "LearnService/UpdateLesson": "write",
    "LearnService/ArchiveLesson": "write",
    "LearnService/UnarchiveLesson": "write",
    "LearnService/DeleteLesson": "write",
    "LearnService/ImportLessons": "write",
    "LearnService/ExportLessons": "read",
    "LearnService/CreateReflection": "write",
    "LearnService/GetReflection": "read",
    "LearnService/UpdateReflection": "write",
    "LearnService/DeleteReflection": "write",
    "LearnService/ListReflections": "read",
    "LearnService/SearchReflections": "read",
    "LearnService/SummarizeReflections": "read",
    "LearnService/CreateKnowledge": "write",
    "LearnService/GetKnowledge": "read",
    "LearnService/ListKnowledge": "read",
    "LearnService/SearchKnowledge": "read",
    "LearnService/UpdateKnowledge": "write",
    "LearnService/DeleteKnowledge": "write",
    "CausalService/CreateEdge": "write",
    "CausalService/GetEdge": "read",
    "CausalService/ListEdges": "read",
    "CausalService/UpdateEdge": "write",
    "CausalService/UpdateExperiment": "write",
    "CausalService/DeleteEdge": "write",
    "CausalService/TraceEffects": "read",
    "CausalService/CreateExperiment": "write",
    "CausalService/GetExperiment": "read",
    "CausalService/ListExperiments": "read",
    "CausalService/AssignTreatment": "write",
    "CausalService/RecordObservation": "write",
    "CausalService/AnalyzeExperiment": "read",
    "CausalService/ConcludeExperiment": "write",
    "CausalService/DeleteExperiment": "write",
    "CausalService/Discover": "write",
    "CausalService/GetDiscoverySchedule": "read",
    "CausalService/UpdateDiscoverySchedule": "write",
    "SkillService/CreateEpisode": "write",
    "LearningService/DownloadModel": "learn",
    "LearningService/RecordTrajectories": "learn",
    "LearningService/ListTrajectories": "learn",
    "LearningService/ImportExperience": "learn",
    "SkillService/GetEpisode": "read",
    "SkillService/ListEpisodes": "read",
    "SkillService/SearchEpisodes": "read",
    "SkillService/DeleteEpisode": "write",
    "SkillService/ImportEpisodes": "write",
    "SkillService/ExportEpisodes": "read",
    "SkillService/CreateSkill": "write",
    "SkillService/GetSkill": "read",
    "SkillService/UpdateEpisode": "write",
    "SkillService/UpdateSkill": "write",
    "SkillService/ListSkills": "read",
    "SkillService/SearchSkills": "read",
    "SkillService/RecordSkillUse": "write",
    "SkillService/LinkSkills": "write",
    "SkillService/UnlinkSkills": "write",
    "SkillService/DeleteSkill": "write",
    "SkillService/ConsolidateSkills": "write",
    "ReflectService/Reflect": "read",
    "ContextService/GetContext": "read",
    "ContextService/GetProfile": "read",
    "ContextService/Sleep": "write",
    "ContextService/WakeUp": "read",
    "ContextService/SearchSessions": "read",
    "ContextService/GetTimeline": "read",
    "AdminService/CreateTenant": "admin",
    "AdminService/ListTenants": "admin",
    "AdminService/DeleteTenant": "admin",
    "AdminService/CreateApiKey": "admin",
    "AdminService/ListApiKeys": "admin",
    "AdminService/RevokeApiKey": "admin",
    "AdminService/GetStats": "read",
    "AdminService/Backup": "admin",
    "AdminService/Restore": "admin",
    "AdminService/Reindex": "admin",
    "AdminService/MoveTenant": "admin",
    "AdminService/Forget": "admin",
}
"""Written out, so that changing who may call something takes two deliberate edits."""

ANY_KEY = (
    "AdminService/WhoAmI",
    "OperationService/GetOperation",
    "OperationService/ListOperations",
    "OperationService/WaitOperation",
    "OperationService/CancelOperation",
)

ALSO_READ = (
    "CausalService/Discover",
    "CausalService/Discover",
    "LearningService/ImportExperience",
)
"""What answers with what it finds in what is stored."""


@pytest.mark.parametrize("path", ALSO_READ)
def test_what_also_reads_is_refused_to_a_key_that_may_not(shared_edge: Edge, path: str) -> None:
    refusal = shared_edge.client(
        shared_edge.key(scopes=ALL_SCOPES - {KeyScope.READ}).secret
    ).refusal(path)
    assert refusal.code is grpc.StatusCode.PERMISSION_DENIED
    assert refusal.info.metadata["required_scope"] == "read"


def test_the_table_of_scopes_names_every_rpc() -> None:
    known = {f"{method.containing_service.name}/{method.name}" for method in all_methods()}
    missing, unknown = known - {*SCOPES, *ANY_KEY}, {*SCOPES, *ANY_KEY} - known
    assert not missing, f"add {sorted(missing)}, with the scope that each needs, in {__file__}"
    assert not unknown, f"there is no RPC {sorted(unknown)}"


@pytest.mark.parametrize("scope", KeyScope)
@pytest.mark.parametrize("path", ANY_KEY)
def test_what_any_key_may_call_needs_a_key_and_no_scope(
    shared_edge: Edge, path: str, scope: KeyScope
) -> None:
    holder = shared_edge.client(shared_edge.key(scopes={scope}).secret)
    assert holder.code(path) in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)
    assert shared_edge.client(None).refusal(path).reason == "API_KEY_MISSING"


@pytest.mark.parametrize(("path", "scope"), SCOPES.items())
def test_an_rpc_is_open_to_its_scope_and_to_no_other(
    shared_edge: Edge, path: str, scope: str
) -> None:
    needed = KeyScope[scope.upper()]
    others = shared_edge.client(shared_edge.key(scopes=ALL_SCOPES - {needed}).secret)
    refusal = others.refusal(path)
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "SCOPE_MISSING",
    )
    assert refusal.info.metadata["required_scope"] == scope
    scopes = {needed, KeyScope.READ} if path in ALSO_READ else {needed}
    holder = shared_edge.client(shared_edge.key(scopes=scopes).secret)
    assert holder.code(path) in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize("path", SCOPES)
def test_no_rpc_answers_without_a_key(shared_edge: Edge, path: str) -> None:
    refusal = shared_edge.client().refusal(path)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_MISSING")


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("Bearer mn_unknown", "API_KEY_INVALID"),
        ("Bearer", "API_KEY_MISSING"),
        ("Bearer  ", "API_KEY_MISSING"),
        ("Basic bW46", "API_KEY_MISSING"),
        ("mn_unknown", "API_KEY_MISSING"),
    ],
)
def test_an_authorization_that_is_no_key_is_refused(
    shared_edge: Edge, authorization: str, reason: str
) -> None:
    refusal = shared_edge.client(authorization=authorization).refusal(GET, REQUEST)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)


def test_a_revoked_key_is_refused_by_the_next_call(edge: Edge) -> None:
    created = edge.key()
    client = edge.client(created.secret)
    client.call(GET, REQUEST)
    edge.keys.revoke(created.key.id)
    assert client.refusal(GET, REQUEST).reason == "API_KEY_INVALID"


def _tell_tenant(edge: Edge) -> None:
    def answer(request: Any, call: Call) -> Any:
        session = event_service_pb2.Session(id=call.tenant)
        return event_service_pb2.GetSessionResponse(session=session)

    edge.on(GET, answer)


def test_the_tenant_is_that_of_the_key(edge: Edge) -> None:
    _tell_tenant(edge)
    for tenant in ("acme", "umbrella"):
        answer = edge.client(edge.key(tenant).secret).call(GET, REQUEST)
        assert answer.session.id == tenant


def test_without_required_keys_everyone_is_the_default_tenant(make_edge: MakeEdge) -> None:
    edge = make_edge(auth_required=False)
    _tell_tenant(edge)
    assert edge.client().call(GET, REQUEST).session.id == "default"
    edge.client().call("AdminService/ListTenants")


def test_without_required_keys_a_key_that_is_sent_still_counts(make_edge: MakeEdge) -> None:
    edge = make_edge(auth_required=False)
    _tell_tenant(edge)
    reader = edge.client(edge.key("acme", {KeyScope.READ}).secret)
    assert reader.call(GET, REQUEST).session.id == "acme"
    assert reader.refusal("AdminService/ListTenants").reason == "SCOPE_MISSING"
    assert edge.client("mn_wrong").refusal(GET, REQUEST).reason == "API_KEY_INVALID"


def test_a_stream_keeps_its_caller_from_its_first_answer_to_its_last(
    edge: Edge, client: Client
) -> None:
    def tenants(request: Any, call: Call) -> Any:
        answer = event_service_pb2.WatchEventsResponse(cursor=call.tenant)
        return Given(answer, answer, answer, ends=True)

    edge.on("EventService/WatchEvents", tenants)
    acme = edge.client(edge.key("acme").secret).open("EventService/WatchEvents")
    other = client.open("EventService/WatchEvents")
    pairs = [(a.cursor, b.cursor) for a, b in zip(acme, other, strict=True)]
    assert pairs == [("acme", "default")] * 3


def test_a_method_that_names_no_scope_stops_the_server_from_being_built() -> None:
    from grpc_health.v1 import health_pb2

    with pytest.raises(LookupError, match="does not say which scope"):
        methods_of([health_pb2.DESCRIPTOR.services_by_name["Health"]])


def test_scopes_have_the_same_numbers_on_the_wire_and_in_the_domain() -> None:
    wire = {
        name.removeprefix("KEY_SCOPE_"): number
        for name, number in auth_pb2.KeyScope.items()
        if number
    }
    assert wire == {scope.name: scope.value for scope in KeyScope}
