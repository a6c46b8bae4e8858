"""What was committed reaches the index in order, large changes in steps."""

from __future__ import annotations

from unittest.mock import MagicMock, call

import numpy as np
from mneme_server.corpus.document import Document
from mneme_server.corpus.live_index import CorpusChange, LiveIndex, Steps, do_at_once
from mneme_server.corpus.ports import VectorBatch
from mneme_server.events.kinds import EVENT

VECTORS = VectorBatch(np.array([1]), np.array([1]), np.zeros((1, 4), np.float32))


def documents(count: int) -> list[Document]:
    return [Document(n, EVENT, f"e{n}", "text", n) for n in range(1, count + 1)]


def test_a_large_change_is_applied_by_turns_in_steps_that_keep_its_order() -> None:
    index, steps_of = MagicMock(), list[int]()

    def by_turns(steps: Steps) -> None:
        steps_of.append(len(steps))
        do_at_once(steps)

    saved = documents(300)
    change = CorpusChange(saved=saved, vectors=[VECTORS], removed=[7])
    LiveIndex("acme", index, by_turns).apply(change)
    assert steps_of == [5]
    assert index.mock_calls == [
        call.on_failure(index.on_failure.call_args.args[0]),
        call.add_documents(saved[:128]),
        call.add_documents(saved[128:256]),
        call.add_documents(saved[256:]),
        call.add_vectors(VECTORS),
        call.remove([7]),
        call.keep_up(),
    ]


def test_a_small_change_waits_for_no_turn() -> None:
    index, by_turns = MagicMock(), MagicMock()
    change = CorpusChange(saved=documents(100), vectors=[VECTORS], removed=[7])
    LiveIndex("acme", index, by_turns).apply(change)
    by_turns.assert_not_called()
    index.add_documents.assert_called_once_with(change.saved)


def test_an_index_that_fails_in_the_middle_of_a_change_is_told_that_it_missed_it() -> None:
    index = MagicMock()
    failure = index.add_documents.side_effect = RuntimeError("the disk is gone")
    LiveIndex("acme", index).apply(CorpusChange(saved=documents(300)))
    index.missed.assert_called_once_with(failure)
