"""What `mneme.parameters` says of a method is what the method takes."""

from __future__ import annotations

import inspect

import pytest
from mneme import MnemeClient
from mneme._generated.services import RPCS
from mneme.messages import GetContextRequest, NewEvent
from mneme.parameters import MESSAGES, METHODS

STREAMS = {rpc.method.lower() for rpc in RPCS if rpc.descriptor.client_streaming}
ONE_REQUEST = [name for name in METHODS if name.replace("_", "") not in STREAMS]


@pytest.mark.parametrize("name", ONE_REQUEST)
def test_a_method_takes_the_parameters_that_are_listed_for_it(name: str) -> None:
    taken = inspect.signature(getattr(MnemeClient, name)).parameters
    for parameter, facts in METHODS[name].items():
        assert (taken[parameter].default is None) != facts.required


def test_each_fact_is_the_schemas() -> None:
    limit, query, scopes = (METHODS["recall"][name] for name in ("limit", "query", "scopes"))
    assert (limit.kind, limit.least, limit.most, limit.default) == ("integer", 1, 100, 10)
    assert (query.kind, query.required, query.most) == ("text", True, 8192)
    assert scopes.many
    assert not scopes.prose
    assert METHODS["sleep"]["progress"].prose
    assert METHODS["recall"]["agent_id"].optional
    assert METHODS["end_session"]["status"].choices == ("completed", "error")
    assert METHODS["end_session"]["status"].default == "completed"
    assert METHODS["create_edge"]["confidence"].default == 0.95


def test_a_default_that_stands_for_0_has_a_range_from_1() -> None:
    assert GetContextRequest().limit == 0
    assert METHODS["get_context"]["limit"].least == 1


def test_a_text_is_one_sentence_without_the_rules_that_follow_it() -> None:
    assert METHODS["recall"]["limit"].about == "Maximum number of results."
    assert METHODS["search_episodes"]["filter"].about == "Which episodes."


def test_a_message_that_a_parameter_holds_has_its_fields_listed() -> None:
    assert set(MESSAGES["NewEvent"]) == set(NewEvent.DESCRIPTOR.fields_by_name)
    assert METHODS["record_events"]["events"].kind == "NewEvent"


def test_a_change_takes_the_id_of_what_is_changed_and_the_fields_that_may_change() -> None:
    changed = METHODS["update_lesson"]
    assert changed["lesson_id"].required
    assert not changed["title"].required
    assert changed["etag"].kind == "text"
    assert "update_mask" not in changed
