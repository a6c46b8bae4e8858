from __future__ import annotations

import re
from typing import Any

from mneme import messages
from mneme.messages import (
    AlertHistoryEntry,
    AlertRule,
    AlertScope,
    CreateAlertRuleResponse,
    DeleteAlertRuleResponse,
    GetAlertRuleResponse,
    GetWebhookSecretResponse,
    ListAlertHistoryResponse,
    ListAlertRulesResponse,
    RotateWebhookSecretResponse,
    TryAlertRuleResponse,
    UpdateAlertRuleResponse,
)
from mneme.plain import from_dict
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer


def rule(**fields: Any) -> AlertRule:
    known = {
        "id": "01R", "name": "Checkout fails", "enabled": True, "condition": "ERROR_RATE_EXCEEDS",
        "threshold": 0.2, "resolve_threshold": 0.1, "window_minutes": 15, "min_events": 20,
        "scope": {"project": "shop"}, "state": "TRIGGERED", "notify_channels": ["https://a.b/c"],
    }  # fmt: skip
    return from_dict(known | fields, AlertRule())


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_a_rule_about_silence_has_no_threshold(served: ScriptedServer) -> None:
    silence = rule(condition="NO_EVENTS_FOR")
    served.on("ListAlertRules", ListAlertRulesResponse(rules=[silence]))
    assert cells(mneme("alerts", "list").lines[-1])[2:4] == ["no_events_for", "15"]
    served.on("GetAlertRule", GetAlertRuleResponse(rule=silence))
    assert "Threshold" not in mneme("alerts", "get", "01R").out


def test_a_rule_is_created_listed_shown_changed_and_deleted(served: ScriptedServer) -> None:
    served.on("CreateAlertRule", CreateAlertRuleResponse(rule=rule()))
    result = mneme(
        "alerts", "create", "Checkout fails", "error_rate_exceeds", "--threshold", "0.2",
        "--window", "15", "--project", "shop", "--notify", "https://a.b/c",
    )  # fmt: skip
    assert result.lines == ["created 01R: Checkout fails"]
    request = served.last("CreateAlertRule")
    assert (request.threshold, request.window_minutes, request.scope.project) == (0.2, 15, "shop")
    assert list(request.notify_channels) == ["https://a.b/c"]
    served.on("ListAlertRules", ListAlertRulesResponse(rules=[rule(), rule(enabled=False)]))
    lines = mneme("alerts", "list").lines
    assert cells(lines[-2])[:4] == ["triggered", "Checkout fails", "error_rate_exceeds", "0.2"]
    assert cells(lines[-1])[0] == "disabled"
    served.on("GetAlertRule", GetAlertRuleResponse(rule=rule()))
    out = "\n".join(mneme("alerts", "get", "01R").lines)
    assert re.search(r"Resolves at\s+0.1", out)
    served.on("UpdateAlertRule", UpdateAlertRuleResponse(rule=rule()))
    result = mneme("alerts", "update", "01R", "--disable", "--threshold", "0.3")
    assert result.lines == ["changed 01R: enabled, threshold"]
    request = served.last("UpdateAlertRule")
    assert sorted(request.update_mask.paths) == ["enabled", "threshold"]
    assert (request.rule.enabled, request.rule.threshold) == (False, 0.3)
    assert mneme("alerts", "update", "01R").code == 2
    served.on("DeleteAlertRule", DeleteAlertRuleResponse(rule=rule()))
    assert mneme("alerts", "delete", "01R", "--yes").lines == ["deleted 01R: Checkout fails"]


def test_of_a_rules_scope_only_what_is_given_changes_and_an_empty_text_lifts_it(
    served: ScriptedServer,
) -> None:
    scope = {"agent_id": "a1", "project": "shop", "tags": ["ci"]}
    served.on("GetAlertRule", GetAlertRuleResponse(rule=rule(scope=scope)))
    served.on("UpdateAlertRule", UpdateAlertRuleResponse(rule=rule()))

    def changed(*options: str) -> Any:
        result = mneme("alerts", "update", "01R", *options)
        assert result.lines == ["changed 01R: scope"]
        request = served.last("UpdateAlertRule")
        assert list(request.update_mask.paths) == ["scope"]
        return request.rule.scope

    assert changed("--agent", "a2") == AlertScope(agent_id="a2", project="shop", tags=["ci"])
    lifted = changed("--project", "", "--tag", "")
    assert lifted == AlertScope(agent_id="a1")
    assert changed("--tag", "x", "--tag", "y").tags == ["x", "y"]


def test_a_rules_pattern_trend_and_channels_are_changed_without_reading_it(
    served: ScriptedServer,
) -> None:
    served.on("UpdateAlertRule", UpdateAlertRuleResponse(rule=rule()))
    result = mneme(
        "alerts", "update", "01R", "--pattern", "timed out", "--trend", "latency", "--notify", ""
    )
    assert result.lines == ["changed 01R: notify_channels, pattern, trend"]
    request = served.last("UpdateAlertRule")
    assert sorted(request.update_mask.paths) == ["notify_channels", "pattern", "trend"]
    assert (request.rule.pattern, request.rule.trend) == ("timed out", 2)
    assert list(request.rule.notify_channels) == []


def test_a_rule_watches_something_else_and_an_empty_text_lifts_what_only_the_old_condition_has(
    served: ScriptedServer,
) -> None:
    served.on("UpdateAlertRule", UpdateAlertRuleResponse(rule=rule()))
    result = mneme(
        "alerts", "update", "01R", "--condition", "COST_EXCEEDS", "--pattern", "", "--trend", ""
    )
    assert result.lines == ["changed 01R: condition, pattern, trend"]
    request = served.last("UpdateAlertRule")
    assert sorted(request.update_mask.paths) == ["condition", "pattern", "trend"]
    assert request.rule == AlertRule(id="01R", condition="ALERT_CONDITION_COST_EXCEEDS")


def test_an_empty_text_lets_a_rule_resolve_at_its_threshold_again(served: ScriptedServer) -> None:
    served.on("UpdateAlertRule", UpdateAlertRuleResponse(rule=rule()))
    result = mneme("alerts", "update", "01R", "--threshold", "0.05", "--resolve-threshold", "")
    assert result.lines == ["changed 01R: threshold, resolve_threshold"]
    request = served.last("UpdateAlertRule")
    assert sorted(request.update_mask.paths) == ["resolve_threshold", "threshold"]
    assert request.rule == AlertRule(id="01R", threshold=0.05)
    mneme("alerts", "update", "01R", "--resolve-threshold", "0")
    assert served.last("UpdateAlertRule").rule == AlertRule(id="01R", resolve_threshold=0)
    refused = mneme("alerts", "update", "01R", "--resolve-threshold", "low")
    assert refused.code == 2
    assert "'low' is not a number" in refused.err


def test_what_was_triggered_is_listed(served: ScriptedServer) -> None:
    entry = {
        "rule_id": "01R", "rule_name": "Checkout fails", "message": "30 % of it failed.",
        "triggered_at": "2026-05-01T10:00:00Z",
        "deliveries": [{"state": "DELIVERED"}, {"state": "WAITING"}],
    }  # fmt: skip
    answer = ListAlertHistoryResponse(entries=[from_dict(entry, AlertHistoryEntry())])
    served.on("ListAlertHistory", answer)
    result = mneme("alerts", "history", "--open", "--rule", "01R")
    assert cells(result.lines[-1])[1:] == ["Checkout fails", "30 % of it failed.", "1 of 2", "01R"]
    assert (served.last("ListAlertHistory").rule_id, served.last("ListAlertHistory").state) == (
        "01R", 2,
    )  # fmt: skip


def test_a_test_is_sent_and_the_secret_shown(served: ScriptedServer) -> None:
    sent = {"channel": "https://a.b/c", "state": "FAILED", "error": "the receiver answered 500"}
    answer = from_dict({"deliveries": [sent]}, messages.TestAlertRuleResponse())
    served.on("TestAlertRule", answer)
    lines = mneme("alerts", "test", "01R").lines
    assert cells(lines[-1]) == ["https://a.b/c", "failed", "the receiver answered 500"]
    served.on("GetWebhookSecret", GetWebhookSecretResponse(secret="whsec_a"))
    assert mneme("alerts", "secret").lines == ["whsec_a"]
    served.on("RotateWebhookSecret", RotateWebhookSecretResponse(secret="whsec_b"))
    assert mneme("alerts", "secret", "--rotate").lines == ["whsec_b"]


def test_a_rule_is_tried_against_the_past(served: ScriptedServer) -> None:
    answer = {
        "alerts": [{"triggered_at": "2026-05-01T10:00:00Z", "current_value": 4}],
        "summary": "would have triggered once in 1 week", "current_value": 1, "highest_value": 4,
    }  # fmt: skip
    served.on("TryAlertRule", from_dict(answer, TryAlertRuleResponse()))
    result = mneme("alerts", "try", "--condition", "cost_exceeds", "--threshold", "3")
    assert "It would have triggered once in 1 week; the value is 1 now" in result.err
    assert served.last("TryAlertRule").rule.threshold == 3
    mneme("alerts", "try", "01R")
    assert served.last("TryAlertRule").rule_id == "01R"
    assert mneme("alerts", "try").code == 2
    refused = mneme("alerts", "try", "01R", "--threshold", "3")
    assert (refused.code, refused.err.splitlines()[0]) == (
        2, "mneme: a rule that is there is tried as it is",
    )  # fmt: skip


def test_a_rule_whose_alerts_are_held_back_says_so_and_why(served: ScriptedServer) -> None:
    why = "held back: the API key 01K, which set the rule's channels, was revoked; set them again"
    held = rule(notify_key_id="01K", notify_held_reason=why)
    served.on("ListAlertRules", ListAlertRulesResponse(rules=[held, rule()]))
    lines = mneme("alerts", "list").lines
    assert [cells(line)[0] for line in lines[-2:]] == ["triggered, held back", "triggered"]
    assert cells(lines[-2])[-1] == "01K"
    served.on("GetAlertRule", GetAlertRuleResponse(rule=held))
    shown = mneme("alerts", "get", "01R").out
    assert re.search(r"Held back\s+the API key 01K", shown)
    assert re.search(r"Set by key\s+01K", shown)
