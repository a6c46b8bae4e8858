"""The insertion of memories: what is known is not stored again, what is replaced is marked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from mneme_server.common import deadline, turns
from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists
from mneme_server.common.identity import new_id
from mneme_server.common.pages import parts
from mneme_server.common.passages import is_long
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import WHOLE, Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.confirmation import Confirming
from mneme_server.features.memory.model import (
    MEMORY,
    Figures,
    FoundMemory,
    Memory,
    MemoryReceipt,
    NewMemory,
    Stored,
)
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.memory.supersession import Marking
from mneme_server.features.recall.confidence import USUAL, CosineScale

_STORED = 100
"""Memories stored in one step, of some milliseconds."""
_SIMILAR = 0.4
"""Cosine, of the default model, from which two texts are about the same."""


@dataclass(frozen=True, slots=True)
class CreateMemories:
    """The use case: store memories, all or none of those given at a time."""

    tenants: OpenTenants
    vectors: Vectors
    similar: Similar

    def one(
        self, tenant_id: str, given: NewMemory, *, similar: int = 0, wait_indexed: bool = False
    ) -> Stored:
        """Store a memory, and find up to `similar` close ones of the same user that were there.

        Raises:
            Unavailable: `wait_indexed` and the time is up; it is stored.
            As calling this does.
        """
        figures = Figures()
        item = given.completed(new_id(), now_us())
        memory = item.memory
        with self.tenants.open(tenant_id) as tenant:
            vectors = self.vectors.of(tenant, [memory.text], figures)
            close = self.similar.closest(tenant, memory, vectors.get(memory.text), similar)
            at_hand = {} if is_long(memory.text) else vectors  # Its passages are not embedded yet.
            stored, doc_ids = self._store(tenant, [item], at_hand, figures)
            if wait_indexed and doc_ids:
                with turns.hurry():
                    tenant.wait_embedded(doc_ids)
        marked = {old.id for old in stored.superseded} | {stored.receipts[0].memory.id}
        if close is not None:
            close = [one for one in close if one.memory.id not in marked]
        stored.similar = None if close is None else close[:similar]
        return stored

    def insert(self, tenant_id: str, given: Sequence[NewMemory]) -> Stored:
        """Store memories in their order.

        Raises:
            AlreadyExists: an id is taken by a memory with other content.
            NotFound: one supersedes what does not exist.
            FailedPrecondition: one supersedes what it cannot; or they cannot be embedded soon, and
                are more than the queue holds.
            ResourceExhausted: they cannot be embedded soon, and too much waits.
        """
        now, figures = now_us(), Figures()
        items = [one.completed(new_id(), now) for one in given]
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                known = _BatchLookup(unit, items)
            fresh = [item.memory.text for item in items if known.of(item) is None]
            short = [text for text in fresh if not is_long(text)]
            vectors = self.vectors.of(tenant, short, figures)
            stored, _ = self._store(tenant, items, vectors, figures)
        return stored

    def _store(
        self,
        tenant: OpenTenant,
        items: Sequence[NewMemory],
        vectors: Mapping[str, Matrix],
        figures: Figures,
    ) -> tuple[Stored, Sequence[int]]:
        """Return what became of the items, and the numbers of the documents that were written."""
        began = time.perf_counter()
        with turns.active(), tenant.write() as unit:
            deadline.check()  # It may have waited for the tenant's other writes.
            storing = _Storing(unit, vectors)
            storing.take(items)
            if storing.unembedded:
                tenant.require_room(storing.unembedded)
            with turns.computing(max(1.0, len(items) / turns.SMALL)):
                for step in storing.steps():
                    turns.between()
                    step()
        figures.queued += storing.unembedded
        figures.embedded += len(storing.fresh) - storing.unembedded
        figures.writing_s += time.perf_counter() - began
        superseded = list(storing.superseded)
        return Stored(storing.receipts, superseded, (), figures), storing.doc_ids


@dataclass(frozen=True, slots=True)
class Similar:
    """Finds memories that hold and are close to one that comes in, of the same user, for its caller
    to see what it may replace.

    Of no user, they are those of no user that have the same agent and project, where it has some.
    """

    scale: CosineScale = USUAL

    def closest(
        self, tenant: OpenTenant, memory: Memory, vector: Matrix | None, limit: int
    ) -> Sequence[FoundMemory] | None:
        """Return the closest, best first; none without a limit. There are some more than `limit`:
        it may be one of them itself, and supersede others.

        None without the memory's vector (d,): they are not known.
        """
        if not limit:
            return ()
        if vector is None:
            return None
        theirs = DocumentFilter(
            kinds=frozenset({MEMORY}),
            user_id=memory.user_id,
            of_no_user=not memory.user_id,
            agent_id="" if memory.user_id else memory.agent_id,
            project="" if memory.user_id else memory.project,
            include_archived=False,
        )
        with turns.computing():
            index = tenant.index
            more = limit + len(memory.supersedes) + 1
            hits = index.search_dense(vector, more, index.select(theirs), exact=False)
            least = self.scale.of_usual(_SIMILAR)
            doc_ids = index.columns.doc_id[hits.rows].tolist()
            cosines = dict(zip(doc_ids, hits.scores.tolist(), strict=True))
            near = [doc_id for doc_id in doc_ids if cosines[doc_id] >= least]
            with tenant.read() as unit:
                memories = unit.get(SqlMemories).by_document(near)
        return [FoundMemory(memories[one], cosines[one]) for one in near if one in memories]


class KnownTexts(Protocol):
    """What the server has embedded lately."""

    def holds(self, texts: Sequence[str]) -> Sequence[bool]:
        """Return for each text whether its vector is at hand."""
        ...


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of texts that are to be stored: from the cache, the tenant's own, else the
    model."""

    embedder: TextEmbedder
    lately: KnownTexts

    def of(
        self, tenant: OpenTenant, texts: Collection[str], figures: Figures
    ) -> Mapping[str, Matrix]:
        """Return the vectors (d,) by text; those that are not to be had soon are missing.

        It may take long. `figures` are told what it took.
        """
        began = time.perf_counter()
        distinct = list(dict.fromkeys(texts))
        held = self.lately.holds(distinct)
        others = [text for text, is_held in zip(distinct, held, strict=True) if not is_held]
        found: dict[str, Matrix] = {}
        if others:
            with tenant.read() as unit:
                stored = unit.queue.known_vectors(others)
            found |= {text: vectors[WHOLE] for text, vectors in stored.items()}
        misses = len(others) - len(found)
        asked = [text for text in distinct if text not in found]
        if asked:
            vectors = self.embedder.embed(asked)
            if vectors is not None:
                found |= zip(asked, vectors, strict=True)
        figures.cache_hits += len(texts) - misses
        figures.cache_misses += misses
        figures.embedding_s += time.perf_counter() - began
        return found


class _BatchLookup:
    """What is stored of the items of a batch, and what those before them in it say."""

    def __init__(self, unit: CorpusUnit, items: Sequence[NewMemory]) -> None:
        self._by_id = unit.get(SqlMemories).get_many([item.memory.id for item in items])
        self._by_digest = unit.get(SqlMemories).holding(
            [item.memory.digest for item in items if not item.keep_copy]
        )

    @property
    def stored(self) -> Sequence[Memory]:
        """All that was found."""
        return [*self._by_id.values(), *self._by_digest.values()]

    def of(self, item: NewMemory) -> Memory | None:
        """Return the memory that has the item's id, or else says the same."""
        by_id = self._by_id.get(item.memory.id)
        if by_id is not None or item.keep_copy:
            return by_id
        return self._by_digest.get(item.memory.digest)

    def add(self, memory: Memory) -> None:
        """Note that a memory of the batch is going to be stored."""
        self._by_id[memory.id] = memory
        self._by_digest.setdefault(memory.digest, memory)

    def forget(self, memories: Sequence[Memory]) -> None:
        """Note that memories do not hold any more: what says the same is no repetition."""
        for memory in memories:
            if (known := self._by_digest.get(memory.digest)) and known.id == memory.id:
                del self._by_digest[memory.digest]


class _Storing:
    """A batch inside its transaction."""

    def __init__(self, unit: CorpusUnit, vectors: Mapping[str, Matrix]) -> None:
        self.receipts: list[MemoryReceipt] = []
        self.fresh: list[Memory] = []
        self.doc_ids: list[int] = []
        self._unit = unit
        self._vectors = vectors
        self._marking = Marking(unit)
        self._confirmed: Mapping[str, Collection[int]] = {}

    @property
    def unembedded(self) -> int:
        """How many of those to store have no vector yet."""
        return sum(memory.text not in self._vectors for memory in self.fresh)

    @property
    def superseded(self) -> Sequence[Memory]:
        """The memories that were marked."""
        return self._marking.marked

    def take(self, items: Sequence[NewMemory]) -> None:
        """Decide for each item whether it is to be stored, and mark what it supersedes."""
        known = _BatchLookup(self._unit, items)
        self._marking.sees(known.stored)
        confirming = Confirming(self._unit)
        taken: list[tuple[Memory, Memory | None, NewMemory]] = []
        for place, item in enumerate(items):
            before = known.of(item)
            if before is None:
                memory = replace(item.memory, supersedes=())
                known.add(memory)
                self.fresh.append(memory)
                self._marking.sees([memory])
            else:
                memory = self._marking.now(before)
                _require_same(memory, item, place)
                if memory.id != item.memory.id:
                    confirming.says_again(memory, item.memory.since_us)
            old = item.memory.supersedes
            memory = self._marking.supersede(old, memory, item=place)
            known.forget(self._marking.not_holding(old))
            taken.append((memory, before, item))
        self._confirmed = confirming.days(self._marking)
        self.fresh = [self._marking.now(memory) for memory in self.fresh]
        self.receipts = [
            MemoryReceipt(
                self._marking.now(memory),
                before is not None,
                [] if before is None else item.contradicted(before),
            )
            for memory, before, item in taken
        ]

    def steps(self) -> Sequence[Callable[[], object]]:
        """Return what stores the batch, in steps of some milliseconds."""
        return [*(partial(self._save, part) for part in parts(self.fresh, _STORED)), self._mark]

    def _save(self, memories: Sequence[Memory]) -> None:
        embedded = [memory for memory in memories if memory.text in self._vectors]
        queued = [memory for memory in memories if memory.text not in self._vectors]
        added: list[Document] = []
        if embedded:
            vectors = np.stack([self._vectors[memory.text] for memory in embedded])
            added += self._unit.documents.add([document_of(one) for one in embedded], vectors)
        waiting = self._unit.documents.add([document_of(memory) for memory in queued])
        self.doc_ids += [document.doc_id for document in waiting]
        added += waiting
        doc_ids = {document.source_id: document.doc_id for document in added}
        self._unit.get(SqlMemories).save(memories, doc_ids)

    def _mark(self) -> None:
        fresh = {memory.id for memory in self.fresh}
        self._marking.write(fresh)
        memories = self._unit.get(SqlMemories)
        memories.confirm(self._confirmed)
        memories.rank(
            [self._marking.seen(memory_id) for memory_id in self._confirmed.keys() - fresh]
        )


def document_of(memory: Memory) -> Document:
    """Return a memory as recall sees it."""
    return Document(
        doc_id=0,
        kind=MEMORY,
        source_id=memory.id,
        text=memory.text,
        timestamp_us=memory.since_us,
        agent_id=memory.agent_id,
        user_id=memory.user_id,
        project=memory.project,
        importance=int(memory.importance),
        archived=not memory.holds,
        tags=memory.tags,
    )


def _require_same(found: Memory, item: NewMemory, place: int) -> None:
    """Check that an id that is taken comes with the content it came with before."""
    if found.id == item.memory.id and item.differing(found):
        raise AlreadyExists(
            f"memory {found.id!r} already exists with different content", field="id", item=place
        )
