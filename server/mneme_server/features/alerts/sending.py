"""Sending one message to its channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mneme_server.common.clock import DAY_US, MICROSECONDS, doubled, now_us
from mneme_server.features.alerts import webhook
from mneme_server.features.alerts.attempt import CalledOff
from mneme_server.features.alerts.channels import Allowed, Mail
from mneme_server.features.alerts.mail import Mailer
from mneme_server.features.alerts.model import Delivered, Delivery, Secret
from mneme_server.features.alerts.outcome import Outcome

_FIRST_RETRY_S = 2.0
_LONGEST_RETRY_S = 3600.0
GIVE_UP_US = 3 * DAY_US
"""How long a message is tried again."""


@dataclass(frozen=True, slots=True)
class Send:
    """Sends messages.

    Args:
        allowed: what the operator allows, now: a channel may have been allowed before.
        mailer: sends e-mail.
        version: the server's, told to receivers.
        now: tells the time.
    """

    allowed: Allowed
    mailer: Mailer
    version: str
    now: Callable[[], int] = now_us

    def __call__(
        self, delivery: Delivery, secret: Secret, off: CalledOff | None = None
    ) -> Delivery:
        """Try to send a message, once; return what became of it. `off` may end it before its
        time."""
        try:
            channel = self.allowed.parse(delivery.channel)
        except ValueError as error:
            return self._after(delivery, Outcome(str(error)))
        if isinstance(channel, Mail):
            return self._after(delivery, self.mailer.send(channel.recipient, delivery, off))
        body, now = delivery.body_json.encode(), self.now()
        timestamp_s = now // MICROSECONDS
        secrets = [secret.text]
        if now < secret.old_until_us:
            secrets.append(secret.old_text)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"mneme/{self.version}",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": webhook.signatures(delivery.id, timestamp_s, body, secrets),
        }
        return self._after(delivery, webhook.post(channel, self.allowed, body, headers, off=off))

    def _after(self, delivery: Delivery, outcome: Outcome) -> Delivery:
        return after(delivery, outcome, self.now())


def after(delivery: Delivery, outcome: Outcome, now_us: int) -> Delivery:
    """Return what became of a message by an attempt."""
    tried = replace(delivery, attempts=delivery.attempts + 1, error=outcome.error)
    if not outcome.error:
        return replace(tried, state=Delivered.DELIVERED, next_us=None, delivered_us=now_us)
    pause_s = doubled(_FIRST_RETRY_S, delivery.attempts, _LONGEST_RETRY_S)
    next_us = now_us + int(pause_s * MICROSECONDS)
    if outcome.final or next_us > delivery.created_us + GIVE_UP_US:
        return replace(tried, state=Delivered.FAILED, next_us=None)
    return replace(tried, next_us=next_us)


def held(delivery: Delivery, why: str) -> Delivery:
    """Return what became of a message that is not sent, for good."""
    return replace(delivery, state=Delivered.FAILED, error=why, next_us=None)
