"""Sending of messages: one to its channel, several at a time so that no tenant waits for another,
and only on behalf of keys that are still good."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from mneme_server.common.clock import DAY_US, MICROSECONDS, doubled, now_us
from mneme_server.common.fairness import FairQueue
from mneme_server.common.identity import Caller, KeyScope
from mneme_server.features.admin.keys import KeyWatch
from mneme_server.features.alerts import webhook
from mneme_server.features.alerts.attempt import CalledOff, SendOutcome
from mneme_server.features.alerts.channels import AllowedChannels, Mail
from mneme_server.features.alerts.mail import Mailer
from mneme_server.features.alerts.model import Delivered, Delivery, Rule, Secret

T = TypeVar("T")

_FIRST_RETRY_S = 2.0
_LONGEST_RETRY_S = 3600.0
GIVE_UP_US = 3 * DAY_US
"""How long a message is tried again."""
PER_TENANT = 4
"""Messages of a tenant that are sent at once."""
_MOST = 256
"""Messages that are sent at once over all tenants. Where as many are slow, tenants take turns."""
_WHAT_TO_DO = "set notify_channels again with another key, and alerts are sent there from then on"


@dataclass(frozen=True, slots=True)
class ChannelSender:
    """Sends messages.

    Args:
        allowed: what the operator allows, now: a channel may have been allowed before.
        mailer: sends e-mail.
        version: the server's, told to receivers.
        now: tells the time.
    """

    allowed: AllowedChannels
    mailer: Mailer
    version: str
    now: Callable[[], int] = now_us

    def send(self, delivery: Delivery, secret: Secret, off: CalledOff | None = None) -> Delivery:
        """Try to send a message, once; return what became of it. `off` may end it before its
        time."""
        try:
            channel = self.allowed.parse(delivery.channel)
        except ValueError as error:
            return self._after(delivery, SendOutcome(str(error)))
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

    def _after(self, delivery: Delivery, outcome: SendOutcome) -> Delivery:
        return after(delivery, outcome, self.now())


def after(delivery: Delivery, outcome: SendOutcome, now_us: int) -> Delivery:
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


class _QueuedMessage(NamedTuple):
    tenant_id: str
    work: Callable[[], Any]
    future: Future[Any]


class SenderThreads:
    """Threads that wait for receivers, so many for each tenant. Thread-safe.

    A receiver may take as long as an attempt may last. As each tenant has threads of its own, the
    slow ones of one hold up nobody else's messages.
    """

    def __init__(self, per_tenant: int = PER_TENANT, most: int = _MOST) -> None:
        self._per_tenant = per_tenant
        self._most = most
        self._lock = threading.Lock()  # Guards what follows.
        self._waiting: FairQueue[_QueuedMessage] = FairQueue()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._closed = False

    def room(self, tenant_id: str) -> int:
        """Return how many more messages of a tenant would be sent at once."""
        with self._lock:
            taken = self._running[tenant_id] + self._waiting.waiting_of(tenant_id)
        return max(0, self._per_tenant - taken)

    def submit(self, tenant_id: str, work: Callable[[], T]) -> Future[T]:
        """Have work done that sends a tenant's message; its future is cancelled if the server stops
        before."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.cancel()
                return future
            self._waiting.push(tenant_id, _QueuedMessage(tenant_id, work, future))
            started = self._next() if self._threads < self._most else None
            if started is None:
                return future
            self._threads += 1
        threading.Thread(
            target=self._run, args=(started,), name="alert-sending", daemon=True
        ).start()
        return future

    def close(self) -> None:
        """Send nothing more; what is being sent ends by itself."""
        with self._lock:
            self._closed = True
            while (one := self._waiting.pop()) is not None:
                one.future.cancel()

    def _next(self) -> _QueuedMessage | None:
        one = self._waiting.pop(lambda one: self._running[one.tenant_id] < self._per_tenant)
        if one is not None:
            self._running[one.tenant_id] += 1
        return one

    def _run(self, one: _QueuedMessage) -> None:
        at_work: _QueuedMessage | None = one
        while at_work is not None:
            result, error = None, None
            try:
                result = at_work.work()
            except BaseException as raised:  # Whatever it is, it is told to who waits for it.
                error = raised
            with self._lock:
                self._running[at_work.tenant_id] -= 1
                if not self._running[at_work.tenant_id]:
                    del self._running[at_work.tenant_id]
                done, at_work = at_work, self._next()
                if at_work is None:
                    self._threads -= 1
            if error is None:
                done.future.set_result(result)
            else:
                done.future.set_exception(error)


@dataclass(frozen=True, slots=True)
class ChannelKeys:
    """Tells which keys are good no longer, and what that means.

    Args:
        keys: looks at keys.
        asked: whether keys are asked; where they are not, all channels are told.
    """

    keys: KeyWatch
    asked: bool = True

    def held(self, tenant_id: str, key_ids: Iterable[str]) -> Mapping[str, str]:
        """Return why nothing is sent to channels of the tenant's that keys set, by those of the
        keys that are good no longer. That is one look in the catalog, and none without a key.

        Raises:
            Unavailable: the catalog cannot be read now.
        """
        ids = {key_id for key_id in key_ids if key_id} if self.asked else set[str]()
        found = self.keys.callers(ids)
        reasons = {key_id: reason(key_id, tenant_id, found.get(key_id)) for key_id in ids}
        return {key_id: why for key_id, why in reasons.items() if why}

    def held_of(self, tenant_id: str, rules: Iterable[Rule]) -> Mapping[str, str]:
        """Return the same of the keys that set rules' channels."""
        return self.held(tenant_id, {rule.key_id for rule in rules if rule.channels})


def reason(key_id: str, tenant_id: str, caller: Caller | None) -> str:
    """Return why nothing is sent to a tenant's channels that a key set; empty: it is.

    Args:
        key_id: the key.
        tenant_id: the tenant.
        caller: whom the key lets in now; None: nobody.
    """
    if caller is None:
        why = "was revoked, or is not known here"
    elif caller.tenant_id != tenant_id:
        why = "is another tenant's"
    elif KeyScope.WRITE not in caller.scopes:
        why = "may not write any more"
    else:
        return ""
    return f"held back: the API key {key_id}, which set the rule's channels, {why}; {_WHAT_TO_DO}"


class KeyedSender:
    """Sends messages on behalf of the keys that set their channels. Implements `OnBehalf`, and is
    thread-safe.

    A message whose key is good no longer is not sent; what is being sent then is broken off. One
    that its receiver has taken by then stays taken.

    Args:
        sender: sends a message.
        senders: send, several at a time.
        asked: whether keys are asked.
    """

    def __init__(
        self, sender: ChannelSender, senders: SenderThreads, *, asked: bool = True
    ) -> None:
        self._sender = sender
        self._senders = senders
        self._asked = asked
        self._lock = threading.Lock()  # Guards what follows.
        self._going: dict[CalledOff, tuple[str, str]] = {}  # -> tenant, key

    def room(self, tenant_id: str) -> int:
        """Return how many more messages of a tenant would be sent at once."""
        return self._senders.room(tenant_id)

    def submit(
        self, tenant_id: str, message: Delivery, secret: Secret, key_id: str
    ) -> Future[Delivery]:
        """Have a message sent, once; the future has what became of it, and is cancelled if the
        server stops before.

        Args:
            tenant_id: the tenant.
            message: the message.
            secret: what a webhook is signed with.
            key_id: the key on whose behalf; "": nobody's.
        """
        off = CalledOff()
        if key_id and self._asked:
            with self._lock:
                self._going[off] = tenant_id, key_id
        future = self._senders.submit(tenant_id, partial(self._sent, message, secret, off))
        future.add_done_callback(partial(self._is_over, off))
        return future

    def keys_in_use(self) -> Collection[str]:
        """Return the ids of the keys on whose behalf something is being sent."""
        with self._lock:
            return {key_id for _, key_id in self._going.values()}

    def judge(self, keys: Mapping[str, Caller | None]) -> None:
        """Break off what is sent on behalf of keys that are good no longer.

        Args:
            keys: by id, whom they let in now; None: nobody. Of others nothing is known.
        """
        with self._lock:
            judged = [(off, *of) for off, of in self._going.items() if of[1] in keys]
        for off, tenant_id, key_id in judged:
            if not off.why and (why := reason(key_id, tenant_id, keys[key_id])):
                off.say(why)

    def _sent(self, message: Delivery, secret: Secret, off: CalledOff) -> Delivery:
        tried = message if off.why else self._sender.send(message, secret, off)
        return held(tried, off.why) if off.why and tried.state is not Delivered.DELIVERED else tried

    def _is_over(self, off: CalledOff, _: Future[Delivery]) -> None:
        with self._lock:
            self._going.pop(off, None)
