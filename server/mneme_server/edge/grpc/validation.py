"""The `buf.validate` rules that the protos state, checked on messages.

A request's names and ids get the one form of Unicode in which they are kept before, and what it
leaves out is put in after.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from buf.validate import validate_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from mneme.v1 import options_pb2

from mneme_server.common.errors import Reason
from mneme_server.common.texts import composed, is_blank
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import InvalidRequest
from mneme_server.edge.grpc.errors import Violation as FieldViolation
from mneme_server.edge.grpc.schema_options import extension, fill_defaults

if TYPE_CHECKING:
    from protovalidate import FieldPathElementPb, Validator, Violation, ViolationPb


_BOUNDS = frozenset({"gt", "gte", "lt", "lte", "len", "min", "max", "within"})
"""Words of rule ids, such as `int32.gte_lte`, that bound a number, a size or a time."""

_REQUIRED = "required"

_NAMES_NOBODY = "must not be blank; leave it out where it does not matter"

_SAYS_NOTHING = "must not be blank"

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

_IN_WORDS = {
    _ON_ONE_LINE: "must be on one line, without control characters",
    r"^[^\x00-\x20\x7f]*$": "must hold no spaces and no control characters",
    r"^[^\x00]*$": "must hold no NUL character (U+0000)",
}
"""What patterns say that many fields have."""


@cache
def rules() -> Validator:
    """Return what checks a message's rules. It brings a second library of messages, whose import
    the start does not wait for; whoever comes first does."""
    from protovalidate import Validator

    return Validator()


def validate(message: Message, prefix: str = "") -> None:
    """Check a message's rules.

    Args:
        message: the message.
        prefix: the path of the field that holds it, for the paths of violations.

    Raises:
        InvalidRequest: it breaks rules; all violations are named.
    """
    for path, most in _too_long(message, prefix):
        rule = f"must contain no more than {most} item(s)"
        raise InvalidRequest([FieldViolation(path, rule, Reason.OUT_OF_RANGE)])
    violations = [_to_field_violation(v, prefix) for v in rules().collect_violations(message)]
    violations += _blank(message, prefix)
    if violations:
        raise InvalidRequest(violations)


def _blank(message: Message, prefix: str) -> Iterator[FieldViolation]:
    """Yield filters that are given and name nobody, and texts that say nothing."""
    fields = _read_by_people(message.DESCRIPTOR)
    for name in fields.narrow:
        if message.HasField(name) and is_blank(getattr(message, name)):
            yield FieldViolation(_joined(prefix, name), _NAMES_NOBODY, Reason.INVALID_FILTER)
    for name in fields.say:
        for path, text in _given(message, name, prefix):
            if text and is_blank(text):  # An empty one is required, or was left out.
                yield FieldViolation(path, _SAYS_NOTHING, Reason.INVALID_PARAMETER)
    for name in fields.inside:
        for path, inner in _given(message, name, prefix):
            yield from _blank(inner, path)


def _given(message: Message, name: str, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of a field: one, each of a list, or none."""
    field = message.DESCRIPTOR.fields_by_name[name]
    path = _joined(prefix, name)
    if field.is_repeated:
        for index, item in enumerate(getattr(message, name)):
            yield f"{path}[{index}]", item
    elif not field.has_presence or message.HasField(name):
        yield path, getattr(message, name)


class _ReadByPeople(NamedTuple):
    """The fields that may not be blank: filters, texts, and messages that have some."""

    narrow: list[str]
    say: list[str]
    inside: list[str]


@cache
def _read_by_people(descriptor: Descriptor) -> _ReadByPeople:
    return _ReadByPeople(
        [field.name for field in descriptor.fields if extension(field, options_pb2.narrows)],
        [field.name for field in descriptor.fields if extension(field, options_pb2.not_blank)],
        [
            field.name
            for field in descriptor.fields
            if field.message_type is not None
            and field.message_type.file.package == descriptor.file.package
            and not field.message_type.GetOptions().map_entry
            and field.message_type is not descriptor
            and extension(field, validate_pb2.field).ignore != validate_pb2.IGNORE_ALWAYS
            and any(_read_by_people(field.message_type))
        ],
    )


def _too_long(message: Message, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the lists that are longer than they may be, with their limits.

    They are looked at first: the rules' own check looks at each of the items nevertheless, and a
    request of 16 MB can hold eight million, each of which breaks other rules.
    """
    for field, most in _lists(message.DESCRIPTOR):
        items = getattr(message, field.name)
        path = f"{prefix}.{field.name}" if prefix else field.name
        if most and len(items) > most:
            yield path, most
        elif field.message_type is not None and _lists(field.message_type):
            for index, item in enumerate(items):
                yield from _too_long(item, f"{path}[{index}]")


@cache
def _lists(descriptor: Descriptor) -> list[tuple[FieldDescriptor, int]]:
    """Return a message's lists and how many items each may have; 0 where that is not said."""
    return [
        (field, extension(field, validate_pb2.field).repeated.max_items)
        for field in descriptor.fields
        if field.is_repeated
        and not (field.message_type is not None and field.message_type.GetOptions().map_entry)
        and not descriptor.file.name.startswith("google/")
    ]


def _to_field_violation(violation: Violation, prefix: str) -> FieldViolation:
    found = violation.proto
    path = found.field.elements if found.field is not None else []
    about, _, rule = found.rule_id.rpartition(".")
    if _is_of_message(found):
        return FieldViolation(_joined(prefix, _path(path), about), found.message, _reason(rule))
    is_element = bool(path) and path[-1].subscript is not None
    if not is_element and _is_empty(violation.field_value, rule):
        rule = _REQUIRED
    message = found.message or f"breaks the rule {found.rule_id}"
    if rule == "pattern":
        pattern = str(violation.rule_value)
        message = _IN_WORDS.get(pattern, f"must be of the form `{pattern}`")
    if rule == _REQUIRED:
        message = "is required"
    return FieldViolation(_joined(prefix, _path(path)), message, _reason(rule))


def _is_of_message(found: ViolationPb) -> bool:
    """Tell whether the rule compares fields of a message: written in CEL, its id is FIELD.RULE."""
    return found.rule is None  # Else it leads to the rule, in the options of a field.


def _reason(rule: str) -> Reason:
    if rule == _REQUIRED:
        return Reason.MISSING_REQUIRED_FIELD
    return Reason.OUT_OF_RANGE if _is_limit(rule) else Reason.INVALID_PARAMETER


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _is_empty(value: object, rule: str) -> bool:
    """Tell whether the field was left out. Zero is a number like others, but no enum value."""
    if isinstance(value, int | float):
        return rule == "not_in" and value == 0
    return not value


def _is_limit(rule: str) -> bool:
    return any(part in _BOUNDS for part in rule.split("_"))


def _path(elements: Iterable[FieldPathElementPb]) -> str:
    """Return the path as people write it, e.g. `events[3].id` or `labels["env"]`."""
    return ".".join(
        element.field_name
        + ("" if element.subscript is None else f"[{json.dumps(element.subscript.value)}]")
        for element in elements
    )


def check_rules(call: Call, message: Message) -> None:
    """Give a request message's names their one form, check its `buf.validate` rules, and put its
    defaults in.

    Public methods have neither, and those of other projects' services.
    """
    if call.method.scope is not None and call.method.has_rules:
        compose_names(message)
        validate(message)
        fill_defaults(message)


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
