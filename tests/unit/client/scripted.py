"""A gRPC server whose answers a test chooses, and one way to use both clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import code_pb2, status_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from grpc_status import rpc_status
from mneme import AsyncMnemeClient, MnemeClient
from mneme._core._sync.long_running import LongRunning
from mneme._core.answers import Answer as PlainAnswer
from mneme._generated.services import RPCS

Answer = Callable[[Any, grpc.ServicerContext], Any]


@dataclass
class Seen:
    """What the server saw of one call."""

    method: str
    request: Any
    metadata: dict[str, str]
    seconds_left: float | None


@dataclass
class ScriptedServer:
    """Serves every RPC of the API; a method without a script answers an empty message."""

    scripts: dict[str, Answer] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def start(
        self, credentials: grpc.ServerCredentials | None = None, port: int = 0
    ) -> ScriptedServer:
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)]
        )
        services: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
        for rpc in RPCS:
            services.setdefault(rpc.service, {})[rpc.method] = self._handler(rpc)
        for name, handlers in services.items():
            self._server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(name, handlers)]
            )
        address = f"127.0.0.1:{port}"
        if credentials is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, credentials)
        self._server.start()
        return self

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.stop(0).wait()

    def on(self, method: str, answer: Answer | Message) -> None:
        """Choose a method's answer: a message, or a function of request and context."""
        if isinstance(answer, Message):
            self.scripts[method] = lambda request, context: answer
        else:
            self.scripts[method] = answer

    def calls(self, method: str) -> list[Seen]:
        return [call for call in self.seen if call.method == method]

    def last(self, method: str) -> Any:
        return self.calls(method)[-1].request

    def _handler(self, rpc: Any) -> grpc.RpcMethodHandler:
        method = rpc.method
        described = descriptor_pool.Default().FindServiceByName(rpc.service).methods_by_name[method]
        client_stream, server_stream = described.client_streaming, described.server_streaming

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if client_stream:
                request = list(request)
            self.seen.append(
                Seen(
                    method,
                    request,
                    {key: str(value) for key, value in context.invocation_metadata()},
                    context.time_remaining(),
                )
            )
            script = self.scripts.get(method)
            if script is None:
                return iter(()) if server_stream else rpc.response()
            return script(request, context)

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            context.add_callback(self.ended.set)
            yield from answer(request, context)

        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[client_stream, server_stream]
        return make(
            stream if server_stream else answer,
            request_deserializer=rpc.request.FromString,
            response_serializer=rpc.response.SerializeToString,
        )


def failure(
    context: grpc.ServicerContext,
    code: str,
    message: str,
    *,
    reason: str = "",
    violations: list[tuple[str, str, str]] | None = None,
    retry_after: float | None = None,
    metadata: dict[str, str] | None = None,
) -> None:
    """End a call as a Mneme server does."""
    status = status_pb2.Status(code=code_pb2.Code.Value(code), message=message)
    details: list[Message] = []
    if reason:
        details.append(ErrorInfo(reason=reason, domain="mneme.v1", metadata=metadata or {}))
    if violations:
        request = BadRequest()
        for path, description, why in violations:
            request.field_violations.add(field=path, description=description, reason=why)
        details.append(request)
    if retry_after is not None:
        delay = Duration()
        delay.FromMilliseconds(int(retry_after * 1000))
        details.append(RetryInfo(retry_delay=delay))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    context.abort_with_status(rpc_status.to_status(status))


class EitherClient:
    """One of the two clients, used the same way: calls return, streams become lists."""

    def __init__(self, kind: str, address: str, **options: Any) -> None:
        self.kind = kind
        self._address, self._options = address, options

    def call(self, method: str, *args: Any, take: int | None = None, **kwargs: Any) -> Any:
        """Call a method; of a stream or a walk, take `take` items, or all."""
        if self.kind == "sync":
            with MnemeClient(self._address, **self._options) as client:
                result = getattr(client, method)(*args, **kwargs)
                whole = isinstance(result, PlainAnswer | LongRunning)
                return result if whole else _take(result, take)

        async def main() -> Any:
            async with AsyncMnemeClient(self._address, **self._options) as client:
                result = getattr(client, method)(*args, **kwargs)
                if hasattr(result, "__aiter__"):
                    return await _take_async(result, take)
                return await result

        return asyncio.run(main())


def _take(items: Any, count: int | None) -> list[Any]:
    taken = []
    for item in items:
        taken.append(item)
        if len(taken) == count:
            break
    if hasattr(items, "close"):
        items.close()
    return taken


async def _take_async(items: Any, count: int | None) -> list[Any]:
    taken = []
    async for item in items:
        taken.append(item)
        if len(taken) == count:
            break
    if hasattr(items, "aclose"):
        await items.aclose()
    return taken
