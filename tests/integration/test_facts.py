"""Facts are found by what they mean: a word that they happen to share with a question tells little,
and a misspelt one is read as it is meant."""

from __future__ import annotations

import pytest
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.making import event, recall, record
from support.server import LocalServer

FACTS = (
    "Ann wants to be called Annie",
    "Ann's plan is Premium, 24.90 euros a month",
    "Bills go to the office in Lindau, on paper",
    "Ann's phone loses its charge within four hours",
    "Ann travels to Norway in the second week of June",
    "Ann's mother Martha is hard of hearing",
    "The cellar has one bar of reception at most",
    "Order 88412 waits for a spare part",
)
ABOUT = (
    ("what subscription is she on", 1),
    ("how quickly does her battery go flat", 3),
    ("when is her summer holiday abroad", 4),
    ("which relative cannot hear well", 5),
    ("where is the signal bad", 6),
)
FOREIGN = (
    "what is the boiling point of ethanol",
    "why does my bash loop skip the last line",
    "who wrote Moby-Dick",
    "write a haiku about volcanoes",
    "how do penguins keep their eggs warm",
)


@pytest.fixture(scope="module")
def facts(server: LocalServer) -> Api:
    """Return a tenant with eight facts; nobody may change it."""
    api = server.keys.tenant("facts")
    for text in FACTS:
        api.memory.CreateMemory(memory_pb.CreateMemoryRequest(text=text, wait_indexed=True))
    return api


def first(api: Api, query: str) -> str:
    return recall(api, query).results[0].text


@pytest.mark.parametrize(("question", "place"), ABOUT)
def test_a_fact_is_found_by_what_it_means(facts: Api, question: str, place: int) -> None:
    assert first(facts, question) == FACTS[place]


def test_a_name_that_many_facts_have_decides_nothing(facts: Api) -> None:
    assert first(facts, "which relative of Ann wants a loud ringer") == FACTS[5]


@pytest.mark.parametrize("words", ["plan premium", "spare part", "reception cellar", "Norway June"])
def test_a_fact_is_found_by_its_words(facts: Api, words: str) -> None:
    found = first(facts, words).lower()
    assert all(word.lower() in found for word in words.split())


def test_a_misspelt_word_is_read_as_it_is_meant(facts: Api) -> None:
    assert first(facts, "wehn is her hoilday abroad") == FACTS[4]
    assert first(facts, "where is the recepton bad") == FACTS[6]


def test_a_word_that_some_text_has_is_no_mistake(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("travle is the library that plots routes"), event("we travel a lot", "t"),
           wait=True)  # fmt: skip
    assert first(api, "travle").startswith("travle")


def test_facts_are_sure_of_what_they_are_about_and_of_nothing_else(facts: Api) -> None:
    about = [recall(facts, question).confidence for question, _ in ABOUT]
    foreign = [recall(facts, question).confidence for question in FOREIGN]
    assert sorted(about)[len(about) // 2] >= 0.5
    assert max(foreign) < 0.5
    assert min(about) > sorted(foreign)[len(foreign) // 2]


def test_plain_modes_search_for_what_is_written(facts: Api) -> None:
    lexical = recall(facts, "hoilday recepton", mode=recall_pb.RECALL_MODE_LEXICAL)
    assert not lexical.results
