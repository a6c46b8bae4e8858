"""Write, beside the revisions of each trunk, the SQL of what they and all branches make.

New databases are made of it; see `mneme_server/engine/store/migrate.py`.

Usage: python scripts/newest_schemas.py [--check]
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from mneme_server.capabilities import catalog_migrations, tenant_schema
from mneme_server.engine.store.migrate import NEWEST, as_sql, made_by_revisions
from mneme_server.features.admin.store.catalog import MIGRATIONS
from pages import write_or_check

SCHEMAS = (tenant_schema().migrations, (MIGRATIONS, *catalog_migrations()))
"""The folders of revisions of each schema, its trunk first."""
OUTPUTS = tuple(folders[0] / NEWEST for folders in SCHEMAS)


def _written(*folders: Path) -> str:
    with closing(made_by_revisions(folders)) as made:
        return as_sql(made)


def main() -> int:
    """Write both files, or check that they are up to date."""
    return write_or_check({folders[0] / NEWEST: _written(*folders) for folders in SCHEMAS})


if __name__ == "__main__":
    sys.exit(main())
