"""Options that schemas give their elements, and what follows from them.

The defaults of what a request leaves out are put in, and an update names only what it may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from mneme.v1 import options_pb2

from mneme_server.common.errors import InvalidArgument, Reason

_WHOLE = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)


def extension(element: Any, option: Any) -> Any:
    """Return an option's value; its default where it is not set.

    Args:
        element: the descriptor of a service, an RPC or a field.
        option: the extension; the generated stubs type it as a plain field and not as what it
            extends.
    """
    return element.GetOptions().Extensions[option]


def fill_defaults(message: Message) -> None:
    """Set the fields that a message, or a message in it, leaves out and that have a default.

    A message that is not set stays so.
    """
    plan = _plan(message.DESCRIPTOR)
    for name, has_presence, value in plan.values:
        if not (message.HasField(name) if has_presence else getattr(message, name)):
            setattr(message, name, value)
    for name, is_repeated in plan.inside:
        if is_repeated:
            for item in getattr(message, name):
                fill_defaults(item)
        elif message.HasField(name):
            fill_defaults(getattr(message, name))


def default_of(field: FieldDescriptor) -> int | float | str | None:
    """Return a field's default; None when it has none.

    Raises:
        LookupError, ValueError: the schema states one that does not fit the field's type.
    """
    text: str = extension(field, options_pb2.default_value)
    if not text:
        return None
    if field.enum_type is not None:
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        return int(field.enum_type.values_by_name[prefix + text].number)
    if field.cpp_type in _WHOLE:
        return int(text)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return float(text)
    if field.type == FieldDescriptor.TYPE_STRING:
        return text
    raise LookupError(f"{field.full_name}: a field of its type has no default")


@dataclass(frozen=True, slots=True)
class _DefaultsPlan:
    """The fields of a message with defaults (name, presence, value), and those that hold some
    (name, whether there may be several)."""

    values: tuple[tuple[str, bool, int | float | str], ...]
    inside: tuple[tuple[str, bool], ...]


@cache
def _plan(descriptor: Descriptor) -> _DefaultsPlan:
    return _DefaultsPlan(
        tuple(
            (field.name, field.has_presence, value)
            for field in descriptor.fields
            if (value := default_of(field)) is not None
        ),
        tuple(
            (field.name, field.is_repeated)
            for field in descriptor.fields
            if field.message_type is not None and _has_any(field.message_type, frozenset())
        ),
    )


def _has_any(descriptor: Descriptor, above: frozenset[str]) -> bool:
    """Tell whether a message, or one in it, has a default; `above` are those that hold it."""
    if descriptor.full_name in above or descriptor.GetOptions().map_entry:
        return False
    return any(
        default_of(field) is not None
        or (
            field.message_type is not None
            and _has_any(field.message_type, above | {descriptor.full_name})
        )
        for field in descriptor.fields
    )


def named_fields(request: Message) -> Sequence[str]:
    """Return the fields that the `update_mask` of a request names, each of which may be changed.

    Raises:
        InvalidArgument: the mask is empty or names something that cannot be changed.
    """
    mask = request.DESCRIPTOR.fields_by_name["update_mask"]
    changeable: Sequence[str] = extension(mask, options_pb2.changeable).paths
    paths: Sequence[str] = getattr(request, "update_mask").paths  # noqa: B009
    if not paths:
        raise InvalidArgument(
            "update_mask names no field to change",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="update_mask",
        )
    for path in paths:
        if path not in changeable:
            raise InvalidArgument(
                f"update_mask names {path!r}; it can only name {', '.join(changeable)}",
                field="update_mask",
            )
    return paths
