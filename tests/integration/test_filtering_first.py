"""Filters are part of the search: what they leave is found, however well the rest fits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import common_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import Api, grpc, refused
from support.contexts import get_context, sessions_found
from support.making import (
    LLM_RESPONSE,
    TOOL_CALL,
    TOOL_ERROR,
    at,
    event,
    ids_of,
    recall,
    record,
    struct,
)  # fmt: skip
from support.server import LocalServer

TOPIC = "the deployment of the billing service failed"


@pytest.fixture(scope="module")
def spoken(server: LocalServer) -> Api:
    """Return a tenant with events of many types, tools and authors; nobody may change it."""
    api = server.keys.tenant("filters")
    record(
        api,
        event("Please deploy the billing service", id="asked", payload=struct(role="user")),
        event("I will deploy the billing service", id="told", payload=struct(role="Assistant")),
        event("Deploying the billing service now", id="thought", kind=LLM_RESPONSE),
        event("Human words on billing", id="human", payload=struct(role="human")),
        event("Ann: billing should be deployed", id="ann"),
        event("deploy billing to production", id="call", kind=TOOL_CALL, name="deploy"),
        event("deploy billing: refused", id="refused", kind=TOOL_ERROR, name="deploy"),
        event("deploy billing: locked", id="locked", kind=TOOL_ERROR, name="lock",
              severity=common_pb2.SEVERITY_CRITICAL),
        event("billing tool ended", id="foreign", kind="on_tool_end", name="deploy",
              agent_id="Planner"),
        event("billing tool warned", id="warned", kind="on_tool_end",
              severity=common_pb2.SEVERITY_WARN),
        wait=True,
    )  # fmt: skip
    return api


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"event_types": ["tool_error"]}, {"refused", "locked"}),
        ({"event_types": ["TOOL_CALL", "on_tool_end"]}, {"call", "foreign", "warned"}),
        ({"event_types": ["ON_TOOL_END"]}, set()),
        ({"min_severity": "SEVERITY_ERROR"}, {"refused", "locked"}),
        ({"min_severity": "SEVERITY_WARN"}, {"refused", "locked", "warned"}),
        ({"min_severity": "SEVERITY_CRITICAL"}, {"locked"}),
        ({"name": "deploy"}, {"call", "refused", "foreign"}),
        ({"name": "nothing"}, set()),
        ({"author": "user"}, {"asked", "human"}),
        ({"author": "ASSISTANT"}, {"told", "thought"}),
        ({"author": "ann"}, {"ann"}),
        ({"author": "planner"}, {"foreign"}),
        ({"author": "nobody"}, set()),
        ({"name": "deploy", "event_types": ["tool_error"], "min_severity": "SEVERITY_ERROR"},
         {"refused"}),
    ],
)  # fmt: skip
def test_recall_filters_by_type_severity_tool_and_author(
    spoken: Api, filters: dict[str, Any], left: set[str]
) -> None:
    answer = recall(spoken, TOPIC, limit=100, **filters)
    assert set(ids_of(answer)) == left
    assert answer.searched_count == len(left)


def test_a_lesson_has_none_of_what_events_are_filtered_by(spoken: Api) -> None:
    spoken.learn.CreateLesson(learn_pb.CreateLessonRequest(title="Billing", content="deploy late"))
    for filters in ({"name": "deploy"}, {"author": "user"}, {"min_severity": "SEVERITY_DEBUG"}):
        kinds = {result.source_type for result in recall(spoken, TOPIC, **filters).results}
        assert kinds == {"event"}


@pytest.mark.parametrize(
    "filters", [{"min_severity": 17}, {"event_types": ["no type!"]}, {"author": "a\nb"}]
)
def test_a_filter_that_can_match_nothing_is_refused(spoken: Api, filters: dict[str, Any]) -> None:
    with refused() as failure:
        recall(spoken, TOPIC, **filters)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT


def test_sixty_lessons_of_another_project_do_not_hide_the_projects_own(api: Api) -> None:
    lessons = [
        learn_pb.Lesson(id=f"there-{n}", title=TOPIC, content=f"case {n}", project="elsewhere")
        for n in range(60)
    ]
    lessons += [
        learn_pb.Lesson(id="own", title="Billing", content="the service", project="here"),
        learn_pb.Lesson(id="shared", title="Billing", content="the deployment"),
    ]
    api.learn.ImportLessons(learn_pb.ImportLessonsRequest(lessons=lessons))
    answer = get_context(api, TOPIC, project="here", limit=5)
    assert {found.lesson.id for found in answer.lessons} == {"own", "shared"}


def test_sixty_sessions_of_last_year_do_not_hide_this_weeks(api: Api) -> None:
    yesterday = Timestamp()
    yesterday.FromDatetime(datetime.now(UTC) - timedelta(days=1))
    record(
        api,
        *(event(f"{TOPIC}, case {n}", f"old-{n}", at=n) for n in range(60)),
        event("billing: what was deployed", "new"),
        wait=True,
    )
    answer = get_context(api, TOPIC, start_time=yesterday, limit=5)
    assert sessions_found(answer) == ["new"]
    before = sessions_found(get_context(api, TOPIC, end_time=at(1_000), limit=5))
    assert len(before) == 5
    assert "new" not in before


def test_an_agents_sessions_are_found_by_what_others_did_in_them(api: Api) -> None:
    start = events_pb.StartSessionRequest(session_id="led", agent_id="lead")
    api.events.StartSession(start)
    record(api, event("the helper deployed billing", "led", agent_id="helper"), wait=True)
    for agent, found in (("lead", ["led"]), ("helper", [])):
        assert sessions_found(get_context(api, TOPIC, agent_id=agent)) == found
