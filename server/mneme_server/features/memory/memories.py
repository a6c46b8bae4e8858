"""Memories read, changed, listed and deleted; what would be deleted is told before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import turns
from mneme_server.common.clock import DAY_US, later_us
from mneme_server.common.errors import FailedPrecondition
from mneme_server.common.etags import existing
from mneme_server.common.pages import least_bytes, parts
from mneme_server.engine.corpus.forgetting import Dependents
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.insertion import Vectors, document_of
from mneme_server.features.memory.model import (
    MEMORY,
    SAYING_FIELDS,
    Deleted,
    Figures,
    Memory,
    MemoryFilter,
    Updated,
)
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.memory.supersession import Marking, passed_on

_STEP = 500
"""Memories that one transaction deletes."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The use cases: return a memory, change it, list memories."""

    tenants: OpenTenants
    vectors: Vectors

    def get(self, tenant_id: str, memory_id: str) -> Memory:
        """Return a memory.

        Raises:
            NotFound: there is no such memory.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, memory_id)

    def page(
        self, tenant_id: str, filter_: MemoryFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Memory], int]:
        """Return memories, the latest first, after (since_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlMemories).page, filter_),
                after,
                limit,
                lambda one: (one.since_us, one.id),
                lambda one: least_bytes(len(one.text), len(one.metadata_json)),
            )
            return page, unit.get(SqlMemories).count(filter_)

    def update(
        self, tenant_id: str, memory_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Updated:
        """Change the given fields, of those in `model.CONTENT_FIELDS`, and `supersedes`.

        What others change meanwhile is kept; with an `etag` it is the reason to refuse. That
        another memory says the same is not: it is named.

        Raises:
            NotFound: there is no such memory, or one that it shall supersede does not exist.
            Aborted: `etag` is given and is not the memory's any more.
            FailedPrecondition: it cannot supersede what it shall, or its user cannot change.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        says = not SAYING_FIELDS.isdisjoint(changes)
        with self.tenants.open(tenant_id) as tenant:
            while True:
                with tenant.read() as unit:
                    before = _existing(unit, memory_id, etag)
                    after = replace(before, **changes)
                    if after == before:
                        return _updated(unit, before, says=says)
                    after = _said(before, after)
                vectors = self.vectors.of(tenant, [after.text], Figures())
                vector = vectors.get(after.text)
                changed = self._changed(tenant, before, after, vector, etag, named=changes)
                if changed is not None:
                    return changed

    @staticmethod
    def _changed(
        tenant: OpenTenant,
        before: Memory,
        after: Memory,
        vector: Matrix | None,
        etag: str,
        *,
        named: Collection[str],
    ) -> Updated | None:
        """Write the change, of the `named` fields; None when somebody else changed the memory
        meanwhile."""
        if vector is None:
            tenant.require_room(1)
        with tenant.write() as unit:
            now = _existing(unit, before.id, etag)
            if now.etag != before.etag:
                return None
            _require_movable(before, after)
            after = replace(after, updated_us=later_us(before.updated_us))
            marking = Marking(unit)
            own = replace(after, supersedes=before.supersedes)
            marking.sees([own])
            kept = set(after.supersedes)
            own = marking.restore([old for old in before.supersedes if old not in kept], own)
            # Those it superseded before, too: since when it holds may have changed.
            own = marking.supersede(after.supersedes, own, dated=True)
            if "pinned" in named:
                own = replace(own, pinned=after.pinned)
            marking.write({own.id})
            unit.documents.remove(MEMORY, [own.id])
            (document,) = unit.documents.add(
                [document_of(own)], None if vector is None else vector[None, :]
            )
            unit.get(SqlMemories).save([own], {own.id: document.doc_id})
            if own.digest != before.digest:
                unit.get(SqlMemories).unconfirm([own.id])
            return _updated(unit, own, says=not SAYING_FIELDS.isdisjoint(named))


def _said(before: Memory, after: Memory) -> Memory:
    """Return a changed memory with what confirms it: nothing does what says something else now."""
    if after.digest != before.digest or not before.confirmed_count:
        return replace(after, confirmed_count=0, last_said_us=after.since_us)
    day_us = after.since_us // DAY_US * DAY_US
    return replace(after, last_said_us=max(before.last_said_us, day_us))


def _existing(unit: CorpusUnit, memory_id: str, etag: str = "") -> Memory:
    """Return the memory, which must still have this etag, if one is given."""
    found = unit.get(SqlMemories).get_many([memory_id])
    return existing("memory", found.get(memory_id), memory_id, etag)


def _updated(unit: CorpusUnit, memory: Memory, *, says: bool) -> Updated:
    """Return the memory and, if its author gave what it says and it holds, who else says it.

    What it supersedes must be marked: that does not hold any more.
    """
    if not says or not memory.holds:
        return Updated(memory)
    other = unit.get(SqlMemories).holding([memory.digest], but=memory.id).get(memory.digest)
    return Updated(memory, "" if other is None else other.id)


def _require_movable(before: Memory, after: Memory) -> None:
    linked = before.supersedes or after.supersedes or before.superseded_by
    if before.user_id != after.user_id and linked:
        raise FailedPrecondition(
            f"memory {before.id!r} supersedes another or is superseded: both are of one user",
            field="user_id",
        )


@dataclass(frozen=True, slots=True)
class DeleteMemories:
    """The use case: delete memories for good."""

    tenants: OpenTenants
    dependents: Sequence[Dependents] = ()

    def delete(
        self,
        tenant_id: str,
        memory_ids: Sequence[str],
        filter_: MemoryFilter | None,
        *,
        dry_run: bool,
        cascade: bool = False,
    ) -> Deleted:
        """Delete these memories and those that the filter picks; with `dry_run` only tell which.

        What a deleted one superseded is passed on to what superseded that, or holds again. With
        `cascade` goes what rests on them.
        """
        dependents = self.dependents if cascade else ()
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                memories = unit.get(SqlMemories)
                wanted = {*memory_ids, *(memories.ids(filter_) if filter_ else ())}
                gone = memories.successors(wanted)
                heirs = passed_on(gone)
                left = _left(unit, gone)
                vectors = memories.vectors_of(gone)
                resting = _resting_on(unit, gone, dependents)
            if dry_run:
                restored = [old for old, by in left.items() if not heirs[by]]
                return Deleted(sorted(gone), sorted(restored), vectors, _sorted(resting))
            return self._delete(tenant, sorted(gone), dependents)

    def _delete(
        self,
        tenant: OpenTenant,
        wanted: Sequence[str],
        dependents: Sequence[Dependents],
    ) -> Deleted:
        deleted: list[str] = []
        with_them: dict[str, set[str]] = {}
        restored: set[str] = set()
        vectors = 0
        for some in parts(wanted, _STEP):
            with turns.active(), tenant.write() as unit:
                gone = unit.get(SqlMemories).successors(some)
                vectors += unit.get(SqlMemories).vectors_of(gone)
                resting = _resting_on(unit, gone, dependents)
                for dependent in reversed(dependents):
                    with_them.setdefault(dependent.name, set()).update(resting[dependent.name])
                    dependent.remove(unit, resting[dependent.name])
                restored |= remove(unit, gone)
            deleted += gone
        return Deleted(
            sorted(deleted), sorted(restored.difference(deleted)), vectors, _sorted(with_them)
        )


def _resting_on(
    unit: CorpusUnit, gone: Iterable[str], dependents: Sequence[Dependents]
) -> dict[str, Collection[str]]:
    """Return what goes with these memories, by what it is called."""
    going: dict[str, Collection[str]] = {"memories": set(gone)}
    for dependent in dependents:
        going[dependent.name] = dependent.resting_on(unit, going)
    del going["memories"]
    return going


def _sorted(resting: Mapping[str, Collection[str]]) -> dict[str, Sequence[str]]:
    return {name: sorted(ids) for name, ids in resting.items()}


def remove(unit: CorpusUnit, gone: Mapping[str, str], *, named: bool = True) -> set[str]:
    """Remove memories, in a transaction; return the ids of those that hold again.

    Args:
        unit: the transaction.
        gone: by what each of them is superseded, by id.
        named: whether the feed may say what they were called.
    """
    restored = _pass_on(unit, gone)
    unit.get(SqlMemories).remove(gone)
    unit.documents.remove(MEMORY, list(gone), named=named)
    return restored


def _left(unit: CorpusUnit, gone: Mapping[str, str]) -> dict[str, str]:
    """Return by what those are superseded that stay while what superseded them goes, by id."""
    left = unit.get(SqlMemories).superseded_by(gone)
    return {old: by for old, by in left.items() if old not in gone}


def _pass_on(unit: CorpusUnit, gone: Mapping[str, str]) -> set[str]:
    """Pass on what those that are to go supersede; return the ids of what holds again."""
    memories = unit.get(SqlMemories)
    heirs = passed_on(gone)
    left = _left(unit, gone)
    there = memories.get_many({heirs[by] for by in left.values()} - {""})
    restored = set()
    for old, by in left.items():
        heir = there.get(heirs[by])
        if heir is None:
            restored.add(old)
            memories.mark([old], "", None)
            unit.documents.set_archived(MEMORY, old, archived=False)
        else:
            memories.mark([old], heir.id, heir.since_us)
            unit.documents.set_archived(MEMORY, old, archived=True)
    return restored
