"""The keys that set rules' channels: nothing is sent there once they are good no longer."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from mneme_server.common.identity import Caller, KeyScope
from mneme_server.features.admin.keys import KeyWatch
from mneme_server.features.alerts.attempt import CalledOff
from mneme_server.features.alerts.model import Delivered, Delivery, Rule, Secret
from mneme_server.features.alerts.senders import Senders
from mneme_server.features.alerts.sending import Send, held

_WHAT_TO_DO = "set notify_channels again with another key, and alerts are sent there from then on"


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


class KeyedSending:
    """Sends messages on behalf of the keys that set their channels. Implements `OnBehalf`, and is
    thread-safe.

    A message whose key is good no longer is not sent; what is being sent then is broken off. One
    that its receiver has taken by then stays taken.

    Args:
        send: sends a message.
        senders: send, several at a time.
        asked: whether keys are asked.
    """

    def __init__(self, send: Send, senders: Senders, *, asked: bool = True) -> None:
        self._send = send
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
        tried = message if off.why else self._send(message, secret, off)
        return held(tried, off.why) if off.why and tried.state is not Delivered.DELIVERED else tried

    def _is_over(self, off: CalledOff, _: Future[Delivery]) -> None:
        with self._lock:
            self._going.pop(off, None)
