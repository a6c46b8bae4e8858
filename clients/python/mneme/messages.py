"""Messages as plain Python values and as JSON, with the field names of the schema."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message


def to_dict(message: Message, *, defaults: bool = True) -> dict[str, Any]:
    """A message as plain values in protobuf's JSON form.

    Args:
        message: any message of the API, or a Struct.
        defaults: include fields that hold their default, so that the keys are always the same.

    Returns:
        Field names as in the schema; times as RFC 3339 text, enums by name, 64-bit integers as
        text, JSON (Struct) as it is.
    """
    result: dict[str, Any] = json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=defaults,
    )
    return result


def to_json(message: Message, *, defaults: bool = True) -> str:
    """The same as JSON text on one line."""
    return json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=defaults,
        indent=None,
        ensure_ascii=False,
    )
