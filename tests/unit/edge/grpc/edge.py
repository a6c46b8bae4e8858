"""A real server on a free port with the real catalog, and services whose answers a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import (  # type: ignore[import-untyped]
    BadRequest,
    ErrorInfo,
    RetryInfo,
)
from grpc_status import rpc_status  # type: ignore[import-untyped]
from mneme_server.common.identity import ALL_SCOPES, KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.interceptors.consistency import Newest
from mneme_server.edge.grpc.methods import StreamKind, methods_of
from mneme_server.edge.grpc.metrics import Metrics
from mneme_server.edge.grpc.server import GrpcServer, ServerOptions
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.keys import ApiKeys, NewKey
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.admin.tenants import Tenants
from support.descriptors import services
from support.sources import Given
from unit.features.admin.fakes import Folders

OPTIONS = ServerOptions(
    listen="127.0.0.1:0",
    workers=16,
    max_streams=4,
    max_tenant_streams=2,
    max_uploads=4,
    max_message_bytes=1024 * 1024,
    max_connection_streams=32,
    auth_required=True,
    tls=None,
)

SERVICES: dict[str, ServiceDescriptor] = {service.name: service for service in services()}

Behaviour = Callable[[Any, Call], Any]


def all_methods() -> Sequence[MethodDescriptor]:
    """Every RPC of the API."""
    return [method for service in SERVICES.values() for method in service.methods]


class Chosen:
    """A servicer of one service whose methods do what a test says; else they answer emptily."""

    def __init__(self, service: ServiceDescriptor) -> None:
        self._methods = {method.name: method for method in service.methods}
        self.behaviours: dict[str, Behaviour] = {}

    def __getattr__(self, name: str) -> Behaviour:
        method = self._methods[name]

        def behave(request: Any, call: Call) -> Any:
            chosen = self.behaviours.get(name)
            if chosen is not None:
                return chosen(request, call)
            if method.client_streaming:
                list(request)
            answer = GetMessageClass(method.output_type)()
            if methods_of([method.containing_service])[_path(method)].stream is StreamKind.WATCH:
                return Given(answer, ends=True)
            return iter([answer]) if method.server_streaming else answer

        return behave


def _path(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


class Edge:
    """One server under test."""

    def __init__(
        self, folder: Path, *, newest: Newest = lambda _tenant: None, **options: Any
    ) -> None:
        self._newest = newest
        self.options = replace(OPTIONS, **options)
        self.catalog = Catalog(folder / "catalog.db")
        self.authenticator = KeyAuthenticator(self.catalog.keys)
        self.folders = Folders()
        self.tenants = Tenants(self.catalog.tenants, self.folders, self.authenticator)
        self.tenants.ensure_default()
        self.keys = ApiKeys(self.catalog.keys, self.catalog.tenants, self.authenticator)
        self.metrics = Metrics()
        self.servicers: dict[str, Any] = {
            name: Chosen(descriptor) for name, descriptor in SERVICES.items()
        }
        self.server: GrpcServer | None = None
        self.address = ""
        self._channels: list[grpc.Channel] = []

    def start(self) -> Edge:
        """Start serving."""
        self.server = GrpcServer(
            self.options,
            [Service(descriptor, self.servicers[name]) for name, descriptor in SERVICES.items()],
            self.authenticator,
            self.metrics,
            foreground=Foreground(),
            newest=self._newest,
        )
        self.address = self.server.start()
        return self

    def disconnect(self) -> None:
        """Close the connections that were opened here."""
        while self._channels:
            self._channels.pop().close()

    def close(self) -> None:
        """Stop serving and release everything."""
        self.disconnect()
        if self.server is not None:
            self.server.stop(0)
        self.catalog.close()

    def on(self, path: str, behaviour: Behaviour) -> None:
        """Choose what "Service/Method" does."""
        service, method = path.split("/")
        self.servicers[service].behaviours[method] = behaviour

    def raises(self, path: str, error: BaseException) -> None:
        """Have "Service/Method" raise."""

        def behave(request: Any, call: Call) -> Any:
            raise error

        self.on(path, behave)

    def key(
        self, tenant: str = "default", scopes: Iterable[KeyScope] = ALL_SCOPES, rate_limit: int = 0
    ) -> NewKey:
        """Make a key; the tenant too if needed."""
        if all(t.id != tenant for t in self.catalog.tenants.list("", 1000)):
            self.tenants.create(tenant, "")
        return self.keys.create(tenant, "test", frozenset(scopes), rate_limit)

    def channel(self) -> grpc.Channel:
        """Open a connection that is closed with the server."""
        channel = grpc.insecure_channel(self.address)
        self._channels.append(channel)
        return channel

    def client(self, secret: str | None = None, **metadata: str) -> Client:
        """Return a client that sends this key, or none."""
        return Client(self.channel(), secret, **metadata)


class Client:
    """Calls any RPC by "Service/Method", with a message or raw bytes."""

    def __init__(self, channel: grpc.Channel, secret: str | None, **metadata: str) -> None:
        self._channel = channel
        self._metadata = [(k.replace("_", "-"), v) for k, v in metadata.items()]
        if secret is not None:
            self._metadata.append(("authorization", f"Bearer {secret}"))

    def call(self, path: str, request: Any = None, timeout: float | None = 20) -> Any:
        """Return the answer, or the list of answers of a stream."""
        answer = self.open(path, request, timeout)
        return list(answer) if _method(path).server_streaming else answer

    def open(self, path: str, request: Any = None, timeout: float | None = 20) -> Any:
        """Return the answer, or the running stream of answers."""
        method = _method(path)
        kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
            "stream" if method.server_streaming else "unary"
        )
        if request is None:
            request = GetMessageClass(method.input_type)()
        if method.client_streaming and isinstance(request, Message | bytes):
            request = iter([request])
        invoke = getattr(self._channel, kind)(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=_to_bytes,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return invoke(request, metadata=self._metadata, timeout=timeout)

    def code(self, path: str, request: Any = None) -> grpc.StatusCode:
        """Return the call's status code."""
        try:
            self.call(path, request)
        except grpc.RpcError as error:
            return Refusal(error).code
        return grpc.StatusCode.OK

    def refusal(self, path: str, request: Any = None) -> Refusal:
        """Return how the call is refused; fail when it is not."""
        try:
            self.call(path, request)
        except grpc.RpcError as error:
            return Refusal(error)
        raise AssertionError(f"{path} was not refused")


class Refusal:
    """An error status and its details."""

    def __init__(self, error: Any) -> None:
        self.code: grpc.StatusCode = error.code()
        self.message: str = error.details()
        status = rpc_status.from_call(error)
        self.info = ErrorInfo()
        self.bad_request = BadRequest()
        self.retry = RetryInfo()
        self.has_retry = False
        for detail in status.details if status is not None else ():
            for target in (self.info, self.bad_request, self.retry):
                if detail.Unpack(target) and target is self.retry:
                    self.has_retry = True

    @property
    def reason(self) -> str:
        """The ErrorInfo's reason."""
        return str(self.info.reason)

    @property
    def fields(self) -> list[str]:
        """The paths of the fields at fault."""
        return [violation.field for violation in self.bad_request.field_violations]


def _method(path: str) -> MethodDescriptor:
    service, method = path.split("/")
    return SERVICES[service].methods_by_name[method]


def _to_bytes(request: Message | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()
