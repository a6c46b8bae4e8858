"""Verification that what was recorded is what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit, TenantStore
from mneme_server.features.events.chain import BrokenLink, ChainLink, ChainWalk, digest_of, in_order
from mneme_server.features.events.model import Event
from mneme_server.features.events.sessions import session_not_found
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.forgetting import SqlForgotten
from mneme_server.features.events.store.sessions import SqlSessions

_READ_AHEAD = 500
MAX_BROKEN_REPORTED = 100


class Witness(Protocol):
    """What else knows of what was recorded, and was signed: the tenant's log."""

    def against_all(self, tenant_id: str, tenant: OpenTenant) -> str:
        """Return what speaks against the tenant's log; empty: nothing."""
        ...

    def against_links(
        self, tenant_id: str, unit: CorpusUnit, session: str, links: Sequence[ChainLink]
    ) -> tuple[int, str] | None:
        """Return the first of these links of a session's chain against which something speaks, by
        its place among them, and what; None: nothing does. The session is named by its digest."""
        ...

    def against_session(self, unit: CorpusUnit, session_id: str, recallable: int) -> str:
        """Return what speaks against it that a session has so many events that can be recalled;
        empty: nothing."""
        ...


class RecordLog(Protocol):
    """The tenant's log, as far as the record of events is concerned."""

    def end(self) -> tuple[object, ...]:
        """Return what tells two logs apart: the name, the number of leaves, the root over them."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk over hash chains found. `broken` holds the first ones, `broken_count` all;
    `events_forgotten` counts those of `events_checked` of which only their place is left."""

    sessions_checked: int
    events_checked: int
    broken: Sequence[BrokenLink]
    broken_count: int
    head_hash: str
    events_forgotten: int = 0


@dataclass(slots=True)
class VerifyEvents:
    """Walks hash chains, and compares them with what a witness knows that was signed: whoever can
    write the database can write a chain anew, to its end."""

    tenants: OpenTenants
    witness: Witness | None = None

    def verify(
        self, tenant_id: str, session_id: str = "", is_open: Callable[[], bool] = lambda: True
    ) -> Verification:
        """Walk the session's chain, or every chain of the tenant, for as long as `is_open()`.

        Raises:
            NotFound: there is no such session.
        """
        checked = events = forgotten = broken_count = 0
        broken: list[BrokenLink] = []
        head = ""
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                if session_id:
                    chains = [_SessionChain(session_id, digest_of(session_id))]
                else:
                    chains = [
                        _SessionChain(one, digest_of(one)) for one in unit.get(SqlSessions).ids()
                    ]
                    chains += [_SessionChain("", one) for one in unit.get(SqlForgotten).sessions()]
            doubt = self.witness.against_all(tenant_id, tenant) if self.witness else ""
            if doubt:
                broken_count += 1
                broken.append(BrokenLink("", "", 0, doubt))
            for chain in chains:
                if not is_open():
                    break
                # A transaction for each: one over all would keep the log of writes from being
                # emptied for as long as the walk takes.
                with tenant.read() as unit:
                    walk = self._walked(tenant_id, unit, chain)
                    fault = _finish(unit, chain, walk)
                checked += 1
                events += walk.length
                forgotten += walk.forgotten
                head = walk.head_hash if session_id else ""
                if fault is not None:
                    broken_count += 1
                    if len(broken) < MAX_BROKEN_REPORTED:
                        broken.append(fault)
        return Verification(checked, events, broken, broken_count, head, forgotten)

    def _walked(self, tenant_id: str, unit: CorpusUnit, chain: _SessionChain) -> ChainWalk:
        walk = ChainWalk(chain.session_id or f"forgotten-{chain.digest[:16]}")
        recallable = 0
        for page in _pages(unit, chain, walk):
            recallable += sum(isinstance(link, Event) and link.searchable for link in page)
            walk.follow(page)
            if self.witness is not None and walk.broken is None:
                said = self.witness.against_links(tenant_id, unit, chain.digest, page)
                if said is not None:
                    link = page[said[0]]
                    walk.broken = BrokenLink(walk.session_id, link.id, link.sequence, said[1])
            if walk.broken is not None:
                return walk
        if self.witness is not None and chain.session_id and walk.broken is None:
            doubt = self.witness.against_session(unit, chain.session_id, recallable)
            if doubt:
                walk.broken = BrokenLink(walk.session_id, "", walk.length + 1, doubt)
        return walk


def same_chains(tenant_id: str, old: TenantStore[Any], new: TenantStore[Any]) -> str:
    """Check that the chains of a tenant's events are the same in two places that keep it: walk all
    of them, and compare the ends of the feed and of the log. Return what was checked, in words.

    Raises:
        DataLoss: they differ.
    """
    here, there = (VerifyEvents(_Only(one)).verify(tenant_id) for one in (old, new))
    if here != there:
        raise DataLoss(f"the chains of events of {tenant_id} are others in its new place")
    if _ends(old) != _ends(new):
        raise DataLoss(f"the feed or the log of {tenant_id} ends otherwise in its new place")
    broken = f", {here.broken_count} broken as they were" if here.broken_count else ""
    return f"{here.sessions_checked} chains of {here.events_checked} events{broken}"


class _SessionChain(NamedTuple):
    """A session's chain; the id is unknown where everything of it was forgotten."""

    session_id: str
    digest: str


def _pages(
    unit: CorpusUnit, chain: _SessionChain, walk: ChainWalk
) -> Iterator[Sequence[ChainLink]]:
    """Yield the links of a chain, until one cannot be read: the walk is told."""
    after, limit = 0, _READ_AHEAD
    while True:
        try:
            there = (
                unit.get(SqlEvents).chain(chain.session_id, after, limit)
                if chain.session_id
                else ()
            )
        except DataLoss as loss:
            if limit == 1:
                walk.damaged(loss.metadata.get("id", ""), loss.message)
                return
            limit = 1  # What comes before the damaged one is walked event by event.
            continue
        page = in_order(there, unit.get(SqlForgotten).places(chain.digest, after, limit), limit)
        if not page:
            return
        yield page
        after = page[-1].sequence


def _finish(unit: CorpusUnit, chain: _SessionChain, walk: ChainWalk) -> BrokenLink | None:
    """Compare the walk with the session's own row.

    Raises:
        NotFound: there is no such session.
    """
    try:
        session = unit.get(SqlSessions).get(chain.session_id) or unit.get(SqlForgotten).session(
            chain.digest
        )
    except DataLoss as loss:
        if walk.broken is None:
            walk.damaged("", loss.message)
        return walk.broken
    if session is None:
        raise session_not_found(chain.session_id)
    return walk.finish(session.event_count, session.head_hash)


class _Only:
    """Lends one store as an open tenant."""

    def __init__(self, store: TenantStore[Any]) -> None:
        self._store = store

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[Any]:
        yield self._store


def _ends(store: TenantStore[Any]) -> tuple[object, ...]:
    with store.read() as unit:
        return unit.feed.head(), unit.feed.generation(), *unit.get(RecordLog).end()
