"""Says a field's rules in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

_ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
_NO_NUL = r"^[^\x00]*$"
_ANY = frozenset({"", _NO_NUL})
_ENDS = {"gt": "more than", "gte": "at least", "lt": "less than", "lte": "at most"}
NUMBERS = frozenset({"int32", "int64", "uint32", "uint64", "float", "double"})
_EXACT_IN_DOUBLE = 2**53 - 1
_POWERS_FROM = 10**9


def limits(field: FieldDescriptor, options: Mapping[str, Any], required: bool) -> str:
    """A field's rules and default as sentences; "" when there is nothing to say.

    Args:
        field: the field.
        options: its options by their short names.
        required: whether it must be given.
    """
    default = options.get("default_value", "")
    parts = ["required"] if required else []
    if rules := options.get("field"):
        parts += _parts(field, rules, from_one=bool(default) and not field.has_presence)
    if options.get("narrows") or options.get("not_blank"):
        parts.append("not blank")
    if size := options.get("json_limits"):
        parts.append(f"up to {_bytes(size.max_bytes)} encoded and {size.max_depth} levels deep")
    text = "; ".join(parts)
    sentences = [text[0].upper() + text[1:] + "."] if text else []
    return " ".join([*sentences, *([f"Default: {default}."] if default else [])])


def _parts(field: FieldDescriptor, rules: Any, *, from_one: bool = False) -> Iterator[str]:
    kind = rules.WhichOneof("type")
    own: Any = getattr(rules, kind) if kind else None
    if kind == "string":
        yield from _text(own)
    elif kind in NUMBERS:
        yield from _range(own, from_one=from_one)
    elif kind == "repeated":
        yield from _entries(field, own)
    elif kind == "timestamp":
        first, last = (datetime.fromtimestamp(end.seconds, UTC).year for end in (own.gte, own.lte))
        yield f"from {first} to {last}"
    elif kind == "duration":
        ends = (own.WhichOneof("greater_than"), own.WhichOneof("less_than"))
        said = [f"{_ENDS[end]} {_number(getattr(own, end).seconds)}" for end in ends if end]
        yield f"{' and '.join(said)} seconds"
    elif kind == "enum" and getattr(own, "in"):
        assert field.enum_type is not None
        names = [field.enum_type.values_by_number[n].name for n in getattr(own, "in") if n]
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        yield " or ".join(name.removeprefix(prefix) for name in names)


def _text(rules: Any) -> Iterator[str]:
    one_line = ", on one line" if rules.pattern == _ONE_LINE else ""
    if rules.max_len:
        yield f"up to {_number(rules.max_len)} characters{one_line}"
    if rules.pattern not in _ANY and not one_line:
        yield f"of the form `{rules.pattern}`"


def _range(rules: Any, *, from_one: bool) -> Iterator[str]:
    low, high = rules.WhichOneof("greater_than"), rules.WhichOneof("less_than")
    if (low, high) == ("gte", "lte"):
        yield f"{1 if from_one and not rules.gte else _number(rules.gte)} to {_number(rules.lte)}"
        return
    ends = [f"{_ENDS[end]} {_number(getattr(rules, end))}" for end in (low, high) if end]
    if ends:
        yield " and ".join(ends)


def _entries(field: FieldDescriptor, rules: Any) -> Iterator[str]:
    each = "; ".join(_parts(field, rules.items))
    if rules.max_items:
        text = f"up to {_number(rules.max_items)} entries"
        yield f"{text}, each {each}" if each else text
    if rules.unique:
        yield "none twice"


def _bytes(size: int) -> str:
    mebibytes, rest = divmod(size, 1024 * 1024)
    return f"{_number(size // 1024)} KiB" if rest else f"{_number(mebibytes)} MiB"


def _number(value: float) -> str:
    if value == _EXACT_IN_DOUBLE:
        return "2^53 - 1"
    if value >= _POWERS_FROM and str(int(value)).strip("0") == "1":
        return f"10^{len(str(int(value))) - 1}"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
