"""The capabilities of the server, each after those that it builds on."""

from __future__ import annotations

from functools import cache

from mneme_server.admin.capability import CAPABILITY as ADMIN
from mneme_server.context.capability import CAPABILITY as CONTEXT
from mneme_server.events.capability import CAPABILITY as EVENTS
from mneme_server.learn.capability import CAPABILITY as LEARN
from mneme_server.recall.capability import CAPABILITY as RECALL
from mneme_server.reflect.capability import CAPABILITY as REFLECT
from mneme_server.storage.unit import TenantSchema

CAPABILITIES = (EVENTS, RECALL, LEARN, CONTEXT, REFLECT, ADMIN)


@cache
def tenant_schema() -> TenantSchema:
    """Return what a tenant's database is made of."""
    return TenantSchema.of(
        [capability.repositories for capability in CAPABILITIES],
        [c.migrations for c in CAPABILITIES if c.migrations is not None],
        [capability.kinds for capability in CAPABILITIES],
    )
