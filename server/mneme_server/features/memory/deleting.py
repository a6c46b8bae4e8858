"""Deleting memories, and telling before what would be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mneme_server.common.pages import parts
from mneme_server.engine.corpus.dependents import Dependents
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.memory.kinds import MEMORY
from mneme_server.features.memory.marking import passed_on
from mneme_server.features.memory.model import Deleted, MemoryFilter
from mneme_server.features.memory.ports import MemoriesUnit

_STEP = 500
"""Memories that one transaction deletes."""


@dataclass(frozen=True, slots=True)
class DeleteMemories:
    """The use case: delete memories for good."""

    tenants: OpenTenants[MemoriesUnit]
    foreground: Foreground = field(default_factory=Foreground)
    dependents: Sequence[Dependents] = ()

    def __call__(
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
                wanted = {*memory_ids, *(unit.remembered.ids(filter_) if filter_ else ())}
                gone = unit.remembered.successors(wanted)
                heirs = passed_on(gone)
                left = _left(unit, gone)
                vectors = unit.remembered.vectors_of(gone)
                resting = _resting_on(unit, gone, dependents)
            if dry_run:
                restored = [old for old, by in left.items() if not heirs[by]]
                return Deleted(sorted(gone), sorted(restored), vectors, _sorted(resting))
            return self._delete(tenant, sorted(gone), dependents)

    def _delete(
        self,
        tenant: OpenTenant[MemoriesUnit],
        wanted: Sequence[str],
        dependents: Sequence[Dependents],
    ) -> Deleted:
        deleted: list[str] = []
        with_them: dict[str, set[str]] = {}
        restored: set[str] = set()
        vectors = 0
        for some in parts(wanted, _STEP):
            with self.foreground.active(), tenant.write() as unit:
                gone = unit.remembered.successors(some)
                vectors += unit.remembered.vectors_of(gone)
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
    unit: MemoriesUnit, gone: Iterable[str], dependents: Sequence[Dependents]
) -> dict[str, Collection[str]]:
    """Return what goes with these memories, by what it is called."""
    going: dict[str, Collection[str]] = {"memories": set(gone)}
    for dependent in dependents:
        going[dependent.name] = dependent.resting_on(unit, going)
    del going["memories"]
    return going


def _sorted(resting: Mapping[str, Collection[str]]) -> dict[str, Sequence[str]]:
    return {name: sorted(ids) for name, ids in resting.items()}


def remove(unit: MemoriesUnit, gone: Mapping[str, str], *, named: bool = True) -> set[str]:
    """Remove memories, in a transaction; return the ids of those that hold again.

    Args:
        unit: the transaction.
        gone: by what each of them is superseded, by id.
        named: whether the feed may say what they were called.
    """
    restored = _pass_on(unit, gone)
    unit.remembered.remove(gone)
    unit.documents.remove(MEMORY, list(gone), named=named)
    return restored


def _left(unit: MemoriesUnit, gone: Mapping[str, str]) -> dict[str, str]:
    """Return by what those are superseded that stay while what superseded them goes, by id."""
    left = unit.remembered.superseded_by(gone)
    return {old: by for old, by in left.items() if old not in gone}


def _pass_on(unit: MemoriesUnit, gone: Mapping[str, str]) -> set[str]:
    """Pass on what those that are to go supersede; return the ids of what holds again."""
    heirs = passed_on(gone)
    left = _left(unit, gone)
    there = unit.remembered.get_many({heirs[by] for by in left.values()} - {""})
    restored = set()
    for old, by in left.items():
        heir = there.get(heirs[by])
        if heir is None:
            restored.add(old)
            unit.remembered.mark([old], "", None)
            unit.documents.set_archived(MEMORY, old, archived=False)
        else:
            unit.remembered.mark([old], heir.id, heir.since_us)
            unit.documents.set_archived(MEMORY, old, archived=True)
    return restored
