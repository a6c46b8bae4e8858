"""Moving a tenant to another place: from a data folder to PostgreSQL, back, or to another one.

Nobody serves the tenant meanwhile. It is copied and compared; then its old place's catalog says
where it lives, and its new place's that it lives there. Until the first of these it is whole where
it was, whatever happens; from then on it is whole where it goes, and one who was stopped in
between has only that to say when he is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from mneme_server.common.errors import AlreadyExists, DataLoss, MnemeError, NotFound
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant_store import TenantStore, TenantStores
from mneme_server.engine.store.tenant_copy import Content, Told, contents, copy, sizes
from mneme_server.engine.store.tenant_states import ACTIVE, ARRIVING, GUEST, MOVED
from mneme_server.engine.store.unit import Unit

CatalogRows = Mapping[str, Sequence[Mapping[str, Any]]]
"""What a catalog holds of a tenant: rows by table."""


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

    def stand(self, tenant_id: str, standing: Standing | None) -> None:
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
class Place:
    """Where tenants are kept: how it is called, its catalog and its stores."""

    name: str
    catalog: MovingCatalog
    stores: TenantStores[Unit]


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a tenant."""

    tenant_id: str
    tables: Mapping[str, Content]
    checks: Mapping[str, str]
    """What each check found, by its name."""
    copied: bool = True
    """False where it had been copied before, and only the catalogs were left to say so."""


Check = Callable[[str, TenantStore[Unit], TenantStore[Unit]], str]
"""Compares a tenant in its old place and its new; says what it found, or raises DataLoss."""

STEPS = ("arrive", "copy", "compare", "check", "leave", "settle", "clear", "remove")
"""What is done with a tenant, in this order."""


@dataclass(frozen=True, slots=True)
class MoveTenants:
    """Moves tenants.

    Args:
        source: where they live.
        target: where they are to live.
        checks: what has to hold besides equal rows, by name.
        carry: brings what of a tenant is in neither store nor catalog to the new place, given its
            rows in the catalog.
        left: told of a tenant that lives in the new place, to remove that from the old one.
        came_by: tells by which move the rows of a tenant have come to the new place already, while
            it was served from the old one; empty if by none.
        told: told what is being done: the tenant, the step, how far, of how much.
        remove: whether what is left in the old place is removed.
    """

    source: Place
    target: Place
    checks: Mapping[str, Check] = field(default_factory=dict)
    carry: Callable[[str, CatalogRows], object] = lambda _tenant, _rows: None
    left: Callable[[str], object] = lambda _tenant: None
    came_by: Callable[[str], str] = lambda _tenant: ""
    told: Callable[[str, str, int, int], object] = lambda _tenant, _step, _done, _all: None
    remove: bool = False

    def chosen(self, asked: Sequence[str]) -> Sequence[str]:
        """Return the tenants to move, and see that each can be: those asked for, or all.

        Raises:
            NotFound: one does not live here.
            AlreadyExists: one lives there.
        """
        catalog = self.source.catalog
        halfway = [one for one in (asked or catalog.departed()) if self._halfway(one)]
        tenants = list(dict.fromkeys(asked)) or [*halfway, *catalog.living()]
        for tenant_id in tenants:
            if tenant_id in halfway:
                continue
            standing = catalog.standing(tenant_id)
            if standing is None or standing.state != ACTIVE:
                elsewhere = standing is not None and standing.state == MOVED
                where = f": it was moved to {standing.place}" if standing and elsewhere else ""
                raise NotFound(
                    f"there is no tenant {tenant_id} in {self.source.name}{where}",
                    field="tenant_id",
                )
            if not self.came_by(tenant_id):
                self._require_room(tenant_id)
        return tenants

    def unfinished(self, tenant_ids: Sequence[str]) -> Sequence[str]:
        """Return those that moved here and were not let live there yet."""
        return [tenant_id for tenant_id in tenant_ids if self._halfway(tenant_id)]

    def sizes(self, tenant_id: str) -> Mapping[str, int]:
        """Return how many rows there are to move, by table."""
        store = self.source.stores.open(tenant_id)
        try:
            return sizes(store)
        finally:
            store.close()

    def __call__(self, tenant_id: str) -> Moved:
        """Move a tenant that was `chosen`.

        Raises:
            DataLoss: what arrived is not what left; the tenant stays where it is.
            FailedPrecondition: the new place cannot keep it; it stays where it is.
            AlreadyExists: see `MovingCatalog.settle`; it stays where it is.
        """
        if self._halfway(tenant_id):
            moved = Moved(tenant_id, {}, {}, copied=False)
        elif move := self.came_by(tenant_id):
            moved = self._handed_over(tenant_id, move)
        else:
            moved = self._copied(tenant_id)
        rows = self.source.catalog.rows(tenant_id)
        self._say(tenant_id, "settle")
        self.target.catalog.settle(tenant_id, rows)
        self._say(tenant_id, "clear")
        self.source.catalog.clear(tenant_id)
        self.left(tenant_id)
        if self.remove and moved.copied:
            self._say(tenant_id, "remove")
            self.source.stores.remove(tenant_id)
        return moved

    def _copied(self, tenant_id: str) -> Moved:
        """Copy a tenant, compare, and have its old place say that it moved."""
        before, move = self.target.catalog.standing(tenant_id), new_id()
        self._say(tenant_id, "arrive")
        self.target.catalog.arrive(tenant_id, move)
        try:
            moved = self._compared(tenant_id)
            rows = self.source.catalog.rows(tenant_id)
            self.carry(tenant_id, rows)
            self.target.catalog.settle(tenant_id, rows, trial=True)
        except BaseException:
            self._give_up(tenant_id, before)
            raise
        self._say(tenant_id, "leave")
        left = Standing(MOVED, move, self.target.name)
        self.source.catalog.stand(tenant_id, left)
        return moved

    def _handed_over(self, tenant_id: str, move: str) -> Moved:
        """Have the old place say that a tenant moved whose rows are in the new one."""
        there = self.target.catalog.standing(tenant_id)
        if there is None or there.state not in (ARRIVING, GUEST) or there.move != move:
            raise DataLoss(
                f"the catalog of {self.target.name} does not know the rows of {tenant_id} that are"
                " there"
            )
        self.target.catalog.stand(tenant_id, Standing(ARRIVING, move))
        rows = self.source.catalog.rows(tenant_id)
        self.carry(tenant_id, rows)
        self.target.catalog.settle(tenant_id, rows, trial=True)
        self._say(tenant_id, "leave")
        self.source.catalog.stand(tenant_id, Standing(MOVED, move, self.target.name))
        return Moved(tenant_id, {}, {}, copied=False)

    def _compared(self, tenant_id: str) -> Moved:
        self.target.stores.remove(tenant_id)  # What was left of another time.
        source = self.source.stores.open(tenant_id)
        try:
            target = self.target.stores.open(tenant_id)
            try:
                copied = copy(source, target, self._telling(tenant_id, "copy"))
                arrived = contents(target, self._telling(tenant_id, "compare"))
                _require_equal(tenant_id, copied, arrived)
                found: dict[str, str] = {}
                for name, check in self.checks.items():
                    self._say(tenant_id, f"check: {name}")
                    found[name] = check(tenant_id, source, target)
            finally:
                target.close()
        finally:
            source.close()
        return Moved(tenant_id, copied, found)

    def _give_up(self, tenant_id: str, before: Standing | None) -> None:
        """Leave the new place as it was, without what was copied."""
        before = None if before is not None and before.state == ARRIVING else before
        with suppress(MnemeError):  # Else the next attempt does that first.
            self.target.stores.remove(tenant_id)
            if before is None:
                self.target.catalog.clear(tenant_id)
            self.target.catalog.stand(tenant_id, before)

    def _halfway(self, tenant_id: str) -> bool:
        """Tell whether the old place says that it moved, and the new one not yet."""
        here = self.source.catalog.standing(tenant_id)
        there = self.target.catalog.standing(tenant_id)
        return (
            here is not None
            and there is not None
            and (here.state, there.state) == (MOVED, ARRIVING)
            and here.move == there.move
        )

    def _require_room(self, tenant_id: str) -> None:
        there = self.target.catalog.standing(tenant_id)
        if there is None or there.state in (ARRIVING, MOVED):
            return
        if there.state == ACTIVE and not self.target.stores.holds(tenant_id):
            return  # E.g. the tenant that each server has, and nobody used.
        raise AlreadyExists(
            f"there is a tenant {tenant_id} in {self.target.name} already; nothing was moved",
            field="tenant_id",
        )

    def _say(self, tenant_id: str, step: str) -> None:
        self.told(tenant_id, step, 0, 0)

    def _telling(self, tenant_id: str, step: str) -> Told:
        return lambda table, done, rows: self.told(tenant_id, f"{step} {table}", done, rows)


def _require_equal(
    tenant_id: str, copied: Mapping[str, Content], arrived: Mapping[str, Content]
) -> None:
    differing = [table for table, content in copied.items() if arrived.get(table) != content]
    if differing:
        raise DataLoss(
            f"what arrived of {tenant_id} is not what left: {', '.join(differing)}; the tenant"
            " stays where it is"
        )
