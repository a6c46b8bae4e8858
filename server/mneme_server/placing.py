"""The databases that a server's tenants are in: its own, and those of MNEME_DATABASES."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from mneme_server.engine.cluster.moves import LiveMove, same_answers
from mneme_server.engine.cluster.placements import OtherDatabase, PlacedStores
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.unit import TenantSchema, Unit
from mneme_server.engine.tenants.backends import Backend, require_driver
from mneme_server.engine.tenants.registry import TenantRegistry
from mneme_server.features.admin.store.catalog import Catalog, SqlPlacements
from mneme_server.features.admin.store.moves import SqlMoves
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.events.verification import same_chains
from mneme_server.features.proof.store.catalog import private_keys


def placed(
    backend: Backend,
    catalog: Database,
    settings: ServerSettings,
    schema: TenantSchema,
    catalog_folders: Sequence[Path],
) -> PlacedStores:
    """Return the stores of a server's tenants, wherever they are.

    Args:
        backend: where the catalog is.
        catalog: its database.
        settings: the server's.
        schema: what a tenant's database is made of.
        catalog_folders: the folders of revisions of the catalog.
    """
    opened = {
        name: partial(_elsewhere, url, schema, catalog_folders)
        for name, url in settings.named_databases.items()
    }
    return PlacedStores(backend.stores, SqlPlacements(catalog), opened)


def moving(places: PlacedStores, tenants: TenantRegistry[Unit], catalog: Catalog) -> Moving:
    """Return what moves tenants between their databases while they are served; none where several
    servers share the catalog."""
    checks = {"chains": same_chains, "questions": same_answers}
    if catalog.database.shared:
        return Moving(None)
    return Moving(LiveMove(places, tenants, catalog.tenants.get, checks))


def _elsewhere(url: str, schema: TenantSchema, catalog_folders: Sequence[Path]) -> OtherDatabase:
    require_driver()
    from mneme_server.engine.store.postgres.catalog import PostgresCatalog
    from mneme_server.engine.store.postgres.store import PostgresStores

    with ExitStack() as opened:
        stores = PostgresStores(url, schema)
        opened.callback(stores.close)
        catalog = PostgresCatalog(url, catalog_folders)
        opened.callback(catalog.close)
        return OtherDatabase(stores, SqlMoves(catalog, [private_keys.name]), opened.pop_all().close)
