"""Moving a tenant to another database while it is served and written.

Its rows are copied as they were at one moment, while triggers note which of them change; then what
changed is brought to the copy, again and again, until little is left. A copy that is complete up to
a moment is compared with what there was at that moment. Then the tenant is closed, for as long as
it takes to bring the last changes over; the catalog says that it lives there; and the next call
opens it there. Until the catalog says so the tenant is whole where it was, whatever happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, cast

import structlog

from mneme_server.common.errors import (
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    MnemeError,
    Reason,
    Unavailable,
)
from mneme_server.common.identity import new_id
from mneme_server.common.progress import Step
from mneme_server.engine.cluster.moving import Check
from mneme_server.engine.cluster.placements import HOME, PlacedStores, Placement
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.tenant_copy import (
    CaughtUp,
    catch_up,
    copy_rows,
    number_after,
    numbers,
    rows_of,
    sizes,
)
from mneme_server.engine.store.tenant_states import MOVED
from mneme_server.engine.store.unit import Unit

_FEW = 200
"""So few rows are brought over while calls are refused, unless more keep changing."""
_ROUNDS = 20
_CALLS_END_WITHIN_S = 10.0
_AGAIN_S = 1.0
_FORGOTTEN = "forgettings"

_log = structlog.get_logger(__name__)


class Tenants(Protocol):
    """The open tenants."""

    def removing(
        self, tenant_id: str, timeout_s: float = ..., *, replaced: bool = False
    ) -> AbstractContextManager[None]:
        """Close a tenant; inside the block nobody can open it."""
        ...


class Noting(TenantStore[Unit], Protocol):
    """A store that can be copied while it is written."""

    def note_changes(self) -> None:
        """Note from now on which rows change."""
        ...

    def notes_changes(self) -> bool:
        """Tell whether that is noted, and was since `note_changes`."""
        ...

    def end_notes(self) -> None:
        """Note nothing any more."""
        ...

    def frozen(self) -> AbstractContextManager[TenantStore[Unit]]:
        """Lend the store as it is when the block first reads."""
        ...


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of a move: the rows that the tenant has, those of them that were brought over
    because they had changed, and for how long calls were refused, in seconds."""

    rows: int
    caught_up: int
    refused_s: float
    checks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MoveServed:
    """Moves tenants between the databases of this server while they are served.

    Args:
        stores: the databases.
        tenants: the open tenants.
        require: raises NotFound where there is no such tenant.
        checks: what has to hold besides equal rows, by name.
        moved: told of a tenant that lives elsewhere now.
    """

    stores: PlacedStores
    tenants: Tenants
    require: Callable[[str], object]
    checks: Mapping[str, Check]
    moved: Callable[[str], object] = lambda _tenant: None

    def require_room(self, tenant_id: str, to: str) -> None:
        """Check that a tenant can be moved.

        Raises:
            NotFound: there is no such database.
            FailedPrecondition: it is in a PostgreSQL.
            AlreadyExists: another tenant of this name is there.
            Unavailable: it cannot be reached now.
        """
        self.stores.require(to)
        if to == self.stores.place_of(tenant_id):
            return
        if self.stores.place_of(tenant_id) != HOME:
            raise FailedPrecondition(
                f"the tenant {tenant_id} is in a PostgreSQL, from which none is moved while it is"
                " served: stop the server, and use mneme-server migrate",
                reason=Reason.DATABASE_ERROR,
            )
        there = self.stores.elsewhere(to).catalog.standing(tenant_id)
        if there is not None and there.state != MOVED:
            raise AlreadyExists(f"there is a tenant {tenant_id} in {to} already", field="tenant_id")

    def __call__(
        self, tenant_id: str, to: str, step: Step, commit: Callable[[], object]
    ) -> Arrived:
        """Move a tenant that is elsewhere; `commit` is called before the catalog says so, and may
        raise to stop it.

        Raises:
            NotFound: there is no such tenant, or it was deleted meanwhile.
            DataLoss: what arrived is not what left.
            Unavailable: its calls did not end in time, or it was replaced, or something of it
                forgotten meanwhile.
            As `require_room`. After any of these the tenant is whole where it was.
        """
        with self.stores.moving(tenant_id):
            self.require(tenant_id)  # Who deletes it from now on waits.
            there = _WhileThere(step, lambda: self.require(tenant_id))
            return self._move(tenant_id, to, there, commit)

    def _move(self, tenant_id: str, to: str, step: Step, commit: Callable[[], object]) -> Arrived:
        self.settle(tenant_id)
        self.require_room(tenant_id, to)
        placement = Placement(self.stores.place_of(tenant_id), to, new_id())
        self.stores.placements.put(tenant_id, placement)
        try:
            arrived = self._moved(tenant_id, placement, to, step, commit)
        except BaseException:
            with suppress(MnemeError):  # Else the next start does it, or the next move.
                self.settle(tenant_id)
            raise
        self.moved(tenant_id)
        with suppress(MnemeError):
            self.settle(tenant_id)
        return arrived

    def settle(self, tenant_id: str) -> None:
        """Remove what lies of a tenant where it is not: what a move left, or one that was cut short
        had copied."""
        placement = self.stores.placements.of(tenant_id)
        if placement.other is None:
            return
        if placement.place == HOME and self.stores.holds(tenant_id):
            store = self._source(tenant_id)
            try:
                store.end_notes()  # First: what follows may not be reached for long.
            finally:
                store.close()
        self.stores.clear(tenant_id, placement.other, placement.move)
        kept = Placement(placement.place, None, placement.move)
        self.stores.placements.put(tenant_id, kept if kept.place != HOME else Placement())

    def settle_all(self) -> None:
        """Settle what earlier runs of the server left; what cannot be reached is left again."""
        for tenant_id in self.stores.placements.unsettled():
            try:
                self.settle(tenant_id)
            except MnemeError as error:
                _log.warning("what a move left cannot be removed now", tenant=tenant_id,
                             error=error.message)  # fmt: skip

    def _moved(
        self,
        tenant_id: str,
        placement: Placement,
        to: str,
        step: Step,
        commit: Callable[[], object],
    ) -> Arrived:
        there = self.stores.elsewhere(to)
        there.catalog.take_in(tenant_id, placement.move)
        there.stores.remove(tenant_id)  # What was left there when it once moved away.
        source = self._source(tenant_id)
        try:
            target = there.stores.open(tenant_id)
            try:
                before, found = self._copied(tenant_id, source, target, step)
            finally:
                target.close()
        finally:
            source.close()
        step.report("switching")
        began = time.monotonic()
        with self.tenants.removing(tenant_id, _CALLS_END_WITHIN_S, replaced=True):
            self.require(tenant_id)  # It may have been deleted since this began.
            last, rows = self._ended(tenant_id, to, before)
            commit()
            self.stores.placements.put(tenant_id, Placement(to, HOME, placement.move))
        refused_s = time.monotonic() - began
        return Arrived(rows, before.rows + last.rows, refused_s, found)

    def _source(self, tenant_id: str) -> Noting:
        return cast(Noting, self.stores.at(HOME).open(tenant_id))

    def _copied(
        self, tenant_id: str, source: Noting, target: TenantStore[Unit], step: Step
    ) -> tuple[CaughtUp, Mapping[str, str]]:
        """Copy all, catch up, and compare what there was at one moment; return what is copied, and
        what the checks found."""
        source.note_changes()
        total = sum(sizes(source).values())
        copied = [0]

        def told(_table: str, done: int, rows: int) -> None:
            step.report("copying", min(total, copied[0] + done), total)
            copied[0] += done if done == rows else 0

        with source.read() as unit:
            copy_rows(unit, target, told)
        seen = CaughtUp(0, 0, frozenset())
        for _ in range(_ROUNDS):
            step.report("catching up")
            with source.read() as unit:
                seen, some = _more(unit, target, seen)
            if some <= _FEW:
                break
        step.report("comparing")
        found: dict[str, str] = {}
        with source.frozen() as then:
            with then.read() as unit:
                seen, _ = _more(unit, target, seen)
                left = rows_of(unit, lambda *_: step.report("comparing"))
            with target.read() as unit:
                arrived = rows_of(unit, lambda *_: step.report("comparing"))
            differing = [table for table, content in left.items() if arrived[table] != content]
            if differing:
                raise _not_the_same(tenant_id, differing)
            for name, check in self.checks.items():
                step.report(f"comparing {name}")
                found[name] = check(tenant_id, then, target)
        step.report("catching up")
        with source.read() as unit:
            seen, _ = _more(unit, target, seen)
        return seen, found

    def _ended(self, tenant_id: str, to: str, before: CaughtUp) -> tuple[CaughtUp, int]:
        """Bring the last changes over, while nobody writes; return them, and how many rows there
        are."""
        source = self._source(tenant_id)
        try:
            if not source.notes_changes():
                raise _busy(f"tenant {tenant_id} was replaced while it was copied")
            target = self.stores.at(to).open(tenant_id)
            try:
                with source.read() as unit:
                    last = catch_up(unit, target, before.last)
                if _FORGOTTEN in before.tables | last.tables:
                    raise _busy(f"something of {tenant_id} was forgotten while it was copied")
                number_after(target, numbers(source))
                left, arrived = sizes(source), sizes(target)
                if left != arrived:
                    differing = [name for name in left if left[name] != arrived[name]]
                    raise _not_the_same(tenant_id, differing)
            finally:
                target.close()
        finally:
            source.close()
        return last, sum(left.values())


@dataclass(frozen=True, slots=True)
class _WhileThere:
    """Implements `Step`: ends the work once there is no such tenant any more."""

    step: Step
    require: Callable[[], object]

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        self.require()
        self.step.report(stage, done, total)

    def apart(self, function: str, /, **arguments: Any) -> Any:
        return self.step.apart(function, **arguments)


def _more(unit: Unit, target: TenantStore[Unit], seen: CaughtUp) -> tuple[CaughtUp, int]:
    now = catch_up(unit, target, seen.last)
    return CaughtUp(now.last, seen.rows + now.rows, seen.tables | now.tables), now.rows


def _busy(problem: str) -> Unavailable:
    return Unavailable(
        f"{problem}; move it again", reason=Reason.TRANSACTION_FAILED, retry_after_s=_AGAIN_S
    )


def _not_the_same(tenant_id: str, tables: list[str]) -> DataLoss:
    return DataLoss(
        f"what arrived of {tenant_id} is not what left: {', '.join(tables)}; the tenant stays where"
        " it is"
    )
