"""What was replaced comes after what replaced it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mneme_server.engine.corpus.document import Document, MemoryKind, MemoryView
from mneme_server.features.memory.model import MEMORY
from mneme_server.features.recall.model import Recalled
from mneme_server.features.recall.succession import successors_first

CHAIN = 300


class Chain:
    """Memories of which each was replaced by the next; counts what is read of them."""

    def __init__(self, *ends: int) -> None:
        self.reads: list[str] = []
        self._ends = ends

    def memory(self, number: int) -> MemoryView:
        document = Document(number, MEMORY, f"m{number}", f"edition {number}", number)
        return MemoryView(
            document, {MEMORY.successor: "" if number in self._ends else f"m{number + 1}"}
        )

    def read(self, kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
        self.reads += source_ids
        return {source_id: self.memory(int(source_id[1:])) for source_id in source_ids}

    def found(self, number: int) -> Recalled:
        document, details = self.memory(number)
        return Recalled(document, 1.0 / (1 + number), None, details)

    def ordered(self, *numbers: int, limit: int = 100) -> list[Recalled]:
        found = [self.found(number) for number in numbers]
        return successors_first(
            found, found, self.read, lambda _: True, limit=limit, own_scores=False
        )


def numbers(results: Sequence[Recalled]) -> list[int]:
    return [result.document.doc_id for result in results]


def test_the_last_of_a_chain_is_brought_in_and_named_by_all_before_it() -> None:
    chain = Chain(9)
    results = chain.ordered(3, 5)
    assert numbers(results) == [9, 3, 5]
    assert [result.newer and result.newer.doc_id for result in results] == [None, 9, 9]


def test_the_last_of_a_chain_names_the_newest_before_it_in_whatever_order_they_were_found() -> None:
    for found in ((3, 5), (5, 3)):
        first = Chain(9).ordered(*found)[0]
        assert first.older is not None
        assert first.older.doc_id == 5


def test_chains_are_told_apart() -> None:
    assert numbers(Chain(4, 9).ordered(6, 2)) == [9, 6, 4, 2]


def test_a_chain_is_read_once_however_many_of_it_were_found() -> None:
    chain = Chain(CHAIN)
    found = [*range(1, 50), *range(CHAIN - 20, CHAIN)]
    assert numbers(chain.ordered(*found)) == [CHAIN, *found]
    assert len(chain.reads) == len(set(chain.reads)) == CHAIN - len(found)
