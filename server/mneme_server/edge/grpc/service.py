"""A service of the API: its schema, and what serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from mneme_server.common.identity import KeyScope


@dataclass(frozen=True, slots=True)
class Needs:
    """What the methods of a service need whose schema is another project's, and cannot say it.

    Args:
        scope: of the key.
        parts: the full names of messages that stand for themselves in a request: one that is
            broken is left empty, and the rest is served.
        items: how many of them are in a request: by that it is large or small.
    """

    scope: KeyScope
    parts: frozenset[str] = frozenset()
    items: Callable[[Any], int] = lambda _request: 1


_MAKERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""What makes a handler, by whether requests and answers are streams."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service to serve.

    `servicer` has a method for each RPC, of its name: it takes the request, or an iterator of them,
    and the `Call`, and returns the answer, or yields them; for a stream of answers that stays open
    (the option `long_lived`) it returns their `Source`. It knows no edge: gRPC is one. `needs` says
    what the options of Mneme's own services say; None for these.
    """

    descriptor: ServiceDescriptor
    servicer: object
    needs: Needs | None = None


def joined(services: Iterable[Service]) -> list[Service]:
    """Return one of each service, where several servicers serve some of its calls each."""
    servicers: dict[str, list[Service]] = {}
    for service in services:
        servicers.setdefault(service.descriptor.full_name, []).append(service)
    return [
        some[0] if len(some) == 1 else Service(some[0].descriptor, _Joined(some))
        for some in servicers.values()
    ]


class _Joined:
    """Serves the calls that any of several servicers serves."""

    def __init__(self, services: Sequence[Service]) -> None:
        for method in services[0].descriptor.methods:
            for service in services:
                serve = getattr(service.servicer, method.name, None)
                if serve is not None:
                    setattr(self, method.name, serve)
                    break


def handlers_of(service: Service) -> grpc.GenericRpcHandler:
    """Return gRPC's handlers of a service.

    Raises:
        LookupError: the servicer lacks a method.
    """
    name = service.descriptor.full_name
    handlers = {method.name: _handler(method, service) for method in service.descriptor.methods}
    return grpc.method_handlers_generic_handler(name, handlers)


def _handler(method: MethodDescriptor, service: Service) -> grpc.RpcMethodHandler[Any, Any]:
    serve = getattr(service.servicer, method.name, None)
    if serve is None:
        kind = type(service.servicer).__name__
        raise LookupError(f"{kind} does not serve {method.full_name}")
    make = _MAKERS[method.client_streaming, method.server_streaming]
    return make(
        serve,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )
