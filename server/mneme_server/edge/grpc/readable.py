"""Answers to a key without scope read: nothing stored that it did not send.

A call that writes answers with the thing as it is stored now, which may hold what others wrote:
what an update did not name, what was deleted, what is like a new memory. The rule is one for all
calls but the administrator's, which answer with what is the server's: of the messages that calls
with scope read answer with, such a key gets the id, the etag and the times. Which messages these
are the descriptors say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from google.protobuf import symbol_database
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.descriptor import Descriptor, FieldDescriptor, ServiceDescriptor
from google.protobuf.message import Message

from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.methods import Method, methods_of

KEPT = frozenset({"id", "etag", "created_at", "updated_at"})
"""Fields of a stored thing that say which one it is, and in what state."""
_OWN = "mneme."
_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def readable_types(services: Iterable[ServiceDescriptor]) -> Collection[str]:
    """Return the full names of the messages that calls with scope read answer with, and of those in
    them."""
    services = list(services)
    methods = methods_of(services)
    found: set[str] = set()
    for service in services:
        for method in service.methods:
            known = methods[f"/{service.full_name}/{method.name}"]
            if known.scope is KeyScope.READ:
                found.update(_in(method.output_type, found))
    return frozenset(found)


def only_what_it_may_read(
    readable: Collection[str],
) -> Callable[[Method, Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """Return what puts the rule around what serves a method.

    Args:
        readable: as `readable_types` returns them.
    """

    def around(method: Method, respond: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        if method.scope in (None, KeyScope.READ, KeyScope.ADMIN) or not method.has_rules:
            return respond

        def serve(request: Any, call: Call) -> Any:
            answer = respond(request, call)
            return answer if _may_read(call) else cut(answer, readable)

        def serve_stream(requests: Any, call: Call) -> Iterator[Any]:
            for answer in respond(requests, call):
                yield answer if _may_read(call) else cut(answer, readable)

        return serve if method.stream is None else serve_stream

    return around


def cut(answer: Message, readable: Collection[str]) -> Message:
    """Return an answer as a key without scope read gets it."""
    shown = type(answer)()
    shown.CopyFrom(answer)
    _cut(shown, readable)
    return shown


def _may_read(call: Call) -> bool:
    return KeyScope.READ in call.caller.scopes


def _cut(message: Any, readable: Collection[str]) -> None:
    descriptor: Descriptor = message.DESCRIPTOR
    stored = descriptor.full_name in readable
    has_id = stored and "id" in descriptor.fields_by_name
    for field, value in message.ListFields():
        if has_id and field.name not in KEPT:
            message.ClearField(field.name)
        elif field.message_type is None:
            if stored and field.type in _TEXTS and field.name not in KEPT:
                message.ClearField(field.name)
        elif field.message_type.full_name == Packed.DESCRIPTOR.full_name:
            _cut_packed(value, readable)
        elif field.message_type.GetOptions().map_entry or not _is_own(field.message_type):
            if stored and not field.message_type.full_name.endswith((".Timestamp", ".Duration")):
                message.ClearField(field.name)
        else:
            for one in value if field.is_repeated else (value,):
                _cut(one, readable)


def _cut_packed(packed: Packed, readable: Collection[str]) -> None:
    """Cut what an operation came to."""
    inner = symbol_database.Default().GetSymbol(packed.TypeName())()
    packed.Unpack(inner)
    _cut(inner, readable)
    packed.Pack(inner)


def _in(descriptor: Descriptor, known: Collection[str]) -> Iterator[str]:
    waiting, seen = [descriptor], set(known)
    while waiting:
        one = waiting.pop()
        if one.full_name in seen or not _is_own(one):
            continue
        seen.add(one.full_name)
        yield one.full_name
        waiting += [field.message_type for field in one.fields if field.message_type is not None]


def _is_own(descriptor: Descriptor) -> bool:
    return bool(descriptor.full_name.startswith(_OWN))
