"""The keys that sign a tenant's heads and certificates: made, rotated, told apart."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mneme.proof.notes import VerifierKey, signature_line

from mneme_server.common.clock import now_us


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key of a tenant: its number, from 1, and its public half.

    `introduction` is a signed note in which the key before names this one. Times are microseconds
    since 1970; `retired_us` is None for the one that signs.
    """

    number: int
    verifier: VerifierKey
    created_us: int
    retired_us: int | None = None
    introduction: str = ""


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The newest head that was signed of a log."""

    origin: str
    size: int
    root: bytes
    note: str


class Signers(Protocol):
    """Where private keys are: files, or a key management service. None of them is ever told."""

    def create(self, tenant_id: str, number: int) -> bytes:
        """Make a key of Ed25519, durably, in the place of one that has this number; where servers
        share keys, that one stays. Return the public half, 32 bytes."""
        ...

    def sign(self, tenant_id: str, number: int, data: bytes) -> bytes:
        """Return the key's signature, 64 bytes.

        Raises:
            FailedPrecondition: the key cannot be read: its secret is missing, or another.
            DataLoss: it is not there any more, or damaged.
        """
        ...

    def destroy(self, tenant_id: str, number: int | None = None) -> None:
        """Destroy a key, or all of a tenant's; nothing if there is none."""
        ...


class LogCatalog(Protocol):
    """What outlives a tenant's database: public keys, and the heads that were signed."""

    def keys(self, tenant_id: str) -> Sequence[LogKey]:
        """Return a tenant's keys, by number."""
        ...

    def add_key(self, tenant_id: str, key: LogKey) -> None:
        """Insert a key, and note that the one before is retired from its making on; nothing if the
        tenant has one of its number."""
        ...

    def heads(self, tenant_id: str) -> Sequence[SignedHead]:
        """Return the newest head of each log that a tenant had, the current log's last."""
        ...

    def signed(self, tenant_id: str, head: SignedHead) -> None:
        """Insert or replace the newest head of a log."""
        ...

    def forget(self, tenant_id: str) -> None:
        """Remove all of a tenant's."""
        ...


class KeyRing:
    """The tenants' keys. A tenant's first is made with the tenant; one from before there were keys
    gets its first when it is needed.

    Args:
        signers: where private keys are.
        catalog: where public ones are.
        known_for_s: how long the current key is used before it is looked for again, in seconds:
            where others can rotate it.
    """

    def __init__(
        self, signers: Signers, catalog: LogCatalog, known_for_s: float = math.inf
    ) -> None:
        self._signers = signers
        self._catalog = catalog
        self._known_for_s = known_for_s
        self._lock = threading.Lock()
        self._known: dict[str, tuple[LogKey, float]] = {}

    def current(self, tenant_id: str) -> LogKey:
        """Return the key that signs; the first is made."""
        known = self._known.get(tenant_id)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        with self._lock:
            keys = self._catalog.keys(tenant_id)
            return self._note(tenant_id, keys[-1] if keys else self._make(tenant_id))

    def all(self, tenant_id: str) -> Sequence[LogKey]:
        """Return the tenant's keys, by number."""
        self.current(tenant_id)
        return self._catalog.keys(tenant_id)

    def sign(self, tenant_id: str, key: LogKey, data: bytes) -> bytes:
        """Return a signature; see `Signers.sign`."""
        return self._signers.sign(tenant_id, key.number, data)

    def sign_note(self, tenant_id: str, key: LogKey, text: str) -> str:
        """Return a text as a signed note."""
        signature = self.sign(tenant_id, key, text.encode())
        return f"{text}\n{signature_line(key.verifier, signature)}"

    def sign_statement(self, tenant_id: str, statement: str) -> tuple[bytes, bytes]:
        """Return the current public key and its signature of a text, which says what it is."""
        key = self.current(tenant_id)
        return key.verifier.public, self.sign(tenant_id, key, statement.encode())

    def rotate(self, tenant_id: str) -> LogKey:
        """Make a new key, have the old one sign it, and destroy the old one's private half."""
        old = self.current(tenant_id)
        with self._lock:
            made = self._made(tenant_id, old.number + 1)
            text = f"mneme new log key\n{made.number}\n{made.verifier}\n"
            made = replace(made, introduction=self.sign_note(tenant_id, old, text))
            self._catalog.add_key(tenant_id, made)
            self._note(tenant_id, made)
            self._signers.destroy(tenant_id, old.number)
        return made

    def forget(self, tenant_id: str) -> None:
        """Destroy a tenant's keys, and remove what is known of them and of its logs."""
        with self._lock:
            self._known.pop(tenant_id, None)
            self._signers.destroy(tenant_id)
            self._catalog.forget(tenant_id)

    def _note(self, tenant_id: str, key: LogKey) -> LogKey:
        self._known[tenant_id] = key, time.monotonic() + self._known_for_s
        return key

    def _make(self, tenant_id: str) -> LogKey:
        made = self._made(tenant_id, 1)
        self._catalog.add_key(tenant_id, made)
        return made

    def _made(self, tenant_id: str, number: int) -> LogKey:
        public = self._signers.create(tenant_id, number)
        return LogKey(number, VerifierKey(f"mneme/{tenant_id}", public), now_us())
