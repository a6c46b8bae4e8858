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

    The scheme stops at whole numbers that doubles hold; those beyond, such as microseconds after
    the year 2255, are spelled in full. Whole numbers are expected as ints: a float keeps its point,
    1.0, because hashes that were made so must verify.

    Raises:
        ValueError: a number is NaN or infinite; JSON has no such numbers.
    """
    text = _encoder.encode(value)
    # Python's encoder is many times faster, and spells as the scheme does but for two things:
    # numbers with an exponent, and the order of keys beyond the basic plane of Unicode.
    if "e-" in text or "e+" in text or (not text.isascii() and max(text) > "\uffff"):
        return _spell(value)
    return text


def _spell(value: Json) -> str:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return f"{{{','.join(f'{_encoder.encode(key)}:{_spell(value[key])}' for key in keys)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_spell, value))}]"
    if isinstance(value, float):
        import rfc8785

        return rfc8785.dumps(value).decode()
    return _encoder.encode(value)
