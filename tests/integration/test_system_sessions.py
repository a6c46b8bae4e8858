"""What Mneme itself records, such as alerts, is nobody's session: it is not told as one."""

from __future__ import annotations

import pytest
from integration.test_alerts import rule, triggered
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.contexts import eventually
from support.making import event, list_events, recall, record, session_of
from support.reflecting import TRENDS, reflect
from support.server import LocalServer

ALERTS = "alerts-noisy"


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("system")


def end(api: Api, session: str) -> None:
    api.events.EndSession(events_pb.EndSessionRequest(session_id=session))


@pytest.fixture
def alerted(api: Api) -> Api:
    """A tenant with one session of an agent, and a rule that fired after it."""
    record(api, event("The parcel of order 7 is lost", "work", agent_id="clerk"))
    end(api, "work")
    summarised = eventually(lambda: wake_up(api), lambda woken: woken.HasField("last_summary"))
    assert summarised.last_summary.session_id == "work"
    made = rule(api, "EVENT_COUNT_EXCEEDS", name="Noisy", rule_id="noisy")
    record(api, event("The parcel of order 8 is lost", "work", agent_id="clerk"))
    triggered(api, made)
    eventually(lambda: list_events(api, session_id=ALERTS), len)
    return api


def wake_up(api: Api) -> context_pb.WakeUpResponse:
    return api.context.WakeUp(context_pb.WakeUpRequest())


def listed(api: Api, **fields: object) -> tuple[list[str], int]:
    page = api.events.ListSessions(events_pb.ListSessionsRequest(**fields))
    return [one.id for one in page.sessions], page.total_size


def test_it_is_marked_and_ends_with_its_latest_event(alerted: Api) -> None:
    found = session_of(alerted, ALERTS)
    assert found.system
    assert found.status == events_pb.SESSION_STATUS_COMPLETED
    assert found.ended_at == found.last_event_at
    assert not session_of(alerted, "work").system


def test_lists_leave_it_out_unless_they_are_asked_for_it(alerted: Api) -> None:
    assert listed(alerted) == (["work"], 1)
    assert listed(alerted, agent_id="clerk")[1] == 1
    names, total = listed(alerted, include_system=True)
    assert (set(names), total) == ({"work", ALERTS}, 2)
    completed = events_pb.SESSION_STATUS_COMPLETED
    assert listed(alerted, status=completed) == (["work"], 1)
    assert listed(alerted, status=completed, include_system=True)[1] == 2


def test_an_agent_is_not_told_of_it(alerted: Api) -> None:
    topic = "Noisy: events in the last hour"
    assert wake_up(alerted).last_summary.session_id == "work"
    timeline = alerted.context.GetTimeline(context_pb.GetTimelineRequest()).entries
    assert [entry.session.id for entry in timeline] == ["work"]
    context = alerted.context.GetContext(context_pb.GetContextRequest(topic=topic))
    assert ALERTS not in [found.session_id for found in context.sessions]
    assert ALERTS not in context.text
    assert context.total_sessions == 1
    searched = alerted.context.SearchSessions(context_pb.SearchSessionsRequest(query=topic))
    assert ALERTS not in [found.session.id for found in searched.results]
    assert searched.searched_count == 1
    sessions = recall(alerted, topic, scopes=["session"])
    assert [found.source_id for found in sessions.results] == ["work"]


def test_its_events_can_be_recalled(alerted: Api) -> None:
    found = recall(alerted, "Noisy was triggered", event_types=["alert_triggered"])
    assert [one.session_id for one in found.results] == [ALERTS]
    assert found.outcome == recall_pb.RECALL_OUTCOME_FOUND


def test_analyses_count_what_agents_did_alone(alerted: Api) -> None:
    answer = reflect(alerted, TRENDS)
    assert answer.metadata.sessions_analyzed == 1
    assert answer.performance_trends.overall.session_count == 1


def test_no_agent_did_more_for_an_alert_about_it(api: Api) -> None:
    record(api, event("one", "work", agent_id="clerk"))
    made = rule(api, "EVENT_COUNT_EXCEEDS", rule_id="of-clerk", scope={"agent_id": "clerk"})
    record(api, event("two", "work", agent_id="clerk"))
    triggered(api, made)
    eventually(lambda: list_events(api, session_id="alerts-of-clerk"), len)
    (clerk,) = api.events.ListAgents(events_pb.ListAgentsRequest()).agents
    assert (clerk.session_count, clerk.event_count) == (1, 2)


def test_a_session_of_that_name_that_an_agent_ran_is_the_agents(api: Api) -> None:
    record(api, event("I named my session so", "alerts-mine", agent_id="clerk"))
    assert not session_of(api, "alerts-mine").system
    assert listed(api) == (["alerts-mine"], 1)
    made = rule(api, "EVENT_COUNT_EXCEEDS", rule_id="mine")
    record(api, event("again", "alerts-mine", agent_id="clerk"))
    triggered(api, made)
    eventually(lambda: list_events(api, event_types=["alert_triggered"]), len)
    assert not session_of(api, "alerts-mine").system


def test_what_an_agent_records_in_it_makes_it_the_agents(alerted: Api) -> None:
    record(alerted, event("I look into it", ALERTS, agent_id="clerk"))
    assert not session_of(alerted, ALERTS).system
    assert set(listed(alerted)[0]) == {"work", ALERTS}
