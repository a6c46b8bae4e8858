"""Private keys in files beside the catalog, as PKCS #8 in PEM: readable by the server's user alone,
and encrypted where there is a secret to do it with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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

from mneme_server.common.errors import DataLoss, FailedPrecondition

_LEAST_SECRET = 16
_ENCRYPTED = b"ENCRYPTED PRIVATE KEY"


class KeyFiles:
    """Implements `keys.Signers`: `<folder>/<tenant>/<number>.pem`, mode 0600.

    Args:
        folder: made when the first key is.
        key_file: holds the secret; None for none.
    """

    def __init__(self, folder: Path, key_file: Path | None) -> None:
        self._folder = folder
        self._key_file = key_file
        self._loaded: dict[tuple[str, int], Ed25519PrivateKey] = {}

    def create(self, tenant_id: str, number: int) -> bytes:
        """Make a key and write its file."""
        key = Ed25519PrivateKey.generate()
        self._write(self._path(tenant_id, number), key)
        self._loaded[tenant_id, number] = key
        return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def sign(self, tenant_id: str, number: int, data: bytes) -> bytes:
        """Sign with a key, which is read once."""
        key = self._loaded.get((tenant_id, number))
        if key is None:
            key = self._loaded[tenant_id, number] = self._read(tenant_id, number)
        return key.sign(data)

    def destroy(self, tenant_id: str, number: int | None = None) -> None:
        """Remove a key's file, or the tenant's folder."""
        for known in [one for one in self._loaded if one[0] == tenant_id]:
            if number in (None, known[1]):
                del self._loaded[known]
        if number is None:
            shutil.rmtree(self._folder / tenant_id, ignore_errors=True)
        else:
            self._path(tenant_id, number).unlink(missing_ok=True)

    def _path(self, tenant_id: str, number: int) -> Path:
        return self._folder / tenant_id / f"{number}.pem"

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

    def _read(self, tenant_id: str, number: int) -> Ed25519PrivateKey:
        path = self._path(tenant_id, number)
        secret = self._secret()
        try:
            stored = path.read_bytes()
        except OSError as error:
            raise DataLoss(
                f"key {number} of tenant {tenant_id} cannot be read ({error.strerror}); put"
                " keys/ of the data folder back"
            ) from None
        encrypted = _ENCRYPTED in stored
        if encrypted and secret is None:
            raise FailedPrecondition(
                f"key {number} of tenant {tenant_id} is encrypted: set MNEME_KEY_FILE"
            )
        try:
            key = load_pem_private_key(stored, secret if encrypted else None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            if encrypted:
                raise FailedPrecondition(
                    f"key {number} of tenant {tenant_id} cannot be opened with the secret in"
                    " MNEME_KEY_FILE, or is damaged"
                ) from None
            raise _damaged(tenant_id, number) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise _damaged(tenant_id, number)
        if secret is not None and not encrypted:
            self._write(path, key)  # It was written before there was a secret.
        return key

    def _write(self, path: Path, key: Ed25519PrivateKey) -> None:
        secret = self._secret()
        encryption = NoEncryption() if secret is None else BestAvailableEncryption(secret)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        for folder in (path.parent, path.parent.parent):
            _sync(folder)


def _damaged(tenant_id: str, number: int) -> DataLoss:
    return DataLoss(f"key {number} of tenant {tenant_id} is damaged; put keys/ back")


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
