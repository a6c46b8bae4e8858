"""Verifying that what was recorded is what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mneme_server.common.errors import DataLoss
from mneme_server.corpus.tenant import OpenTenants
from mneme_server.events.chain import BrokenLink, ChainWalk
from mneme_server.events.ports import EventsUnit
from mneme_server.events.sessions import session_not_found

_READ_AHEAD = 500
MAX_BROKEN_REPORTED = 100


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk over hash chains found. `broken` holds the first ones, `broken_count` all."""

    sessions_checked: int
    events_checked: int
    broken: Sequence[BrokenLink]
    broken_count: int
    head_hash: str


@dataclass(frozen=True, slots=True)
class VerifyEvents:
    """Walks hash chains."""

    tenants: OpenTenants[EventsUnit]

    def __call__(
        self, tenant_id: str, session_id: str = "", is_open: Callable[[], bool] = lambda: True
    ) -> Verification:
        """Walk the session's chain, or every chain of the tenant, for as long as `is_open()`.

        Raises:
            NotFound: there is no such session.
        """
        checked = events = broken_count = 0
        broken: list[BrokenLink] = []
        head = ""
        with self.tenants.open(tenant_id) as memory:
            with memory.read() as unit:
                keys = [session_id] if session_id else list(unit.sessions.ids())
            for key in keys:
                if not is_open():
                    break
                # A transaction for each: one over all would keep the log of writes from being
                # emptied for as long as the walk takes.
                with memory.read() as unit:
                    walk = _walk(unit, key)
                    fault = _finish(unit, walk)
                checked += 1
                events += walk.length
                head = walk.head_hash if session_id else ""
                if fault is not None:
                    broken_count += 1
                    if len(broken) < MAX_BROKEN_REPORTED:
                        broken.append(fault)
        return Verification(checked, events, broken, broken_count, head)


def _walk(unit: EventsUnit, session_id: str) -> ChainWalk:
    walk = ChainWalk(session_id)
    after, limit = 0, _READ_AHEAD
    while True:
        try:
            page = unit.events.chain(session_id, after, limit)
        except DataLoss as loss:
            if limit == 1:
                walk.damaged(loss.metadata.get("id", ""), loss.message)
                return walk
            limit = 1  # What comes before the damaged one is walked event by event.
            continue
        walk.follow(page)
        if not page or walk.broken is not None:
            return walk
        after = page[-1].sequence


def _finish(unit: EventsUnit, walk: ChainWalk) -> BrokenLink | None:
    """Compare the walk with the session's own row.

    Raises:
        NotFound: there is no such session.
    """
    try:
        session = unit.sessions.get(walk.session_id)
    except DataLoss as loss:
        if walk.broken is None:
            walk.damaged("", loss.message)
        return walk.broken
    if session is None:
        raise session_not_found(walk.session_id)
    return walk.finish(session.event_count, session.head_hash)
