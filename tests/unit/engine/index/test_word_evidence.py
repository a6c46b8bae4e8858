"""Which words of a query occur among the selected documents."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.words.lexical import LexicalIndex, WordMatch
from unit.engine.index.memory_source import DIMENSIONS, MemorySource, event

WORDS = [f"{a}{b}zor" for a in "bcdfg" for b in "aeiou"]
MANY = 300
NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


@pytest.fixture(params=["waiting", "committed"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> TenantIndex:
    """Twenty-five words, each in three hundred documents; the last of each is in session "few"."""
    source = MemorySource(DIMENSIONS)
    count = 5 if request.param == "waiting" else MANY
    texts = [(word, "few" if n == count - 1 else "rest") for word in WORDS for n in range(count)]
    texts.append(("hidden error e4412", "rest"))
    documents = [event(i, t, session_id=s, position=i) for i, (t, s) in enumerate(texts, 1)]
    if request.param == "committed":
        source.put(documents)
    opened = TenantIndex(tmp_path, source, "model", DIMENSIONS)
    if request.param == "waiting":
        opened.add_documents(documents)
    assert (opened.stats().lexical_waiting > 0) == (request.param == "waiting")
    return opened


def occurring(index: TenantIndex, query: str, **filters: str) -> float:
    selection = index.select(DocumentFilter(**filters))  # type: ignore[arg-type]
    return index.word_evidence(query, selection, []).occurring


def test_the_share_of_words_that_occur_counts_only_what_is_selected(index: TenantIndex) -> None:
    for filters in ({}, {"session_id": "few"}, {"session_id": "rest"}):
        assert occurring(index, " ".join(WORDS), **filters) == pytest.approx(1.0)
    assert occurring(index, "hidden") == 1.0
    assert occurring(index, "hidden", session_id="rest") == 1.0
    assert occurring(index, "hidden", session_id="few") == 0.0
    assert 0.0 < occurring(index, f"hidden {WORDS[0]}", session_id="few") < 0.5
    assert occurring(index, "nowhere") == 0.0


def test_the_words_of_an_identifier_must_be_in_one_selected_text(index: TenantIndex) -> None:
    def identified(name: str, **filters: str) -> float:
        selection = index.select(DocumentFilter(**filters))  # type: ignore[arg-type]
        return (
            index.word_evidence("why", selection, [name]).identified
            + index.word_evidence(f"fails {name}", selection, [name]).identified
        )

    assert identified("error e4412") == 1.0
    assert identified("error e4412", session_id="few") == 0.0
    assert identified(f"{WORDS[0]}/{WORDS[1]}") == 0.0


def test_of_very_many_identifiers_the_first_are_looked_for(
    index: TenantIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = Mock(return_value=WordMatch(*NOTHING, exhausted=True))
    monkeypatch.setattr(LexicalIndex, "with_all", searched)
    names = ["error e4412", *(f"nowhere e{n}" for n in range(1_000))]
    index.word_evidence("why it fails", index.select(DocumentFilter()), names)
    assert searched.call_count < 100


def test_stop_words_tell_nothing(index: TenantIndex) -> None:
    assert not index.word_evidence("what is it", index.select(DocumentFilter()), []).telling
