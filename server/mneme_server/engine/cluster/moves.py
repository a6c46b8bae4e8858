"""Moves of tenants between the places that keep them: offline, by a command while no server runs,
and live, while the tenant is served.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import structlog

from mneme_server.common.errors import (
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    MnemeError,
    NotFound,
    Reason,
    Unavailable,
)
from mneme_server.common.identity import new_id
from mneme_server.common.progress import Step
from mneme_server.engine.cluster.placements import (
    HOME,
    CatalogRows,
    MovingCatalog,
    PlacedStores,
    Placement,
    Standing,
)
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant_store import TenantStore, TenantStores
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.engine.store.tenant_copy import (
    CaughtUp,
    Content,
    Told,
    catch_up,
    contents,
    copy,
    copy_rows,
    number_after,
    numbers,
    rows_of,
    sizes,
)
from mneme_server.engine.store.tenant_states import ACTIVE, ARRIVING, GUEST, MOVED
from mneme_server.engine.store.unit import EmbeddingModel, Unit
from mneme_server.engine.tenants.registry import TenantRegistry

_FEW = 200
"""So few rows are brought over while calls are refused, unless more keep changing."""
_ROUNDS = 20
_CALLS_END_WITHIN_S = 10.0
_AGAIN_S = 1.0
_FORGOTTEN = "forgettings"

_QUESTIONS = 100
_FIRST = 10
"""So many answers of each question are compared."""
_ALIKE = 0.98
"""The share of them that has to be the same where vectors are searched approximately."""
_WORDS = 12

Check = Callable[[str, TenantStore[Unit], TenantStore[Unit]], str]
"""Compares a tenant in its old place and its new; says what it found, or raises DataLoss."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where tenants are kept: how it is called, its catalog and its stores."""

    name: str
    catalog: MovingCatalog
    stores: TenantStores[Unit]


@dataclass(frozen=True, slots=True)
class OfflineMoveResult:
    """What became of a tenant that was moved offline."""

    tenant_id: str
    tables: Mapping[str, Content]
    checks: Mapping[str, str]
    """What each check found, by its name."""
    copied: bool = True
    """False where it had been copied before, and only the catalogs were left to say so."""


@dataclass(frozen=True, slots=True)
class OfflineMove:
    """Moves tenants to another place: from a data folder to PostgreSQL, back, or to another one.

    Nobody serves a tenant meanwhile. It is copied and compared; then its old place's catalog says
    where it lives, and its new place's that it lives there. Until the first of these it is whole
    where it was, whatever happens; from then on it is whole where it goes, and one who was stopped
    in between has only that to say when he is asked again.

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
        halfway = self.unfinished(asked or catalog.departed())
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

    def run(self, tenant_id: str) -> OfflineMoveResult:
        """Move a tenant that was `chosen`.

        Raises:
            DataLoss: what arrived is not what left; the tenant stays where it is.
            FailedPrecondition: the new place cannot keep it; it stays where it is.
            AlreadyExists: see `MovingCatalog.settle`; it stays where it is.
        """
        if self._halfway(tenant_id):
            moved = OfflineMoveResult(tenant_id, {}, {}, copied=False)
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

    def _copied(self, tenant_id: str) -> OfflineMoveResult:
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
        self.source.catalog.set_standing(tenant_id, left)
        return moved

    def _handed_over(self, tenant_id: str, move: str) -> OfflineMoveResult:
        """Have the old place say that a tenant moved whose rows are in the new one."""
        there = self.target.catalog.standing(tenant_id)
        if there is None or there.state not in (ARRIVING, GUEST) or there.move != move:
            raise DataLoss(
                f"the catalog of {self.target.name} does not know the rows of {tenant_id} that are"
                " there"
            )
        self.target.catalog.set_standing(tenant_id, Standing(ARRIVING, move))
        rows = self.source.catalog.rows(tenant_id)
        self.carry(tenant_id, rows)
        self.target.catalog.settle(tenant_id, rows, trial=True)
        self._say(tenant_id, "leave")
        self.source.catalog.set_standing(tenant_id, Standing(MOVED, move, self.target.name))
        return OfflineMoveResult(tenant_id, {}, {}, copied=False)

    def _compared(self, tenant_id: str) -> OfflineMoveResult:
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
        return OfflineMoveResult(tenant_id, copied, found)

    def _give_up(self, tenant_id: str, before: Standing | None) -> None:
        """Leave the new place as it was, without what was copied."""
        before = None if before is not None and before.state == ARRIVING else before
        with suppress(MnemeError):  # Else the next attempt does that first.
            self.target.stores.remove(tenant_id)
            if before is None:
                self.target.catalog.clear(tenant_id)
            self.target.catalog.set_standing(tenant_id, before)

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
        raise _not_the_same(tenant_id, differing)


@dataclass(frozen=True, slots=True)
class LiveMoveResult:
    """What became of a live move: the rows that the tenant has, those of them that were brought
    over because they had changed, and for how long calls were refused, in seconds."""

    rows: int
    caught_up: int
    refused_s: float
    checks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LiveMove:
    """Moves tenants between the databases of this server while they are served and written.

    A tenant's rows are copied as they were at one moment, while triggers note which of them change;
    then what changed is brought to the copy, again and again, until little is left. A copy that is
    complete up to a moment is compared with what there was at that moment. Then the tenant is
    closed, for as long as it takes to bring the last changes over; the catalog says that it lives
    there; and the next call opens it there. Until the catalog says so the tenant is whole where it
    was, whatever happens.

    Args:
        stores: the databases.
        tenants: the open tenants.
        require: raises NotFound where there is no such tenant.
        checks: what has to hold besides equal rows, by name.
        moved: told of a tenant that lives elsewhere now.
    """

    stores: PlacedStores
    tenants: TenantRegistry[Unit]
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

    def run(
        self, tenant_id: str, to: str, step: Step, commit: Callable[[], object]
    ) -> LiveMoveResult:
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

    def _move(
        self, tenant_id: str, to: str, step: Step, commit: Callable[[], object]
    ) -> LiveMoveResult:
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
    ) -> LiveMoveResult:
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
        return LiveMoveResult(rows, before.rows + last.rows, refused_s, found)

    def _source(self, tenant_id: str) -> SqliteTenantStore:
        return cast(SqliteTenantStore, self.stores.at(HOME).open(tenant_id))

    def _copied(
        self, tenant_id: str, source: SqliteTenantStore, target: TenantStore[Unit], step: Step
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


def same_answers(tenant_id: str, one: TenantStore[Unit], other: TenantStore[Unit]) -> str:
    """Check that a tenant's questions are answered alike in two places that keep it: ask both for
    the same words and the same vectors, some of the tenant's own; say how alike the first answers
    are. Each is asked by an index that is built from its rows, and thrown away.

    Raises:
        DataLoss: they are not alike enough.
    """
    with one.read() as unit:
        model = unit.embedding_model()
    if model is None:
        return "nothing was ever stored"
    words, vectors = _questions(one, model)
    here, exact = _answers(one, model, words, vectors)
    there, _ = _answers(other, model, words, vectors)
    pairs = list(zip(here, there, strict=True))
    same = sum(len(set(left) & set(right)) for left, right in pairs)
    asked = sum(len(left) for left in here)
    found = f"{len(pairs)} questions, {same} of {asked} first answers the same"
    if asked and (same < asked if exact else same < _ALIKE * asked):
        raise DataLoss(f"{tenant_id} is answered otherwise in its new place: {found}")
    if exact and here != there:
        raise DataLoss(f"{tenant_id} is answered in another order in its new place: {found}")
    return found


def _questions(store: TenantStore[Unit], model: EmbeddingModel) -> tuple[Sequence[str], Matrix]:
    """Return the beginnings of some texts, and the vectors of some."""
    source = store.source
    with store.read() as unit:
        last = unit.rows.highest("documents")
    starts = range(0, last, max(1, -(-last // _QUESTIONS)))
    near = (document.doc_id for start in starts for document in source.documents_after(start, 1))
    chosen = list(dict.fromkeys(near))
    texts = [" ".join(one.text.split()[:_WORDS]) for one in source.documents_of(chosen)]
    found = source.vectors_of(chosen)
    vectors = found.vectors[np.unique(found.doc_ids, return_index=True)[1]]  # Of whole texts.
    return texts, vectors if len(vectors) else np.empty((0, model.dimensions), np.float32)


def _answers(
    store: TenantStore[Unit], model: EmbeddingModel, words: Sequence[str], vectors: Matrix
) -> tuple[list[list[int]], bool]:
    """Return which documents answer each question, and whether vectors are searched exactly."""
    from mneme_server.engine.index.tenant_index import TenantIndex  # See `engine.tenants.opener`.

    with tempfile.TemporaryDirectory(prefix="mneme-moving-") as folder:
        index = TenantIndex(Path(folder), store.source, *model)
        try:
            everything = index.select(DocumentFilter())
            found = [index.search_lexical(asked, _FIRST, everything) for asked in words]
            found += [index.search_dense(asked, _FIRST, everything) for asked in vectors]
            names = index.columns.doc_id
            return [[int(names[row]) for row in hits.rows] for hits in found], index.mode == "exact"
        finally:
            index.abandon()
            index.discard()
