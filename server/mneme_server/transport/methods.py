"""What the server knows of each RPC before it looks at a request, read from the descriptors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)
from mneme.v1 import auth_pb2, options_pb2

from mneme_server.common.identity import KeyScope


class StreamKind(Enum):
    """A kind of call that holds a thread for as long as the caller likes; the value names it to
    people. WATCH stays open until someone ends it; of an UPLOAD the client decides the length, of
    a DOWNLOAD the pace. PUBLIC are the streams that need no key.
    """

    WATCH = "long-lived streams"
    UPLOAD = "uploads"
    DOWNLOAD = "exports"
    PUBLIC = "streams without a key"


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC.

    `path` is what travels, "/package.Service/Method"; `service` and `name` are for people. A
    `scope` of None lets everyone in, without a key. `stream` is None for calls with one request
    and one answer. What serves it takes a `Call` with the request; a library's own service, gRPC's
    context.
    """

    path: str
    service: str
    name: str
    scope: KeyScope | None
    stream: StreamKind | None
    request_type: Descriptor
    takes_call: bool = True


def methods_of(
    services: Iterable[ServiceDescriptor], public: Iterable[ServiceDescriptor] = ()
) -> dict[str, Method]:
    """Return the methods of `services` and of `public` ones, which need no key, by path.

    Raises:
        LookupError: a method of `services` does not say which scope it needs.
    """
    methods = [_method(method, _scope(method)) for s in services for method in s.methods]
    methods += [_method(method, None) for service in public for method in service.methods]
    return {method.path: method for method in methods}


def kinds_brought_by(service: ServiceDescriptor) -> frozenset[str]:
    """Return the names of the kinds of memory that a service says it brings."""
    # The generated stubs type an extension as a plain field, not as what it extends.
    options: Any = service.GetOptions()
    return frozenset(kind.name for kind in options.Extensions[options_pb2.brings_kinds])


def _method(method: MethodDescriptor, scope: KeyScope | None) -> Method:
    service = method.containing_service
    return Method(
        path=f"/{service.full_name}/{method.name}",
        service=service.name,
        name=method.name,
        scope=scope,
        stream=_stream(method, public=scope is None),
        request_type=method.input_type,
        takes_call=scope is not None,
    )


def _stream(method: MethodDescriptor, *, public: bool) -> StreamKind | None:
    if not (method.client_streaming or method.server_streaming):
        return None
    if public:
        return StreamKind.PUBLIC
    if _option(method, options_pb2.long_lived):
        return StreamKind.WATCH
    return StreamKind.UPLOAD if method.client_streaming else StreamKind.DOWNLOAD


def _scope(method: MethodDescriptor) -> KeyScope:
    scope = _option(method, options_pb2.required_scope)
    if scope == auth_pb2.KEY_SCOPE_UNSPECIFIED:
        raise LookupError(
            f"{method.full_name} does not say which scope it needs: give it the option"
            " (mneme.v1.required_scope)"
        )
    return KeyScope(scope)


def _option(method: MethodDescriptor, option: FieldDescriptor) -> int:
    # The generated stubs type an extension as a plain field, not as what it extends.
    return method.GetOptions().Extensions[option]  # type: ignore[index]
