"""What the checks that tenants do not see each other have in common.

Two tenants use the same agents, sessions, events, texts and lessons, and one of them has some more
of its own. What is only the other's is neither returned nor counted, and asking for it is answered
exactly as asking for what does not exist. A file of `tests/integration/isolation` holds the checks
of a service or two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from google.protobuf.message import Message
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import auth_pb2, learning_pb2
from mneme.v1 import causal_pb2 as causal_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb

from support.api import METHODS, Api, failure_of, grpc
from support.making import export_lessons, list_events, struct
from support.server import LocalServer

OTHER = "only-of-the-other"
ABSENT = "it-exists-nowhere"  # As long as OTHER.
assert len(OTHER) == len(ABSENT)
TOPIC = "the payment was refused by the bank"
ALL_SCOPES = (
    auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN,
    auth_pb2.KEY_SCOPE_ADMIN,
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """`ours` asks; `theirs` has the same and more; `alone` has what `ours` has, and was never near
    anybody else's data; `administrator` has a key of the tenant of `ours` with every scope."""

    ours: Api
    theirs: Api
    alone: Api
    administrator: Api
    server: LocalServer


Check: TypeAlias = Callable[[World], None]


class Checks(dict[str, Check]):
    """The checks of a file, by their RPCs. Called with an RPC, it takes in the check of it."""

    def __call__(self, rpc: str) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            assert rpc in METHODS, f"there is no RPC {rpc}"
            assert rpc not in self, f"{rpc} has a check, or a reason to have none, already"
            self[rpc] = check
            return check

        return register

    def needs_none(self, rpc: str, why: str) -> None:
        """Leave an RPC out. One that takes an id or a filter never can be."""
        self(rpc)(lambda world: pytest.skip(why))

    @property
    def each_rpc(self) -> pytest.MarkDecorator:
        """Gives a test below the checks each RPC that has one."""
        return pytest.mark.parametrize("rpc", sorted(self))

    def run(self, rpc: str, world: World) -> None:
        """Check an RPC, and that the other tenant holds what it held."""
        theirs_before = everything(world.theirs)
        self[rpc](world)
        assert everything(world.theirs) == theirs_before, f"{rpc} changed the other tenant's data"


def everything(api: Api) -> list[Any]:
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
        outcome(api, rpc, request(value), value) for value in (OTHER, ABSENT)
    )
    assert with_other == with_absent
    return with_other


def outcome(api: Api, rpc: str, request: Message, asked: str) -> Any:
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


def alert_rule(name: str) -> alert_pb.CreateAlertRuleRequest:
    """Return a rule whose every id and name is this one."""
    return alert_pb.CreateAlertRuleRequest(
        rule_id=name, name=name, condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS,
        threshold=1_000_000, scope=alert_pb.AlertScope(agent_id=name, project=name, tags=[name]),
    )  # fmt: skip


def policy(name: str) -> learning_pb.StartLearningSessionRequest:
    return learning_pb.StartLearningSessionRequest(session_id=name, algorithm="linucb")


def action(label: str) -> learning_pb2.Action:
    return learning_pb2.Action(label=label)


def done(**fields: Any) -> learning_pb.FeedbackRequest:
    return learning_pb.FeedbackRequest(state=learning_pb2.State(json=struct(size=1)), **fields)


def reflection(name: str) -> reflection_pb.CreateReflectionRequest:
    """Return a reflection whose every id and name is this one."""
    return reflection_pb.CreateReflectionRequest(
        reflection_id=name, session_id=name, project=name, agent_id=name, tags=[name],
        task_description=TOPIC, outcome=reflection_pb.OUTCOME_FAILURE,
        what_did_not_work=["retrying at once"], next_strategy=name,
    )  # fmt: skip


def entry(name: str) -> knowledge_pb.CreateKnowledgeRequest:
    """Return an entry whose every id and name is this one."""
    return knowledge_pb.CreateKnowledgeRequest(
        entry_id=name, project=name, agent_id=name, tags=[name], context=TOPIC, lesson=name,
        type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
    )  # fmt: skip


def memory(name: str) -> memory_pb.CreateMemoryRequest:
    """Return a memory whose every id and name is this one."""
    return memory_pb.CreateMemoryRequest(
        memory_id=name, user_id=name, agent_id=name, project=name, tags=[name], text=TOPIC,
        metadata=struct(name=name),
    )  # fmt: skip


def pattern(name: str) -> pattern_pb.CreatePatternRequest:
    return pattern_pb.CreatePatternRequest(
        pattern_id=name,
        name=name,
        description=name,
        regex=pattern_pb.RegexPattern(expression="bank$"),
    )


def link(parent: str, child: str) -> skill_pb.LinkSkillsRequest:
    return skill_pb.LinkSkillsRequest(
        parent_skill_id=parent,
        child_skill_id=child,
        relationship=skill_pb.SKILL_RELATIONSHIP_PREREQUISITE,
    )


def experiment(experiment_id: str) -> experiment_pb.CreateExperimentRequest:
    return experiment_pb.CreateExperimentRequest(
        experiment_id=experiment_id, name="name", cause="cause", effect="effect"
    )


def episode_filters() -> dict[str, Callable[[str], episode_pb.EpisodeFilter]]:
    fields = ("session_id", "project", "agent_id", "user_id", "tags")
    return {
        field: lambda asked, field=field: episode_pb.EpisodeFilter(  # type: ignore[misc]
            **{field: [asked] if field == "tags" else asked}
        )
        for field in fields
    }
