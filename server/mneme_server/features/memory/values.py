"""Values in metadata, spelled so that their order is that of texts.

A store then compares values of any type by one column: numbers with numbers and texts with texts,
since the first letter of a spelling names the type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mneme_server.common.canonical import Json, JsonObject, canonical_json

_SIGN = 1 << 63
_ALL = (1 << 64) - 1

Leaf: TypeAlias = "bool | int | float | str | None"


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What a value may be: spellings from `low` to `high`.

    `least` and `most` tell whether the ends belong to it.
    """

    key: str
    low: str
    high: str
    least: bool = True
    most: bool = True

    @property
    def is_one(self) -> bool:
        """Whether it is that of one value."""
        return self.low == self.high and self.least and self.most


def leaves(metadata: JsonObject, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of an object by their keys, spelled; dots lead into nested objects.

    A list is one value, and so is an empty object. A key may come twice: `{"a.b": 1, "a": {"b":
    2}}`.
    """
    for key, value in metadata.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{path}.")
        else:
            yield path, spelled(value)


def spelled(value: Json) -> str:
    """Return a value's spelling."""
    if isinstance(value, str):
        return f"t{value}"
    if isinstance(value, bool) or value is None or not isinstance(value, int | float):
        return f"j{canonical_json(value)}"
    return f"n{_in_order(float(value)):016x}"


def equal(key: str, value: Json) -> ValueRange:
    """Return the span of one value."""
    spelling = spelled(value)
    return ValueRange(key, spelling, spelling)


def less(key: str, value: float | str, *, same: bool) -> ValueRange:
    """Return the span of the numbers, or the texts, below one; with `same`, of itself too."""
    spelling = spelled(value)
    return ValueRange(key, spelling[0], spelling, most=same)


def more(key: str, value: float | str, *, same: bool) -> ValueRange:
    """Return the span of the numbers, or the texts, above one; with `same`, of itself too."""
    spelling = spelled(value)
    return ValueRange(key, spelling, chr(ord(spelling[0]) + 1), least=same, most=False)


def _in_order(number: float) -> int:
    """Return the bits of a double, changed so that they are in the order of the numbers."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number or 0.0))  # -0.0 is 0.0.
    return int(bits ^ _ALL if bits & _SIGN else bits | _SIGN)
