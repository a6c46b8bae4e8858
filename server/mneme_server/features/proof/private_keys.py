"""Private keys as PKCS #8 in PEM, encrypted where there is a secret for it, and their files."""

from __future__ import annotations

import math
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from mneme_server.common.errors import DataLoss, FailedPrecondition, Reason
from mneme_server.engine.index.files import sync_folder

_LEAST_SECRET = 16
_ENCRYPTED = b"ENCRYPTED PRIVATE KEY"

PROBE = ("", 0)
"""Under which tenant and number a key of nobody's is kept: the secret that opens it is the one that
the tenants' keys are encrypted with."""


class KeyPlaces(Protocol):
    """Where private keys are put, as they are given."""

    put_back: str
    """What to put back where one is missing."""

    def write(self, tenant_id: str, number: int, pem: bytes) -> bytes:
        """Keep a key durably, unless there is one of its number. Return the one that is kept."""
        ...

    def replace(self, tenant_id: str, number: int, pem: bytes) -> None:
        """Keep the same key, written otherwise."""
        ...

    def read(self, tenant_id: str, number: int) -> bytes:
        """Return what is kept.

        Raises:
            LookupError: nothing is; the message says why.
        """
        ...

    def remove(self, tenant_id: str, number: int | None) -> None:
        """Remove a key, or all of a tenant's; nothing if there is none."""
        ...


class _LoadedKey(NamedTuple):
    """A key that was read, from what, and until when that is not read again."""

    key: Ed25519PrivateKey
    pem: bytes
    until: float


class SealedKeys:
    """Implements `keys.Signers`.

    Args:
        places: where keys are kept.
        key_file: holds the secret; None for none.
        known_for_s: how long a key is used before it is looked for again, in seconds: where others
            can destroy it.
    """

    def __init__(
        self, places: KeyPlaces, key_file: Path | None, known_for_s: float = math.inf
    ) -> None:
        self._places = places
        self._key_file = key_file
        self._known_for_s = known_for_s
        self._loaded: dict[tuple[str, int], _LoadedKey] = {}

    def require_secret(self) -> None:
        """Check that keys can be encrypted.

        Raises:
            FailedPrecondition: there is no secret, or it cannot be read, or is too short.
        """
        if self._secret() is None:
            raise FailedPrecondition(
                "MNEME_DATABASE_URL has the keys that sign the tenants' logs in the database, and"
                " its dumps and backups: set MNEME_KEY_FILE to a file with a secret to encrypt them"
                " with, the same for every server (openssl rand -base64 32 makes one), or"
                " MNEME_PLAIN_KEYS=true to keep them there as they are",
                reason=Reason.INITIALIZATION_FAILED,
            )

    def check_secret(self) -> None:
        """Check that the secret is the one that keys were encrypted with before, and take note of
        the first. Whoever served with another would make keys that nobody else can open.

        Raises:
            FailedPrecondition: it is another, or cannot be read, or is too short.
        """
        if self._secret() is None:
            return
        try:
            kept = self._places.read(*PROBE)
        except LookupError:
            kept = self._places.write(*PROBE, self._pem(Ed25519PrivateKey.generate()))
        try:
            self._key(*PROBE, kept)
        except (DataLoss, FailedPrecondition) as error:
            raise FailedPrecondition(
                "MNEME_KEY_FILE holds another secret than the one that the tenants' signing keys"
                " are encrypted with: set it to a file with that one, the same for every server",
                reason=Reason.INITIALIZATION_FAILED,
            ) from error

    def create(self, tenant_id: str, number: int) -> bytes:
        """Make a key and keep it."""
        key = Ed25519PrivateKey.generate()
        pem = self._pem(key)
        kept = self._places.write(tenant_id, number, pem)
        if kept != pem:
            key, _ = self._key(tenant_id, number, kept)
        self._note(tenant_id, number, key, kept)
        return _public_half(key)

    def public(self, tenant_id: str, number: int) -> bytes:
        """Return the public half that the private one gives."""
        return _public_half(self._get(tenant_id, number))

    def sign(self, tenant_id: str, number: int, data: bytes) -> bytes:
        """Sign with a key."""
        return self._get(tenant_id, number).sign(data)

    def _get(self, tenant_id: str, number: int) -> Ed25519PrivateKey:
        """Return a key, which is read once in a while."""
        known = self._loaded.get((tenant_id, number))
        if known is not None and time.monotonic() < known.until:
            return known.key
        return self._read(tenant_id, number, known)

    def destroy(self, tenant_id: str, number: int | None = None) -> None:
        """Remove a key, or all of a tenant's."""
        for known in [one for one in self._loaded if one[0] == tenant_id]:
            if number in (None, known[1]):
                del self._loaded[known]
        self._places.remove(tenant_id, number)

    def _secret(self) -> bytes | None:
        if self._key_file is None:
            return None
        try:
            secret = self._key_file.read_bytes().strip()
        except OSError as error:
            raise FailedPrecondition(f"MNEME_KEY_FILE: {error.strerror}") from None
        if len(secret) < _LEAST_SECRET:
            raise FailedPrecondition(f"MNEME_KEY_FILE holds fewer than {_LEAST_SECRET} bytes")
        return secret

    def _read(self, tenant_id: str, number: int, known: _LoadedKey | None) -> Ed25519PrivateKey:
        try:
            pem = self._places.read(tenant_id, number)
        except LookupError as error:
            self._loaded.pop((tenant_id, number), None)
            raise DataLoss(
                f"key {number} of tenant {tenant_id} cannot be read ({error}); put"
                f" {self._places.put_back} back"
            ) from None
        if known is not None and known.pem == pem:
            key = known.key
        else:
            key, encrypted = self._key(tenant_id, number, pem)
            if self._key_file is not None and not encrypted:
                pem = self._pem(key)  # It was written before there was a secret.
                self._places.replace(tenant_id, number, pem)
        self._note(tenant_id, number, key, pem)
        return key

    def _note(self, tenant_id: str, number: int, key: Ed25519PrivateKey, pem: bytes) -> None:
        until = time.monotonic() + self._known_for_s
        self._loaded[tenant_id, number] = _LoadedKey(key, pem, until)

    def _key(self, tenant_id: str, number: int, pem: bytes) -> tuple[Ed25519PrivateKey, bool]:
        """Return the key in a text, and whether it was encrypted there."""
        secret, encrypted = self._secret(), _ENCRYPTED in pem
        if encrypted and secret is None:
            raise FailedPrecondition(
                f"key {number} of tenant {tenant_id} is encrypted: set MNEME_KEY_FILE"
            )
        try:
            key = load_pem_private_key(pem, secret if encrypted else None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            if encrypted:
                raise FailedPrecondition(
                    f"key {number} of tenant {tenant_id} cannot be opened with the secret in"
                    " MNEME_KEY_FILE, or is damaged"
                ) from None
            raise self._damaged(tenant_id, number) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise self._damaged(tenant_id, number)
        return key, encrypted

    def _pem(self, key: Ed25519PrivateKey) -> bytes:
        secret = self._secret()
        encryption = NoEncryption() if secret is None else BestAvailableEncryption(secret)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    def _damaged(self, tenant_id: str, number: int) -> DataLoss:
        return DataLoss(
            f"key {number} of tenant {tenant_id} is damaged; put {self._places.put_back} back"
        )


class KeyFiles:
    """Private keys in files beside the catalog, readable by the server's user alone:
    `<folder>/<tenant>/<number>.pem`, mode 0600. Implements `KeyPlaces`.

    Args:
        folder: made when the first key is.
    """

    put_back = "keys/ of the data folder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, tenant_id: str, number: int, pem: bytes) -> bytes:
        """Write a key's file, unless there is one: a server that was stopped before the
        catalog knew its key finds it again, and a catalog that lost its row destroys none."""
        try:
            return self.read(tenant_id, number)
        except LookupError:
            self.replace(tenant_id, number, pem)
        return pem

    def replace(self, tenant_id: str, number: int, pem: bytes) -> None:
        """See `KeyPlaces`."""
        path = self._path(tenant_id, number)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        for folder in (path.parent, path.parent.parent):
            sync_folder(folder)

    def read(self, tenant_id: str, number: int) -> bytes:
        """See `KeyPlaces`."""
        try:
            return self._path(tenant_id, number).read_bytes()
        except OSError as error:
            raise LookupError(error.strerror) from None

    def remove(self, tenant_id: str, number: int | None) -> None:
        """Remove a key's file, or the tenant's folder."""
        if number is None:
            shutil.rmtree(self._folder / tenant_id, ignore_errors=True)
        else:
            self._path(tenant_id, number).unlink(missing_ok=True)

    def _path(self, tenant_id: str, number: int) -> Path:
        return self._folder / tenant_id / f"{number}.pem"


def _public_half(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
