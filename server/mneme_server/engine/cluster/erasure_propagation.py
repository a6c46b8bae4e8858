"""The propagation of erasures among servers: each leaves nothing of what was erased by way of
another.

It goes in two steps. First the calls end that may have read it: what they still write is erased,
too. Once it is erased from the store, each server drops what it has in memory, and builds its index
again without it, beside the one that answers; where the tenant is closed, the index goes from the
disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common import deadline
from mneme_server.common.errors import MnemeError, NotFound, Reason, Unavailable, is_failure
from mneme_server.engine.corpus.nodes import WHOLE, Erasure, Erasures
from mneme_server.engine.tenants.local_disk import remove_copies, remove_folder
from mneme_server.engine.tenants.registry import LONGEST_CALL_S, TenantRegistry

_LOOK_S = 0.1
_DELETION_S = 30.0
_RETRY_S = 1.0
_STOP_S = 5.0

Drop = Callable[[str, str], object]
"""Drops what this server holds of a tenant in memory and in files, besides its index; it is told
the tenant and the erasure. Nobody can open the tenant meanwhile, if it is closed."""

_log = structlog.get_logger(__name__)


class ErasureWorker:
    """Does here what this server's place owes of erasures by way of others. Thread-safe.

    Args:
        erasures: what is owed, and by whom.
        tenants: those that are open.
        root: the folder with a folder for each tenant.
        require: raises NotFound where there is no such tenant.
    """

    def __init__(
        self,
        erasures: Erasures,
        tenants: TenantRegistry[Any],
        root: Path,
        require: Callable[[str], object],
    ) -> None:
        self._erasures = erasures
        self._tenants = tenants
        self._root = root
        self._require = require
        self._drops: list[Drop] = []
        self._changed = threading.Condition()  # Guards what follows.
        self._due: list[Erasure] = []
        self._at_work = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="erasing", daemon=True)

    def also_drop(self, drop: Drop) -> None:
        """Have this called for each erasure. Before it is started."""
        self._drops.append(drop)

    def start(self, due: Sequence[Erasure]) -> None:
        """Do what is owed, which was while this server was off, and then what comes. What cannot be
        done now, e.g. since a file cannot be removed, is owed still, and tried again.

        Raises:
            Unavailable: the store cannot be reached now.
        """
        for owed in due:
            try:
                self._do(owed)
            except OSError as error:
                _not_yet(owed, error)
        self._thread.start()

    def note(self, due: Sequence[Erasure]) -> None:
        """Take note of all that is owed now, unless some of it is being done."""
        with self._changed:
            if not self._at_work:
                self._due = list(due)
                self._changed.notify()

    def begin_stop(self) -> None:
        """Do no more; what is left is owed still."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while (owed := self._next()) is not None:
            try:
                self._do(owed)
            except BaseException as error:  # It is owed still, and comes again.
                if not is_failure(error):
                    raise
                _not_yet(owed, error)

    def _next(self) -> Erasure | None:
        """Wait for something that is owed; None when stopping."""
        with self._changed:
            self._at_work = bool(self._due)
            self._changed.wait_for(lambda: self._due or self._stopping)
            if self._stopping:
                return None
            self._at_work = True
            owed, *self._due = self._due
            return owed

    def _do(self, owed: Erasure) -> None:
        if not owed.settled:
            self._tenants.wait_for_leases(owed.tenant_id, LONGEST_CALL_S)
            self._erasures.settle(owed)
        if owed.number is not None:
            self._leave_nothing(owed.tenant_id, owed.id, owed.number)
            self._erasures.done(owed)

    def _leave_nothing(self, tenant_id: str, erasure_id: str, number: int) -> None:
        try:
            self._require(tenant_id)
        except NotFound:
            with self._tenants.removing(tenant_id):
                remove_folder(self._root / tenant_id)
            return
        if erasure_id == WHOLE:  # Another has its name by now.
            with self._tenants.removing(tenant_id, replaced=True):
                remove_folder(self._root / tenant_id)
            return
        with self._tenants.if_closed(tenant_id) as closed:
            if closed:
                remove_copies(self._root / tenant_id)
                self._drop(tenant_id, erasure_id)
        if not closed:
            with self._tenants.open(tenant_id) as tenant:
                tenant.clean(number)
                self._drop(tenant_id, erasure_id)

    def _drop(self, tenant_id: str, erasure_id: str) -> None:
        for drop in self._drops:
            drop(tenant_id, erasure_id)


def _not_yet(owed: Erasure, error: BaseException) -> None:
    _log.warning("what was erased may still be here, will be tried again",
                 tenant=owed.tenant_id, error=str(error),
                 exc_info=not isinstance(error, MnemeError | OSError))  # fmt: skip


class ErasurePropagation:
    """Has the other servers leave nothing of what is erased by way of this one. Thread-safe.

    Args:
        erasures: what is owed, and by whom.
    """

    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Have them know that something is going to be erased."""
        self._erasures.ask(tenant_id, erasure_id)

    def settle(self, tenant_id: str, erasure_id: str, waiting: Callable[[], object]) -> None:
        """Wait until the calls have ended, of those that live, that may have read it before; call
        `waiting` now and then, which may raise."""
        while self._erasures.awaited(tenant_id, erasure_id).unsettled:
            waiting()
            threading.Event().wait(_LOOK_S)
        self._erasures.go_on(tenant_id, erasure_id)

    def erase(
        self, tenant_id: str, erasure_id: str, number: int, waiting: Callable[[], object]
    ) -> Sequence[str]:
        """Wait until those that live have left nothing of what is erased from the store as of a row
        of the feed; return the names of those that are away, and may have it on their disks."""
        self._erasures.erased(tenant_id, erasure_id, number)
        while (awaited := self._erasures.awaited(tenant_id, erasure_id)).living:
            waiting()
            threading.Event().wait(_LOOK_S)
        return awaited.absent

    def absent(self, tenant_id: str, erasure_id: str) -> Sequence[str]:
        """Return the names of those that have yet to leave nothing of it."""
        awaited = self._erasures.awaited(tenant_id, erasure_id)
        return sorted([*awaited.living, *awaited.absent])

    def removed(self, tenant_id: str) -> Sequence[str]:
        """Have them leave nothing of a tenant whose rows are gone, and wait for those that live;
        return the names of those that are away.

        Raises:
            Unavailable: one of them takes long.
        """
        self._erasures.ask(tenant_id, WHOLE)
        for _ in range(round(_DELETION_S / _LOOK_S)):
            awaited = self._erasures.awaited(tenant_id, WHOLE)
            if not awaited.living:
                return awaited.absent
            deadline.check()
            threading.Event().wait(_LOOK_S)
        raise Unavailable(
            f"the tenant {tenant_id} is gone, but {', '.join(awaited.living)} still removes its"
            " index; try again",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )

    def have_removed(self, tenant_id: str) -> None:
        """Have them leave nothing of a tenant whose rows are gone, soon."""
        self._erasures.ask(tenant_id, WHOLE)
