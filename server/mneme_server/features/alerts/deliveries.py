"""The messages about what was triggered: sent until they are taken, from a durable queue."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import AlreadyExists, MnemeError
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.alerts.attempt import SendOutcome
from mneme_server.features.alerts.due import Due, DueWorker
from mneme_server.features.alerts.metrics import AlertCounts
from mneme_server.features.alerts.model import (
    RECORDED,
    RESOLVED,
    AlertEntry,
    Delivered,
    Delivery,
    Secret,
)
from mneme_server.features.alerts.sender import ChannelKeys, KeyedSender, after, held
from mneme_server.features.alerts.store.history import SqlAlertDeliveries, SqlAlertHistory
from mneme_server.features.alerts.store.rules import SqlAlertRules
from mneme_server.features.alerts.webhook import WebhookSecrets
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import NewEvent, Severity
from mneme_server.features.events.recording import RecordEvents

DELIVER_JOB = "alert-deliveries"
"""The job that sends messages."""
SESSION_PREFIX = "alerts-"
"""What the id of the session begins with in which a rule's alerts are recorded."""
_AT_ONCE = 16
_UNSEEN_US = 30 * MICROSECONDS
"""How long a message that is being sent is not due: longer than an attempt may take."""

_log = structlog.get_logger(__name__)


class DeliveryWorker(DueWorker):
    """Sends the messages of all tenants, none of which waits for another's.

    A message is sent at least once: whoever is stopped before noting that it was taken sends it
    again, half a minute later, under the same id.

    Args:
        open_tenant: lends a tenant's memory.
        due: when closed tenants are due.
        keys: tells which of the keys that set channels are good no longer.
        sending: sends messages to channels.
        record: records events.
        secrets: what webhooks are signed with.
        standing: told how many messages wait.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        due: Due,
        *,
        keys: ChannelKeys,
        sending: KeyedSender,
        record: RecordEvents,
        secrets: WebhookSecrets,
        standing: AlertCounts | None = None,
    ) -> None:
        super().__init__(DELIVER_JOB, due)
        self._standing = standing or AlertCounts()
        self._open_tenant = open_tenant
        self._keys = keys
        self._sending = sending
        self._record = record
        self._secrets = secrets
        self._lock = threading.Lock()  # Guards what follows.
        self._came_back: dict[str, list[Delivery]] = {}
        self._held: set[tuple[str, str]] = set()  # The keys, by tenant, that the log tells of.

    def committed(self, tenant_id: str) -> None:
        """Do nothing: whoever adds messages says so."""

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """See `DueWorker`."""
        with self._lock:
            self._came_back.pop(tenant_id, None)
            self._held = {known for known in self._held if known[0] != tenant_id}
        super().removed(tenant_id, replaced=replaced)

    def step(self, tenant_id: str) -> int | None:
        """Note what became of messages, and begin to send what is due of the tenant's. Nothing is
        waited for here: what is being sent is due again, and sent by whoever serves the tenant
        then, only when its attempt must have ended."""
        with self._open_tenant(tenant_id) as tenant:
            self._note(tenant)
            room, now = self._sending.room(tenant_id), now_us()
            with tenant.read() as unit:
                deliveries = unit.get(SqlAlertDeliveries)
                self._standing.sending(tenant_id, deliveries.waiting())
                found = deliveries.due(now, _AT_ONCE)
                if not found:
                    return deliveries.next_us()
                entries = {
                    one.entry_id: unit.get(SqlAlertHistory).get(one.entry_id) for one in found
                }
                keys = _keys_of(unit, found, entries)
                ahead = _waiting_ahead(unit, found)
            why = self._keys.held(tenant_id, keys.values())
            over = [held(one, why[keys[one.id]]) for one in found if keys[one.id] in why]
            left = [(one, until) for one, until in zip(found, ahead, strict=True)
                    if keys[one.id] not in why]  # fmt: skip
            behind = [replace(one, next_us=until) for one, until in left if until is not None]
            free = [one for one, until in left if until is None]
            recorded = [
                self._recorded(tenant_id, one, entry)
                for one in free
                if one.channel == RECORDED and (entry := entries[one.entry_id]) is not None
            ]
            going = [one for one in free if one.channel != RECORDED][:room]
            if not (over or behind or recorded or going):
                return now + _UNSEEN_US  # Or before, when one that is being sent comes back.
            secret = self._secrets.of(tenant) if going else Secret("", 0)
            with tenant.write() as unit:
                for one in (*over, *behind, *recorded):
                    unit.get(SqlAlertDeliveries).save(one)
                for one in going:
                    unit.get(SqlAlertDeliveries).save(replace(one, next_us=now + _UNSEEN_US))
        self._told(tenant_id, recorded)
        self._held_back(tenant_id, [(one, keys[one.id]) for one in over])
        for one in going:
            future = self._sending.submit(tenant_id, one, secret, keys[one.id])
            future.add_done_callback(partial(self._is_back, tenant_id))
        return now_us()

    def _is_back(self, tenant_id: str, sent: Future[Delivery]) -> None:
        if sent.cancelled():
            return  # The server stops.
        error = sent.exception()
        if error is not None:  # It is tried again when it is due again.
            _log.error("an alert could not be sent", tenant=tenant_id, exc_info=error)
            return
        with self._lock:
            self._came_back.setdefault(tenant_id, []).append(sent.result())
        self.wake(tenant_id)

    def _note(self, tenant: OpenTenant) -> None:
        """Write what became of messages that were sent, and let those go that waited for them."""
        with self._lock:
            back = self._came_back.pop(tenant.tenant_id, [])
        if not back:
            return
        try:
            with tenant.write() as unit:
                for one in back:
                    unit.get(SqlAlertDeliveries).save(one)
                for one in _behind(unit, back):
                    unit.get(SqlAlertDeliveries).save(one)
        except BaseException:
            with self._lock:
                self._came_back.setdefault(tenant.tenant_id, []).extend(back)
            raise
        self._told(tenant.tenant_id, back)

    def _told(self, tenant_id: str, tried: Sequence[Delivery]) -> None:
        for one in tried:
            if one.error:
                _log.warning(
                    "an alert was not delivered", tenant=tenant_id, delivery=one.id,
                    attempts=one.attempts, error=one.error, given_up=one.next_us is None,
                )  # fmt: skip

    def _held_back(self, tenant_id: str, over: Sequence[tuple[Delivery, str]]) -> None:
        """Tell of messages that were held back: of each key once."""
        self._standing.holds(len(over))
        with self._lock:
            new = {key_id: one for one, key_id in over if (tenant_id, key_id) not in self._held}
            self._held |= {(tenant_id, key_id) for key_id in new}
        for one in new.values():
            _log.warning("alerts are not sent", tenant=tenant_id, delivery=one.id, error=one.error)

    def _recorded(self, tenant_id: str, delivery: Delivery, entry: AlertEntry) -> Delivery:
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
        outcome = SendOutcome()
        try:
            self._record.record(tenant_id, [event], system=True)
        except AlreadyExists as error:
            outcome = SendOutcome(str(error), final=True)
        except MnemeError as error:
            outcome = SendOutcome(str(error))
        return after(delivery, outcome, now_us())


def _keys_of(
    unit: CorpusUnit, found: Sequence[Delivery], entries: Mapping[str, AlertEntry | None]
) -> Mapping[str, str]:
    """Return on behalf of which key each message is sent, by its id: of the one that set the rule's
    channels last, where the message goes to one of these; else of the one that had set its own."""
    ids = {entry.rule_id for entry in entries.values() if entry is not None}
    rules = {rule_id: unit.get(SqlAlertRules).get(rule_id) for rule_id in ids}
    keys = {}
    for one in found:
        entry = entries[one.entry_id]
        rule = None if entry is None else rules[entry.rule_id]
        known = rule is not None and one.channel in rule.channels
        keys[one.id] = rule.key_id if rule is not None and known else one.key_id
    return keys


def _waiting_ahead(unit: CorpusUnit, found: Sequence[Delivery]) -> Sequence[int | None]:
    """Return for each message until when it waits, because one to the same channel about the same
    thing comes before it; None: it does not wait."""
    ends = {one.entry_id for one in found if one.kind == RESOLVED}
    others = unit.get(SqlAlertDeliveries).of_entries(ends) if ends else {}
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


def _behind(unit: CorpusUnit, back: Sequence[Delivery]) -> Sequence[Delivery]:
    """Return the messages that waited for these, as due when these are over."""
    now = now_us()
    others = unit.get(SqlAlertDeliveries).of_entries({one.entry_id for one in back})
    return [
        replace(other, next_us=free_us)
        for one in back
        for other in others.get(one.entry_id, ())
        if other.channel == one.channel
        and other.position > one.position
        and other.next_us is not None
        and (free_us := now if one.next_us is None else one.next_us + 1) < other.next_us
    ]
