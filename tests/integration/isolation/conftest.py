"""The tenants that the checks of isolation compare, filled alike but for what is one's alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import Api
from support.contexts import sleep
from support.making import TOOL_CALL, at, create_edge, episode, event, lesson, record, skill
from support.rest import RestApi
from support.server import LocalServer

# What differs is shown, as for what a file of tests asserts itself.
pytest.register_assert_rewrite("support.isolation")

from support.isolation import (  # noqa: E402
    ALL_SCOPES,
    OTHER,
    TOPIC,
    World,
    action,
    alert_rule,
    done,
    entry,
    experiment,
    link,
    memory,
    pattern,
    policy,
    reflection,
)


def _fill(api: Api) -> None:
    api.events.StartSession(_shared_session())
    record(
        api,
        event("the payment was refused by the bank", "session", id="event-1", at=0),
        event("calling the bank again", "session", TOOL_CALL, id="event-2", name="call_bank", at=1),
        event("the bank accepted the payment now", "session", id="event-3", agent_id="agent", at=2),
        wait=True,
    )
    # Imported with its times: recency is a term of the score, and scores are compared.
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


@pytest.fixture
def over_rest(world: World) -> Iterator[World]:
    """The same world; whoever asks there does so over REST."""
    opened = [
        RestApi(world.server.http_address, api)
        for api in (world.ours, world.alone, world.administrator)
    ]
    ours, alone, administrator = opened
    yield World(ours, world.theirs, alone, administrator, world.server)
    for api in opened:
        api.close()


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
    theirs.events.GradeSession(
        events_pb.GradeSessionRequest(session_id=OTHER, reward=0, grader=OTHER, grade_id=OTHER)
    )
    sleep(theirs, OTHER, "The payment was refused by the bank", files=[OTHER])
    theirs.learn.CreateReflection(reflection(OTHER))
    theirs.learn.CreateKnowledge(entry(OTHER))
    episode(theirs, TOPIC, **_named(OTHER))
    theirs.memory.CreateMemory(memory(OTHER))
    theirs.memory.CreatePattern(pattern(OTHER))
    learner = server.keys.key(theirs.tenant_id, *ALL_SCOPES)
    learner.learning.StartLearningSession(policy(OTHER))
    learner.learning.Feedback(done(session_id=OTHER, action=action(OTHER), reward=1))
    skill(theirs, OTHER, skill_id=OTHER, description=TOPIC, project=OTHER, tags=[OTHER])
    theirs.skill.LinkSkills(link(OTHER, skill(theirs, "child", skill_id="child").id))
    create_edge(theirs, OTHER, "success", 0.5, edge_id=OTHER)
    theirs.causal.CreateExperiment(experiment(OTHER))
    theirs.alert.CreateAlertRule(alert_rule(OTHER))
    return theirs


def _named(name: str) -> dict[str, Any]:
    """Return what an episode is whose every id and name is this one."""
    ids = ("episode_id", "session_id", "agent_id", "user_id", "project")
    return dict.fromkeys(ids, name) | {"tags": [name], "critique": "retried at once"}
