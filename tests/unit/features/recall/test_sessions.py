"""Sessions are ranked by their summaries and by what was said and done in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.features.context.model import SESSION
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.recall.model import RecallMode
from mneme_server.features.recall.ranking import TERMS, RankingWeights
from unit.features.recall.corpus import Corpus

SESSIONS = DocumentFilter(kinds=frozenset({SESSION}))


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path)
    yield corpus
    corpus.index.close()


def test_a_session_is_found_by_an_event_that_its_summary_does_not_tell(corpus: Corpus) -> None:
    corpus.say("sheds", "Shall we paint the shed?", "The lid of the green tin is stuck.")
    corpus.say("boats", "Shall we paint the boat?", "The oars are still wet.")
    sheds = corpus.sum_up("sheds", "Painting at the weekend")
    boats = corpus.sum_up("boats", "Painting at the weekend")
    assert corpus.ids("the lid of the tin", filter=SESSIONS) == [sheds, boats]
    assert corpus.ids("wet oars", filter=SESSIONS)[0] == boats


def test_two_events_that_fit_are_more_than_one(corpus: Corpus) -> None:
    corpus.say("once", "The tin is green.", "Dinner is at eight.")
    corpus.say("twice", "The tin is green.", "The tin is green and heavy.")
    corpus.sum_up("once", "Talk")
    twice = corpus.sum_up("twice", "Talk")
    assert corpus.ids("green tin", filter=SESSIONS)[0] == twice


def test_a_session_without_events_is_found_by_its_summary(corpus: Corpus) -> None:
    corpus.say("other", "Dinner is at eight.")
    corpus.sum_up("other", "A dinner")
    sheds = corpus.sum_up("sheds", "Painting the shed green")
    assert corpus.ids("who painted the shed", filter=SESSIONS)[0] == sheds


def test_only_the_sessions_that_the_filter_lets_through_count(corpus: Corpus) -> None:
    corpus.say("a", "The tin is green.", project="one")
    corpus.say("b", "The tin is green.", project="two")
    corpus.sum_up("a", "Talk")
    filter_ = DocumentFilter(kinds=SESSIONS.kinds, project="two")
    assert corpus.ids("green tin", filter=filter_) == []


def test_events_without_a_summary_are_no_session(corpus: Corpus) -> None:
    corpus.say("a", "The tin is green.")
    corpus.say("b", "The tin is green.")
    only = corpus.sum_up("b", "Talk")
    assert corpus.ids("green tin", filter=SESSIONS) == [only]


def test_the_sum_of_the_events_is_a_term_like_any_other(corpus: Corpus) -> None:
    corpus.say("a", "The tin is green.")
    corpus.sum_up("a", "Talk")
    (found,) = corpus.recall("green tin", filter=SESSIONS, explain=True).results
    assert next(term.name for term in found.terms) == "events"
    assert 0 < found.score <= 1
    off = RankingWeights(events=0.0)
    (found,) = corpus.recall("green tin", filter=SESSIONS, explain=True, weights=off).results
    assert "events" not in [term.name for term in found.terms]


def test_sessions_with_the_same_summary_are_no_copies_of_each_other(corpus: Corpus) -> None:
    both = {corpus.sum_up(name, "Painting the shed") for name in ("a", "b")}
    assert set(corpus.ids("painting the shed", filter=SESSIONS)) == both


@pytest.mark.parametrize(
    "more", [{"filter": DocumentFilter(kinds=frozenset({SESSION, EVENT}))}, {}]
)
def test_among_other_memories_a_summary_stands_for_itself(
    corpus: Corpus, more: dict[str, DocumentFilter]
) -> None:
    (said,) = corpus.say("a", "The tin is green.")
    corpus.sum_up("a", "Talk")
    answer = corpus.recall("green tin", explain=True, **more)
    assert answer.results[0].document.doc_id == said
    assert "events" in TERMS
    assert all(term.name != "events" for result in answer.results for term in result.terms)


@pytest.mark.parametrize("mode", [RecallMode.DENSE, RecallMode.LEXICAL])
def test_one_side_alone_looks_at_the_summaries_alone(corpus: Corpus, mode: RecallMode) -> None:
    corpus.say("a", "The tin is green.")
    corpus.sum_up("a", "Talk")
    tins = corpus.sum_up("b", "A green tin")
    assert corpus.ids("green tin", filter=SESSIONS, mode=mode)[0] == tins
