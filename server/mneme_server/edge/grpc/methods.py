"""Methods: each RPC as the server knows it before it looks at a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter

from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)
from google.protobuf.message import Message
from mneme.v1 import auth_pb2, options_pb2

from mneme_server.common import turns
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.grpc.service import Needs


class AnyScope(Enum):
    """Stands for a scope where any valid key will do."""

    ANY = "any"


class StreamKind(Enum):
    """A kind of call that lasts for as long as the caller likes; the value names it to people. A
    WATCH stays open until someone ends it, and holds no thread; the others do. Of an UPLOAD the
    client decides the length, of a DOWNLOAD the pace. PUBLIC are the streams that need no key.
    """

    WATCH = "long-lived streams"
    UPLOAD = "uploads"
    DOWNLOAD = "exports"
    PUBLIC = "streams without a key"


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC.

    `path` is what travels, "/package.Service/Method"; `service` and `name` are for people. A
    `scope` of None lets everyone in, without a key; `AnyScope` whoever has one. `also_reads`
    tells whether it takes scope READ as well. `has_rules` tells
    whether the schema may say rules and defaults; another project's says none. `stream` is None for
    calls with one request and one answer. `parts` are the messages in a request that may be lost by
    themselves. `is_large` tells of a request, its defaults put in, whether it asks for much.
    """

    path: str
    service: str
    name: str
    scope: KeyScope | AnyScope | None
    stream: StreamKind | None
    request_type: Descriptor
    has_rules: bool = True
    also_reads: bool = False
    parts: frozenset[str] = frozenset()
    is_large: Callable[[Message], bool] = lambda _request: False

    @property
    def takes_call(self) -> bool:
        """Whether it is the API's own, and so takes a `Call` with the request; a library's takes
        gRPC's context."""
        return self.scope is not None

    @property
    def is_traced(self) -> bool:
        """Whether its calls are told of as spans: Mneme's own are, what takes spans is not."""
        return self.scope is not None and self.has_rules


def methods_of(
    services: Iterable[ServiceDescriptor],
    public: Iterable[ServiceDescriptor] = (),
    foreign: Iterable[tuple[ServiceDescriptor, Needs]] = (),
) -> dict[str, Method]:
    """Return the methods of `services`, of `public` ones, which need no key, and of `foreign` ones,
    whose schemas do not say what they need, by path.

    Raises:
        LookupError: a method of `services` does not say which scope it needs, or says that a field
            tells its cost that its request does not have.
    """
    methods = [_method(method, _needs(method)) for s in services for method in s.methods]
    methods += [_method(method, None) for service in public for method in service.methods]
    methods += [
        replace(
            _method(method, needs.scope),
            has_rules=False,
            parts=needs.parts,
            is_large=_more_than(needs.items),
        )
        for service, needs in foreign
        for method in service.methods
    ]
    return {method.path: method for method in methods}


def kinds_brought_by(service: ServiceDescriptor) -> frozenset[str]:
    """Return the names of the kinds of memory that a service says it brings."""
    return frozenset(kind.name for kind in extension(service, options_pb2.brings_kinds))


@dataclass(frozen=True, slots=True)
class StartedKind:
    """A kind of operation that an RPC starts: its name, the scope that it takes, and the full name
    of the message that it ends with."""

    name: str
    scope: KeyScope
    response: str


def kinds_started_by(service: ServiceDescriptor) -> Iterator[StartedKind]:
    """Yield what the RPCs of a service start, as they say."""
    for method in service.methods:
        said = extension(method, options_pb2.starts)
        if said.kind:
            yield StartedKind(said.kind, _scope(method), said.response)


def _method(method: MethodDescriptor, scope: KeyScope | AnyScope | None) -> Method:
    service = method.containing_service
    return Method(
        path=f"/{service.full_name}/{method.name}",
        service=service.name,
        name=method.name,
        scope=scope,
        stream=_stream(method, public=scope is None),
        request_type=method.input_type,
        also_reads=extension(method, options_pb2.also_reads),
        is_large=_size_told_by(method),
    )


def _size_told_by(method: MethodDescriptor) -> Callable[[Message], bool]:
    """Return what tells of a request whether it asks for much, by the option `cost`."""
    cost = extension(method, options_pb2.cost)
    if not cost.by:
        return _always if cost.large else _never
    if cost.by not in method.input_type.fields_by_name:
        raise LookupError(f"{method.full_name}: its cost is told by {cost.by}, which it has not")
    asked = attrgetter(cost.by)
    if method.input_type.fields_by_name[cost.by].cpp_type == FieldDescriptor.CPPTYPE_INT32:
        return _more_than(asked, cost.small_up_to)
    return _more_than(lambda request: len(asked(request)), cost.small_up_to)


def _always(_request: Message) -> bool:
    return True


def _never(_request: Message) -> bool:
    return False


def _more_than(items: Callable[[Message], int], small_up_to: int = 0) -> Callable[[Message], bool]:
    """Return what tells of a request whether it asks for more than what is small."""
    most = small_up_to or turns.SMALL
    return lambda request: items(request) > most


def _stream(method: MethodDescriptor, *, public: bool) -> StreamKind | None:
    if not (method.client_streaming or method.server_streaming):
        return None
    if public:
        return StreamKind.PUBLIC
    if method.client_streaming:
        return StreamKind.UPLOAD
    watched = extension(method, options_pb2.long_lived)
    return StreamKind.WATCH if watched else StreamKind.DOWNLOAD


def _needs(method: MethodDescriptor) -> KeyScope | AnyScope:
    return AnyScope.ANY if extension(method, options_pb2.any_scope) else _scope(method)


def _scope(method: MethodDescriptor) -> KeyScope:
    scope = extension(method, options_pb2.required_scope)
    if scope == auth_pb2.KEY_SCOPE_UNSPECIFIED:
        raise LookupError(
            f"{method.full_name} does not say which scope it needs: give it the option"
            " (mneme.v1.required_scope)"
        )
    return KeyScope(scope)
