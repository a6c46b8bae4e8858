"""Arguments take what the API says of the parameters that they stand for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mneme.parameters import METHODS
from mneme_mcp.arguments import CamelArguments, SnakeArguments
from mneme_mcp.offers import TOKENS, Offer, offers
from pydantic import ValidationError


@offers(
    "list_events",
    session_id=...,
    event_types="Only these.",
    min_severity=...,
    from_=...,
    to=...,
    oldest_first=Offer("Oldest first.", at="descending", negated=True),
    limit=Offer(default=20),
    token_budget=TOKENS,
)
class Events(CamelArguments):
    """Which events."""


@offers("search_lessons", query=..., project=..., category=..., tags=..., most=Offer(at="limit"))
class Lessons(SnakeArguments):
    """Which lessons."""


@offers(
    "create_reflection",
    outcome=...,
    what_worked=...,
    strategy=Offer(at="next_strategy", required=True, least=0),
    task=Offer(at="task_description", default=""),
)
class Reflection(SnakeArguments):
    """What an attempt taught."""


@pytest.fixture
def shown() -> dict[str, Any]:
    properties: dict[str, Any] = Events.schema_for_hosts()["properties"]
    return properties


def test_bounds_choices_and_defaults_are_the_apis_and_what_differs_is_the_tools(
    shown: dict[str, Any],
) -> None:
    limit, severity = METHODS["list_events"]["page_size"], METHODS["list_events"]["min_severity"]
    assert shown["limit"]["maximum"] == limit.most
    assert shown["limit"]["minimum"] == limit.least
    assert shown["limit"]["default"] == 20
    assert shown["minSeverity"]["enum"] == [*severity.choices]
    outcome = Reflection.schema_for_hosts()["properties"]["outcome"]
    assert outcome["enum"] == [*METHODS["create_reflection"]["outcome"].choices]


def test_an_argument_says_what_the_api_does_unless_the_tool_has_words_of_its_own(
    shown: dict[str, Any],
) -> None:
    assert shown["from"]["description"] == METHODS["list_events"]["start_time"].about
    assert shown["eventTypes"]["description"] == "Only these."
    assert METHODS["list_events"]["session_id"].about == "Of this session."
    assert shown["sessionId"]["description"] == "Only of this session."


def test_the_end_of_a_span_is_said_to_include_its_day_which_it_does(shown: dict[str, Any]) -> None:
    assert shown["to"]["description"] == "To; a day is included."
    given = Events.model_validate({"from": "2026-05-01", "to": "2026-05-01"})
    assert given.request()["start_time"] == datetime(2026, 5, 1, tzinfo=UTC)
    assert given.request()["end_time"] == datetime(2026, 5, 2, tzinfo=UTC)


def test_what_must_be_given_cannot_be_left_out() -> None:
    assert Lessons.schema_for_hosts()["required"] == ["query"]
    with pytest.raises(ValidationError, match="at least 1 character"):
        Lessons.model_validate({"query": " "})


def test_a_tool_may_want_what_the_api_does_not_and_the_other_way_round() -> None:
    assert Reflection.schema_for_hosts()["required"] == ["outcome", "strategy"]
    given = Reflection.model_validate({"outcome": "failure", "strategy": ""})
    assert given.request() == {"outcome": "failure"}


def test_how_many_labels_there_may_be_is_checked_and_not_shown(shown: dict[str, Any]) -> None:
    most = int(METHODS["list_events"]["event_types"].most or 0)
    assert "maxItems" not in shown["eventTypes"]
    Events.model_validate({"event_types": ["a"] * most})
    with pytest.raises(ValidationError, match=f"at most {most} items"):
        Events.model_validate({"event_types": ["a"] * (most + 1)})


def test_only_what_was_given_is_sent_under_the_parameters_own_names() -> None:
    assert Events().request() == {"descending": True, "page_size": 20}
    given = Events.model_validate({"oldestFirst": True, "sessionId": "", "token_budget": 200})
    assert given.request() == {"session_id": "", "page_size": 20}


def test_parameters_of_a_filter_are_arguments_beside_the_others() -> None:
    given = Lessons.model_validate({"query": "q", "project": "p", "tags": "a, b", "most": 3})
    sent = {"query": "q", "limit": 3, "filter": {"project": "p", "tags": ["a", "b"]}}
    assert given.request() == sent
    assert given.spelled("filter.tags[1]") == "tags[1]"
    assert given.spelled("limit") == "most"
    assert Events().spelled("page_size") == "limit"


def test_texts_with_commas_are_one_where_they_may_be_prose() -> None:
    with pytest.raises(ValidationError, match="valid list"):
        Reflection.model_validate({"outcome": "success", "strategy": "x", "what_worked": "a, b"})


def test_an_argument_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(KeyError, match="list_events has no parameter nothing"):
        offers("list_events", nothing=...)(SnakeArguments)
