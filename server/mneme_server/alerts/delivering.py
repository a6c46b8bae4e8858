"""The messages about what was triggered: sent until they are taken, from a durable queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import structlog

from mneme_server.alerts.due import Due, DueWorker
from mneme_server.alerts.model import RECORDED, RESOLVED, Delivered, Delivery, Entry, Secret
from mneme_server.alerts.outcome import Outcome
from mneme_server.alerts.ports import AlertsUnit
from mneme_server.alerts.secrets import WebhookSecrets
from mneme_server.alerts.sending import Send, after
from mneme_server.alerts.standing import Standing
from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, MnemeError
from mneme_server.corpus.tenant import OpenTenant
from mneme_server.events.event_types import EventType
from mneme_server.events.model import NewEvent, Severity
from mneme_server.events.recording import RecordEvents

DELIVER_JOB = "alert-deliveries"
"""The job that sends messages."""
SESSION_PREFIX = "alerts-"
"""What the id of the session begins with in which a rule's alerts are recorded."""
_AT_ONCE = 16

_log = structlog.get_logger(__name__)


class DeliveryWorker(DueWorker):
    """Sends the messages of all tenants.

    A message is sent at least once: whoever is killed before noting that it was taken sends it
    again under the same id.

    Args:
        open_tenant: lends a tenant's memory.
        due: when closed tenants are due.
        send: sends a message to a channel.
        record: records events.
        secrets: what webhooks are signed with.
        pool: sends several at a time.
        standing: told how many messages wait.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant[AlertsUnit]]],
        due: Due,
        *,
        send: Send,
        record: RecordEvents,
        secrets: WebhookSecrets,
        pool: ThreadPoolExecutor,
        standing: Standing | None = None,
    ) -> None:
        super().__init__(DELIVER_JOB, due)
        self._standing = standing or Standing()
        self._open_tenant = open_tenant
        self._send = send
        self._record = record
        self._secrets = secrets
        self._pool = pool

    def committed(self, tenant_id: str) -> None:
        """Do nothing: whoever adds messages says so."""

    def step(self, tenant_id: str) -> int | None:
        """Send what is due of the tenant's."""
        with self._open_tenant(tenant_id) as memory:
            with memory.read() as unit:
                self._standing.sending(tenant_id, unit.alert_deliveries.waiting())
                found = unit.alert_deliveries.due(now_us(), _AT_ONCE)
                if not found:
                    return unit.alert_deliveries.next_us()
                entries = {one.entry_id: unit.alert_history.get(one.entry_id) for one in found}
                ahead = _waiting_ahead(unit, found)
            held = [replace(one, next_us=until) for one, until in zip(found, ahead, strict=True)
                    if until is not None]  # fmt: skip
            going = [one for one, until in zip(found, ahead, strict=True) if until is None]
            try:
                done = [*held, *self._sent(memory, going, entries)]
            except (RuntimeError, CancelledError):
                if self.stopping:
                    return now_us()  # Nothing is sent any more: it is when the server runs again.
                raise
            with memory.write() as unit:
                for one in done:
                    unit.alert_deliveries.save(one)
        for one in done:
            if one.error:
                _log.warning(
                    "an alert was not delivered", tenant=tenant_id, delivery=one.id,
                    attempts=one.attempts, error=one.error, given_up=one.next_us is None,
                )  # fmt: skip
        return now_us()

    def _sent(
        self,
        memory: OpenTenant[AlertsUnit],
        going: Sequence[Delivery],
        entries: dict[str, Entry | None],
    ) -> Sequence[Delivery]:
        recorded = [
            self._recorded(memory.tenant_id, one, entry)
            for one in going
            if one.channel == RECORDED and (entry := entries[one.entry_id]) is not None
        ]
        outside = [one for one in going if one.channel != RECORDED]
        secret = self._secrets.of(memory) if outside else Secret("", 0)
        return [*recorded, *self._pool.map(lambda one: self._send(one, secret), outside)]

    def _recorded(self, tenant_id: str, delivery: Delivery, entry: Entry) -> Delivery:
        """Record what happened as an event; recorded again it changes nothing."""
        resolved = delivery.kind == RESOLVED
        at_us = entry.resolved_us if resolved else entry.triggered_us
        event = NewEvent(
            id=delivery.id,
            session_id=SESSION_PREFIX + entry.rule_id,
            event_type=EventType.ALERT_RESOLVED if resolved else EventType.ALERT_TRIGGERED,
            agent_id=entry.agent_id,
            severity=Severity.INFO if resolved else Severity.WARN,
            timestamp_us=at_us,
            name=entry.rule_name,
            text=f"{'Resolved' if resolved else 'Triggered'}: {entry.rule_name}. {entry.message}",
            payload=json.loads(delivery.body_json)["data"],
        )
        outcome = Outcome()
        try:
            self._record(tenant_id, [event], system=True)
        except AlreadyExists as error:
            outcome = Outcome(str(error), final=True)
        except MnemeError as error:
            outcome = Outcome(str(error))
        return after(delivery, outcome, now_us())


def _waiting_ahead(unit: AlertsUnit, found: Sequence[Delivery]) -> Sequence[int | None]:
    """Return for each message until when it waits, because one to the same channel about the same
    thing comes before it; None: it does not wait."""
    ends = {one.entry_id for one in found if one.kind == RESOLVED}
    others = unit.alert_deliveries.of_entries(ends) if ends else {}
    until: list[int | None] = []
    for one in found:
        before = [
            other.next_us
            for other in others.get(one.entry_id, ())
            if other.channel == one.channel
            and other.position < one.position
            and other.state is Delivered.WAITING
            and other.next_us is not None
        ]
        until.append(max(before) + 1 if before else None)
    return until
