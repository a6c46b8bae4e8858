"""Answers as plain Python values: the counterpart of `convert`, which takes arguments as such.

An answer reads its message when it is asked, field by field, so that a long list costs nothing
until somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from google.protobuf import symbol_database
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from mneme._core.enums import name_of
from mneme._core.json_values import free_json
from mneme._core.named import near
from mneme._core.status import error_in

MessageT_co = TypeVar("MessageT_co", bound=Message, covariant=True)
ItemT_co = TypeVar("ItemT_co", covariant=True)

Converter = Callable[[Any], Any]

_CLASSES: dict[str, type[Answer[Any]]] = {}


class Answer(Generic[MessageT_co]):
    """One message of the API as plain values.

    Its attributes are the message's fields: times are datetimes in UTC and None where there is
    none, durations timedeltas, enums the names that arguments have ("tool_error") and None when
    unspecified, free JSON dicts, lists lists. A nested message is an answer of its own, empty
    when it is not set; `"handover" in answer` tells the two apart. An enum's value that this
    client is too old to name is its number. Changing a value does not change the message.

    Attributes:
        raw: the message itself.
    """

    of: ClassVar[type[Message]]
    raw: MessageT_co

    def __init__(self, raw: MessageT_co) -> None:
        self.__dict__["raw"] = raw

    def __init_subclass__(cls, *, of: type[Message] | None = None) -> None:
        super().__init_subclass__()
        if of is not None:
            cls.of = of
            _CLASSES[of.DESCRIPTOR.full_name] = cls

    if not TYPE_CHECKING:  # Type checkers know the fields, and shall refuse what is none.

        def __getattr__(self, name: str) -> Any:
            """Convert a field when it is first read: Python asks here for what is not there."""
            message: Message | None = self.__dict__.get("raw")
            if message is None or name not in message.DESCRIPTOR.fields_by_name:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            value = self.__dict__[name] = _converter(message.DESCRIPTOR, name)(message)
            return value

        def __getitem__(self, key: Any) -> Any:
            """Say how a field is read, to who takes an answer for a dict or for a list; Python asks
            here, too, when somebody iterates over what has no `__iter__`."""
            raise TypeError(_not_by_key(self.raw.DESCRIPTOR, key))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is what the server answered: it cannot change")

    def __contains__(self, name: object) -> bool:
        """Whether the server set a field."""
        return any(field.name == name for field, _ in self.raw.ListFields())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(field.name for field in self.raw.DESCRIPTOR.fields)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self.raw == other.raw

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = (field.name for field, _ in self.raw.ListFields())
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in given)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.raw,)


class ListAnswer(Answer[MessageT_co], Generic[MessageT_co, ItemT_co]):
    """An answer that is, above all, a list: `for hit in client.recall("…")`.

    It has the length, the items and the truth value of the list that its field `items_in` holds;
    `"outcome" in answer` still tells whether a field was set.
    """

    items_in: ClassVar[str]

    def __init_subclass__(cls, *, of: type[Message] | None = None, items_in: str) -> None:
        super().__init_subclass__(of=of)
        cls.items_in = items_in

    @property
    def _items(self) -> list[ItemT_co]:
        items: list[ItemT_co] = getattr(self, self.items_in)
        return items

    def __iter__(self) -> Iterator[ItemT_co]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, key: int) -> ItemT_co: ...

    @overload
    def __getitem__(self, key: slice) -> list[ItemT_co]: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            raise TypeError(_not_by_key(self.raw.DESCRIPTOR, key))
        return self._items[key]

    def __contains__(self, name: object) -> bool:
        """Whether the server set a field of that name, or whether an item is in the list."""
        return super().__contains__(name) if isinstance(name, str) else name in self._items


def answer_of(message: Message) -> Answer[Any]:
    """The plain form of a message.

    Raises:
        TypeError: no RPC answers with such a message.
    """
    cls = _CLASSES.get(message.DESCRIPTOR.full_name)
    if cls is None:
        raise TypeError(f"{message.DESCRIPTOR.name} is no part of an answer")
    return cls(message)


def _not_by_key(descriptor: Any, key: object) -> str:
    """How a field is read instead of by a key or a number."""
    if isinstance(key, str):
        meant = key if key in descriptor.fields_by_name else None
        meant = meant or next(iter(near(key, descriptor.fields_by_name)), None)
        hint = f"write .{meant}" if meant else "its fields are attributes"
        return f"{descriptor.name} is no dict: {hint}"
    lists = [f".{field.name}" for field in descriptor.fields if field.is_repeated]
    hint = f"its lists are {', '.join(lists)}" if lists else "its fields are attributes"
    return f"{descriptor.name} is no list: {hint}"


@cache
def _converter(descriptor: Descriptor, name: str) -> Converter:
    """What reads one field of a message."""
    field = descriptor.fields_by_name[name]
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        convert = _single(entry.fields_by_name["value"])
        return lambda message: {
            key: convert(value) for key, value in getattr(message, name).items()
        }
    convert = _single(field)
    if field.is_repeated:
        return lambda message: [convert(value) for value in getattr(message, name)]
    if field.has_presence and (entry is None or entry.full_name in _NONE_WHEN_UNSET):
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _single(field: FieldDescriptor) -> Converter:
    """What turns one value of a field into a plain one."""
    if field.enum_type:
        enum = field.enum_type
        return lambda number: name_of(enum, number)
    if field.message_type:
        return _WELL_KNOWN.get(field.message_type.full_name, answer_of)
    return _same


def _time(value: Any) -> datetime:
    moment: datetime = value.ToDatetime(UTC)
    return moment


def _duration(value: Any) -> timedelta:
    length: timedelta = value.ToTimedelta()
    return length


def _unpacked(value: Any) -> Any:
    """What is packed; as it came when this client is too old to know it."""
    try:
        kind = symbol_database.Default().GetSymbol(value.TypeName())
    except KeyError:
        return value
    message = kind()
    value.Unpack(message)
    return answer_of(message)


def _paths(value: Any) -> list[str]:
    return list(value.paths)


def _same(value: Any) -> Any:
    return value


_WELL_KNOWN: dict[str, Converter] = {
    "google.protobuf.Timestamp": _time,
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": _paths,
    "google.protobuf.Any": _unpacked,
    "google.rpc.Status": error_in,
    "google.protobuf.Struct": free_json,
    "google.protobuf.Value": free_json,
    "google.protobuf.ListValue": free_json,
}
_NONE_WHEN_UNSET = frozenset(
    {
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "google.protobuf.Any",
        "google.rpc.Status",
    }
)
