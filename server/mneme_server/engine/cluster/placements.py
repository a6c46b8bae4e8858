"""Tenants whose rows lie in different databases: each where the catalog says.

The catalog is one, and says of each tenant that was moved while it was served in which of the
databases its rows are. Those that it says nothing of are at home, where the catalog is, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from mneme_server.common import deadline
from mneme_server.common.errors import FailedPrecondition, NotFound, Reason, Unavailable
from mneme_server.engine.corpus.tenant_store import TenantStore, TenantStores
from mneme_server.engine.store.unit import Unit

HOME = ""
"""Where the catalog is."""
_RETRY_S = 1.0

CatalogRows = Mapping[str, Sequence[Mapping[str, Any]]]
"""What a catalog holds of a tenant: rows by table."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a tenant's rows are.

    `other` is another place where rows of it may lie that are not its own: those that arrive by a
    move, or were left by one; None where there is none. `move` names the move.
    """

    place: str = HOME
    other: str | None = None
    move: str = ""


class Placements(Protocol):
    """What the catalog says of where tenants are."""

    def of(self, tenant_id: str) -> Placement:
        """Return where a tenant is; at home if nothing is said."""
        ...

    def places_of(self, tenant_ids: Collection[str]) -> Mapping[str, str]:
        """Return the places of those of these tenants that are not at home."""
        ...

    def put(self, tenant_id: str, placement: Placement) -> None:
        """Say where a tenant is, durably."""
        ...

    def unsettled(self) -> Sequence[str]:
        """Return the tenants of which rows may lie in another place, too."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What a catalog says of where a tenant lives."""

    state: str
    move: str = ""
    """Names the move that it arrives by, or left by."""
    place: str = ""
    """Where it lives, if elsewhere."""


class MovingCatalog(Protocol):
    """A catalog, as one moves tenants from it or to it."""

    def standing(self, tenant_id: str) -> Standing | None:
        """Return what it says of a tenant; None if nothing."""
        ...

    def living(self) -> Sequence[str]:
        """Return the tenants that live here, by id."""
        ...

    def departed(self) -> Sequence[str]:
        """Return the tenants that moved from here, by id."""
        ...

    def rows(self, tenant_id: str) -> CatalogRows:
        """Return all that it holds of a tenant."""
        ...

    def arrive(self, tenant_id: str, move: str) -> None:
        """Note that a tenant arrives; of what is held of it, keep only the keys, and these unless
        it moved from here."""
        ...

    def take_in(self, tenant_id: str, move: str) -> None:
        """Note, in one transaction, that the name of a tenant is taken by one of another catalog
        whose rows come here by a move (GUEST).

        Raises:
            AlreadyExists: a tenant of this name is here, or its rows are.
        """
        ...

    def set_standing(self, tenant_id: str, standing: Standing | None) -> None:
        """Say where a tenant lives; None: nothing is known of it."""
        ...

    def settle(self, tenant_id: str, rows: CatalogRows, *, trial: bool = False) -> None:
        """Take what another catalog holds of a tenant that arrived, and say that it lives here. A
        `trial` is undone.

        Raises:
            AlreadyExists: a row of another tenant stands in the way.
        """
        ...

    def clear(self, tenant_id: str) -> None:
        """Delete all that is held of a tenant but where it lives."""
        ...


@dataclass(frozen=True, slots=True)
class OtherDatabase:
    """A database that keeps tenants of this server beside those of its own catalog, in which their
    names are taken, so that no server opens them there."""

    stores: TenantStores[Unit]
    catalog: MovingCatalog
    close: Callable[[], object]


class PlacedStores:
    """Implements `engine.corpus.tenant_store.TenantStores[Unit]`: each tenant's where it is.
    Thread-safe.

    Args:
        home: the stores beside the catalog.
        placements: what the catalog says.
        opened: opens each other database, by its name; that is done when it is first needed.
    """

    def __init__(
        self,
        home: TenantStores[Unit],
        placements: Placements,
        opened: Mapping[str, Callable[[], OtherDatabase]],
    ) -> None:
        self.placements = placements
        self._home = home
        self._opened = opened
        # One for each, as one that cannot be reached takes long to say so.
        self._opening = {name: threading.Lock() for name in opened}
        self._open: dict[str, OtherDatabase] = {}
        self._lock = threading.Lock()  # Guards the next.
        self._moving: set[str] = set()
        self._resources = ExitStack()

    @property
    def names(self) -> Sequence[str]:
        """The names of the other databases."""
        return sorted(self._opened)

    def places_of(self, tenant_ids: Collection[str]) -> Mapping[str, str]:
        """Return the names of the databases that tenants' rows are in; those at home are left
        out."""
        return self.placements.places_of(tenant_ids)

    def place_of(self, tenant_id: str) -> str:
        """Return the name of the database that a tenant's rows are in; `HOME` if none."""
        return self.placements.of(tenant_id).place

    def at(self, place: str) -> TenantStores[Unit]:
        """Return the stores of a place.

        Raises:
            FailedPrecondition: the settings do not name it.
            Unavailable: it cannot be reached now.
        """
        return self._home if place == HOME else self.elsewhere(place).stores

    def elsewhere(self, name: str) -> OtherDatabase:
        """Return one of the other databases; raises as `at` does."""
        open_it = self._opened.get(name)
        if open_it is None:
            raise FailedPrecondition(
                f"MNEME_DATABASES names no database {name}, where tenants are",
                reason=Reason.INITIALIZATION_FAILED,
            )
        found = self._open.get(name)
        if found is not None:
            return found
        with deadline.holding(self._opening[name]):
            found = self._open.get(name)
            if found is None:
                found = self._open[name] = open_it()
                self._resources.callback(found.close)
            return found

    def require(self, place: str) -> None:
        """Check that there is a place of this name.

        Raises:
            NotFound: there is none.
        """
        if place != HOME and place not in self._opened:
            known = ", ".join(self.names) or "none"
            raise NotFound(
                f"there is no database {place}; MNEME_DATABASES names {known}", field="database"
            )

    def clear(
        self,
        tenant_id: str,
        place: str,
        move: str,
        require: Callable[[], object] = lambda: None,
    ) -> None:
        """Remove what lies of a tenant in a place, and let its name be given to others there;
        elsewhere only if it came by this move, or is about to: another server may have its name.
        `require` is that of `TenantStores.remove`."""
        if place == HOME:
            self._home.remove(tenant_id, require)
            return
        there = self.elsewhere(place)
        standing = there.catalog.standing(tenant_id)
        if standing is not None and standing.move == move:
            there.stores.remove(tenant_id, require)
            there.catalog.set_standing(tenant_id, None)

    @contextmanager
    def moving(self, tenant_id: str) -> Iterator[None]:
        """Have nobody remove the tenant in the block: else what is copied then would be left."""
        with self._lock:
            self._moving.add(tenant_id)
        try:
            yield
        finally:
            with self._lock:
                self._moving.discard(tenant_id)

    def open(self, tenant_id: str) -> TenantStore[Unit]:
        """See `TenantStores`."""
        return self.at(self.place_of(tenant_id)).open(tenant_id)

    def holds(self, tenant_id: str) -> bool:
        """See `TenantStores`."""
        return self.at(self.place_of(tenant_id)).holds(tenant_id)

    def shared_bytes(self, tenant_id: str) -> int:
        """See `TenantStores`."""
        return self.at(self.place_of(tenant_id)).shared_bytes(tenant_id)

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        """See `TenantStores`: wherever rows of it lie, and its placement.

        Raises:
            Unavailable: it is being moved, or another database cannot be reached now.
        """
        with self._lock:
            is_moving = tenant_id in self._moving
        if is_moving:
            raise Unavailable(
                f"the tenant {tenant_id} is being moved, which ends as it is deleted; try again",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=_RETRY_S,
            )
        placement = self.placements.of(tenant_id)
        for place in (placement.other, placement.place):
            if place is not None:
                self.clear(tenant_id, place, placement.move, require)
        self.placements.put(tenant_id, Placement())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the other databases."""
        self._resources.close()
