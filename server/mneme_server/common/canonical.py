"""JSON in one spelling, so that equal content has equal bytes and equal hashes, in any language."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


quoted: Callable[[str], str] = encode_basestring
"""Returns a text as `canonical_json` spells it, without setting up an encoder."""
_EXACT = 2**53
_EXPONENT = re.compile(r"\de[-+]\d")


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
    # To look for "e-" before the expression takes a quarter of the time.
    exponent = ("e-" in text or "e+" in text) and _EXPONENT.search(text)
    if exponent or (not text.isascii() and max(text) > "\uffff"):
        return _spell(value)
    return text


def whole_numbers(value: Json) -> Json:
    """Return the same JSON with ints for floats that are whole: the scheme spells 1.0 as 1."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, Mapping):
        return {name: whole_numbers(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(one) for one in value]
    return value


def base64_text(data: bytes) -> str:
    """Return bytes as JSON holds them."""
    return b64encode(data).decode()


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
