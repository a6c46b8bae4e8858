"""The names that a caller uses for an enum's values: "tool_error", not EVENT_TYPE_TOOL_ERROR."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from google.protobuf.descriptor import EnumDescriptor


def name_of(enum: EnumDescriptor, number: int) -> str | int | None:
    """What an answer says for a value: None when unspecified, the number when it has no name."""
    return _names(enum).get(number, number)


def short_names(enum: EnumDescriptor) -> list[str]:
    """What a caller may say, without the unspecified value."""
    return [name for name in _names(enum).values() if name is not None]


@cache
def numbers_of(enum: EnumDescriptor) -> Mapping[str, int]:
    """Every accepted name in lower case with its number: `severity_info` and `info`."""
    full = {value.name.lower(): value.number for value in enum.values}
    prefix = _prefix(enum).lower()
    return full | {name.removeprefix(prefix): number for name, number in full.items()}


@cache
def _names(enum: EnumDescriptor) -> Mapping[int, str | None]:
    prefix = _prefix(enum)
    return {
        value.number: value.name.removeprefix(prefix).lower() if value.number else None
        for value in enum.values
    }


def _prefix(enum: EnumDescriptor) -> str:
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")
