"""Types of events, an open name: what is concluded from the known ones, and who says what."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import options_pb2
from mneme_server.features.events.event_types import (
    ERROR_TYPES,
    EVENT,
    KNOWN,
    NAME,
    EventType,
    require_name,
    role_of,
    traits_of,
    type_named,
)

FIELD = pb.NewEvent.DESCRIPTOR.fields_by_name["event_type"]


def test_the_server_concludes_something_from_exactly_the_names_that_the_api_documents() -> None:
    documented = [one.name for one in FIELD.GetOptions().Extensions[options_pb2.known].names]
    assert list(KNOWN) == documented == list(map(str, EventType))


def test_what_recall_takes_as_said_and_as_failed_are_known_types() -> None:
    assert EVENT.failed == ERROR_TYPES
    assert EVENT.spoken - {""} <= set(KNOWN)


@pytest.mark.parametrize("said", ["tool_error", "TOOL_ERROR", "Tool_Error"])
def test_a_known_name_means_the_same_in_any_case(said: str) -> None:
    assert type_named(said) == "tool_error"


@pytest.mark.parametrize(
    "said",
    ["on_tool_end", "gen_ai.user.message", "PreToolUse", "tool-call", "TEXT_MESSAGE_START",
     "item/started", "com.example:created"],
)  # fmt: skip
def test_another_framework_s_name_stays_as_it_is_and_is_like_a_custom_event(said: str) -> None:
    assert type_named(said) == said
    assert NAME.fullmatch(said)
    assert traits_of(said) == KNOWN["custom"]
    require_name(said)


@pytest.mark.parametrize("stored", ["", "1", "two words", "a" * 129, b"\xff", 5, "naïve"])
def test_what_cannot_have_been_stored_is_no_name(stored: object) -> None:
    with pytest.raises(ValueError, match="is no name"):
        require_name(stored)


def test_the_rules_of_the_api_and_of_the_store_are_the_same() -> None:
    from buf.validate import validate_pb2

    rules = FIELD.GetOptions().Extensions[validate_pb2.field].string
    assert rules.pattern == f"^{re.sub(r'.0,127.$', '*', NAME.pattern)}$"
    assert rules.max_len == 128


@pytest.mark.parametrize(
    ("payload", "text", "role"),
    [
        ({"role": "user"}, "Hi", "user"),
        ({"role": "Human"}, "assistant: Hi", "user"),
        ({"role": 7}, "Hi", ""),
        ({}, "User: which tin?", "user"),
        ({}, "user: which tin?", "user"),
        ({}, "**Assistant**: the green one", "assistant"),
        ({}, "AI : the green one", "assistant"),
        ({}, "The user: Ann", ""),
        ({}, "Users: 7", ""),
        ({}, "Ann: which tin?", ""),
    ],
)
def test_a_message_is_said_by_the_role_of_its_payload_or_its_label(
    payload: dict[str, Any], text: str, role: str
) -> None:
    assert role_of("message", payload, text) == role


def test_only_messages_have_labels_and_a_models_answer_is_the_assistants() -> None:
    assert role_of("tool_response", {}, "User: Ann") == ""
    assert role_of("llm_response", {}, "User: Ann is the customer's name") == "assistant"
