"""Where schemas are defined, and what tells them and a database apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from mneme_server.capabilities import catalog_migrations, tenant_schema
from mneme_server.features.admin.forgetting import store as forgetting_store
from mneme_server.features.admin.store import catalog
from mneme_server.features.admin.store.catalog import metadata as catalog_metadata
from mneme_server.features.alerts.store import schedules as alert_schedules
from mneme_server.features.causal.store import schedules as causal_schedules
from mneme_server.features.operations import store as operations_store
from mneme_server.features.proof.store import catalog as log_catalog
from sqlalchemy import Connection, MetaData

TENANT = tenant_schema().migrations
"""The folders of revisions of a tenant's database, the trunk first."""
CATALOG = (catalog.MIGRATIONS, *catalog_migrations())
"""Those of the catalog."""
CATALOG_TABLES = [
    catalog_metadata,
    alert_schedules.metadata,
    causal_schedules.metadata,
    forgetting_store.asked_metadata,
    operations_store.metadata,
    log_catalog.metadata,
]
"""Where the catalog's tables are defined."""


def differences(connection: Connection, defined: Sequence[MetaData]) -> list[Any]:
    """What Alembic would do to have a database's tables be those that are defined."""
    options = {"compare_type": True, "compare_server_default": _have_other_defaults}
    context = MigrationContext.configure(connection, opts=options)
    return compare_metadata(context, list(defined))  # type: ignore[arg-type]


def _have_other_defaults(*given: Any) -> bool:
    """Alembic's own comparison takes an empty text for another one on SQLite."""
    there, defined = given[3], given[5]
    return _plain(there) != _plain(defined)


def _plain(default: str | None) -> str | None:
    return None if default is None else re.sub(r"::[a-z ]+|['()]", "", default)
