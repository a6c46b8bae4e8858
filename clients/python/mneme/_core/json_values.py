"""Free JSON on the wire (Struct, Value, ListValue) as plain Python values."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Struct

# Beyond it a double no longer holds every whole number.
MAX_EXACT_INTEGER = 2**53


def free_json(value: Any) -> Any:
    """Free JSON as it is: keys sorted, whole numbers as such (3, not 3.0)."""
    if isinstance(value, Struct):
        return {key: free_json(value.fields[key]) for key in sorted(value.fields)}
    if isinstance(value, ListValue):
        return [free_json(item) for item in value.values]
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    content = getattr(value, kind)
    if kind == "number_value":
        return int(content) if _is_whole(content) else content
    return free_json(content) if kind in ("struct_value", "list_value") else content


def _is_whole(number: float) -> bool:
    """Whether an integer says the same; minus zero is a double only."""
    return (
        number.is_integer()
        and abs(number) <= MAX_EXACT_INTEGER
        and not (number == 0 and math.copysign(1, number) < 0)
    )
