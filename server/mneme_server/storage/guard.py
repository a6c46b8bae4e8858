"""No query without a tenant.

With a file per tenant a forgotten `WHERE` cannot reach another tenant's rows; where tenants share a
database it could. So every statement that touches a tenant's table must bind `tenant_id`, and one
that does not is refused before it runs, here as there.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, event

_REFERENCE = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+\"?(\w+)\"?", re.IGNORECASE)
_BOUND = re.compile(r"\btenant_id\s*=\s*(?:\?|:|%)|\btenant_id\s*=\s*\w+\.tenant_id", re.IGNORECASE)


class TenantNotBound(AssertionError):
    """A statement reads or writes tenants' rows without saying whose. A bug."""


def require_tenant(engine: Engine, tables: Collection[str]) -> None:
    """Refuse statements on `engine` that touch one of `tables` without binding its tenant."""
    guarded = frozenset(tables)

    @event.listens_for(engine, "before_cursor_execute")
    def check(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if not _is_bound(statement, guarded):
            raise TenantNotBound(f"no tenant is bound in: {statement}")


@lru_cache(maxsize=2048)
def _is_bound(statement: str, guarded: frozenset[str]) -> bool:
    verb = statement.lstrip().split(None, 1)[0].upper()
    touched = [name for name in _REFERENCE.findall(statement) if name.lower() in guarded]
    if verb not in {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"} or not touched:
        return True
    if verb == "INSERT":
        columns = statement[: statement.upper().find("VALUES")]
        return "tenant_id" in columns
    return len(_BOUND.findall(statement)) >= len(touched)
