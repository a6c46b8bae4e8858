"""JSON in one spelling, so that equal content has equal bytes and equal hashes, in any language."""

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
    """Return `value` in the JSON Canonicalization Scheme, RFC 8785.

    Raises:
        ValueError: a number is NaN or infinite, or a whole number that doubles cannot hold; JSON
            has no such numbers.
    """
    text = _encoder.encode(value)
    # Python's encoder is many times faster, and spells as the scheme does but for two things:
    # numbers with an exponent, and the order of keys beyond the basic plane of Unicode.
    if "e-" in text or "e+" in text or (not text.isascii() and max(text) > "\uffff"):
        import rfc8785

        return rfc8785.dumps(value).decode()
    return text
