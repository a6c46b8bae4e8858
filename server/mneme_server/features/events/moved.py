"""Whether the chains of a tenant's events are the same in two places that keep it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.verifying import VerifyEvents


class _Only:
    """Lends one store as an open tenant."""

    def __init__(self, store: TenantStore[Any]) -> None:
        self._store = store

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[Any]:
        yield self._store


def same_chains(tenant_id: str, old: TenantStore[Any], new: TenantStore[Any]) -> str:
    """Walk all chains of events in both places, and compare the ends of the feed and of the log."""
    here, there = (VerifyEvents(_Only(one))(tenant_id) for one in (old, new))
    if here != there:
        raise DataLoss(f"the chains of events of {tenant_id} are others in its new place")
    if _ends(old) != _ends(new):
        raise DataLoss(f"the feed or the log of {tenant_id} ends otherwise in its new place")
    broken = f", {here.broken_count} broken as they were" if here.broken_count else ""
    return f"{here.sessions_checked} chains of {here.events_checked} events{broken}"


def _ends(store: TenantStore[Any]) -> tuple[object, ...]:
    with store.read() as unit:
        log = unit.log
        return unit.feed.head(), unit.feed.generation(), log.name(), log.size(), log.tree().root()
