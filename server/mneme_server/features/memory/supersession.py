"""Supersession: which memory replaces which."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mneme_server.common.errors import FailedPrecondition, NotFound
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.model import MEMORY, Memory
from mneme_server.features.memory.store import SqlMemories


class Marking:
    """Notes in a transaction which memories come to be superseded, or hold again.

    `write` says so to the store. What is marked twice is written as it was marked last.

    Args:
        unit: the transaction.
    """

    def __init__(self, unit: CorpusUnit) -> None:
        self._unit = unit
        self._seen: dict[str, Memory] = {}
        self._marked: dict[str, Memory] = {}
        self._pinned: set[str] = set()

    @property
    def marked(self) -> Sequence[Memory]:
        """The memories that were marked, as they are now."""
        return list(self._marked.values())

    def sees(self, memories: Collection[Memory]) -> None:
        """Take note of memories that are read already, or are being stored."""
        self._seen |= {memory.id: memory for memory in memories}

    def now(self, memory: Memory) -> Memory:
        """Return a memory as it is by now."""
        return self._seen.get(memory.id, memory)

    def seen(self, memory_id: str) -> Memory:
        """Return a memory of which note was taken, as it is by now."""
        return self._seen[memory_id]

    def not_holding(self, memory_ids: Collection[str]) -> Sequence[Memory]:
        """Return those of these memories that are superseded by now."""
        seen = (self._seen[memory_id] for memory_id in memory_ids if memory_id in self._seen)
        return [memory for memory in seen if not memory.holds]

    def supersede(
        self,
        memory_ids: Sequence[str],
        successor: Memory,
        *,
        item: int | None = None,
        dated: bool = False,
    ) -> Memory:
        """Mark these as superseded by one, and return that one.

        It is pinned if one is that it comes to supersede.

        Those that are already stay as they are; with `dated` they held until since when it holds.
        `item` is the place of the successor among those that are stored, for errors.

        Raises:
            NotFound: one does not exist.
            FailedPrecondition: one is the successor itself, came after it, is another user's, or
                another memory supersedes it.
        """
        self._read(memory_ids)
        successor = self.now(successor)
        after = self._after(successor) if memory_ids else ()
        for memory_id in memory_ids:
            old = self._seen.get(memory_id)
            if old is None:
                raise NotFound(
                    f"there is no memory {memory_id!r} to supersede", field="supersedes", item=item
                )
            if fault := _fault(old, successor, after):
                raise FailedPrecondition(
                    f"memory {memory_id!r} {fault}", field="supersedes", item=item
                )
            if old.superseded_by != successor.id and old.pinned and not successor.pinned:
                successor = replace(successor, pinned=True)
                self._pinned.add(successor.id)
            if old.superseded_by != successor.id or dated:
                self._mark(old, successor.id, successor.since_us)
        if memory_ids:
            both = {*successor.supersedes, *memory_ids}
            successor = replace(successor, supersedes=tuple(sorted(both)))
            self.sees([successor])
        return successor

    def restore(self, memory_ids: Sequence[str], successor: Memory) -> Memory:
        """Have these hold again, and return what had superseded them."""
        self._read(memory_ids)
        for memory_id in memory_ids:
            if memory_id in self._seen:
                self._mark(self._seen[memory_id], "", None)
        kept = tuple(i for i in self.now(successor).supersedes if i not in set(memory_ids))
        successor = replace(self.now(successor), supersedes=kept)
        self.sees([successor])
        return successor

    def write(self, stored: Collection[str] = ()) -> None:
        """Write what was marked; those that are `stored` with what was marked of them are left."""
        for memory in self._marked.values():
            if memory.id in stored:
                continue
            self._unit.get(SqlMemories).mark([memory.id], memory.superseded_by, memory.until_us)
            self._unit.documents.set_archived(MEMORY, memory.id, archived=not memory.holds)
        pinned = self._pinned.difference(stored)
        self._unit.get(SqlMemories).rank([self._seen[memory_id] for memory_id in pinned])

    def _mark(self, memory: Memory, successor: str, until_us: int | None) -> None:
        marked = replace(memory, superseded_by=successor, until_us=until_us)
        self._seen[memory.id] = self._marked[memory.id] = marked

    def _read(self, memory_ids: Collection[str]) -> None:
        unknown = [memory_id for memory_id in memory_ids if memory_id not in self._seen]
        if unknown:
            self.sees(self._unit.get(SqlMemories).get_many(unknown).values())

    def _after(self, memory: Memory) -> Collection[str]:
        """Return the ids of what came after a memory, one superseding the other."""
        after: list[str] = []
        while memory.superseded_by and memory.superseded_by not in after:
            after.append(memory.superseded_by)
            self._read([memory.superseded_by])
            if memory.superseded_by not in self._seen:
                break
            memory = self._seen[memory.superseded_by]
        return after


def _fault(old: Memory, successor: Memory, after: Collection[str]) -> str:
    """Return why one cannot be superseded by the other; "" when it can."""
    if old.id == successor.id:
        return "cannot supersede itself"
    if old.user_id != successor.user_id:
        return "is not of the same user"
    if old.superseded_by not in ("", successor.id):
        return f"is superseded by {old.superseded_by!r} already; supersede that one"
    if old.id in after:
        return f"supersedes {successor.id!r} itself"
    return ""


def passed_on(gone: Mapping[str, str]) -> dict[str, str]:
    """Return what takes the place of each of those that are to be deleted; "" for nothing.

    Args:
        gone: by what each is superseded, by id.
    """
    heirs: dict[str, str] = {}
    for memory_id in gone:
        chain: list[str] = []
        heir = memory_id
        while heir in gone and heir not in heirs and heir not in chain:
            chain.append(heir)
            heir = gone[heir]
        last = heirs.get(heir, "" if heir in gone else heir)
        heirs |= dict.fromkeys(chain, last)
    return heirs
