"""Alerts, on a real server: rules watch what is recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import alert_service_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api, refused
from support.contexts import eventually
from support.making import event, record
from support.server import LocalServer

ERROR = "error"


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("alerts")


def ago(seconds: float) -> Timestamp:
    made = Timestamp()
    made.FromMicroseconds(round((time.time() - seconds) * 1e6))
    return made


def rule(api: Api, condition: str, **fields: Any) -> pb.AlertRule:
    """Create a rule and return it."""
    asked = pb.CreateAlertRuleRequest(
        name=fields.pop("name", condition), condition=f"ALERT_CONDITION_{condition}", **fields
    )
    return api.alert.CreateAlertRule(asked).rule


def history(api: Api, **fields: Any) -> Sequence[pb.AlertHistoryEntry]:
    return api.alert.ListAlertHistory(pb.ListAlertHistoryRequest(**fields)).entries


def triggered(api: Api, made: pb.AlertRule) -> pb.AlertHistoryEntry:
    """Wait until a rule has triggered; return what the history has of it."""
    found = eventually(lambda: history(api, rule_id=made.id), lambda seen: len(seen) > 0)
    return found[0]


def change(api: Api, made: pb.AlertRule, *paths: str, **fields: Any) -> pb.AlertRule:
    return api.alert.UpdateAlertRule(
        pb.UpdateAlertRuleRequest(
            rule=pb.AlertRule(id=made.id, **fields), update_mask=FieldMask(paths=paths)
        )
    ).rule


def test_a_rule_triggers_by_what_is_recorded_after_it(api: Api) -> None:
    made = rule(api, "ERROR_RATE_EXCEEDS", threshold=0.4, min_events=2)
    assert (made.state, made.enabled, made.window_minutes) == (pb.ALERT_STATE_OK, True, 60)
    record(api, event("fine", "s"), event("broken", "s", ERROR), event("broken", "s", ERROR))
    entry = triggered(api, made)
    assert entry.current_value == pytest.approx(2 / 3)
    assert entry.threshold == 0.4
    assert entry.message == "66.7 % of the calls in the last hour failed, more than 40 %."
    assert not entry.HasField("resolved_at")
    known = api.alert.GetAlertRule(pb.GetAlertRuleRequest(rule_id=made.id)).rule
    assert known.state == pb.ALERT_STATE_TRIGGERED
    assert known.last_triggered_at == entry.triggered_at


@pytest.mark.parametrize(
    ("condition", "asked", "value"),
    [
        ("COST_EXCEEDS", {"threshold": 0.5}, 0.75),
        ("LATENCY_EXCEEDS", {"threshold": 1000}, 1500),
        ("EVENT_COUNT_EXCEEDS", {"threshold": 3}, 4),
        ("SESSION_FAILURES_EXCEED", {"threshold": 0}, 1),
        ("ERROR_PATTERN_EXCEEDS", {"pattern": "bank <str> REFUSED"}, 1),
    ],
)
def test_each_condition_measures_what_it_says(
    api: Api, condition: str, asked: dict[str, Any], value: float
) -> None:
    made = rule(api, condition, **asked)
    record(
        api,
        event("paid", "s", cost_usd=0.5, duration={"seconds": 1}),
        event("paid", "s", cost_usd=0.25, duration={"seconds": 2}),
        event("x", "s", ERROR, error="The bank 'Alpha' refused 5 % of it"),
        event("x", "s", ERROR, error="The bank is closed"),
    )
    api.events.EndSession(
        events_pb.EndSessionRequest(session_id="s", status=events_pb.SESSION_STATUS_ERROR)
    )
    assert triggered(api, made).current_value == pytest.approx(value)


def test_an_error_rate_is_of_calls_and_not_of_what_is_said_beside_them(api: Api) -> None:
    made = rule(api, "ERROR_RATE_EXCEEDS", threshold=0.5, min_events=2)
    said = ("message", "custom", "llm_call", "llm_response", "tool_call")
    for number in range(2):
        record(api, *(event("x", "s", kind, call_id=f"{number}") for kind in said))
        record(api, event("broken", "s", "tool_error", call_id=f"{number}"))
    assert triggered(api, made).current_value == 1
    record(api, *(event("fine", "s", "tool_response", call_id=f"{n}") for n in range(6)))
    eventually(lambda: history(api, rule_id=made.id), lambda seen: seen[0].HasField("resolved_at"))


def test_what_is_outside_the_scope_and_the_window_does_not_count(api: Api) -> None:
    for session, project, tags in (("in", "shop", ["live"]), ("out", "shop", [])):
        api.events.StartSession(
            events_pb.StartSessionRequest(session_id=session, project=project, tags=tags)
        )
    scope = pb.AlertScope(agent_id="ann", project="shop", tags=["live"])
    made = rule(api, "EVENT_COUNT_EXCEEDS", threshold=1, scope=scope, window_minutes=10)
    record(
        api,
        event("old", "in", agent_id="ann", timestamp=ago(700)),
        event("of another", "in", agent_id="bob"),
        event("of another session", "out", agent_id="ann"),
        event("one", "in", agent_id="ann", timestamp=ago(5)),
        event("two", "in", agent_id="ann", timestamp=ago(4)),
    )
    entry = triggered(api, made)
    assert entry.current_value == 2
    assert entry.message == (
        "Events in the last 10 minutes (agent ann, project shop, tag live): 2, more than 1."
    )


def test_a_rule_resolves_at_its_lower_threshold_and_triggers_once_until_then(api: Api) -> None:
    made = rule(api, "ERROR_RATE_EXCEEDS", threshold=0.5, resolve_threshold=0.25)
    record(api, event("broken", "s", ERROR))
    first = triggered(api, made)
    record(api, event("fine", "s"), event("fine", "s"))  # A third: neither.
    other = rule(api, "EVENT_COUNT_EXCEEDS", threshold=2)
    triggered(api, other)  # Of the same evaluation, or a later one.
    assert [one.id for one in history(api, rule_id=made.id)] == [first.id]
    assert not history(api, rule_id=made.id)[0].HasField("resolved_at")
    record(api, event("fine", "s"), event("broken again", "s", ERROR))  # Two fifths, not resolved.
    record(api, *(event("fine", "s") for _ in range(5)))
    (entry,) = eventually(
        lambda: history(api, rule_id=made.id), lambda seen: seen[0].HasField("resolved_at")
    )
    assert entry.id == first.id
    assert entry.resolution == pb.ALERT_RESOLUTION_RECOVERED
    assert entry.resolved_value == pytest.approx(0.2)


def test_the_longest_id_of_a_rule_still_makes_the_id_of_a_session(api: Api) -> None:
    made = rule(api, "EVENT_COUNT_EXCEEDS", threshold=0, rule_id="r" * 193)
    record(api, event("one", "s"))
    triggered(api, made)
    asked = events_pb.GetSessionRequest(session_id=f"alerts-{made.id}")
    kept = eventually(
        lambda: (
            api.events.ListSessions(events_pb.ListSessionsRequest(include_system=True)).sessions
        ),
        lambda seen: len(seen) == 2,
    )
    assert f"alerts-{made.id}" in {session.id for session in kept}
    assert api.events.GetSession(asked).session.event_count == 1
    with refused() as failure:
        rule(api, "EVENT_COUNT_EXCEEDS", threshold=0, rule_id="r" * 194)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == ["rule_id"]
