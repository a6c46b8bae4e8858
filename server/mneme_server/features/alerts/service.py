"""AlertService."""

from __future__ import annotations

from functools import partial

from mneme.v1 import alert_service_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import time_range, to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.edge.grpc.validation import validate
from mneme_server.features.alerts import messages as convert
from mneme_server.features.alerts.channel_test import ChannelTest
from mneme_server.features.alerts.model import Rule
from mneme_server.features.alerts.rules import AlertRules
from mneme_server.features.alerts.sender import ChannelKeys
from mneme_server.features.alerts.trial import RuleTrial
from mneme_server.features.alerts.webhook import WebhookSecrets


class AlertServicer:
    """Serves `mneme.v1.AlertService`."""

    def __init__(
        self,
        *,
        rules: AlertRules,
        keys: ChannelKeys,
        secrets: WebhookSecrets,
        test: ChannelTest,
        trial: RuleTrial,
    ) -> None:
        self._rules = rules
        self._keys = keys
        self._secrets = secrets
        self._test = test
        self._trial = trial

    def CreateAlertRule(
        self, request: pb.CreateAlertRuleRequest, call: Call
    ) -> pb.CreateAlertRuleResponse:
        """Create a rule."""
        with fields(id="rule_id", channels="notify_channels[{item}]"):
            rule = self._rules.create(call.tenant, convert.new_rule(request, call.key_id))
        return pb.CreateAlertRuleResponse(rule=self._shown(rule, call))

    def GetAlertRule(self, request: pb.GetAlertRuleRequest, call: Call) -> pb.GetAlertRuleResponse:
        """Return a rule."""
        with fields(id="rule_id"):
            rule = self._rules.get(call.tenant, request.rule_id)
        return pb.GetAlertRuleResponse(rule=self._shown(rule, call))

    def ListAlertRules(
        self, request: pb.ListAlertRulesRequest, call: Call
    ) -> pb.ListAlertRulesResponse:
        """List rules."""
        pages = Pages(request)
        found, total = self._rules.page(
            call.tenant,
            convert.state_of(request.state),
            pages.after(int, str),
            pages.size + 1,
        )
        shown = partial(convert.rule, held=self._keys.held_of(call.tenant, found))
        page, token = pages.fit(found, shown, lambda last: (last.created_us, last.id))
        return pb.ListAlertRulesResponse(rules=page, next_page_token=token, total_size=total)

    def UpdateAlertRule(
        self, request: pb.UpdateAlertRuleRequest, call: Call
    ) -> pb.UpdateAlertRuleResponse:
        """Change a rule."""
        valid = {"name": "-", "condition": pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS}
        changes = changes_of(request, "rule", convert.read_rule, **valid)
        with fields(
            id="rule.id",
            channels="rule.notify_channels[{item}]",
            threshold="rule.threshold",
            resolve_threshold="rule.resolve_threshold",
            pattern="rule.pattern",
            trend="rule.trend",
        ):
            rule = self._rules.update(
                call.tenant, request.rule.id, changes, call.key_id, etag=request.rule.etag
            )
        return pb.UpdateAlertRuleResponse(rule=self._shown(rule, call))

    def DeleteAlertRule(
        self, request: pb.DeleteAlertRuleRequest, call: Call
    ) -> pb.DeleteAlertRuleResponse:
        """Delete a rule."""
        with fields(id="rule_id"):
            rule = self._rules.delete(call.tenant, request.rule_id, etag=request.etag)
        return pb.DeleteAlertRuleResponse(rule=self._shown(rule, call))

    def ListAlertHistory(
        self, request: pb.ListAlertHistoryRequest, call: Call
    ) -> pb.ListAlertHistoryResponse:
        """List what was triggered."""
        pages = Pages(request)
        found, total = self._rules.history(
            call.tenant, convert.entry_filter(request), pages.after(int, str), pages.size + 1
        )
        page, token = pages.fit(
            found,
            convert.entry,
            lambda last: (last[0].triggered_us, last[0].id),
        )
        return pb.ListAlertHistoryResponse(entries=page, next_page_token=token, total_size=total)

    def TestAlertRule(
        self, request: pb.TestAlertRuleRequest, call: Call
    ) -> pb.TestAlertRuleResponse:
        """Send a test."""
        with fields(id="rule_id"):
            sent = self._test.send(call.tenant, request.rule_id)
        return pb.TestAlertRuleResponse(deliveries=map(convert.delivery, sent))

    def TryAlertRule(self, request: pb.TryAlertRuleRequest, call: Call) -> pb.TryAlertRuleResponse:
        """Try a rule against the past."""
        start_us, end_us = time_range(request)
        with fields(
            id="rule_id",
            condition="rule.condition",
            threshold="rule.threshold",
            resolve_threshold="rule.resolve_threshold",
            pattern="rule.pattern",
            trend="rule.trend",
        ):
            if request.rule_id:
                rule = self._rules.get(call.tenant, request.rule_id)
            else:
                validate(convert.named(request.rule), prefix="rule")
                rule = convert.rule_to_try(request.rule)
            found = self._trial.run(call.tenant, rule, start_us, end_us)
        return convert.tried(found)

    def GetWebhookSecret(
        self, request: pb.GetWebhookSecretRequest, call: Call
    ) -> pb.GetWebhookSecretResponse:
        """Return the secret of webhooks."""
        secret = self._secrets.get(call.tenant)
        return pb.GetWebhookSecretResponse(
            secret=secret.text, created_at=to_timestamp(secret.created_us)
        )

    def RotateWebhookSecret(
        self, request: pb.RotateWebhookSecretRequest, call: Call
    ) -> pb.RotateWebhookSecretResponse:
        """Make a new secret."""
        secret = self._secrets.rotate(call.tenant)
        return pb.RotateWebhookSecretResponse(
            secret=secret.text, old_until=to_timestamp(secret.old_until_us or secret.created_us)
        )

    def _shown(self, rule: Rule, call: Call) -> pb.AlertRule:
        return convert.rule(rule, self._keys.held_of(call.tenant, [rule]))
