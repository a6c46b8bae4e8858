"""What fields take, as the schema says it, and texts made to fit where none may be lost to a
formality."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from buf.validate import validate_pb2
from google.protobuf.descriptor import FieldDescriptor

from mneme.v1 import options_pb2


def rules(field: FieldDescriptor) -> Any:
    """What a field takes, as the schema says it."""
    # The generated types call an extension a field's descriptor, and not what it extends.
    option: Any = validate_pb2.field
    return field.GetOptions().Extensions[option]


def json_limits(field: FieldDescriptor) -> Any:
    """How large and how deep the JSON of a field may be."""
    option: Any = options_pb2.json_limits
    return field.GetOptions().Extensions[option]


def fitting(field: FieldDescriptor, text: str) -> str:
    """The text as the field takes it: "…" ends one that is too long, and "?" stands for each
    character that it does not take."""
    return _fitting(rules(field).string, text)


def fitting_all(field: FieldDescriptor, texts: Iterable[str]) -> list[str]:
    """The last of the texts, as many as the field takes, without empty ones."""
    listed = rules(field).repeated
    kept = [text for text in texts if text][-listed.max_items :]
    return [_fitting(listed.items.string, text) for text in kept]


def _fitting(rules: Any, text: str) -> str:
    if len(text) > rules.max_len:
        text = text[: rules.max_len - 1] + "…"
    # Halves of surrogate pairs are no text; a pattern says what no character may be.
    text = text.encode(errors="replace").decode()
    if re.fullmatch(rules.pattern, text):
        return text
    return "".join(one if re.fullmatch(rules.pattern, one) else "?" for one in text)
