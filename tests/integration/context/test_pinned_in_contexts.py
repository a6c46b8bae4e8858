"""What is pinned for a user is in the user's contexts, and leaves room for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import memory_service_pb2 as memory_pb
from support.api import Api
from support.contexts import get_context
from support.making import at
from support.server import LocalServer, local_server

NUTS = "Peanuts are an allergy risk at lunch"
INVOICES = "Ann wants her invoices by post"
TOPIC = "how does Ann want her invoices"
ELSEWHERE = "tune the carburettor of a motorcycle"
QUARTER = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("pinned-in-contexts")) as running:
        yield running


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def insert(api: Api, text: str, **fields: Any) -> None:
    fields = {"user_id": "ann", **fields}
    request = memory_pb.CreateMemoryRequest(text=text, wait_indexed=True, **fields)
    api.memory.CreateMemory(request)


def texts(answer: pb.GetContextResponse) -> list[str]:
    return [item.text for item in answer.items]


def test_what_is_pinned_for_the_user_comes_before_what_bears_on_the_topic(api: Api) -> None:
    insert(api, NUTS, memory_id="nuts", pinned=True)
    insert(api, INVOICES, memory_id="invoices")
    answer = get_context(api, TOPIC, user_id="ann")
    assert texts(answer) == [NUTS, INVOICES]
    nuts, invoices = answer.items
    assert (nuts.pinned, nuts.worth, nuts.HasField("similarity")) == (True, 0.0, False)
    assert (invoices.pinned, invoices.worth > 0) == (False, True)
    assert ", memory nuts, pinned: Peanuts are" in answer.text
    assert answer.outcome == pb.CONTEXT_OUTCOME_FOUND
    # Asked for nobody, it is an item like any other.
    assert texts(get_context(api, TOPIC)) == [INVOICES]


def test_what_is_pinned_and_bears_on_the_topic_is_there_once_with_its_worth(api: Api) -> None:
    insert(api, INVOICES, pinned=True)
    (item,) = get_context(api, TOPIC, user_id="ann").items
    assert item.pinned
    assert item.worth > 0
    assert item.HasField("similarity")


def test_where_nothing_bears_on_the_topic_the_answer_says_that_it_is_only_what_is_pinned(
    api: Api,
) -> None:
    insert(api, NUTS, pinned=True)
    insert(api, INVOICES, importance=4)
    answer = get_context(api, ELSEWHERE, user_id="ann")
    assert (texts(answer), answer.outcome) == ([NUTS], pb.CONTEXT_OUTCOME_ONLY_PINNED)
    for silent in ({}, {"user_id": "carol"}):
        answer = get_context(api, ELSEWHERE, **silent)
        assert (answer.text, answer.outcome) == ("", pb.CONTEXT_OUTCOME_NOTHING_SURE)


def test_what_is_pinned_takes_a_quarter_of_the_budget_at_most(api: Api) -> None:
    for number in range(20):
        insert(api, f"{NUTS}, and number {number} of what is alike", pinned=True)
    insert(api, INVOICES)
    answer = get_context(api, TOPIC, user_id="ann", token_budget=600)
    pinned = [item for item in answer.items if item.pinned]
    assert pinned
    assert sum(item.token_count for item in pinned) <= 600 // QUARTER
    assert INVOICES in texts(answer)
    assert answer.items[0].pinned
    assert answer.token_count <= 600
    assert answer.left_out_count == 20 - len(pinned)


def test_a_pinned_memory_too_long_for_its_share_is_there_for_what_it_is_worth(api: Api) -> None:
    insert(api, f"{INVOICES}, {'and in an envelope of grey paper ' * 9}", pinned=True)
    (item,) = get_context(api, TOPIC, user_id="ann", token_budget=300).items
    assert (item.pinned, item.worth > 0) == (False, True)


def test_what_is_pinned_for_somebody_else_or_nobody_is_in_nobodys_context(api: Api) -> None:
    for user, canary in (("ann", "zyxquorl"), ("bob", "vrimbelt"), ("", "ospelak")):
        insert(api, f"Keep {canary} in mind", user_id=user, pinned=True)
    for user, canary, others in (
        ("ann", "zyxquorl", ("vrimbelt", "ospelak")), ("bob", "vrimbelt", ("zyxquorl", "ospelak")),
    ):  # fmt: skip
        answer = str(get_context(api, ELSEWHERE, user_id=user))
        assert canary in answer
        assert not any(other in answer for other in others)


def test_what_is_pinned_passes_the_other_filters(api: Api) -> None:
    insert(api, "pinned everywhere", pinned=True, since=at(0))
    insert(api, "pinned in the shop", pinned=True, project="shop", since=at(10))
    insert(api, "pinned in the lab", pinned=True, project="lab", since=at(20))

    def pinned(**asked: Any) -> set[str]:
        found = get_context(api, ELSEWHERE, user_id="ann", **asked).items
        return {item.text.removeprefix("pinned ") for item in found}

    assert pinned() == {"everywhere", "in the shop", "in the lab"}
    assert pinned(project="shop") == {"everywhere", "in the shop"}
    assert pinned(project="shop", only_own=True) == {"in the shop"}
    assert pinned(start_time=at(5), end_time=at(15)) == {"in the shop"}
