"""Names and ids in requests, in the one form of Unicode in which they are kept and looked up."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from buf.validate import validate_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from mneme_server.common.texts import composed
from mneme_server.edge.grpc.schema_options import extension

_ON_ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
"""What every field says that something is found by as it is written: the id, the name, the tag.
Texts may have several lines, and stay as they were given."""

_LEADING_INTO_TEXTS = frozenset(
    {
        "mneme.v1.ImportExperienceRequest.reward_field",
        "mneme.v1.MetadataCondition.key",
        "mneme.v1.StateField.path",
    }
)
"""Fields that lead into what was given as content, whose keys stay as they were given."""


def compose_names(message: Message) -> None:
    """Give the names and ids of a message, and of the messages in it, the form NFC."""
    plan = _plan(message.DESCRIPTOR)
    for name in plan.one:
        given = getattr(message, name)
        if not given.isascii() and (kept := composed(given)) != given:
            setattr(message, name, kept)
    for name in plan.several:
        names = getattr(message, name)
        if not all(map(str.isascii, names)):
            names[:] = [*map(composed, names)]
    for name in plan.inside:
        if message.HasField(name):
            compose_names(getattr(message, name))
    for name in plan.lists:
        for item in getattr(message, name):
            compose_names(item)


class _NamePlan(NamedTuple):
    """The fields of a message that are a name, that are names, that have some inside, and that
    list such messages."""

    one: tuple[str, ...]
    several: tuple[str, ...]
    inside: tuple[str, ...]
    lists: tuple[str, ...]


@cache
def _plan(descriptor: Descriptor) -> _NamePlan:
    named = [field for field in descriptor.fields if _is_name(field)]
    holding = [
        field
        for field in descriptor.fields
        if field.message_type is not None and _has_any(field.message_type, frozenset())
    ]
    return _NamePlan(
        tuple(field.name for field in named if not field.is_repeated),
        tuple(field.name for field in named if field.is_repeated),
        tuple(field.name for field in holding if not field.is_repeated),
        tuple(field.name for field in holding if field.is_repeated),
    )


def _is_name(field: FieldDescriptor) -> bool:
    if field.type != FieldDescriptor.TYPE_STRING or field.full_name in _LEADING_INTO_TEXTS:
        return False
    rules = extension(field, validate_pb2.field)
    rule = rules.repeated.items if field.is_repeated else rules
    return bool(rule.string.pattern == _ON_ONE_LINE)


def _has_any(descriptor: Descriptor, above: frozenset[str]) -> bool:
    """Tell whether a message, or one in it, has a name; `above` are those that hold it."""
    if descriptor.full_name in above or descriptor.GetOptions().map_entry:
        return False
    return any(
        _is_name(field)
        or (
            field.message_type is not None
            and _has_any(field.message_type, above | {descriptor.full_name})
        )
        for field in descriptor.fields
    )
