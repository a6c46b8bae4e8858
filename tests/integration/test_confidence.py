"""Confidence: high for what is stored, low for what belongs elsewhere, and counting only what the
filters let through."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.contexts import get_context
from support.making import event, recall, record
from support.server import LocalServer

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE
MODES = pytest.mark.parametrize("mode", [None, LEXICAL, DENSE])

TALK = (
    "I moved the registry to eu-west-1 because the old one was too slow",
    "Our staging database is reset every Sunday night",
    "The login service fails with AUTH_4412 when the clock is skewed",
    "Refresh tokens are kept in /etc/shop/tokens.db",
    "My daughter has her piano recital on the third of May",
    "We agreed to write the release notes in German and English",
    "The invoice export times out for more than a thousand rows",
    "Ann takes over the on-call duty next week",
    "The build needs Node 20 since the migration to Vite",
    "Customers in Japan pay by invoice only",
)
ANSWERED = (
    "where did we move the registry?",
    "when is the staging database reset?",
    "which languages are the release notes written in?",
    "when is the piano recital of my daughter?",
    "who takes over on-call next week?",
    "how do customers in Japan pay?",
)
FOREIGN = (
    "What did the biologist say about the coral reef?",
    "Which team won the football championship?",
    "How long should the bread be baked?",
    "Why was the flight to Seattle cancelled?",
    "What did Melanie paint last summer?",
)
NOTHING = ("the", "and of the", "what is it", "asdfgh", "qwerty zxcvbn", "blorptang frumious", "?!")
THERE = ("AUTH_4412", "/etc/shop/tokens.db", "eu-west-1", "what is AUTH_4412?")


@pytest.fixture(scope="module")
def shop(server: LocalServer) -> Api:
    """Return a tenant with ten memories; nobody may change it."""
    api = server.keys.tenant("confidence")
    record(api, *(event(text, f"s{n // 3}") for n, text in enumerate(TALK)), wait=True)
    return api


def sure(api: Api, query: str, **fields: Any) -> float:
    answer = recall(api, query, **{key: value for key, value in fields.items() if value})
    assert answer.HasField("confidence")
    assert 0.0 <= answer.confidence <= 1.0
    return answer.confidence


def test_ten_memories_are_enough_to_tell_their_questions_from_others(shop: Api) -> None:
    own = sorted(sure(shop, question) for question in ANSWERED)
    foreign = sorted(sure(shop, question) for question in FOREIGN)
    assert own[len(own) // 2] >= 0.7
    assert foreign[len(foreign) // 2] <= 0.05
    assert own[0] > foreign[-1]


@MODES
@pytest.mark.parametrize("query", NOTHING)
def test_nonsense_and_stop_words_are_answered_by_nothing(shop: Api, query: str, mode: int) -> None:
    assert sure(shop, query, mode=mode) <= 0.05


@MODES
@pytest.mark.parametrize("query", THERE)
def test_an_identifier_that_is_there_is_found_for_sure(shop: Api, query: str, mode: int) -> None:
    assert sure(shop, query, mode=mode) >= 0.5


@pytest.mark.parametrize("query", ["AUTH_9981", "/etc/other/keys.pem", "ap-south-7"])
def test_an_identifier_that_is_not_there_is_not(shop: Api, query: str) -> None:
    assert sure(shop, query) < 0.5


@pytest.fixture(scope="module")
def orders(server: LocalServer) -> Api:
    """Return a tenant that knows some orders and years; nobody may change it."""
    api = server.keys.tenant("orders")
    record(
        api,
        event("Pedido 88412 de María: dos sillas, enviado el lunes", "s0"),
        event("Pedido 90311: una mesa, pendiente de pago", "s0"),
        event("Invoice F-2201 was paid by Acme", "s1"),
        event("Invoice F-2202 is overdue, a reminder was sent", "s1"),
        event("The office moved to the harbour in 2023", "s2"),
        event("We collected ideas for the summer party", "s2"),
        event("The deposit of the flat is 15,000 euros, and its rent 2400", "s3"),
        wait=True,
    )
    return api


@MODES
@pytest.mark.parametrize(
    "query", ["pedido 88421", "pedido 77777", "pedido 8842", "order 88421", "invoice F-2204"]
)
def test_a_number_that_nothing_has_counts_against_what_is_like_it(
    orders: Api, query: str, mode: int
) -> None:
    assert sure(orders, query, mode=mode) <= 0.2


@MODES
@pytest.mark.parametrize("query", ["pedido 88412", "pedido 90311", "invoice F-2201"])
def test_a_number_that_is_there_is_found_for_sure(orders: Api, query: str, mode: int) -> None:
    assert sure(orders, query, mode=mode) >= 0.9


@MODES
@pytest.mark.parametrize("number", ["deposit 15000", "deposit 15,000", "rent 2400", "rent 2,400"])
def test_a_number_is_the_same_with_its_thousands_apart_or_not(
    orders: Api, number: str, mode: int
) -> None:
    assert sure(orders, number, mode=mode) >= (0.4 if mode == LEXICAL else 0.9)
    assert sure(orders, number.replace("00", "50"), mode=mode) <= 0.2


def test_years_and_counts_that_nothing_has_do_not_count_against_the_rest(orders: Api) -> None:
    assert sure(orders, "where did the office move in 2024") >= 0.7
    assert sure(orders, "the 20 best ideas for the summer party") >= 0.7


def test_only_what_the_filters_let_through_counts(shop: Api) -> None:
    question = "where did we move the registry?"
    assert sure(shop, question, session_id="s0") >= 0.7
    assert sure(shop, question, session_id="s2") <= 0.05
    assert sure(shop, "AUTH_4412", session_id="s0") >= 0.5
    assert sure(shop, "AUTH_4412", session_id="s2") <= 0.05


def test_what_is_too_unsure_is_not_returned(shop: Api) -> None:
    answer = recall(shop, FOREIGN[0], min_confidence=0.3)
    assert answer.outcome == recall_pb.RECALL_OUTCOME_NOTHING_CONFIDENT
    assert not answer.results
    assert answer.HasField("confidence")
    assert answer.searched_count == len(TALK)
    assert recall(shop, FOREIGN[0]).results
    assert recall(shop, ANSWERED[0], min_confidence=0.3).results


def test_an_empty_store_is_sure_of_nothing(api: Api) -> None:
    answer = recall(api, ANSWERED[0])
    assert answer.HasField("confidence")
    assert answer.confidence == 0.0


def test_context_leaves_out_what_it_is_not_sure_of(server: LocalServer) -> None:
    api = server.keys.tenant("sure-context")
    record(api, *(event(text, f"s{n}") for n, text in enumerate(TALK)), wait=True)
    lesson = learn_pb.CreateLessonRequest(
        title="Registries", content="Move the registry near to the builds, or pulls are slow"
    )
    api.learn.CreateLesson(lesson)
    about = get_context(api, "where to move the registry")
    assert about.sessions
    assert about.lessons
    foreign = get_context(api, FOREIGN[0])
    assert not foreign.sessions
    assert not foreign.lessons


def test_the_task_with_a_new_number_still_gets_what_is_known_of_such_tasks(
    server: LocalServer,
) -> None:
    api = server.keys.tenant("new-order")
    record(api, event("Order 88412 was refused, since it had no price", "s0"), wait=True)
    lesson = learn_pb.CreateLessonRequest(
        title="Refused orders", content="An order without a price is refused"
    )
    api.learn.CreateLesson(lesson)
    assert sure(api, "refused order 88421") <= 0.25
    assert get_context(api, "refused order 88421").lessons
