"""Tenants do not see each other.

Every RPC has a test here: two tenants use the same agents, sessions, events, texts and lessons, and
one of them has some more of its own. What is only the other's is neither returned nor counted, and
asking for it is answered exactly as asking for what does not exist. `test_every_rpc_is_covered`
fails when the API grows an RPC that nobody wrote such a test for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import auth_pb2, learning_pb2
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
from mneme.v1 import operation_service_pb2 as operations_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import METHODS, Api, failure_of, grpc, refused
from support.contexts import get_context, sleep, wake_up
from support.making import (
    TOOL_CALL,
    add_edge,
    at,
    episode,
    event,
    export_lessons,
    ids_of,
    lesson,
    list_events,
    list_lessons,
    recall,
    record,
    search_lessons,
    session_of,
    skill,
    stream,
    struct,
    verify,
)
from support.operations import ended, response
from support.rest import RestApi
from support.server import LocalServer

OTHER = "only-of-the-other"
ABSENT = "it-exists-nowhere"  # As long as OTHER.
assert len(OTHER) == len(ABSENT)


@dataclass(frozen=True)
class World:
    """`ours` asks; `theirs` has the same and more; `alone` has what `ours` has, and was never near
    anybody else's data; `administrator` has a key of the tenant of `ours` with every scope."""

    ours: Api
    theirs: Api
    alone: Api
    administrator: Api
    server: LocalServer


def _fill(api: Api) -> None:
    api.events.StartSession(_shared_session())
    record(
        api,
        event("the payment was refused by the bank", "session", id="event-1", at=0),
        event("calling the bank again", "session", TOOL_CALL, id="event-2", name="call_bank", at=1),
        event("the bank accepted the payment now", "session", id="event-3", agent_id="agent", at=2),
        wait=True,
    )
    # Imported with its times: recency is a term of the score, and scores are compared below.
    saved = learn_pb.Lesson(
        id="lesson", title="Payments", content="retry a refused payment once", agent_id="agent",
        created_at=at(3), updated_at=at(3),
    )  # fmt: skip
    api.learn.ImportLessons(learn_pb.ImportLessonsRequest(lessons=[saved]))


def _shared_session() -> events_pb.StartSessionRequest:
    return events_pb.StartSessionRequest(
        session_id="session", agent_id="agent", user_id="user", project="project", tags=["tag"],
        started_at=at(0),
    )  # fmt: skip


@pytest.fixture
def world(server: LocalServer, theirs: Api, alone: Api) -> World:
    ours = server.keys.tenant("isolation")
    _fill(ours)
    return World(ours, theirs, alone, server.keys.key(ours.tenant_id, *ALL_SCOPES), server)


@pytest.fixture(scope="module")
def alone(server: LocalServer) -> Api:
    api = server.keys.tenant("isolation")
    _fill(api)
    return api


@pytest.fixture(scope="module")
def theirs(server: LocalServer) -> Api:
    theirs = server.keys.tenant("isolation")
    _fill(theirs)
    theirs.events.StartSession(
        events_pb.StartSessionRequest(
            session_id=OTHER, agent_id=OTHER, user_id=OTHER, project=OTHER, tags=[OTHER]
        )
    )
    record(
        theirs,
        event("the payment was refused by the bank", OTHER, id=OTHER, name=OTHER, at=3),
        event("the payment was refused by the bank", "session", id="event-4", agent_id=OTHER, at=4),
        wait=True,
    )
    lesson(
        theirs, "Payments", "retry a refused payment once", lesson_id=OTHER, agent_id=OTHER,
        category=OTHER, project=OTHER, tags=[OTHER],
    )  # fmt: skip
    sleep(theirs, OTHER, "The payment was refused by the bank", files=[OTHER])
    theirs.learn.StoreReflection(_reflection(OTHER))
    theirs.learn.LogKnowledge(_entry(OTHER))
    episode(theirs, _TOPIC, **_named(OTHER))
    theirs.memory.InsertMemory(_memory(OTHER))
    theirs.memory.StorePattern(_pattern(OTHER))
    learner = server.keys.key(theirs.tenant_id, *ALL_SCOPES)
    learner.learning.StartSession(_policy(OTHER))
    learner.learning.Feedback(_done(session_id=OTHER, action=_action(OTHER), reward=1))
    skill(theirs, OTHER, skill_id=OTHER, description=_TOPIC, project=OTHER, tags=[OTHER])
    theirs.skill.LinkSkills(_link(OTHER, skill(theirs, "child", skill_id="child").id))
    add_edge(theirs, OTHER, "success", 0.5, edge_id=OTHER)
    theirs.causal.CreateExperiment(_experiment(OTHER))
    theirs.alert.CreateAlertRule(_alert_rule(OTHER))
    return theirs


def _alert_rule(name: str) -> alert_pb.CreateAlertRuleRequest:
    """Return a rule whose every id and name is this one."""
    return alert_pb.CreateAlertRuleRequest(
        rule_id=name, name=name, condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS,
        threshold=1_000_000, scope=alert_pb.AlertScope(agent_id=name, project=name, tags=[name]),
    )  # fmt: skip


def _policy(name: str) -> learning_pb.LearningServiceStartSessionRequest:
    return learning_pb.LearningServiceStartSessionRequest(session_id=name, algorithm="linucb")


def _action(label: str) -> learning_pb2.Action:
    return learning_pb2.Action(label=label)


def _done(**fields: Any) -> learning_pb.FeedbackRequest:
    return learning_pb.FeedbackRequest(state=learning_pb2.State(json=struct(size=1)), **fields)


def _reflection(name: str) -> reflection_pb.StoreReflectionRequest:
    """Return a reflection whose every id and name is this one."""
    return reflection_pb.StoreReflectionRequest(
        reflection_id=name, session_id=name, project=name, agent_id=name, tags=[name],
        task_description=_TOPIC, outcome=reflection_pb.OUTCOME_FAILURE,
        what_did_not_work=["retrying at once"], next_strategy=name,
    )  # fmt: skip


def _entry(name: str) -> knowledge_pb.LogKnowledgeRequest:
    """Return an entry whose every id and name is this one."""
    return knowledge_pb.LogKnowledgeRequest(
        entry_id=name, project=name, agent_id=name, tags=[name], context=_TOPIC, lesson=name,
        type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
    )  # fmt: skip


def _named(name: str) -> dict[str, Any]:
    """Return what an episode is whose every id and name is this one."""
    ids = ("episode_id", "session_id", "agent_id", "user_id", "project")
    return dict.fromkeys(ids, name) | {"tags": [name], "critique": "retried at once"}


ALL_SCOPES = (
    auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN,
    auth_pb2.KEY_SCOPE_ADMIN,
)  # fmt: skip


def _memory(name: str) -> memory_pb.InsertMemoryRequest:
    """Return a memory whose every id and name is this one."""
    return memory_pb.InsertMemoryRequest(
        memory_id=name, user_id=name, agent_id=name, project=name, tags=[name], text=_TOPIC,
        metadata=struct(name=name),
    )  # fmt: skip


Check = Callable[[World], None]
CHECKS: dict[str, Check] = {}
NEEDS_NONE: dict[str, str] = {
    # RPC: why it can be left out. An RPC that takes an id or a filter never can.
}


def isolates(rpc: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        assert rpc in METHODS, f"there is no RPC {rpc}"
        CHECKS[rpc] = check
        return check

    return register


def test_every_rpc_that_needs_no_check_is_one() -> None:
    assert not CHECKS.keys() & NEEDS_NONE.keys()
    assert NEEDS_NONE.keys() <= METHODS.keys()


@pytest.mark.parametrize("rpc", sorted(METHODS))
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    if rpc in NEEDS_NONE:
        pytest.skip(NEEDS_NONE[rpc])
    assert rpc in CHECKS, f"write a check of {rpc}, which `@isolates` it, in {__file__}"
    theirs_before = _everything(world.theirs)
    CHECKS[rpc](world)
    assert _everything(world.theirs) == theirs_before, f"{rpc} changed the other tenant's data"


@pytest.mark.parametrize("rpc", sorted(METHODS))
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, world: World) -> None:
    if rpc in NEEDS_NONE:
        pytest.skip(NEEDS_NONE[rpc])
    opened = [
        RestApi(world.server.http_address, api)
        for api in (world.ours, world.alone, world.administrator)
    ]
    ours, alone, administrator = opened
    theirs_before = _everything(world.theirs)
    CHECKS[rpc](World(ours, world.theirs, alone, administrator, world.server))
    assert _everything(world.theirs) == theirs_before, f"{rpc} changed the other tenant's data"
    for api in opened:
        api.close()


def _everything(api: Api) -> list[Any]:
    """Return all that a tenant holds, but for accesses of its own."""
    lessons = export_lessons(api, include_archived=True)
    memories = api.memory.ListMemories(memory_pb.ListMemoriesRequest(include_superseded=True))
    sessions = api.events.ListSessions(events_pb.ListSessionsRequest())
    agents = api.events.ListAgents(events_pb.ListAgentsRequest())
    episodes = api.skill.ListEpisodes(episode_pb.ListEpisodesRequest())
    skills = api.skill.ListSkills(skill_pb.ListSkillsRequest())
    edges = api.causal.ListEdges(causal_pb.ListEdgesRequest())
    linked = [api.skill.GetSkill(skill_pb.GetSkillRequest(skill_id=s.id)) for s in skills.skills]
    return [
        lessons,
        list(memories.memories),
        list(sessions.sessions),
        list(agents.agents),
        list_events(api),
        list(episodes.episodes),
        linked,
        list(edges.edges),
        list(api.causal.ListExperiments(experiment_pb.ListExperimentsRequest()).experiments),
        list(api.alert.ListAlertRules(alert_pb.ListAlertRulesRequest()).rules),
        list(api.alert.ListAlertHistory(alert_pb.ListAlertHistoryRequest()).entries),
    ]


def answered_as_absent(api: Api, rpc: str, request: Callable[[str], Message]) -> Any:
    """Check that asking for OTHER is answered as asking for ABSENT, and return that answer."""
    with_other, with_absent = (
        _outcome(api, rpc, request(value), value) for value in (OTHER, ABSENT)
    )
    assert with_other == with_absent
    return with_other


def _outcome(api: Api, rpc: str, request: Message, asked: str) -> Any:
    try:
        return [str(answer).replace(asked, "ASKED") for answer in api.call(rpc, request)]
    except grpc.RpcError as error:
        failure = failure_of(error)
        metadata = {key: v for key, v in failure.metadata.items() if key != "request_id"}
        texts = (failure.message, str(dict(failure.fields)), str(metadata))
        return (
            failure.code, failure.reason, failure.retry_after_s,
            *(text.replace(asked, "ASKED") for text in texts),
        )  # fmt: skip


def not_found(answer: Any) -> bool:
    return answer[0] == grpc.StatusCode.NOT_FOUND


LEARNING = "mneme.v1.LearningService/"
NEEDS_NONE[LEARNING + "DescribeAlgorithms"] = "it tells of no tenant's data"
_OF_A_SESSION: dict[str, Callable[[str], Message]] = {
    "GetLearningSession": lambda asked: learning_pb.GetLearningSessionRequest(session_id=asked),
    "DeleteLearningSession": lambda asked: learning_pb.DeleteLearningSessionRequest(
        session_id=asked
    ),
    "Predict": lambda asked: learning_pb.PredictRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "Feedback": lambda asked: _done(session_id=asked, action=_action("go"), reward=1),
    "RecordExperience": lambda asked: learning_pb.RecordExperienceRequest(
        session_id=asked,
        trajectory_id="trajectory",
        steps=[learning_pb2.Experience(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "GetMetrics": lambda asked: learning_pb.GetMetricsRequest(session_id=asked, evaluate=True),
    "Explain": lambda asked: learning_pb.ExplainRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "ShapeReward": lambda asked: learning_pb.ShapeRewardRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "Transfer": lambda asked: learning_pb.TransferRequest(
        source_session_id=asked, target_session_id="policy"
    ),
    "Act": lambda asked: learning_pb.ActRequest(
        session_id=asked,
        states=[learning_pb.ActState(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "Train": lambda asked: learning_pb.TrainRequest(session_id=asked),
    "RecordTrajectories": lambda asked: learning_pb.RecordTrajectoriesRequest(
        session_id=asked,
        trajectory_id="trajectory",
        steps=[learning_pb2.Experience(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "ListTrajectories": lambda asked: learning_pb.ListTrajectoriesRequest(session_id=asked),
    "ImportExperience": lambda asked: import_pb.ImportExperienceRequest(
        session_id=asked, state_fields=[import_pb.StateField(path="project")]
    ),
    "EndSession": lambda asked: learning_pb.LearningServiceEndSessionRequest(session_id=asked),
}


def _of_a_session(rpc: str) -> Check:
    """Check that the other tenant's session is absent for an RPC, and is as it was."""

    def check(world: World) -> None:
        theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
        asked = learning_pb.GetLearningSessionRequest(session_id=OTHER)
        before = theirs.learning.GetLearningSession(asked)
        assert not_found(
            answered_as_absent(world.administrator, LEARNING + rpc, _OF_A_SESSION[rpc])
        )
        assert theirs.learning.GetLearningSession(asked) == before

    return check


for _rpc in _OF_A_SESSION:
    isolates(LEARNING + _rpc)(_of_a_session(_rpc))


@isolates(LEARNING + "StartSession")
def _(world: World) -> None:
    started = world.administrator.learning.StartSession(_policy(OTHER))
    assert (started.resumed, started.session.transitions) == (False, 0)
    assert not started.session.known_actions


@isolates(LEARNING + "DownloadModel")
def _(world: World) -> None:
    theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
    theirs.learning.EndSession(
        learning_pb.LearningServiceEndSessionRequest(session_id=OTHER, skip_skill=True)
    )
    theirs.learning.StartSession(_policy(OTHER))
    request = learning_pb.DownloadModelRequest(session_id=OTHER)
    before = list(theirs.learning.DownloadModel(request))
    assert OTHER.encode() in b"".join(part.data for part in before)
    assert not_found(
        answered_as_absent(
            world.administrator,
            LEARNING + "DownloadModel",
            lambda asked: learning_pb.DownloadModelRequest(session_id=asked),
        )
    )
    ours = world.administrator.learning  # With a session of that name it has a model of its own.
    ours.StartSession(_policy(OTHER))
    ours.EndSession(learning_pb.LearningServiceEndSessionRequest(session_id=OTHER, skip_skill=True))
    own = list(ours.DownloadModel(request))
    assert own[0].model.sha256 not in ("", before[0].model.sha256)
    assert list(theirs.learning.DownloadModel(request)) == before


@isolates(LEARNING + "ListLearningSessions")
def _(world: World) -> None:
    request = learning_pb.ListLearningSessionsRequest()
    world.administrator.learning.StartSession(_policy("policy"))
    found = world.administrator.learning.ListLearningSessions(request).sessions
    assert [session.id for session in found] == ["policy"]


@isolates("mneme.v1.EventService/StartSession")
def _(world: World) -> None:
    # The other tenant has started this session with other content; here the id is free.
    request = events_pb.StartSessionRequest(session_id=OTHER, agent_id="agent", project="project")
    started = world.ours.events.StartSession(request).session
    assert (started.agent_id, started.user_id, list(started.tags)) == ("agent", "", [])
    assert started.event_count == 0


@isolates("mneme.v1.EventService/EndSession")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/EndSession",
        lambda asked: events_pb.EndSessionRequest(session_id=asked),
    )
    assert not_found(answer)
    world.ours.events.EndSession(events_pb.EndSessionRequest(session_id="session"))
    status = session_of(world.theirs, "session").status
    assert status == events_pb.SESSION_STATUS_ACTIVE


@isolates("mneme.v1.EventService/RecordEvents")
def _(world: World) -> None:
    (receipt,) = record(world.ours, event("other words", OTHER, id=OTHER, at=9))
    assert (receipt.duplicate, receipt.sequence) == (False, 1)
    (mine,) = list_events(world.ours, session_id=OTHER)
    assert mine.prev_hash == ""
    record(world.ours, event("one more", "session", id="event-4", at=9))
    assert session_of(world.ours, "session").event_count == 4


@isolates("mneme.v1.EventService/StreamEvents")
def _(world: World) -> None:
    answer = stream(world.ours, [event("other words", OTHER, id=OTHER, at=9)])
    assert (answer.recorded_count, answer.duplicate_count) == (1, 0)
    assert session_of(world.ours, OTHER).event_count == 1


@isolates("mneme.v1.EventService/GetSession")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/GetSession",
        lambda asked: events_pb.GetSessionRequest(session_id=asked),
    )
    assert not_found(answer)
    ours, alone = session_of(world.ours, "session"), session_of(world.alone, "session")
    for session in (ours, alone):  # Hashes are salted, and cover when an event was recorded.
        assert session.head_hash
        session.ClearField("head_hash")
    assert ours == alone


@isolates("mneme.v1.EventService/ListSessions")
def _(world: World) -> None:
    mine = world.ours.events.ListSessions(events_pb.ListSessionsRequest())
    assert ([session.id for session in mine.sessions], mine.total_size) == (["session"], 1)
    for field in ("agent_id", "user_id", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.EventService/ListSessions",
            lambda asked, field=field: events_pb.ListSessionsRequest(
                **{field: [asked] if field == "tags" else asked}
            ),
        )
        assert answer == [""], field


@isolates("mneme.v1.EventService/ListEvents")
def _(world: World) -> None:
    assert [found.id for found in list_events(world.ours)] == ["event-1", "event-2", "event-3"]
    assert len(list_events(world.ours, session_id="session")) == 3
    for field in ("session_id", "agent_id", "name"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.EventService/ListEvents",
            lambda asked, field=field: events_pb.ListEventsRequest(**{field: asked}),
        )
        assert answer == [""], field


@isolates("mneme.v1.EventService/ListAgents")
def _(world: World) -> None:
    (mine,) = world.ours.events.ListAgents(events_pb.ListAgentsRequest()).agents
    assert (mine.id, mine.session_count, mine.event_count, mine.tool_call_count) == (
        "agent", 1, 3, 1,
    )  # fmt: skip


@isolates("mneme.v1.EventService/WatchEvents")
def _(world: World) -> None:
    for watched in ("", "session", OTHER):
        request = events_pb.WatchEventsRequest(after_cursor="0", session_id=watched)
        following = world.ours.events.WatchEvents(request)
        next(following)
        # The marker is recorded after whatever the other tenant records meanwhile.
        marker = f"marker-{watched}"
        record(world.ours, event("the end", watched or "session", id=marker))
        seen = list(_until(marker, following))
        following.cancel()
        assert not [found for found in seen if found.agent_id == OTHER]
        assert len(seen) == (1 if watched == OTHER else len(list_events(
            world.ours, session_id=watched)))  # fmt: skip
    absent = answered_as_absent(
        world.alone,
        "mneme.v1.EventService/WatchEvents",
        lambda asked: events_pb.WatchEventsRequest(agent_id=asked),
    )
    assert absent == ['cursor: "3"\n']  # Cursors do not tell how much others record.


def _until(
    marker: str, following: Iterator[events_pb.WatchEventsResponse]
) -> Iterator[events_pb.Event]:
    for answer in following:
        yield answer.event
        if answer.event.id == marker:
            return


@isolates("mneme.v1.EventService/VerifyEvents")
def _(world: World) -> None:
    assert verify(world.ours) == verify(world.alone)
    assert verify(world.ours).events_checked == 3
    assert verify(world.ours, "session").head_hash == session_of(world.ours, "session").head_hash
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/VerifyEvents",
        lambda asked: events_pb.VerifyEventsRequest(session_id=asked),
    )
    assert not_found(answer)


@isolates("mneme.v1.RecallService/Recall")
def _(world: World) -> None:
    query = "the payment was refused by the bank"
    for api in (world.ours, world.alone):
        # The words of both lie on the disk then: BM25 rounds the lengths of texts there.
        world.server.close_tenant(api.tenant_id)
    modes = (
        recall_pb.RECALL_MODE_HYBRID, recall_pb.RECALL_MODE_DENSE, recall_pb.RECALL_MODE_LEXICAL
    )  # fmt: skip
    for mode in modes:
        mine, lonely = (recall(api, query, mode=mode) for api in (world.ours, world.alone))
        assert OTHER not in ids_of(mine)
        assert "event-4" not in ids_of(mine)
        # Not even the statistics that rank are shared.
        assert mine == lonely
        for field in ("agent_id", "session_id", "user_id", "project", "tags"):
            answer = answered_as_absent(
                world.ours,
                "mneme.v1.RecallService/Recall",
                lambda asked, field=field, mode=mode: recall_pb.RecallRequest(
                    query=query, mode=mode, **{field: [asked] if field == "tags" else asked}
                ),
            )
            assert answer == ["outcome: RECALL_OUTCOME_NOTHING_MATCHES_FILTERS\nconfidence: 0\n"], (
                field
            )


def _certified(api: Api, **fields: Any) -> Any:
    asked = certificate_pb.RecallWithCertificateRequest(query=_TOPIC, **fields)
    return api.recall.RecallWithCertificate(asked)


@isolates("mneme.v1.RecallService/RecallWithCertificate")
def _(world: World) -> None:
    for fields in ({}, {"scopes": ["event", "lesson"]}):
        answer = _certified(world.ours, **fields)
        assert OTHER not in str(answer)
        assert "event-4" not in str(answer)
    for field in ("agent_id", "session_id", "user_id", "project", "tags"):
        given = {field: [OTHER] if field == "tags" else OTHER}
        assert not _certified(world.ours, scopes=["event", "memory"], **given).results


@isolates("mneme.v1.RecallService/GetCertificate")
def _(world: World) -> None:
    theirs = _certified(world.theirs).certificate.id
    with refused() as failure:
        world.ours.recall.GetCertificate(
            certificate_pb.GetCertificateRequest(certificate_id=theirs)
        )
    assert failure.code == grpc.StatusCode.NOT_FOUND


@isolates("mneme.v1.RecallService/VerifyCertificate")
def _(world: World) -> None:
    theirs = _certified(world.theirs).certificate.json
    found = world.ours.recall.VerifyCertificate(
        certificate_pb.VerifyCertificateRequest(json=theirs)
    )
    assert not found.valid
    assert not found.results


@isolates("mneme.v1.ProofService/GetCheckpoint")
def _(world: World) -> None:
    asked = proof_pb.GetCheckpointRequest()
    mine, other = (api.proof.GetCheckpoint(asked) for api in (world.ours, world.theirs))
    assert mine.origin.startswith(f"mneme/{world.ours.tenant_id}/")
    assert mine.root_hash != other.root_hash
    assert mine.verifier_key != other.verifier_key


@isolates("mneme.v1.ProofService/GetConsistencyProof")
def _(world: World) -> None:
    size = world.theirs.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).size
    with refused() as failure:
        world.ours.proof.GetConsistencyProof(
            proof_pb.GetConsistencyProofRequest(old_size=1, new_size=size + 1_000)
        )
    assert failure.reason == "OUT_OF_RANGE"


@isolates("mneme.v1.ProofService/GetInclusionProof")
def _(world: World) -> None:
    answered_as_absent(
        world.ours,
        "mneme.v1.ProofService/GetInclusionProof",
        lambda asked: proof_pb.GetInclusionProofRequest(source_type="lesson", source_id=asked),
    )


@isolates("mneme.v1.ProofService/GetLogKeys")
def _(world: World) -> None:
    asked = proof_pb.GetLogKeysRequest()
    mine, other = (api.proof.GetLogKeys(asked).keys for api in (world.ours, world.theirs))
    assert not {key.verifier_key for key in mine} & {key.verifier_key for key in other}


@isolates("mneme.v1.ProofService/RotateLogKey")
def _(world: World) -> None:
    before = world.theirs.proof.GetLogKeys(proof_pb.GetLogKeysRequest())
    world.administrator.proof.RotateLogKey(proof_pb.RotateLogKeyRequest())
    assert world.theirs.proof.GetLogKeys(proof_pb.GetLogKeysRequest()) == before


@isolates("mneme.v1.LearnService/CreateLesson")
def _(world: World) -> None:
    created = lesson(world.ours, "Mine", "something else", lesson_id=OTHER)
    assert (created.id, created.content, created.category) == (OTHER, "something else", "general")


@isolates("mneme.v1.LearnService/GetLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/GetLesson",
        lambda asked: learn_pb.GetLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    request = learn_pb.GetLessonRequest(lesson_id="lesson")
    counts = [world.ours.learn.GetLesson(request).lesson.access_count for _ in range(2)]
    assert counts == [1, 2]  # And `_everything` shows that the other's count stayed.


@isolates("mneme.v1.LearnService/ListLessons")
def _(world: World) -> None:
    mine = world.ours.learn.ListLessons(learn_pb.ListLessonsRequest())
    assert ([found.id for found in mine.lessons], mine.total_size) == (["lesson"], 1)
    for field in ("agent_id", "category", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/ListLessons",
            lambda asked, field=field: learn_pb.ListLessonsRequest(filter=_filter(field, asked)),
        )
        assert answer == [""], field


@isolates("mneme.v1.LearnService/SearchLessons")
def _(world: World) -> None:
    assert search_lessons(world.ours, "retry a refused payment once") == ["lesson"]
    request = learn_pb.SearchLessonsRequest(query="retry a refused payment once")
    assert world.ours.learn.SearchLessons(request).searched_count == 1
    for field in ("agent_id", "category", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SearchLessons",
            lambda asked, field=field: learn_pb.SearchLessonsRequest(
                query="retry a refused payment once", filter=_filter(field, asked)
            ),
        )
        assert answer == [""], field


def _filter(field: str, asked: str) -> learn_pb.LessonFilter:
    return learn_pb.LessonFilter(**{field: [asked] if field == "tags" else asked})


@isolates("mneme.v1.LearnService/UpdateLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/UpdateLesson",
        lambda asked: learn_pb.UpdateLessonRequest(
            lesson=learn_pb.Lesson(id=asked, title="taken over"),
            update_mask=FieldMask(paths=["title"]),
        ),
    )
    assert not_found(answer)
    world.ours.learn.UpdateLesson(
        learn_pb.UpdateLessonRequest(
            lesson=learn_pb.Lesson(id="lesson", context=struct(ours=True)),
            update_mask=FieldMask(paths=["context"]),
        )
    )


@isolates("mneme.v1.LearnService/DeleteLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/DeleteLesson",
        lambda asked: learn_pb.DeleteLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    world.ours.learn.DeleteLesson(learn_pb.DeleteLessonRequest(lesson_id="lesson"))
    assert [found.id for found in list_lessons(world.theirs)] == [OTHER, "lesson"]


@isolates("mneme.v1.LearnService/UndeleteLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/UndeleteLesson",
        lambda asked: learn_pb.UndeleteLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    world.ours.learn.DeleteLesson(learn_pb.DeleteLessonRequest(lesson_id="lesson"))
    world.ours.learn.UndeleteLesson(learn_pb.UndeleteLessonRequest(lesson_id="lesson"))
    assert [found.id for found in list_lessons(world.ours)] == ["lesson"]


@isolates("mneme.v1.LearnService/ImportLessons")
def _(world: World) -> None:
    brought = [learn_pb.Lesson(id=OTHER, title="Mine", content="something else")]
    answer = world.ours.learn.ImportLessons(
        learn_pb.ImportLessonsRequest(lessons=brought, on_conflict=learn_pb.IMPORT_CONFLICT_REPLACE)
    )
    assert (answer.created_count, answer.replaced_count) == (1, 0)


@isolates("mneme.v1.LearnService/ExportLessons")
def _(world: World) -> None:
    assert [found.id for found in export_lessons(world.ours)] == ["lesson"]
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/ExportLessons",
        lambda asked: learn_pb.ExportLessonsRequest(filter=_filter("agent_id", asked)),
    )
    assert answer == []


@isolates("mneme.v1.LearnService/StoreReflection")
def _(world: World) -> None:
    # The id is free here, and an attempt at the other's task in the other's session is the first.
    request = _reflection(OTHER)
    request.ClearField("tags")
    request.applied_reflection_ids.append(ABSENT)
    stored = world.ours.learn.StoreReflection(request).reflection
    assert (stored.attempt_number, list(stored.tags)) == (1, [])


def _reflection_filters() -> dict[str, Callable[[str], reflection_pb.ReflectionFilter]]:
    fields = ("session_id", "project", "agent_id", "tags")
    return {
        field: lambda asked, field=field: reflection_pb.ReflectionFilter(  # type: ignore[misc]
            **{field: [asked] if field == "tags" else asked}
        )
        for field in fields
    }


@isolates("mneme.v1.LearnService/ListReflections")
def _(world: World) -> None:
    answer = world.ours.learn.ListReflections(reflection_pb.ListReflectionsRequest())
    assert (list(answer.reflections), answer.total_size, answer.prompt) == ([], 0, "")
    for filter_ in _reflection_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/ListReflections",
            lambda asked, f=filter_: reflection_pb.ListReflectionsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.LearnService/SearchReflections")
def _(world: World) -> None:
    world.ours.learn.StoreReflection(_reflection("mine"))
    request = reflection_pb.SearchReflectionsRequest(task_description=_TOPIC)
    answer = world.ours.learn.SearchReflections(request)
    assert [found.reflection.id for found in answer.results] == ["mine"]
    assert answer.searched_count == 1
    for filter_ in _reflection_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SearchReflections",
            lambda asked, f=filter_: reflection_pb.SearchReflectionsRequest(
                task_description=_TOPIC, filter=f(asked)
            ),
        )
        assert found == [""]


@isolates("mneme.v1.LearnService/SummarizeReflections")
def _(world: World) -> None:
    request = reflection_pb.SummarizeReflectionsRequest()
    mine = world.ours.learn.SummarizeReflections(request)
    assert (mine.total_reflections, list(mine.recent_lessons)) == (0, [])
    assert (mine.metrics.store_count, mine.metrics.cross_session_reuse) == (0, 0)
    for field in ("project", "session_id"):
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SummarizeReflections",
            lambda asked, field=field: reflection_pb.SummarizeReflectionsRequest(**{field: asked}),
        )
        assert "total_reflections" not in found[0]


@isolates("mneme.v1.SkillService/StoreEpisode")
def _(world: World) -> None:
    # The id is free here, and the other's session has no record to take anything from.
    with refused() as failure:
        episode(world.ours, "", session_id=OTHER)
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    stored = episode(world.ours, "mine", session_id=OTHER, episode_id=OTHER)
    assert (stored.agent_id, list(stored.filled_fields)) == ("", [])


@isolates("mneme.v1.SkillService/GetEpisode")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/GetEpisode",
            lambda asked: episode_pb.GetEpisodeRequest(episode_id=asked),
        )
    )


@isolates("mneme.v1.SkillService/DeleteEpisode")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/DeleteEpisode",
            lambda asked: episode_pb.DeleteEpisodeRequest(episode_id=asked),
        )
    )


def _episode_filters() -> dict[str, Callable[[str], episode_pb.EpisodeFilter]]:
    fields = ("session_id", "project", "agent_id", "user_id", "tags")
    return {
        field: lambda asked, field=field: episode_pb.EpisodeFilter(  # type: ignore[misc]
            **{field: [asked] if field == "tags" else asked}
        )
        for field in fields
    }


@isolates("mneme.v1.SkillService/ListEpisodes")
def _(world: World) -> None:
    episode(world.ours, _TOPIC, episode_id="mine")
    answer = world.ours.skill.ListEpisodes(episode_pb.ListEpisodesRequest())
    assert ([found.id for found in answer.episodes], answer.total_size) == (["mine"], 1)
    for filter_ in _episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ListEpisodes",
            lambda asked, f=filter_: episode_pb.ListEpisodesRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/RetrieveEpisodes")
def _(world: World) -> None:
    episode(world.ours, _TOPIC, episode_id="mine")
    request = episode_pb.RetrieveEpisodesRequest(task=_TOPIC)
    answer = world.ours.skill.RetrieveEpisodes(request)
    assert [found.episode.id for found in answer.results] == ["mine"]
    assert (answer.searched_count, answer.critiques.with_critique) == (1, 0)
    for filter_ in _episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/RetrieveEpisodes",
            lambda asked, f=filter_: episode_pb.RetrieveEpisodesRequest(
                task=_TOPIC, filter=f(asked)
            ),
        )
        assert found == ["critiques {\n}\n"]


@isolates("mneme.v1.SkillService/ImportEpisodes")
def _(world: World) -> None:
    brought = [episode_pb.Episode(id=OTHER, task="mine")]
    answer = world.ours.skill.ImportEpisodes(
        skill_pb.ImportEpisodesRequest(
            episodes=brought, on_conflict=skill_pb.EPISODE_CONFLICT_REPLACE
        )
    )
    assert (answer.created_count, answer.replaced_count) == (1, 0)


@isolates("mneme.v1.SkillService/ExportEpisodes")
def _(world: World) -> None:
    for filter_ in _episode_filters().values():
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ExportEpisodes",
            lambda asked, f=filter_: skill_pb.ExportEpisodesRequest(filter=f(asked)),
        )
        assert answer == []


def _link(parent: str, child: str) -> skill_pb.LinkSkillsRequest:
    return skill_pb.LinkSkillsRequest(
        parent_skill_id=parent,
        child_skill_id=child,
        relationship=skill_pb.SKILL_RELATIONSHIP_PREREQUISITE,
    )


@isolates("mneme.v1.SkillService/CreateSkill")
def _(world: World) -> None:
    # Id and name are free here.
    saved = skill(world.ours, OTHER, skill_id=OTHER)
    assert (saved.description, saved.record.uses) == ("", 0)


def _skills_are_out_of_reach(world: World, rpc: str, request: Callable[[str], Message]) -> None:
    assert not_found(answered_as_absent(world.ours, f"mneme.v1.SkillService/{rpc}", request))


@isolates("mneme.v1.SkillService/GetSkill")
def _(world: World) -> None:
    _skills_are_out_of_reach(
        world, "GetSkill", lambda asked: skill_pb.GetSkillRequest(skill_id=asked)
    )
    skill(world.ours, "child", skill_id="child")
    mine = world.ours.skill.GetSkill(skill_pb.GetSkillRequest(skill_id="child"))
    assert list(mine.links) == []


@isolates("mneme.v1.SkillService/UpdateSkill")
def _(world: World) -> None:
    _skills_are_out_of_reach(
        world,
        "UpdateSkill",
        lambda asked: skill_pb.UpdateSkillRequest(
            skill=skill_pb.Skill(id=asked, code="mine"), update_mask=FieldMask(paths=["code"])
        ),
    )


@isolates("mneme.v1.SkillService/DeleteSkill")
def _(world: World) -> None:
    _skills_are_out_of_reach(
        world, "DeleteSkill", lambda asked: skill_pb.DeleteSkillRequest(skill_id=asked)
    )


@isolates("mneme.v1.SkillService/RecordSkillUse")
def _(world: World) -> None:
    _skills_are_out_of_reach(
        world,
        "RecordSkillUse",
        lambda asked: skill_pb.RecordSkillUseRequest(skill_id=asked, success=True),
    )


@isolates("mneme.v1.SkillService/LinkSkills")
def _(world: World) -> None:
    skill(world.ours, "child", skill_id="child")
    _skills_are_out_of_reach(world, "LinkSkills", lambda asked: _link(asked, "child"))
    # What is linked there closes no circle here.
    skill(world.ours, "parent", skill_id=OTHER)
    assert world.ours.skill.LinkSkills(_link("child", OTHER)).link.parent_name == "child"


@isolates("mneme.v1.SkillService/UnlinkSkills")
def _(world: World) -> None:
    skill(world.ours, "child", skill_id="child")
    _skills_are_out_of_reach(
        world,
        "UnlinkSkills",
        lambda asked: skill_pb.UnlinkSkillsRequest(parent_skill_id=asked, child_skill_id="child"),
    )


def _skill_filters() -> dict[str, Callable[[str], skill_pb.SkillFilter]]:
    return {
        "project": lambda asked: skill_pb.SkillFilter(project=asked),
        "tags": lambda asked: skill_pb.SkillFilter(tags=[asked]),
    }


@isolates("mneme.v1.SkillService/ListSkills")
def _(world: World) -> None:
    skill(world.ours, "mine")
    answer = world.ours.skill.ListSkills(skill_pb.ListSkillsRequest())
    assert ([found.name for found in answer.skills], answer.total_size) == (["mine"], 1)
    for filter_ in _skill_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ListSkills",
            lambda asked, f=filter_: skill_pb.ListSkillsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/ConsolidateSkills")
def _(world: World) -> None:
    request = skill_pb.ConsolidateSkillsRequest(min_attempts=1)
    assert world.ours.skill.ConsolidateSkills(request).episode_count == 0
    mine = episode(world.ours, _TOPIC)
    (made,) = world.ours.skill.ConsolidateSkills(request).skills
    assert list(made.skill.source_episode_ids) == [mine.id]
    for filter_ in _episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ConsolidateSkills",
            lambda asked, f=filter_: skill_pb.ConsolidateSkillsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/SearchSkills")
def _(world: World) -> None:
    skill(world.ours, "mine", description=_TOPIC)
    answer = world.ours.skill.SearchSkills(skill_pb.SearchSkillsRequest(task=_TOPIC))
    assert [found.skill.name for found in answer.results] == ["mine"]
    assert answer.searched_count == 1
    for filter_ in _skill_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/SearchSkills",
            lambda asked, f=filter_: skill_pb.SearchSkillsRequest(task=_TOPIC, filter=f(asked)),
        )
        assert found == [""]


def _causes_are_out_of_reach(world: World, rpc: str, request: Callable[[str], Message]) -> None:
    assert not_found(answered_as_absent(world.ours, f"mneme.v1.CausalService/{rpc}", request))


ALERTS = "mneme.v1.AlertService/"


@isolates(ALERTS + "CreateAlertRule")
def _(world: World) -> None:
    made = world.ours.alert.CreateAlertRule(_alert_rule(OTHER)).rule  # The id is free here.
    assert made.id == OTHER


@isolates(ALERTS + "GetAlertRule")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            ALERTS + "GetAlertRule",
            lambda asked: alert_pb.GetAlertRuleRequest(rule_id=asked),
        )
    )


@isolates(ALERTS + "UpdateAlertRule")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            ALERTS + "UpdateAlertRule",
            lambda asked: alert_pb.UpdateAlertRuleRequest(
                rule=alert_pb.AlertRule(id=asked), update_mask=FieldMask(paths=["enabled"])
            ),
        )
    )


@isolates(ALERTS + "DeleteAlertRule")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            ALERTS + "DeleteAlertRule",
            lambda asked: alert_pb.DeleteAlertRuleRequest(rule_id=asked),
        )
    )


@isolates(ALERTS + "ListAlertRules")
def _(world: World) -> None:
    world.ours.alert.CreateAlertRule(_alert_rule("mine"))
    answer = world.ours.alert.ListAlertRules(alert_pb.ListAlertRulesRequest())
    assert ([rule.id for rule in answer.rules], answer.total_size) == (["mine"], 1)


@isolates(ALERTS + "ListAlertHistory")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        ALERTS + "ListAlertHistory",
        lambda asked: alert_pb.ListAlertHistoryRequest(rule_id=asked),
    )
    assert found == [""]


@isolates(ALERTS + "TestAlertRule")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            ALERTS + "TestAlertRule",
            lambda asked: alert_pb.TestAlertRuleRequest(rule_id=asked),
        )
    )


@isolates(ALERTS + "TryAlertRule")
def _(world: World) -> None:
    assert not_found(
        answered_as_absent(
            world.ours,
            ALERTS + "TryAlertRule",
            lambda asked: alert_pb.TryAlertRuleRequest(rule_id=asked),
        )
    )
    found = answered_as_absent(
        world.ours,
        ALERTS + "TryAlertRule",
        lambda asked: alert_pb.TryAlertRuleRequest(
            rule=alert_pb.AlertRule(
                condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS,
                scope=alert_pb.AlertScope(project=asked),
            ),
            start_time=at(-1000),
            end_time=at(1000),
        ),
    )
    assert "searched_count" not in found[0]


@isolates(ALERTS + "GetWebhookSecret")
def _(world: World) -> None:
    asked = alert_pb.GetWebhookSecretRequest()
    ours, theirs = (api.alert.GetWebhookSecret(asked) for api in (world.ours, world.theirs))
    assert ours.secret != theirs.secret


@isolates(ALERTS + "RotateWebhookSecret")
def _(world: World) -> None:
    before = world.theirs.alert.GetWebhookSecret(alert_pb.GetWebhookSecretRequest())
    made = world.ours.alert.RotateWebhookSecret(alert_pb.RotateWebhookSecretRequest())
    assert world.theirs.alert.GetWebhookSecret(alert_pb.GetWebhookSecretRequest()) == before
    assert made.secret != before.secret


@isolates("mneme.v1.CausalService/AddEdge")
def _(world: World) -> None:
    # Id, cause and effect are free here, and what leads there to what closes no circle.
    add_edge(world.ours, "success", OTHER, 0.5, edge_id=OTHER)
    _causes_are_out_of_reach(
        world,
        "AddEdge",
        lambda asked: causal_pb.AddEdgeRequest(
            cause=f"skill:{asked}", effect="effect", edge_id="mine"
        ),
    )


@isolates("mneme.v1.CausalService/GetEdge")
def _(world: World) -> None:
    _causes_are_out_of_reach(
        world, "GetEdge", lambda asked: causal_pb.GetEdgeRequest(edge_id=asked)
    )


@isolates("mneme.v1.CausalService/UpdateEdge")
def _(world: World) -> None:
    _causes_are_out_of_reach(
        world,
        "UpdateEdge",
        lambda asked: causal_service_pb.UpdateEdgeRequest(
            edge=causal_pb.CausalEdge(id=asked, uplift=1), update_mask=FieldMask(paths=["uplift"])
        ),
    )


@isolates("mneme.v1.CausalService/DeleteEdge")
def _(world: World) -> None:
    _causes_are_out_of_reach(
        world, "DeleteEdge", lambda asked: causal_pb.DeleteEdgeRequest(edge_id=asked)
    )


@isolates("mneme.v1.CausalService/ListEdges")
def _(world: World) -> None:
    mine = add_edge(world.ours, "mine", "success", 0.5)
    answer = world.ours.causal.ListEdges(causal_pb.ListEdgesRequest())
    assert ([edge.id for edge in answer.edges], answer.total_size) == ([mine.id], 1)
    found = answered_as_absent(
        world.ours,
        "mneme.v1.CausalService/ListEdges",
        lambda asked: causal_pb.ListEdgesRequest(filter=causal_pb.EdgeFilter(cause=asked)),
    )
    assert found == [""]


@isolates("mneme.v1.CausalService/QueryEffects")
def _(world: World) -> None:
    add_edge(world.ours, "mine", "success", 0.5)
    answer = world.ours.causal.QueryEffects(causal_pb.QueryEffectsRequest(effect="success"))
    assert [chain.cause for chain in answer.chains] == ["mine"]
    found = answered_as_absent(
        world.ours,
        "mneme.v1.CausalService/QueryEffects",
        lambda asked: causal_pb.QueryEffectsRequest(cause=asked),
    )
    assert found == [""]


def _experiment(experiment_id: str) -> experiment_pb.CreateExperimentRequest:
    return experiment_pb.CreateExperimentRequest(
        experiment_id=experiment_id, name="name", cause="cause", effect="effect"
    )


_OF_AN_EXPERIMENT: dict[str, Callable[[str], Message]] = {
    "GetExperiment": lambda asked: experiment_pb.GetExperimentRequest(experiment_id=asked),
    "AssignTreatment": lambda asked: experiment_pb.AssignTreatmentRequest(
        experiment_id=asked, subject="subject"
    ),
    "RecordObservation": lambda asked: experiment_pb.RecordObservationRequest(
        experiment_id=asked, outcome=1, treatment=True
    ),
    "AnalyzeExperiment": lambda asked: experiment_pb.AnalyzeExperimentRequest(experiment_id=asked),
    "ConcludeExperiment": lambda asked: experiment_pb.ConcludeExperimentRequest(
        experiment_id=asked
    ),
    "DeleteExperiment": lambda asked: experiment_pb.DeleteExperimentRequest(experiment_id=asked),
}


def _of_an_experiment(rpc: str) -> Check:
    return lambda world: _causes_are_out_of_reach(world, rpc, _OF_AN_EXPERIMENT[rpc])


for _rpc in _OF_AN_EXPERIMENT:
    isolates(f"mneme.v1.CausalService/{_rpc}")(_of_an_experiment(_rpc))


@isolates("mneme.v1.CausalService/CreateExperiment")
def _(world: World) -> None:
    made = world.ours.causal.CreateExperiment(_experiment(OTHER)).experiment
    assert (made.assigned_count, made.observation_count) == (0, 0)


@isolates("mneme.v1.CausalService/ListExperiments")
def _(world: World) -> None:
    world.ours.causal.CreateExperiment(_experiment("mine"))
    answer = world.ours.causal.ListExperiments(experiment_pb.ListExperimentsRequest())
    assert ([one.id for one in answer.experiments], answer.total_size) == (["mine"], 1)


@isolates("mneme.v1.CausalService/Discover")
def _(world: World) -> None:
    assert world.ours.causal.Discover(discovery_pb.DiscoverRequest()).episode_count == 0
    episode(world.ours, _TOPIC)
    assert world.ours.causal.Discover(discovery_pb.DiscoverRequest()).episode_count == 1
    for filter_ in _episode_filters().values():
        answered_as_absent(
            world.ours,
            "mneme.v1.CausalService/Discover",
            lambda asked, f=filter_: discovery_pb.DiscoverRequest(filter=f(asked)),
        )


@isolates("mneme.v1.CausalService/StartDiscover")
def _(world: World) -> None:
    episode(world.ours, _TOPIC)
    request = discovery_pb.StartDiscoverRequest(operation_id=OTHER)
    started = world.ours.causal.StartDiscover(request).operation
    assert started.tenant_id == world.ours.tenant_id
    answer = response(ended(world.ours, started.id))
    assert answer.episode_count == 1


@isolates("mneme.v1.CausalService/GetDiscoverySchedule")
def _(world: World) -> None:
    theirs = discovery_pb.SetDiscoveryScheduleRequest(enabled=True, time="01:15")
    world.theirs.causal.SetDiscoverySchedule(theirs)
    request = discovery_pb.GetDiscoveryScheduleRequest()
    schedule = world.ours.causal.GetDiscoverySchedule(request).schedule
    assert (schedule.enabled, schedule.time) == (False, "03:00")


@isolates("mneme.v1.CausalService/SetDiscoverySchedule")
def _(world: World) -> None:
    ours = discovery_pb.SetDiscoveryScheduleRequest(enabled=True, time="04:45")
    world.ours.causal.SetDiscoverySchedule(ours)
    request = discovery_pb.GetDiscoveryScheduleRequest()
    assert world.theirs.causal.GetDiscoverySchedule(request).schedule.time != "04:45"


@isolates("mneme.v1.LearnService/LogKnowledge")
def _(world: World) -> None:
    # The other tenant has logged another line under this id; here it is free.
    request = _entry(OTHER)
    request.lesson = "mine"
    assert not world.ours.learn.LogKnowledge(request).duplicate


@isolates("mneme.v1.LearnService/QueryKnowledge")
def _(world: World) -> None:
    world.ours.learn.LogKnowledge(_entry("mine"))
    answer = world.ours.learn.QueryKnowledge(knowledge_pb.QueryKnowledgeRequest(query=_TOPIC))
    assert [found.entry.id for found in answer.entries] == ["mine"]
    assert OTHER not in answer.markdown
    for field in ("project", "tags"):
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/QueryKnowledge",
            lambda asked, field=field: knowledge_pb.QueryKnowledgeRequest(
                query=_TOPIC, **{field: [asked] if field == "tags" else asked}
            ),
        )
        assert "entries" not in found[0]


_MEMORY = "mneme.v1.MemoryService"


def _memory_filters() -> dict[str, Callable[[str], memory_pb.MemoryFilter]]:
    made = {
        field: lambda asked, field=field: memory_pb.MemoryFilter(  # type: ignore[misc]
            **{field: [asked] if field in ("tags", "any_tags") else asked}
        )
        for field in ("user_id", "agent_id", "project", "tags", "any_tags")
    }
    return made | {"metadata": lambda asked: memory_pb.MemoryFilter(metadata=struct(name=asked))}


@isolates(f"{_MEMORY}/InsertMemory")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/InsertMemory",
        lambda asked: memory_pb.InsertMemoryRequest(text="new words", supersedes=[asked]),
    )
    assert not_found(found)
    # The other tenant has the same text of the same user, under this id; here all is free.
    request = _memory(OTHER)
    request.text = "mine"
    assert not world.ours.memory.InsertMemory(request).already_known
    request = _memory("mine")
    request.user_id = OTHER
    answer = world.ours.memory.InsertMemory(request)
    assert (answer.already_known, list(answer.similar)) == (False, [])


@isolates(f"{_MEMORY}/InsertMemories")
def _(world: World) -> None:
    new = memory_pb.NewMemory(id=OTHER, text=_TOPIC, user_id=OTHER)
    (answer,) = world.ours.memory.InsertMemories(
        iter([memory_pb.InsertMemoriesRequest(memory=new)])
    )
    assert (answer.inserted_count, answer.known_count) == (1, 0)


@isolates(f"{_MEMORY}/GetMemory")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/GetMemory",
        lambda asked: memory_pb.GetMemoryRequest(memory_id=asked),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/UpdateMemory")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/UpdateMemory",
        lambda asked: memory_pb.UpdateMemoryRequest(
            memory=memory_pb.Memory(id=asked, text="taken over"),
            update_mask=FieldMask(paths=["text"]),
        ),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/ListMemories")
def _(world: World) -> None:
    world.ours.memory.InsertMemory(_memory("mine"))
    mine = world.ours.memory.ListMemories(memory_pb.ListMemoriesRequest())
    assert ([one.id for one in mine.memories], mine.total_size) == (["mine"], 1)
    for field, filter_ in _memory_filters().items():
        found = answered_as_absent(
            world.ours,
            f"{_MEMORY}/ListMemories",
            lambda asked, f=filter_: memory_pb.ListMemoriesRequest(filter=f(asked)),
        )
        assert found == [""], field


@isolates(f"{_MEMORY}/SearchMemories")
def _(world: World) -> None:
    world.ours.memory.InsertMemory(_memory("mine"))
    request = memory_pb.SearchMemoriesRequest(query=_TOPIC)
    answer = world.ours.memory.SearchMemories(request)
    assert [found.memory.id for found in answer.results] == ["mine"]
    assert (answer.searched_count, answer.total_matches) == (1, 1)
    for field, filter_ in _memory_filters().items():
        request = memory_pb.SearchMemoriesRequest(query=_TOPIC, filter=filter_(OTHER))
        answer = world.ours.memory.SearchMemories(request)
        assert (list(answer.results), answer.searched_count) == ([], 0), field


@isolates(f"{_MEMORY}/DeleteMemories")
def _(world: World) -> None:
    world.ours.memory.InsertMemory(_memory("mine"))
    for filter_ in _memory_filters().values():
        request = memory_pb.DeleteMemoriesRequest(filter=filter_(OTHER), memory_ids=[OTHER])
        assert world.ours.memory.DeleteMemories(request).deleted_count == 0
    request = memory_pb.DeleteMemoriesRequest(filter=_memory_filters()["project"]("mine"))
    assert list(world.ours.memory.DeleteMemories(request).memory_ids) == ["mine"]


def _pattern(name: str) -> pattern_pb.StorePatternRequest:
    return pattern_pb.StorePatternRequest(
        name=name, description=name, regex=pattern_pb.RegexPattern(expression="bank$")
    )


@isolates(f"{_MEMORY}/StorePattern")
def _(world: World) -> None:
    # The other tenant has another pattern of this name; here it is free.
    request = _pattern(OTHER)
    request.description = "mine"
    assert world.ours.memory.StorePattern(request).pattern.description == "mine"
    theirs = world.theirs.memory.GetPattern(pattern_pb.GetPatternRequest(name=OTHER))
    assert theirs.pattern.description == OTHER


@isolates(f"{_MEMORY}/GetPattern")
@isolates(f"{_MEMORY}/DeletePattern")
@isolates(f"{_MEMORY}/SearchPattern")
def _(world: World) -> None:
    for rpc, kind in (
        ("GetPattern", pattern_pb.GetPatternRequest),
        ("DeletePattern", pattern_pb.DeletePatternRequest),
        ("SearchPattern", memory_pb.SearchPatternRequest),
    ):
        found = answered_as_absent(
            world.ours, f"{_MEMORY}/{rpc}", lambda asked, kind=kind: kind(name=asked)
        )
        assert not_found(found), rpc
    world.ours.memory.StorePattern(_pattern("mine"))
    world.ours.memory.InsertMemory(_memory("mine"))
    answer = world.ours.memory.SearchPattern(memory_pb.SearchPatternRequest(name="mine"))
    assert [found.memory.id for found in answer.results] == ["mine"]
    assert (answer.total_matches, answer.searched_count) == (1, 1)


@isolates(f"{_MEMORY}/ListPatterns")
@isolates(f"{_MEMORY}/GetPatternStats")
def _(world: World) -> None:
    world.ours.memory.StorePattern(_pattern("mine"))
    listed = world.ours.memory.ListPatterns(pattern_pb.ListPatternsRequest())
    assert ([one.name for one in listed.patterns], listed.total_size) == (["mine"], 1)
    told = world.ours.memory.GetPatternStats(pattern_pb.GetPatternStatsRequest())
    assert [one.pattern.name for one in told.stats] == ["mine"]
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/GetPatternStats",
        lambda asked: pattern_pb.GetPatternStatsRequest(name=asked),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/ReportPatternMatches")
def _(world: World) -> None:
    world.ours.memory.StorePattern(_pattern("mine"))
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/ReportPatternMatches",
        lambda asked: pattern_pb.ReportPatternMatchesRequest(
            name="mine", verdicts=[pattern_pb.MatchVerdict(memory_id=asked)]
        ),
    )
    assert not_found(found)
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/ReportPatternMatches",
        lambda asked: pattern_pb.ReportPatternMatchesRequest(
            name=asked, verdicts=[pattern_pb.MatchVerdict(memory_id=OTHER)]
        ),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/GetStats")
@isolates(f"{_MEMORY}/InitMemory")
def _(world: World) -> None:
    asked = stats_pb.MemoryServiceGetStatsRequest(include_distribution=True, include_quality=True)
    ours, alone = (api.memory.GetStats(asked) for api in (world.ours, world.alone))
    assert ours.counts == alone.counts
    assert (ours.distribution, ours.quality) == (alone.distribution, alone.quality)
    begun = world.ours.memory.InitMemory(stats_pb.InitMemoryRequest())
    assert begun.counts == ours.counts
    assert OTHER not in str(ours)


@isolates(f"{_MEMORY}/ClearCache")
def _(world: World) -> None:
    everything = stats_pb.ClearCacheRequest(caches=[1, 2, 3])
    world.ours.memory.ClearCache(everything)
    world.theirs.memory.InsertMemory(_memory(OTHER))
    world.theirs.memory.SearchPattern(memory_pb.SearchPatternRequest(name=OTHER))
    cleared = world.ours.memory.ClearCache(everything).cleared
    assert [one.count for one in cleared] == [0, 0, 0]
    # A text that the other tenant has stored is no text that is at hand here.
    text = f"Nobody has said this, {uuid4()}, before."  # Over REST it is said anew.
    said = memory_pb.InsertMemoryRequest(text=text, memory_id="said")
    for api, hits in ((world.theirs, 0), (world.theirs, 1), (world.ours, 0)):
        assert api.memory.InsertMemory(said).figures.cache_hits == hits
        api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["said"]))


_CONTEXT = "mneme.v1.ContextService"
_TOPIC = "the payment was refused by the bank"


@isolates(f"{_CONTEXT}/GetContext")
def _(world: World) -> None:
    for api in (world.ours, world.alone):
        answer = get_context(api, _TOPIC)
        assert [found.session_id for found in answer.sessions] == ["session"]
        assert [found.lesson.id for found in answer.lessons] == ["lesson"]
        assert answer.total_sessions == 1
        assert not answer.reflections
    for field in ("user_id", "agent_id", "project"):
        for asked in (OTHER, ABSENT):
            answer = get_context(world.ours, _TOPIC, **{field: asked})
            # Lessons are for whichever user asks; nobody else's are among them.
            assert {found.lesson.id for found in answer.lessons} <= {"lesson"}
            assert (list(answer.sessions), answer.total_sessions) == ([], 0)


@isolates(f"{_CONTEXT}/Sleep")
def _(world: World) -> None:
    # The other tenant has handed this session over, for another project; here the id is free.
    handover = sleep(world.ours, OTHER, "Mine", project="mine")
    assert (handover.project, list(handover.files)) == ("mine", [])
    assert wake_up(world.theirs).last_handover.project == OTHER


@isolates(f"{_CONTEXT}/WakeUp")
def _(world: World) -> None:
    assert (
        wake_up(world.ours)
        == wake_up(world.alone)
        == context_pb.WakeUpResponse(narrative=wake_up(world.alone).narrative)
    )
    for field in ("project", "agent_id"):
        answered_as_absent(
            world.ours,
            f"{_CONTEXT}/WakeUp",
            lambda asked, field=field: context_pb.WakeUpRequest(**{field: asked}),
        )
    sleep(world.ours, "mine", "The payment was refused by the bank")
    woken = wake_up(world.ours, min_similarity=0.0)
    assert (list(woken.related), woken.sessions_considered) == ([], 1)


@isolates(f"{_CONTEXT}/SearchSessions")
def _(world: World) -> None:
    sleep(world.ours, "mine", "The payment was refused by the bank")
    request = context_pb.SearchSessionsRequest(query=_TOPIC)
    answer = world.ours.context.SearchSessions(request)
    assert ([r.session.id for r in answer.results], answer.searched_count) == (["mine"], 1)
    for field in ("user_id", "agent_id", "project"):
        found = answered_as_absent(
            world.ours,
            f"{_CONTEXT}/SearchSessions",
            lambda asked, field=field: context_pb.SearchSessionsRequest(
                query=_TOPIC, **{field: asked}
            ),
        )
        assert found == [""], field


@isolates(f"{_CONTEXT}/GetTimeline")
def _(world: World) -> None:
    sleep(world.ours, "mine", "The payment was refused by the bank")
    answer = world.ours.context.GetTimeline(context_pb.GetTimelineRequest())
    assert {entry.session.id for entry in answer.entries} == {"session", "mine"}
    assert not any(entry.related for entry in answer.entries)
    for field in ("agent_id", "project"):
        found = answered_as_absent(
            world.ours,
            f"{_CONTEXT}/GetTimeline",
            lambda asked, field=field: context_pb.GetTimelineRequest(**{field: asked}),
        )
        assert found == [""], field


@isolates("mneme.v1.ReflectService/Reflect")
def _(world: World) -> None:
    for analysis in range(1, 6):
        request = reflect_pb.ReflectRequest(analysis=analysis)  # type: ignore[arg-type]
        mine, lonely = (api.reflect.Reflect(request) for api in (world.ours, world.alone))
        assert mine == lonely
        assert (mine.metadata.sessions_analyzed, mine.metadata.events_analyzed) == (1, 3)
        assert OTHER not in str(mine)
        for field in ("agent_id", "user_id", "project", "tags"):
            answer = answered_as_absent(
                world.ours,
                "mneme.v1.ReflectService/Reflect",
                lambda asked, field=field, analysis=analysis: reflect_pb.ReflectRequest(
                    analysis=analysis, **{field: [asked] if field == "tags" else asked}
                ),
            )
            assert "sessions_analyzed" not in answer[0], field


@isolates("mneme.v1.AdminService/GetStats")
def _(world: World) -> None:
    mine = world.ours.admin.GetStats(admin_pb.GetStatsRequest()).tenant
    counts = (
        mine.event_count, mine.session_count, mine.agent_count, mine.lesson_count,
        mine.memory_count, mine.vector_count, mine.pending_count,
    )  # fmt: skip
    assert counts == (3, 1, 1, 1, 4, 4, 0)
    _refused_whether_it_exists_or_not(
        world, "GetStats", lambda tenant: admin_pb.GetStatsRequest(tenant_id=tenant)
    )


def _refused_whether_it_exists_or_not(
    world: World, method: str, request: Callable[[str], Message]
) -> None:
    """Check that a key without scope admin does not even learn whether there is such a tenant."""
    rpc = f"mneme.v1.AdminService/{method}"
    outcomes = [
        _outcome(world.ours, rpc, request(tenant), tenant)
        for tenant in (world.theirs.tenant_id, "no-such-tenant")
    ]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


_ADMIN_REQUESTS: dict[str, Callable[[str], Message]] = {
    "CreateTenant": lambda tenant: admin_pb.CreateTenantRequest(tenant_id=tenant),
    "ListTenants": lambda _: admin_pb.ListTenantsRequest(),
    "DeleteTenant": lambda tenant: admin_pb.DeleteTenantRequest(tenant_id=tenant),
    "CreateApiKey": lambda tenant: admin_pb.CreateApiKeyRequest(tenant_id=tenant, name="x"),
    "ListApiKeys": lambda tenant: admin_pb.ListApiKeysRequest(tenant_id=tenant),
    "RevokeApiKey": lambda tenant: admin_pb.RevokeApiKeyRequest(api_key_id=tenant),
    "Backup": lambda tenant: admin_pb.BackupRequest(tenant_id=tenant),
    "Restore": lambda tenant: admin_pb.RestoreRequest(tenant_id=tenant, backup="x.db"),
    "StartBackup": lambda tenant: admin_pb.StartBackupRequest(tenant_id=tenant),
    "StartRestore": lambda tenant: admin_pb.StartRestoreRequest(tenant_id=tenant, backup="x.db"),
    "StartDeleteTenant": lambda tenant: admin_pb.StartDeleteTenantRequest(tenant_id=tenant),
    "StartReindex": lambda tenant: admin_pb.StartReindexRequest(tenant_id=tenant),
    "StartMoveTenant": lambda tenant: admin_pb.StartMoveTenantRequest(tenant_id=tenant),
    "Forget": lambda tenant: admin_pb.ForgetRequest(tenant_id=tenant, user_id="ann"),
    "StartForget": lambda tenant: admin_pb.StartForgetRequest(tenant_id=tenant, user_id="ann"),
}
for _method, _request in _ADMIN_REQUESTS.items():

    @isolates(f"mneme.v1.AdminService/{_method}")
    def _(world: World, method: str = _method, request: Any = _request) -> None:
        _refused_whether_it_exists_or_not(world, method, request)


_OPERATIONS = "mneme.v1.OperationService"
_OPERATION_REQUESTS: dict[str, Any] = {
    "GetOperation": operations_pb.GetOperationRequest,
    "WaitOperation": operations_pb.WaitOperationRequest,
    "CancelOperation": operations_pb.CancelOperationRequest,
}
for _method, _request in _OPERATION_REQUESTS.items():

    @isolates(f"{_OPERATIONS}/{_method}")
    def _(world: World, method: str = _method, request: Any = _request) -> None:
        """The administrator's operation on a tenant is nobody else's, not even that tenant's."""
        for tenant in (world.ours, world.theirs):
            asked = admin_pb.StartBackupRequest(tenant_id=tenant.tenant_id)
            there = world.administrator.admin.StartBackup(asked).operation.id
            rpc = f"{_OPERATIONS}/{method}"
            outcomes = [
                _outcome(world.ours, rpc, request(operation_id=asked_for), asked_for)
                for asked_for in (there, ABSENT)
            ]
            assert outcomes[0] == outcomes[1]
            assert not_found(outcomes[0])


@isolates(f"{_OPERATIONS}/ListOperations")
def _(world: World) -> None:
    for tenant in (world.ours, world.theirs):
        world.administrator.admin.StartBackup(
            admin_pb.StartBackupRequest(tenant_id=tenant.tenant_id)
        )
    listed = world.ours.operation.ListOperations(operations_pb.ListOperationsRequest())
    assert not listed.operations
    rpc = f"{_OPERATIONS}/ListOperations"
    request = operations_pb.ListOperationsRequest(tenant_id=world.theirs.tenant_id)
    assert _outcome(world.ours, rpc, request, "")[:2] == (
        grpc.StatusCode.PERMISSION_DENIED,
        "SCOPE_MISSING",
    )


def test_an_administrators_key_reaches_the_memories_of_its_own_tenant_only(world: World) -> None:
    assert [found.id for found in list_events(world.administrator)] == [
        found.id for found in list_events(world.ours)
    ]
    with refused() as failure:
        session_of(world.administrator, OTHER)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert OTHER not in ids_of(recall(world.administrator, "the payment was refused"))


def test_a_page_token_of_another_tenant_reaches_nothing_of_it(world: World) -> None:
    request = events_pb.ListEventsRequest(page_size=1)
    request.page_token = world.theirs.events.ListEvents(request).next_page_token
    request.page_size = 100
    found = world.ours.events.ListEvents(request).events
    assert {item.id for item in found} <= {"event-2", "event-3"}


def test_a_watcher_sees_nothing_of_what_another_tenant_records_meanwhile(world: World) -> None:
    following = world.ours.events.WatchEvents(events_pb.WatchEventsRequest())
    next(following)
    for number in range(3):
        record(world.theirs, event("theirs", "session", id=f"theirs-{number}"))
        record(world.ours, event("ours", "session", id=f"ours-{number}"))
    seen = [found.id for found in _until("ours-2", following)]
    following.cancel()
    assert seen == ["ours-0", "ours-1", "ours-2"]
