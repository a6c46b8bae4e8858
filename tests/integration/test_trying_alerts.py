"""Rules that are tried against the past, on a real server."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from integration.test_alerts import rule, triggered
from mneme.v1 import alert_service_pb2 as pb
from mneme.v1 import common_pb2
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api, refused
from support.making import at, event, record
from support.server import LocalServer

HOUR, DAY = 3600, 86_400


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("trying")


def tried(api: Api, condition: str, **fields: Any) -> pb.TryAlertRuleResponse:
    """Try a rule against the days from 0 to 7."""
    asked = pb.AlertRule(condition=f"ALERT_CONDITION_{condition}", **fields)
    return api.alert.TryAlertRule(
        pb.TryAlertRuleRequest(rule=asked, start_time=at(0), end_time=at(7 * DAY))
    )


def errors(*times: float) -> list[events_pb.NewEvent]:
    return [event("broken", "s", "error", at=time) for time in times]


def test_it_says_when_a_rule_would_have_triggered_and_resolved(api: Api) -> None:
    # More than one event an hour, on three days; four at once are one alert.
    times = [
        DAY,
        DAY + 60,
        2 * DAY,
        2 * DAY + 1,
        2 * DAY + 2,
        2 * DAY + 3,
        4 * DAY,
        4 * DAY + HOUR - 1,
    ]
    record(api, *(event("x", "s", at=time) for time in times), event("alone", "s", at=5 * DAY))
    found = tried(api, "EVENT_COUNT_EXCEEDS", threshold=1, window_minutes=60)
    assert found.summary == "would have triggered 3 times in 1 week"
    assert (found.alert_count, found.searched_count, found.highest_value) == (3, 9, 4)
    spans = [(one.triggered_at, one.resolved_at) for one in found.alerts]
    assert spans == [
        (at(4 * DAY + HOUR - 1), at(4 * DAY + HOUR)),
        (at(2 * DAY + 1), at(2 * DAY + HOUR + 2)),
        (at(DAY + 60), at(DAY + HOUR)),
    ]
    assert found.alerts[1].highest_value == 4
    assert len(found.points) == 240
    assert max(point.value for point in found.points) == 4


def test_hysteresis_and_the_least_number_hold_in_the_past_too(api: Api) -> None:
    quarter = 900
    fine = [event("fine", "s", at=DAY + quarter * n) for n in range(8)]
    record(api, *fine, *errors(DAY + 10, DAY + 20, DAY + 30, DAY + 3 * HOUR))
    asked = {"threshold": 0.5, "window_minutes": 30}
    # The single error at the end is all that its window holds.
    assert tried(api, "ERROR_RATE_EXCEEDS", **asked).alert_count == 2
    found = tried(api, "ERROR_RATE_EXCEEDS", min_events=2, resolve_threshold=0, **asked)
    assert found.alert_count == 1
    assert found.alerts[0].triggered_at == at(DAY + 20)
    assert found.alerts[0].resolved_at == at(DAY + 30 * 60 + 30)


def test_silence_failures_costs_latencies_and_patterns_can_be_tried(api: Api) -> None:
    record(
        api,
        event("x", "s", at=DAY, cost_usd=2, duration={"seconds": 3}),
        event("x", "s", "error", at=2 * DAY, error="timeout after 30 s"),
        event("x", "s", "session_ended", at=3 * DAY, severity=common_pb2.SEVERITY_ERROR),
    )
    silence = tried(api, "NO_EVENTS_FOR", window_minutes=1440 * 2)
    assert [one.triggered_at for one in silence.alerts] == [at(5 * DAY)]
    assert not silence.alerts[0].HasField("resolved_at")
    for condition, asked in (
        ("SESSION_FAILURES_EXCEED", {}),
        ("COST_EXCEEDS", {"threshold": 1}),
        ("LATENCY_EXCEEDS", {"threshold": 2999}),
        ("ERROR_PATTERN_EXCEEDS", {"pattern": "TIMEOUT after <num>"}),
    ):
        assert tried(api, condition, **asked).alert_count == 1, condition


def test_a_pattern_of_many_placeholders_is_tried_in_no_time(api: Api) -> None:
    """Each placeholder may begin at any of a hundred places: to try all ways takes years."""
    record(api, event("x", "s", "error", at=DAY, error="it took 5 of 7 at 8 in 9 " * 12))
    asked = {"pattern": "<num> <num> <num> <num> <num> <num> <num> failed"}
    assert tried(api, "ERROR_PATTERN_EXCEEDS", **asked).alert_count == 0


@pytest.mark.parametrize("pattern", ["connection <str> refused", "fetch"])
def test_a_pattern_is_found_in_the_past_wherever_it_is_found_now(api: Api, pattern: str) -> None:
    middle = f"{'x' * 5000} connection was refused {'y' * 5000}"
    record(
        api,
        event("x", "s", "error", error=middle),
        event("", "s", "tool_error", name="fetch", payload={"reason": "no route"}),
        event("connection is refused by fetch, it says", "s"),  # No error.
    )
    made = rule(api, "ERROR_PATTERN_EXCEEDS", pattern=pattern)
    assert triggered(api, made).current_value == 1
    past = api.alert.TryAlertRule(pb.TryAlertRuleRequest(rule_id=made.id))
    assert (past.alert_count, past.highest_value) == (1, 1)


def test_a_rule_that_is_there_can_be_tried_and_nothing_changes(api: Api) -> None:
    record(api, event("x", "s", at=DAY))
    made = rule(api, "EVENT_COUNT_EXCEEDS")
    asked = pb.TryAlertRuleRequest(rule_id=made.id, start_time=at(0), end_time=at(7 * DAY))
    assert api.alert.TryAlertRule(asked).alert_count == 1
    assert api.alert.GetAlertRule(pb.GetAlertRuleRequest(rule_id=made.id)).rule == made
    assert not api.alert.ListAlertHistory(pb.ListAlertHistoryRequest()).entries


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"rule": {"condition": 8}}, "rule.condition"),
        ({"rule": {"condition": 9, "trend": 1}}, "rule.condition"),
        ({"rule": {"condition": 9}}, "rule.condition"),
        ({"rule": {"condition": 7}}, "rule.pattern"),
        ({"rule": {"condition": 1, "threshold": 5}}, "rule.threshold"),
        ({"rule": {"condition": 2, "resolve_threshold": 1}}, "rule.resolve_threshold"),
        ({"start_time": at(DAY), "end_time": at(DAY - 1)}, "end_time"),
    ],
)
def test_what_cannot_be_tried_is_refused(api: Api, asked: dict[str, Any], field: str) -> None:
    with refused() as failure:
        api.alert.TryAlertRule(pb.TryAlertRuleRequest(**{"rule": {"condition": 4}} | asked))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert failure.field == field


def test_an_error_rate_of_the_past_is_of_calls_of_tools_else_of_models_else_of_events(
    api: Api,
) -> None:
    record(
        api,
        event("go", "s", at=DAY),
        event("hm", "s", "llm_response", at=DAY),
        event("broken", "s", "tool_error", at=DAY),
        event("fine", "s", "tool_response", at=DAY + 1),
        event("hm", "s", "llm_response", at=3 * DAY),
        event("too many", "s", "error", at=3 * DAY),
        event("go", "s", at=3 * DAY),
        event("go", "s", at=5 * DAY),
        event("go", "s", at=5 * DAY),
        *errors(5 * DAY),
    )
    found = tried(api, "ERROR_RATE_EXCEEDS", threshold=0.3, window_minutes=60)
    assert [one.current_value for one in found.alerts] == pytest.approx([1 / 3, 0.5, 1])
