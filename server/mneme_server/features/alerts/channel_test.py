"""A test message to a rule's channels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace

from mneme_server.common import deadline, interpreter
from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition, ResourceExhausted, Unavailable
from mneme_server.common.identity import new_id
from mneme_server.features.alerts.model import TEST, AlertEntry, Delivered, Delivery, Rule
from mneme_server.features.alerts.notice import AlertNotice
from mneme_server.features.alerts.rules import AlertRules
from mneme_server.features.alerts.sender import ChannelKeys, KeyedSender, held
from mneme_server.features.alerts.webhook import WebhookSecrets

_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class ChannelTest:
    """The use case. A tenant sends one test at a time.

    Args:
        rules: the tenants' rules.
        secrets: what webhooks are signed with.
        keys: tells whether the key is good that set the channels.
        sending: sends messages.
    """

    rules: AlertRules
    secrets: WebhookSecrets
    keys: ChannelKeys
    sending: KeyedSender
    now: Callable[[], int] = now_us
    _testing: set[str] = field(default_factory=set)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def send(self, tenant_id: str, rule_id: str) -> Sequence[Delivery]:
        """Send a test to each channel, once; return what became of it. Where alerts are held back,
        so is the test.

        Raises:
            NotFound: there is no such rule.
            FailedPrecondition: it has no channels.
            ResourceExhausted: another test of the tenant's is being sent.
            Abandoned: nobody waits for the call any more.
        """
        rule = self.rules.get(tenant_id, rule_id)
        if not rule.channels:
            raise FailedPrecondition("the rule has no channels to send a test to", field="id")
        if why := self.keys.held_of(tenant_id, [rule]).get(rule.key_id):
            return [held(one, why) for one in self._messages(tenant_id, rule)]
        secret = self.secrets.get(tenant_id)
        with self._changing:
            if tenant_id in self._testing:
                raise ResourceExhausted(
                    "another test is being sent; try again when it is over", retry_after_s=_RETRY_S
                )
            self._testing.add(tenant_id)
        try:
            messages = self._messages(tenant_id, rule)
            going = [self.sending.submit(tenant_id, one, secret, rule.key_id) for one in messages]
            return [_once(_awaited(one)) for one in going]
        finally:
            with self._changing:
                self._testing.discard(tenant_id)

    def _messages(self, tenant_id: str, rule: Rule) -> Sequence[Delivery]:
        now = self.now()
        entry = AlertEntry(
            id=new_id(),
            rule_id=rule.id,
            rule_name=rule.name,
            condition=rule.condition,
            agent_id=rule.scope.agent_id,
            triggered_us=now,
            current_value=rule.threshold,
            threshold=rule.threshold,
            message="This is a test: nothing was triggered.",
        )
        body = AlertNotice(tenant_id, rule, entry, TEST, now).body
        return [
            Delivery(
                id=new_id(),
                entry_id=entry.id,
                position=at,
                channel=channel,
                kind=TEST,
                body_json=body,
                created_us=now,
            )
            for at, channel in enumerate(rule.channels)
        ]


def _awaited(sent: Future[Delivery]) -> Delivery:
    interpreter.leave_turn()
    while not wait([sent], deadline.pause(deadline.LOOK_EVERY_S)).done:
        deadline.check()
    if sent.cancelled():
        raise Unavailable("the server is shutting down; try again in a moment")
    return sent.result()


def _once(tried: Delivery) -> Delivery:
    """Return what became of a message that is not tried again."""
    return replace(tried, state=Delivered.FAILED, next_us=None) if tried.error else tried
