"""Who says what an event tells."""

from __future__ import annotations

from typing import Any

import pytest
from mneme_server.features.events.event_types import role_of


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
