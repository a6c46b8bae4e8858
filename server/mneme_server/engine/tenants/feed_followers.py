"""Durable followers of tenants' feeds: each sees every change, once, in the order of commits.

A cache, such as an index, is told of a commit at once and may skip (`engine.corpus.live_index`). A
durable follower keeps what it makes in the tenant's store, together with the row that it came to:
both are written in one transaction, or neither. The feed keeps the rows that it has yet to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import structlog

from mneme_server.common.clock import now_us
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.feed import START, FeedRow, LostPlace, Position
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit

_ROWS = 100
"""Rows that are followed in one transaction."""

_log = structlog.get_logger(__name__)


class DurableFollower(Protocol):
    """What keeps something about every change of a tenant, in its store."""

    @property
    def name(self) -> str:
        """What its row is stored under; it stays the same for good."""
        ...

    def begin(self, unit: CorpusUnit) -> None:
        """Make everything anew from what the store holds, in this transaction: at first, and when
        the rows that it has not seen are gone, or others (a restored backup)."""
        ...

    def follow(self, unit: CorpusUnit, rows: Sequence[FeedRow]) -> None:
        """Write what follows from these rows, the next ones, in this transaction.

        What they name may have changed again since; later rows then name it, too.
        """
        ...


class FollowerWorker(TenantWorker):
    """Runs a durable follower for all tenants, in turn.

    It is woken when a tenant is opened and when something is committed. Where two of them run for
    one tenant, one finds that its row was moved, and writes nothing.

    Args:
        open_tenant: lends a tenant's memory.
        follower: what follows.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        follower: DurableFollower,
    ) -> None:
        super().__init__(follower.name, thread=f"follow-{follower.name}")
        self._open_tenant = open_tenant
        self._follower = follower

    def committed(self, tenant_id: str) -> None:
        """Follow soon."""
        self.wake(tenant_id)

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """Do nothing: what was written went with the tenant, or came with its backup."""

    def step(self, tenant_id: str) -> int | None:
        """Follow some rows of the tenant."""
        name = self._follower.name
        with self._open_tenant(tenant_id) as tenant:
            with tenant.read() as unit:
                place: Position | None = unit.feed.position_of(name)
                rows = _rows_after(unit, place)
                head = unit.feed.head()
            if rows is None:
                _log.info("a follower begins anew", follower=name, tenant=tenant_id)
                with tenant.write() as unit:
                    if unit.feed.move(name, place, unit.feed.head()):
                        self._follower.begin(unit)
                return now_us()
            if not rows:
                return None
            with tenant.write() as unit:
                if unit.feed.move(name, place, rows[-1].position):
                    self._follower.follow(unit, rows)
            return now_us() if rows[-1].position != head else None


def _rows_after(unit: CorpusUnit, place: Position | None) -> Sequence[FeedRow] | None:
    """Return the next rows; None when the follower must begin anew."""
    if place is None and unit.feed.head() != START:
        return None
    try:
        rows: Sequence[FeedRow] = unit.feed.changes_after(place or START, _ROWS)
    except LostPlace:
        return None
    return None if any(row.everything for row in rows) else rows
