"""From a key's secret to the caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from mneme_server.common.clock import MINUTE_US, now_us
from mneme_server.common.errors import MnemeError, Reason, Unauthenticated
from mneme_server.common.identity import Caller
from mneme_server.features.admin.model import secret_hash
from mneme_server.features.admin.ports import KeyCatalog

_CACHED_KEYS = 10_000
_TOUCH_EVERY_US = MINUTE_US


class _KnownKey(NamedTuple):
    """Whom a secret lets in, and until when that is believed without another look."""

    caller: Caller
    until_s: float | None


class KeyAuthenticator:
    """Looks secrets up in the catalog and remembers them.

    Secrets are compared only as SHA-256 hashes, through an index: what an attacker could learn
    from timing is the hash of a guess, which does not lead to a secret of 256 random bits. So no
    comparison here need take constant time.

    A revocation must call `forget`; a deleted tenant `forget_all`. Times of last use are collected
    in memory and written by `flush`, which somebody calls about once a minute: a crash may lose
    the last of them, and no call waits for the write.

    Args:
        keys: the catalog's.
        clock: tells the time, in microseconds.
        known_for_s: how long a key is remembered without another look, where others may revoke it
            without telling: in seconds. None: until it is forgotten.
        monotonic: tells what that is measured by, in seconds.
        forgotten: called after something remembered was dropped.
    """

    def __init__(
        self,
        keys: KeyCatalog,
        clock: Callable[[], int] = now_us,
        *,
        known_for_s: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        forgotten: Callable[[], object] = lambda: None,
    ) -> None:
        self._forgotten = forgotten
        self._keys = keys
        self._clock = clock
        self._known_for_s = known_for_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: dict[bytes, _KnownKey] = {}
        self._generation = 0
        self._touched_us: dict[str, int] = {}
        self._to_write: dict[str, int] = {}

    def authenticate(self, secret: str) -> Caller:
        """Return whom the secret lets in.

        Raises:
            Unauthenticated: no key has this secret, or it was revoked.
        """
        hashed = secret_hash(secret)
        known = self._known.get(hashed)
        if known is None or (known.until_s is not None and self._monotonic() >= known.until_s):
            caller = self._look_up(hashed)
        else:
            caller = known.caller
        self._note_use(caller.key_id)
        return caller

    def known(self, secret: str) -> Caller | None:
        """Return whom the secret lets in, if it did before: without looking it up, so that it
        takes no time. It may have been revoked in this moment."""
        known = self._known.get(secret_hash(secret))
        return None if known is None else known.caller

    def forget(self, key_id: str) -> None:
        """Drop what is remembered of a key. From now on the catalog decides."""
        with self._lock:
            self._generation += 1
            self._known = {h: k for h, k in self._known.items() if k.caller.key_id != key_id}
        self._forgotten()

    def forget_all(self) -> None:
        """Drop everything remembered."""
        with self._lock:
            self._generation += 1
            self._known = {}
        self._forgotten()

    def flush(self) -> None:
        """Write the times of last use.

        Raises:
            MnemeError: the catalog could not be written; the times are kept for the next flush.
        """
        with self._lock:
            to_write, self._to_write = self._to_write, {}
        if not to_write:
            return
        try:
            self._keys.touch(to_write)
        except MnemeError:
            with self._lock:
                self._to_write = to_write | self._to_write
            raise

    def _look_up(self, hashed: bytes) -> Caller:
        generation, asked_s = self._generation, self._monotonic()
        key = self._keys.find(hashed)
        if key is None or key.revoked_at_us is not None:
            with self._lock:
                self._known.pop(hashed, None)
            raise Unauthenticated(
                "the API key is unknown or was revoked; ask the server's operator for one"
                " (mneme admin keys create)",
                reason=Reason.API_KEY_INVALID,
            )
        caller = key.caller()
        with self._lock:
            # A revocation since the look-up must not be undone by what was read before it.
            if generation == self._generation:
                if len(self._known) >= _CACHED_KEYS:
                    self._known.clear()
                until_s = None if self._known_for_s is None else asked_s + self._known_for_s
                self._known[hashed] = _KnownKey(caller, until_s)
        return caller

    def _note_use(self, key_id: str) -> None:
        now = self._clock()
        if now - self._touched_us.get(key_id, 0) < _TOUCH_EVERY_US:
            return
        with self._lock:
            if len(self._touched_us) >= _CACHED_KEYS:
                self._touched_us.clear()
            self._touched_us[key_id] = now
            self._to_write[key_id] = now
