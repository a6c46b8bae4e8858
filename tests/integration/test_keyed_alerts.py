"""Alerts go to the channels that a key set for as long as the key is good, and the rule says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.test_alert_deliveries import LOOPBACK, delivered, sent_test
from integration.test_alerts import change, history, rule, triggered
from integration.test_revoked_keys import Leaked
from mneme.v1 import alert_service_pb2 as pb
from mneme.v1 import auth_pb2
from support.api import Api
from support.contexts import eventually
from support.making import event, list_events, record
from support.receiver import receiving
from support.server import LocalServer, local_server

pytestmark = pytest.mark.slow

WRITES = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE)


@pytest.fixture(scope="module")
def allowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server whose operator lets webhooks call loopback."""
    with local_server(tmp_path_factory.mktemp("allowing"), **LOOPBACK) as server:
        yield server


@pytest.fixture
def leaked(allowing: LocalServer) -> Leaked:
    return Leaked(allowing.keys, *WRITES)


def shown(api: Api, made: pb.AlertRule) -> pb.AlertRule:
    """What a list has of the rule, which is what it is alone."""
    alone = api.alert.GetAlertRule(pb.GetAlertRuleRequest(rule_id=made.id)).rule
    listed = api.alert.ListAlertRules(pb.ListAlertRulesRequest()).rules
    assert [one for one in listed if one.id == made.id] == [alone]
    return alone


def test_nothing_is_sent_to_a_webhook_that_a_revoked_key_set(leaked: Leaked) -> None:
    api = leaked.owner
    with receiving() as theirs, receiving() as ours:
        made = rule(leaked.api, "EVENT_COUNT_EXCEEDS", notify_channels=[theirs.url])
        mine = rule(api, "EVENT_COUNT_EXCEEDS", notify_channels=[ours.url])
        assert shown(api, made).notify_key_id == leaked.id
        assert shown(api, made).notify_held_reason == ""
        leaked.revoke()
        reason = shown(api, made).notify_held_reason
        assert leaked.id in reason
        assert "was revoked" in reason
        assert "set notify_channels again with another key" in reason
        record(api, event("one", "s"))
        triggered(api, made), triggered(api, mine)
        (held,) = delivered(api, made)
        (sent,) = delivered(api, mine)
        assert (len(theirs.got), len(ours.got)) == (0, 1)
    assert (held.state, held.attempts, held.error) == (pb.DELIVERY_STATE_FAILED, 0, reason)
    assert sent.state == pb.DELIVERY_STATE_DELIVERED
    assert shown(api, mine).notify_held_reason == ""
    recorded = eventually(
        lambda: [e for e in list_events(api) if e.session_id == f"alerts-{made.id}"],
        lambda seen: len(seen) > 0,
    )
    assert [e.event_type for e in recorded] == ["alert_triggered"], "it is watched all the same"


def test_a_message_that_waits_to_be_tried_again_is_not_after_its_key_was_revoked(
    leaked: Leaked,
) -> None:
    api = leaked.owner
    with receiving(statuses=(503, 204)) as theirs:
        made = rule(leaked.api, "EVENT_COUNT_EXCEEDS", notify_channels=[theirs.url])
        record(api, event("one", "s"))
        triggered(api, made)
        eventually(
            lambda: history(api, rule_id=made.id), lambda seen: seen[0].deliveries[0].attempts > 0
        )
        leaked.revoke()
        (held,) = delivered(api, made)
        assert len(theirs.got) == 1
    assert held.state == pb.DELIVERY_STATE_FAILED
    assert "was revoked" in held.error


@pytest.mark.parametrize("gone", ["deleted", "changed"])
def test_what_waits_is_held_back_though_its_rule_names_the_channel_no_more(
    gone: str, leaked: Leaked
) -> None:
    api = leaked.owner
    with receiving(statuses=(503, 204)) as theirs:
        made = rule(leaked.api, "EVENT_COUNT_EXCEEDS", notify_channels=[theirs.url])
        record(api, event("one", "s"))
        triggered(api, made)
        eventually(
            lambda: history(api, rule_id=made.id), lambda seen: seen[0].deliveries[0].attempts > 0
        )
        if gone == "deleted":
            api.alert.DeleteAlertRule(pb.DeleteAlertRuleRequest(rule_id=made.id))
        else:
            change(api, made, "notify_channels", notify_channels=[])
        leaked.revoke()
        (held,) = delivered(api, made)
        assert len(theirs.got) == 1
    assert "was revoked" in held.error


@pytest.mark.parametrize("again", ["update", "create"])
def test_channels_that_a_good_key_sets_again_are_told_from_then_on_and_not_of_before(
    again: str, leaked: Leaked
) -> None:
    api = leaked.owner
    with receiving() as receiver:
        channels = [receiver.url]
        made = rule(
            leaked.api, "EVENT_COUNT_EXCEEDS", rule_id="r", name="r", notify_channels=channels
        )
        leaked.revoke()
        record(api, event("one", "s"))
        triggered(api, made)
        delivered(api, made)
        if again == "update":
            mine = change(api, made, "notify_channels", notify_channels=channels)
        else:
            mine = rule(api, "EVENT_COUNT_EXCEEDS", rule_id="r", name="r", notify_channels=channels)
        assert mine.notify_held_reason == ""
        assert mine.notify_key_id not in ("", leaked.id)
        assert shown(api, made) == mine
        change(api, made, "threshold", "resolve_threshold", threshold=5)
        found = eventually(
            lambda: history(api, rule_id=made.id)[0].deliveries,
            lambda seen: (
                len(seen) == 2 and all(one.state != pb.DELIVERY_STATE_WAITING for one in seen)
            ),
        )
        kinds = [got.said["type"] for got in receiver.got]
    assert [one.state for one in found] == [pb.DELIVERY_STATE_FAILED, pb.DELIVERY_STATE_DELIVERED]
    assert kinds == ["alert.resolved"]


def test_a_change_that_names_no_channels_vouches_for_none(leaked: Leaked) -> None:
    api = leaked.owner
    channels = ["http://127.0.0.1:9/"]
    theirs = rule(leaked.api, "EVENT_COUNT_EXCEEDS", notify_channels=channels)
    mine = rule(api, "COST_EXCEEDS", notify_channels=channels)
    change(leaked.api, mine, "threshold", threshold=5)
    leaked.revoke()
    assert change(api, theirs, "threshold", threshold=5).notify_held_reason != ""
    assert shown(api, theirs).notify_key_id == leaked.id
    assert shown(api, mine).notify_held_reason == ""


def test_a_test_of_a_rule_whose_key_was_revoked_is_held_back(leaked: Leaked) -> None:
    with receiving() as receiver:
        made = rule(leaked.api, "COST_EXCEEDS", threshold=5, notify_channels=[receiver.url])
        assert sent_test(leaked.owner, made).state == pb.DELIVERY_STATE_DELIVERED
        leaked.revoke()
        sent = sent_test(leaked.owner, made)
        assert len(receiver.got) == 1
    assert (sent.state, sent.attempts) == (pb.DELIVERY_STATE_FAILED, 0)
    assert sent.error == shown(leaked.owner, made).notify_held_reason


def test_a_rule_that_tells_nobody_holds_nothing_back(leaked: Leaked) -> None:
    made = rule(leaked.api, "COST_EXCEEDS", threshold=5)
    leaked.revoke()
    assert shown(leaked.owner, made).notify_held_reason == ""


def test_where_no_keys_are_asked_none_holds_anything_back(tmp_path: Path) -> None:
    with receiving() as receiver, local_server(tmp_path, auth="disabled", **LOOPBACK) as server:
        leaked = Leaked(server.keys, *WRITES)
        keyless = server.keys.api(None)
        for api in (keyless, leaked.api):
            rule(api, "EVENT_COUNT_EXCEEDS", name="told", notify_channels=[receiver.url])
        leaked.revoke()
        for api in (keyless, leaked.owner):
            (made,) = api.alert.ListAlertRules(pb.ListAlertRulesRequest()).rules
            assert made.notify_held_reason == ""
            record(api, event("one", "s"))
            triggered(api, made)
            (sent,) = delivered(api, made)
            assert sent.state == pb.DELIVERY_STATE_DELIVERED
