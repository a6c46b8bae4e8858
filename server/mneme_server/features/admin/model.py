"""Tenants and API keys."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from mneme_server.common.errors import InvalidArgument
from mneme_server.common.identity import Caller, KeyScope

_SECRET_MARK = "mn_"
_SECRET_BYTES = 32
_PREFIX_LENGTH = 8
_PREFIX_LENGTH_OF_CHOSEN = 3
_MIN_CHOSEN_SECRET = 16


DEFAULT_SCOPES = frozenset({KeyScope.READ, KeyScope.WRITE})


@dataclass(frozen=True, slots=True)
class Tenant:
    """A separate memory with its own folder. Times are microseconds since 1970."""

    id: str
    display_name: str
    created_at_us: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key; its secret is not. Times are microseconds since 1970."""

    id: str
    tenant_id: str
    name: str
    scopes: frozenset[KeyScope]
    rate_limit: int
    prefix: str
    created_at_us: int
    last_used_at_us: int | None = None
    revoked_at_us: int | None = None

    def caller(self) -> Caller:
        """Return whom this key lets in."""
        return Caller(self.tenant_id, self.id, self.scopes, self.rate_limit)


def new_secret() -> str:
    """Return a new key's secret: 256 random bits, URL-safe."""
    return _SECRET_MARK + secrets.token_urlsafe(_SECRET_BYTES)


def check_chosen_secret(secret: str) -> str:
    """Return a secret that an operator chose, if it is long enough.

    Raises:
        InvalidArgument: it is shorter than 16 characters or holds other than visible ASCII.
    """
    if len(secret) < _MIN_CHOSEN_SECRET or not (secret.isascii() and secret.isprintable()):
        raise InvalidArgument(
            f"MNEME_ADMIN_KEY must have at least {_MIN_CHOSEN_SECRET} characters, visible ASCII"
            " only; leave it out and a key is made at first start",
        )
    return secret


def secret_hash(secret: str) -> bytes:
    """Return what is kept of a secret. It holds enough randomness that no salt is needed."""
    return hashlib.sha256(secret.encode()).digest()


def secret_prefix(secret: str) -> str:
    """Return the characters that tell keys apart in lists; few of a secret that may be short."""
    made_here = secret.startswith(_SECRET_MARK) and len(secret) >= _SECRET_BYTES
    return secret[: _PREFIX_LENGTH if made_here else _PREFIX_LENGTH_OF_CHOSEN]
