"""The keys that sign a tenant's heads and certificates: made, rotated, told apart."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from mneme.proof.notes import NoteInvalid, VerifierKey, open_note, signature_line

from mneme_server.common.clock import now_us
from mneme_server.common.errors import DataLoss, Reason, Unavailable
from mneme_server.features.proof.model import KnownLog, LogKey, SignedHead
from mneme_server.features.proof.store.catalog import SqlLogCatalog


class Signers(Protocol):
    """Where private keys are: files, or a key management service. None of them is ever told."""

    def create(self, tenant_id: str, number: int) -> bytes:
        """Make a key of Ed25519, durably, unless there is one of this number. Return the public
        half of the one that is kept, 32 bytes."""
        ...

    def public(self, tenant_id: str, number: int) -> bytes:
        """Return the public half that the private one itself gives, 32 bytes; raises as `sign`."""
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


def rotated_meanwhile() -> Unavailable:
    """Return what says that a key is not the one that signs any more."""
    return Unavailable("the tenant's key was rotated meanwhile; try again", retry_after_s=0.1)


class KeyRing:
    """The tenants' keys. A tenant's first is made with the tenant, or, where the catalog has none
    of it any more, when it is needed.

    Args:
        signers: where private keys are.
        catalog: where public ones are.
        known_for_s: how long the current key is used before it is looked for again, in seconds:
            where others can rotate it.
    """

    def __init__(
        self, signers: Signers, catalog: SqlLogCatalog, known_for_s: float = math.inf
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
            keys = self._catalog.known(tenant_id).keys
            return self._note(tenant_id, keys[-1] if keys else self._make(tenant_id))

    def known(self, tenant_id: str) -> KnownLog:
        """Return the tenant's keys, and the heads that they signed."""
        found = self._catalog.known(tenant_id)
        if found.keys:
            return found
        with self._lock:
            self._note(tenant_id, self._make(tenant_id))
        return self._catalog.known(tenant_id)

    def all(self, tenant_id: str) -> Sequence[LogKey]:
        """Return the tenant's keys, by number."""
        return self.known(tenant_id).keys

    def require_own(self, tenant_id: str, key: LogKey) -> None:
        """Check that a key of the catalog is the one whose private half signs: who can write the
        catalog may have put his own in its place.

        Raises:
            DataLoss: LOG_CHANGED, it is not.
            FailedPrecondition: the private half cannot be read.
            Unavailable: the key was rotated meanwhile.
        """
        with self._in_use(tenant_id, key.number):
            public = self._signers.public(tenant_id, key.number)
        if (key.verifier.public, key.verifier.name) != (public, _name_of(tenant_id)):
            raise DataLoss(
                f"key {key.number} of tenant {tenant_id} is another in the catalog than the one"
                " that signs: its row was changed; restore a copy of the catalog",
                reason=Reason.LOG_CHANGED,
                metadata={"kind": "log key", "id": str(key.number)},
            )

    def sign(self, tenant_id: str, key: LogKey, data: bytes) -> bytes:
        """Return a signature; see `Signers.sign`.

        Raises:
            Unavailable: the key was rotated meanwhile.
        """
        with self._in_use(tenant_id, key.number):
            return self._signers.sign(tenant_id, key.number, data)

    def sign_note(self, tenant_id: str, key: LogKey, text: str) -> str:
        """Return a text as a signed note."""
        return f"{text}\n{self._signature(tenant_id, key, text)}"

    def sign_statement(self, tenant_id: str, statement: str) -> tuple[bytes, bytes]:
        """Return the current public key and its signature of a text, which says what it is."""
        key = self.current(tenant_id)
        self.require_own(tenant_id, key)
        return key.verifier.public, self.sign(tenant_id, key, statement.encode())

    def rotate(self, tenant_id: str) -> LogKey:
        """Make a new key, have both sign that it follows the old one, and all heads by the new one;
        destroy the old one's private half.

        What the old one did not sign is not signed by the new one either.
        """
        with self._lock:
            keys = self._catalog.known(tenant_id).keys
            old = keys[-1] if keys else self._make(tenant_id)
            self.require_own(tenant_id, old)
            made = self._made(tenant_id, old.number + 1)
            text = introduction_text(made, old)
            signatures = [self._signature(tenant_id, key, text) for key in (old, made)]
            made = replace(made, introduction=f"{text}\n{''.join(signatures)}")

            def signed_anew(head: SignedHead) -> SignedHead | None:
                try:
                    text = open_note(head.note, [old.verifier])
                except NoteInvalid:
                    return None
                return replace(head, note=self.sign_note(tenant_id, made, text))

            self._catalog.rotated(tenant_id, made, signed_anew)
            self._note(tenant_id, made)
            self._signers.destroy(tenant_id, old.number)
        return made

    def forget(self, tenant_id: str) -> None:
        """Destroy a tenant's keys, and remove what is known of them and of its logs."""
        with self._lock:
            self._known.pop(tenant_id, None)
            self._signers.destroy(tenant_id)
            self._catalog.forget(tenant_id)

    @contextmanager
    def _in_use(self, tenant_id: str, number: int) -> Iterator[None]:
        """Tell a key that a newer one has replaced, and whose private half is destroyed, from one
        that is lost."""
        try:
            yield
        except DataLoss:
            keys = self._catalog.known(tenant_id).keys
            if keys and keys[-1].number > number:
                raise rotated_meanwhile() from None
            raise

    def _note(self, tenant_id: str, key: LogKey) -> LogKey:
        self._known[tenant_id] = key, time.monotonic() + self._known_for_s
        return key

    def _make(self, tenant_id: str) -> LogKey:
        made = self._made(tenant_id, 1)
        self._catalog.add_key(tenant_id, made)
        return made

    def _made(self, tenant_id: str, number: int) -> LogKey:
        public = self._signers.create(tenant_id, number)
        return LogKey(number, VerifierKey(_name_of(tenant_id), public), now_us())

    def _signature(self, tenant_id: str, key: LogKey, text: str) -> str:
        return signature_line(key.verifier, self.sign(tenant_id, key, text.encode()))


def trusted(keys: Sequence[LogKey]) -> Sequence[VerifierKey]:
    """Return the newest of a tenant's keys, and those before it that it says came before it: who
    can write the catalog can add others."""
    found = [key.verifier for key in keys[-1:]]
    for made, old in zip(keys[:0:-1], keys[-2::-1], strict=True):
        try:
            said = open_note(made.introduction, [made.verifier])
        except NoteInvalid:
            break
        if said != introduction_text(made, old):
            break
        found.append(old.verifier)
    return found[::-1]


def introduction_text(made: LogKey, old: LogKey) -> str:
    """Return what is signed of a key that follows another one."""
    return f"mneme new log key\n{made.number}\n{made.verifier}\n{old.verifier}\n"


def _name_of(tenant_id: str) -> str:
    return f"mneme/{tenant_id}"
