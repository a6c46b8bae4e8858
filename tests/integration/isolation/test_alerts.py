"""Tenants do not see each other's alert rules, nor what their webhooks are signed with."""

from __future__ import annotations

from mneme.v1 import alert_service_pb2 as alert_pb
from support.isolation import OTHER, Checks, World, alert_rule, answered_as_absent, not_found
from support.making import at

isolates = Checks()

ALERTS = "mneme.v1.AlertService/"


@isolates(ALERTS + "CreateAlertRule")
def _(world: World) -> None:
    made = world.ours.alert.CreateAlertRule(alert_rule(OTHER)).rule  # The id is free here.
    assert made.id == OTHER


@isolates(ALERTS + "ListAlertRules")
def _(world: World) -> None:
    world.ours.alert.CreateAlertRule(alert_rule("mine"))
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


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
