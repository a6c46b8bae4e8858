"""Callers and what they may do; ids of tenants, and those that the server makes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from ulid import ULID

from mneme_server.common.errors import InvalidArgument

DEFAULT_TENANT = "default"
"""The tenant that always exists: of the bootstrap key, and of everyone when keys are not asked."""

_TENANT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class KeyScope(IntEnum):
    """What an API key may do. The numbers are those of `mneme.v1.KeyScope`."""

    READ = 1
    WRITE = 2
    LEARN = 3
    ADMIN = 4


ALL_SCOPES = frozenset(KeyScope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: everything a call may touch belongs to `tenant_id`.

    `key_id` is empty when keys are not asked. `rate_limit` is in calls a minute; 0: no limit.
    """

    tenant_id: str
    key_id: str
    scopes: frozenset[KeyScope]
    rate_limit: int


def check_tenant_id(tenant_id: str, field: str = "tenant_id") -> str:
    """Return `tenant_id` if it is one. It names a folder: nothing else may pass.

    Raises:
        InvalidArgument: it is not.
    """
    if not _TENANT_ID.fullmatch(tenant_id):
        raise InvalidArgument(
            f"{tenant_id!r} is not a tenant id: lower-case letters, digits, - and _; starts with a"
            " letter or digit; 1 to 63 characters",
            field=field,
        )
    return tenant_id


def new_id() -> str:
    """Return a new ULID: 26 characters that sort by the time they were made."""
    return str(ULID())
