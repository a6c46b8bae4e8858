"""JSON in one spelling, so that equal content has equal bytes and equal hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Json) -> str:
    """Return `value` as JSON without spaces, keys sorted.

    Raises:
        ValueError: a number is NaN or infinite; JSON has no such numbers.
    """
    return _encoder.encode(value)
