"""What a host reads of an alert rule."""

from __future__ import annotations

from mneme_mcp.tools.alerts import RuleOutput

RULE = {
    "id": "r", "name": "Busy", "condition": "cost_exceeds", "state": "triggered", "enabled": True,
    "threshold": 5.0, "window_minutes": 60,
}  # fmt: skip


def test_a_rule_whose_alerts_are_held_back_says_so_in_its_line() -> None:
    plain = "[id r] Busy: cost_exceeds 5 in 60 minutes, triggered"
    assert RuleOutput.model_validate(RULE).line() == plain
    held = RuleOutput.model_validate(RULE | {"notify_held_reason": "held back: the API key k …"})
    assert held.line() == f"{plain}; held back: the API key k …"
