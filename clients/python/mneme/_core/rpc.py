"""How one RPC is called, as the generated methods describe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from mneme._core.answers import Answer
from mneme._core.convert import fill, single_message_field
from mneme._core.ulid import new_ulid
from mneme.errors import ArgumentError

RequestT = TypeVar("RequestT", bound=Message)
AnswerT = TypeVar("AnswerT", bound=Answer[Any])
AnswerT_co = TypeVar("AnswerT_co", bound=Answer[Any], covariant=True)
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Rpc(Generic[RequestT, AnswerT]):
    """One RPC.

    Args:
        service: the service's full name.
        method: the RPC's name.
        request: the request's class.
        answer: the class of what the caller gets, which wraps the response.
        repeatable: whether sending the request twice has the effect of sending it once, so that
            the channel may send it again when the server cannot be reached.
        long_lived: whether its stream stays open until the caller ends it.
        resumed_by: the answer's field that says where a stream that broke off goes on, and the
            request's that takes it; None: it cannot be resumed.
        made_ids: paths of ids that the client makes where the caller gave none; this is what
            makes a write repeatable.
    """

    service: str
    method: str
    request: type[RequestT]
    answer: type[AnswerT]
    repeatable: bool
    long_lived: bool = False
    resumed_by: tuple[str, str] | None = None
    made_ids: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of its HTTP/2 request."""
        return f"/{self.service}/{self.method}"

    @property
    def descriptor(self) -> MethodDescriptor:
        """What the schemas say of it."""
        pool = self.request.DESCRIPTOR.file.pool
        found: Any = pool.FindMethodByName(f"{self.service}.{self.method}")
        described: MethodDescriptor = found
        return described

    @property
    def response(self) -> type[Message]:
        """The response's class."""
        return self.answer.of

    def build(self, fields: Mapping[str, Any]) -> RequestT:
        """Make the request of plain Python values; None leaves a field unset.

        Raises:
            TypeError, ArgumentError: a value does not fit its field; the message names the field.
        """
        request = self.request()
        fill(request, fields)
        for path in self.made_ids:
            _make_ids(request, path.split("."))
        return request

    def build_item(self, item: Any) -> RequestT:
        """Make one request of a stream, of the item that it wraps or of its own fields."""
        if isinstance(item, Answer):
            item = item.raw
        if isinstance(item, self.request):
            return self.build(fields_of(item))
        wrapped = single_message_field(self.request)
        return self.build({wrapped: item} if wrapped else item)


def update_of(
    resource: str,
    resource_id: str,
    changes: Mapping[str, Any],
    clear: Iterable[str] | None = None,
    etag: str | None = None,
) -> dict[str, Any]:
    """The request that changes the given fields of a resource; None means unchanged.

    The fields that `clear` names are emptied. With an etag it is refused when the resource has
    another by then.

    Raises:
        ArgumentError: nothing is given, or `clear` names something else or what is given, too.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    cleared = list(clear or ())
    for name in cleared:
        if name not in changes:
            raise ArgumentError(f"clear: {name!r} is none of {', '.join(changes)}")
        if name in given:
            raise ArgumentError(f"clear: {name} is given a value, too")
    if not given and not cleared:
        raise ArgumentError(f"give at least one field to change: {', '.join(changes)}")
    new = {"id": resource_id, "etag": etag, **given}
    return {resource: new, "update_mask": [*given, *cleared]}


def several(given: Iterable[str] | None) -> Iterable[str] | None:
    """What is given as several texts, or as a single one."""
    return [given] if isinstance(given, str) else given


def fields_of(message: Message) -> dict[str, Any]:
    """The fields that are set, by name."""
    return {field.name: value for field, value in message.ListFields()}


def _make_ids(message: Message, path: list[str]) -> None:
    value = getattr(message, path[0])
    if len(path) == 1:
        if not value:
            setattr(message, path[0], new_ulid())
    elif isinstance(value, Message):
        if message.HasField(path[0]):
            _make_ids(value, path[1:])
    else:
        elements: MutableSequence[Message] = value
        for element in elements:
            _make_ids(element, path[1:])
