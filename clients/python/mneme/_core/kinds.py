"""Kinds of memory: names that the server's services bring."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from mneme.v1 import options_pb2


def names_kind(field: FieldDescriptor) -> bool:
    """Whether a text names a kind of memory."""
    # The generated types call an extension a field's descriptor, and not what it extends.
    option: Any = options_pb2.names_kind
    return bool(field.GetOptions().Extensions[option])


def kind_name(text: str) -> str:
    """How a kind is called that is said in any case. Which ones there are, the server knows."""
    return text.strip().lower().replace("-", "_")
