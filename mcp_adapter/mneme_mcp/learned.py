"""States, actions and spaces in tools: plain JSON, as `mneme.spaces` has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from mneme.spaces import plain_value, space_fields, value_fields
from mneme.types import Action
from pydantic import BeforeValidator, WithJsonSchema

from mneme_mcp.arguments import unwrapped
from mneme_mcp.schemas import JSON_TEXT

# How an answer describes an action; agents hand it back as they got it.
_DESCRIBED = {"type", "value"}
_KINDS = ("discrete", "continuous")


def plain(value: Action) -> Any:
    """An action of an answer as an agent reads it."""
    return plain_value(value)


def words(value: Any) -> str:
    """A state or an action in a sentence."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(value: Any) -> Any:
    value = unwrapped(value)
    if isinstance(value, Mapping) and value.get("type") in _KINDS and set(value) >= _DESCRIBED:
        value = value["value"]
    return value_fields(value)


def _space(value: Any) -> Any:
    return space_fields(unwrapped(value))


Value = Annotated[Any, BeforeValidator(_value), WithJsonSchema(JSON_TEXT)]
"""A state or an action, made ready for a request."""

SpaceValue = Annotated[Any, BeforeValidator(_space), WithJsonSchema({"type": "object"})]
"""A space, made ready for a request."""
