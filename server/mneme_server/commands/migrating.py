"""The command `mneme-server migrate`: moves tenants to another place while no server runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mneme_server.capabilities import catalog_migrations, tenant_schema
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.edge.grpc.logging import configure_logging
from mneme_server.edge.local.folder import only_process_in
from mneme_server.engine.cluster.moves import OfflineMove, OfflineMoveResult, Place, same_answers
from mneme_server.engine.cluster.placements import HOME, CatalogRows, PlacedStores, Placement
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.unit import TenantSchema, Unit
from mneme_server.engine.tenants.backends import Backend, folder_backend, reaching, require_driver
from mneme_server.features.admin.store.catalog import MIGRATIONS, Catalog
from mneme_server.features.admin.store.moves import SqlMoves
from mneme_server.features.events.verification import same_chains
from mneme_server.features.proof.private_keys import PROBE, KeyFiles, KeyPlaces
from mneme_server.features.proof.store.catalog import SqlKeyPlaces, log_keys, private_keys
from mneme_server.placing import placed

_TOLD_EVERY_S = 1.0
_FOLDER = "sqlite:"
_WHO = re.compile(r"([^:@/]*)(?::[^@/]*)?@")
"""A user, and a password, in which libpq takes a question mark as it is."""
_KEYS = "keys"
"""The folder of a data folder that holds the keys of logs."""


def migrate(
    settings: ServerSettings,
    to: str,
    tenants: Sequence[str],
    *,
    dry_run: bool = False,
    remove: bool = False,
    as_json: bool = False,
    say: Callable[[str], object],
    progress: Callable[[str], object],
) -> int:
    """Move tenants from where the settings say that they are kept; return the exit code.

    Args:
        settings: the server's.
        to: where to: a URL of PostgreSQL, or `sqlite:` with a folder, or without one for
            `settings.data_dir`.
        tenants: which; none: all.
        dry_run: only say what would be done.
        remove: remove what is left of them where they were.
        as_json: say what was done as one line of JSON.
        say: takes what was done, line by line.
        progress: takes how far it is.

    Raises:
        InvalidArgument: `to` is no place, or the one where they are.
        FailedPrecondition: a server has one of the places, another version made one, or one cannot
            keep what there is.
        Unavailable: a database cannot be reached.
        NotFound, AlreadyExists: see `OfflineMove.chosen`.
        DataLoss: what arrived is not what left.
    """
    configure_logging("warning", settings.log_format)
    done: list[dict[str, Any]] = []
    with _places(settings, to) as (source, target, keys, came_by):
        checks = {"chains": same_chains, "questions": same_answers}
        move = OfflineMove(
            source, target, checks,
            carry=keys.carry, left=keys.left, came_by=came_by, told=_Telling(progress),
            remove=remove,
        )  # fmt: skip
        chosen = move.chosen(tenants)
        for tenant_id in chosen:
            found: dict[str, Any]
            if dry_run:
                rows = _nonzero(move.sizes(tenant_id))
                found = {"tenant": tenant_id, "rows": rows}
                line = f"{tenant_id}: {sum(rows.values())} rows would be moved"
            else:
                moved = move.run(tenant_id)
                found, line = _as_json(moved), _as_line(moved)
            done.append(found)
            if not as_json:
                say(line)
        outcome = {"from": source.name, "to": target.name, "dry_run": dry_run, "tenants": done}
    if as_json:
        say(json.dumps(outcome))
    elif not done:
        say(f"there are no tenants in {source.name}")
    elif not dry_run:
        say(_next(len(done), source, target, removed=remove))
    return 0


def _next(count: int, source: Place, target: Place, *, removed: bool) -> str:
    moved = "1 tenant lives" if count == 1 else f"{count} tenants live"
    left = "is removed" if removed else "stays, unused, until it is moved back or deleted by hand"
    return f"{moved} in {target.name} now; what was in {source.name} {left}"


@contextmanager
def _places(
    settings: ServerSettings, to: str
) -> Iterator[tuple[Place, Place, _Keys, Callable[[str], str]]]:
    """Open where tenants are and where they are to go, both for this process alone; tell, too, by
    which move rows of a tenant have come there already."""
    url = settings.database_url.get_secret_value() if settings.database_url else ""
    here = url or f"{_FOLDER}{settings.data_dir.absolute()}"
    there = f"{_FOLDER}{_folder(settings, to)}" if to.startswith(_FOLDER) else to
    if not there.startswith((_FOLDER, "postgresql://", "postgres://")):
        raise InvalidArgument(
            f"--to {_shown(to)} is no place to move to: postgresql://user@host/database, or"
            " sqlite:FOLDER, or sqlite: for MNEME_DATA_DIR",
            field="to",
        )
    if here == there:
        raise InvalidArgument(f"the tenants are in {_shown(here)} already", field="to")
    with ExitStack() as opened:
        folders = {settings.data_dir.absolute()}
        folders |= {Path(one.removeprefix(_FOLDER)) for one in (here, there) if _in_files(one)}
        for folder in sorted(folders):
            opened.enter_context(only_process_in(folder))
        source, own = _opened(opened, here, settings)
        target, other = _opened(opened, there, settings)
        yield source, target, _Keys(own, other), partial(_came_by, source.stores, there, settings)


def _opened(opened: ExitStack, place: str, settings: ServerSettings) -> tuple[Place, KeyPlaces]:
    schema, branches = tenant_schema(), catalog_migrations()
    backend: Backend
    if _in_files(place):
        backend = folder_backend(Path(place.removeprefix(_FOLDER)), schema)
    else:
        with reaching(_shown(place)):
            backend = _in_postgres(opened, place, schema, (MIGRATIONS, *branches))
    opened.callback(backend.close)
    catalog = Catalog(backend.catalog, *branches)
    opened.callback(catalog.close)
    keys: KeyPlaces
    if backend.shared:
        keys = SqlKeyPlaces(catalog.database)
    else:
        keys = KeyFiles(Path(place.removeprefix(_FOLDER)) / _KEYS)
    moves = SqlMoves(catalog.database, [private_keys.name])
    stores = backend.stores
    if not backend.shared:
        folders = (MIGRATIONS, *branches)
        places = placed(backend, catalog.database, settings, schema, folders)
        stores = opened.enter_context(places)
    return Place(_shown(place), moves, stores), keys


def _came_by(
    stores: TenantStores[Unit], there: str, settings: ServerSettings, tenant_id: str
) -> str:
    """Return the move by which a tenant's rows have come to a place while it was served; empty if
    they are beside the catalog.

    Raises:
        FailedPrecondition: they are in neither of the two.
    """
    if not isinstance(stores, PlacedStores):
        return ""
    found = stores.placements.of(tenant_id)
    if found == Placement():
        return ""
    if found.place == HOME:
        raise FailedPrecondition(
            f"a move of the tenant {tenant_id} was cut short: start the server, which ends it",
            reason=Reason.INITIALIZATION_FAILED,
        )
    if settings.named_databases.get(found.place) != there:
        raise FailedPrecondition(
            f"the tenant {tenant_id} is in the database {found.place} of MNEME_DATABASES, and can"
            " be handed over to that one alone",
            reason=Reason.INITIALIZATION_FAILED,
        )
    return found.move


def _in_postgres(
    opened: ExitStack, url: str, schema: TenantSchema, catalog_folders: Sequence[Path]
) -> Backend:
    """Open a PostgreSQL, not as a server that serves from it: as one that lets none."""
    require_driver()
    from mneme_server.engine.store.postgres.catalog import PostgresCatalog
    from mneme_server.engine.store.postgres.schema import held_alone, require_this_version
    from mneme_server.engine.store.postgres.store import PostgresStores

    stores = PostgresStores(url, schema)
    opened.callback(stores.close)
    catalog = PostgresCatalog(url, catalog_folders)
    opened.callback(catalog.close)
    opened.enter_context(held_alone(url))
    require_this_version(url, schema.migrations, catalog_folders)
    return Backend(stores, catalog, lambda: None)


class _Keys:
    """Takes the keys that sign a tenant's log along: they are in the catalog, or in files."""

    def __init__(self, source: KeyPlaces, target: KeyPlaces) -> None:
        self._source, self._target = source, target

    def carry(self, tenant_id: str, rows: CatalogRows) -> None:
        """Copy the keys that the catalog tells of. Those that were retired may be gone."""
        self._carry_probe()
        for row in rows.get(log_keys.name, ()):
            try:
                pem = self._source.read(tenant_id, row["number"])
            except LookupError:
                if row["retired_at"] is None:
                    raise FailedPrecondition(
                        f"key {row['number']} of tenant {tenant_id} cannot be read; put"
                        f" {self._source.put_back} back",
                        reason=Reason.INITIALIZATION_FAILED,
                    ) from None
            else:
                self._target.replace(tenant_id, row["number"], pem)

    def _carry_probe(self) -> None:
        """Have the target know the secret of the keys that come, unless it knows one."""
        try:
            self._target.read(*PROBE)
        except LookupError:
            with suppress(LookupError):  # Keys of the source are not encrypted.
                self._target.write(*PROBE, self._source.read(*PROBE))

    def left(self, tenant_id: str) -> None:
        """Remove the files of keys; those in a catalog went with its rows."""
        if isinstance(self._source, KeyFiles):
            self._source.remove(tenant_id, None)


def _in_files(place: str) -> bool:
    return place.startswith(_FOLDER)


def _folder(settings: ServerSettings, to: str) -> Path:
    path = unquote(urlsplit(to).path)
    folder = Path(path).absolute() if path else settings.data_dir.absolute()
    if not folder.parent.is_dir():
        raise FailedPrecondition(
            f"--to {to}: there is no folder {folder.parent}", reason=Reason.INITIALIZATION_FAILED
        )
    return folder


def _shown(place: str) -> str:
    """Return a place as it may be shown: without a password, and what else may hold one."""
    if _in_files(place):
        return place
    kind, slashes, rest = place.partition("://") if "://" in place else ("", "", place)
    found = _WHO.match(rest)
    user, where = (f"{found[1]}@", rest[found.end() :]) if found else ("", rest)
    return f"{kind}{slashes}{user}{where.partition('?')[0].rpartition('@')[2]}"


def _nonzero(sizes: Mapping[str, int]) -> dict[str, int]:
    return {table: rows for table, rows in sizes.items() if rows}


def _as_json(moved: OfflineMoveResult) -> dict[str, Any]:
    tables = {
        table: {"rows": content.rows, "sha256": content.sha256}
        for table, content in moved.tables.items()
        if content.rows
    }
    return {
        "tenant": moved.tenant_id,
        "copied": moved.copied,
        "tables": tables,
        "checks": dict(moved.checks),
    }


def _as_line(moved: OfflineMoveResult) -> str:
    if not moved.copied:
        return f"{moved.tenant_id}: had been copied and compared before; it lives there now"
    rows = sum(content.rows for content in moved.tables.values())
    checks = "; ".join(moved.checks.values())
    return f"{moved.tenant_id}: {rows} rows moved, all the same there; {checks}"


class _Telling:
    """Says how far it is, each step once and long ones once a second."""

    def __init__(self, progress: Callable[[str], object]) -> None:
        self._progress = progress
        self._said, self._at = "", 0.0

    def __call__(self, tenant_id: str, step: str, done: int, count: int) -> None:
        what, now = f"{tenant_id}: {step}", time.monotonic()
        if what == self._said and now - self._at < _TOLD_EVERY_S:
            return
        self._said, self._at = what, now
        self._progress(f"{what}, {done} of {count} rows" if count else what)
