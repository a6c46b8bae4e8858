"""The backends that keep tenants and the catalog: the data folder, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mneme._extras import from_wheels

from mneme_server.common.errors import FailedPrecondition, Reason, Unavailable
from mneme_server.common.lending import Lending
from mneme_server.engine.corpus.nodes import Node
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.sqlite_store import SqliteStores
from mneme_server.engine.store.tenant_states import tenants_live_in
from mneme_server.engine.store.unit import TenantSchema, Unit
from mneme_server.engine.tenants.opener import ProjectionFactory

CATALOG_NAME = "catalog.db"
_DRIVER = "psycopg"
_SHOWN = 300
_READERS = 2
"""Connections that a question takes at once where there is no index yet; see
`engine.index.cold_search`."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend: where tenants and the catalog are kept.

    Args:
        stores: the tenants.
        catalog: the catalog's file, or its database.
        node: this server among those that share them; None where it is the only one.
        project: makes what is shown of a tenant, on this server's disk; None where the store's
            files are on that.
        close: lets go of it all.
        lending: how connections to the database are lent; none where there is no such database.
    """

    stores: TenantStores[Unit]
    catalog: Path | Database
    close: Callable[[], object]
    node: Node | None = None
    project: ProjectionFactory | None = None
    lending: Sequence[Lending] = ()

    @property
    def shared(self) -> bool:
        """Whether all tenants share a database, instead of having a folder each."""
        return isinstance(self.catalog, Database)


def open_backend(
    settings: ServerSettings, schema: TenantSchema, catalog_folders: Sequence[Path]
) -> Backend:
    """Open where tenants are kept.

    Args:
        settings: the server's.
        schema: what a tenant's database is made of.
        catalog_folders: the folders of revisions of the catalog.

    Raises:
        FailedPrecondition: the settings ask for what there is not, or another version made the
            database.
        Unavailable: the database cannot be reached now.
    """
    file = settings.data_dir / CATALOG_NAME
    if settings.database_url is None:
        return folder_backend(settings.data_dir, schema)
    if file.exists() and tenants_live_in(file):
        raise FailedPrecondition(
            f"MNEME_DATABASE_URL names a PostgreSQL, but {settings.data_dir} holds tenants on"
            " SQLite: move them, by `mneme-server migrate --to URL` without MNEME_DATABASE_URL,"
            " choose another MNEME_DATA_DIR, or leave MNEME_DATABASE_URL away",
            reason=Reason.INITIALIZATION_FAILED,
        )
    with reaching("MNEME_DATABASE_URL"):
        return _in_postgres(settings.database_url.get_secret_value(), schema, catalog_folders)


def folder_backend(folder: Path, schema: TenantSchema) -> Backend:
    """Keep tenants and catalog on SQLite, in a data folder."""
    return Backend(SqliteStores(folder / "tenants", schema), folder / CATALOG_NAME, lambda: None)


def _in_postgres(url: str, schema: TenantSchema, catalog_folders: Sequence[Path]) -> Backend:
    require_driver()
    from mneme_server.engine.store.postgres.catalog import PostgresCatalog
    from mneme_server.engine.store.postgres.node import PostgresNode
    from mneme_server.engine.store.postgres.store import PostgresStores
    from mneme_server.engine.store.projection import projecting

    with ExitStack() as opened:
        stores = PostgresStores(url, schema)
        opened.callback(stores.close)
        stores.database.readers.open_ahead(_READERS)
        catalog = PostgresCatalog(url, catalog_folders)
        opened.callback(catalog.close)
        node = PostgresNode(url, stores.database)
        opened.callback(node.close)
        pools = (stores.database.readers, stores.database.writers, catalog.pool)
        lending = [pool.lending for pool in pools]
        project = projecting(schema.kinds)
        return Backend(stores, catalog, opened.pop_all().close, node, project, lending)


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Say of a database that cannot be opened which one it is, and why: to whoever starts
    something, who can do what no caller could.

    Args:
        what: how its URL is called, or the URL without its password.

    Raises:
        Unavailable: it cannot be reached.
        FailedPrecondition: its URL cannot be read.
    """
    try:
        yield
    except Unavailable as error:
        why = next((str(one) for one in _causes(error) if _is_the_drivers(one)), "")
        if error.reason is not Reason.DATABASE_ERROR or not why:
            raise
        raise Unavailable(
            f"{what}: the database cannot be reached: {why.strip().splitlines()[0][:_SHOWN]}",
            reason=error.reason,
            retry_after_s=error.retry_after_s,
        ) from error
    except Exception as error:
        if not (_is_the_drivers(error) and type(error).__name__ == "ProgrammingError"):
            raise
        raise FailedPrecondition(  # What it says may show a part of the password.
            f"{what}: PostgreSQL's library cannot read the URL; write what is special in a name or"
            " a password as %xx, e.g. a space as %20",
            reason=Reason.INITIALIZATION_FAILED,
        ) from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_the_drivers(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == _DRIVER


def require_driver() -> None:
    """See that what PostgreSQL's stores need is installed.

    Raises:
        FailedPrecondition: it is not.
    """
    if find_spec("psycopg") is None:
        raise FailedPrecondition(
            "MNEME_DATABASE_URL needs psycopg, which is not installed. Install it"
            f" {from_wheels('server,postgres')}",
            reason=Reason.INITIALIZATION_FAILED,
        )
