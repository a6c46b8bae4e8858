"""The entrance of other edges' calls, which are served as gRPC's are: in the same lanes, by the
same threads, behind the same layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from mneme_server.common.errors import MnemeError
from mneme_server.edge.grpc.call import Call, CallContext, authorizations_in
from mneme_server.edge.grpc.interceptors.access import Identification
from mneme_server.edge.grpc.methods import Method
from mneme_server.edge.grpc.pipeline import Handler, Pipeline
from mneme_server.edge.grpc.service import Service
from mneme_server.edge.grpc.workers import Workers

T = TypeVar("T")
Serve = Callable[[Any, Call], Any]
"""A servicer's method."""

_MAKERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How an RPC is served behind the layers.

    `run` takes what an edge has of the request, or an iterator where requests are a stream, and
    the edge. It returns the answer, or an iterator of answers. That of a watch takes what sends a
    message as well, which it calls with None at the end, and returns once the watch is open.
    """

    method: Method
    run: Callable[..., Any]


class Entrance:
    """Takes the calls of other edges.

    Args:
        services: what is served.
        methods: what is known of each method, by path.
        pipeline: the layers.
        workers: the threads that serve.
        refusals: serves calls that there is no room for.
        identification: tells who is calling.
    """

    def __init__(
        self,
        services: Sequence[Service],
        methods: Mapping[str, Method],
        pipeline: Pipeline,
        workers: Workers,
        *,
        refusals: Executor,
        identification: Identification,
    ) -> None:
        self.services = tuple(services)
        self._methods = methods
        self._pipeline = pipeline
        self._workers = workers
        self._refusals = refusals
        self._identification = identification

    def behaviour(
        self,
        method: MethodDescriptor,
        read: Callable[[Any], Message],
        around: Callable[[Serve], Serve] = lambda serve: serve,
    ) -> Behaviour:
        """Put the layers around an RPC.

        Args:
            method: the RPC.
            read: makes the request of what the edge has of it, in the worker's thread; it has a
                length, in bytes.
            around: changes what serves the request.

        Raises:
            LookupError: nothing serves it.
        """
        service = method.containing_service
        (served,) = (one for one in self.services if one.descriptor is service)
        known = self._methods[f"/{service.full_name}/{method.name}"]
        make = _MAKERS[method.client_streaming, method.server_streaming]
        handler: Handler = make(
            around(getattr(served.servicer, method.name)), request_deserializer=read
        )
        wrapped = self._pipeline.wrap(known, handler)
        run = (
            wrapped.unary_unary
            or wrapped.unary_stream
            or wrapped.stream_unary
            or wrapped.stream_stream
        )
        if run is None:
            raise LookupError(f"nothing serves {method.full_name}")
        return Behaviour(known, run)

    def whose(self, behaviour: Behaviour, edge: CallContext) -> Future[str | None]:
        """Tell of which tenant a call is before its request is there, "" where it needs no key;
        None: of nobody, or of one who may not make it. Such a call is refused by the layers,
        whatever its request, so that there is no need to read it."""
        method, metadata = behaviour.method, edge.invocation_metadata() or ()
        authorizations = authorizations_in(metadata)

        def tenant() -> str | None:
            try:
                caller = self._identification.caller(method, authorizations)
            except MnemeError:
                return None
            return "" if caller is None else caller.tenant_id

        answer: Future[str | None] = Future()
        if self._identification.takes_no_time(authorizations):
            answer.set_result(tenant())
        elif self._pipeline.admit(method, metadata) is None:
            return self._workers.submit(tenant)
        else:
            answer.set_result(None)
        return answer

    def submit(
        self, behaviour: Behaviour, edge: CallContext, work: Callable[[Callable[..., Any]], T]
    ) -> Future[T]:
        """Have a worker do `work` with the behaviour's `run`, once it is the call's turn.

        A call that there is no room for, or that comes while the server stops, is refused: its
        `work` is given what raises.
        """
        refused = self._pipeline.admit(behaviour.method, edge.invocation_metadata() or ())
        if refused is None or refused.stream_stream is None:
            return self._workers.submit(work, behaviour.run)
        return self._refusals.submit(work, refused.stream_stream)
