"""The API as a tenant calls it, and what a call that failed carries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from support.descriptors import services

METHODS = {
    f"{service.full_name}/{method.name}": method
    for service in services()
    for method in service.methods
}
"""Every RPC by its full name, "mneme.v1.EventService/GetSession"."""

_SERVICES = {
    {"EventService": "events"}.get(
        service.name, service.name.removesuffix("Service").lower()
    ): service
    for service in services()
}

DETAILS_KEY = "grpc-status-details-bin"
_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Failure:
    """What a failed call told its caller. The fields stay empty while it has not failed."""

    code: grpc.StatusCode | None = None
    message: str = ""
    reason: str = ""
    domain: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None

    @property
    def field(self) -> str:
        """The first field at fault; empty when none is named."""
        return next(iter(self.fields), "")


def failure_of(error: grpc.RpcError) -> Failure:
    """Read the status, its details and nothing else: what any client in any language can see."""
    failure = Failure(code=error.code(), message=error.details() or "")
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_KEY:
            continue
        status = status_pb2.Status.FromString(value)
        assert status.code == error.code().value[0]
        assert status.message == error.details()
        for detail in status.details:
            _read_detail(failure, detail)
    return failure


def _read_detail(failure: Failure, detail: Any) -> None:
    info, request, retry = (
        error_details_pb2.ErrorInfo(),
        error_details_pb2.BadRequest(),
        error_details_pb2.RetryInfo(),
    )
    if detail.Unpack(info):
        failure.reason, failure.domain = info.reason, info.domain
        failure.metadata = dict(info.metadata)
    elif detail.Unpack(request):
        failure.fields = {v.field: v.description for v in request.field_violations}
    elif detail.Unpack(retry):
        failure.retry_after_s = retry.retry_delay.ToMicroseconds() / 1e6


@contextmanager
def refused() -> Iterator[Failure]:
    """Expect the block to fail with a status; the failure is filled in when it ends."""
    failure = Failure()
    try:
        yield failure
    except grpc.RpcError as error:
        found = failure_of(error)
        for name in Failure.__slots__:
            setattr(failure, name, getattr(found, name))
    else:
        raise AssertionError("the call was answered, a refusal was expected")


def reads_well(failure: Failure) -> None:
    """A message is for people: short, without the insides of the server, and with a domain."""
    assert failure.domain == "mneme.v1"
    assert failure.metadata["request_id"]
    assert 10 < len(failure.message) < 2_000
    for inside in ("Traceback", "Error(", "object at 0x", "sqlite", "protovalidate", "<class"):
        assert inside not in failure.message
    assert not re.search(r"\bNone\b|\w+_pb2|[^\x20-\x7e]", failure.message), failure.message


class Api:
    """The services, called with one API key.

    Args:
        address: the server.
        secret: the key; None calls without one.
        tenant_id: the tenant that the key opens, for the tests' own use.
    """

    def __init__(self, address: str, secret: str | None, tenant_id: str = "") -> None:
        self.address = address
        self.secret = secret
        self.tenant_id = tenant_id
        self._plain = grpc.insecure_channel(
            address,
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.enable_retries", 0),
                # Channels with equal arguments would share a connection; each has its own.
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        self.channel = grpc.intercept_channel(self._plain, _Authorized(secret))

    def __getattr__(self, name: str) -> Any:
        """Make the stub of a service where it is first asked for: `learn` of the LearnService."""
        if name not in _SERVICES:
            raise AttributeError(f"there is no service of the name {name}")
        stub = _stub_of(_SERVICES[name], self.channel)
        setattr(self, name, stub)
        return stub

    def call(self, rpc: str, request: Message | bytes | Sequence[Message]) -> list[Message]:
        """Call any RPC by its full name with one message, given as such or as raw bytes, or with
        those of a stream.

        Returns the answers; of a stream that stays open only the first.
        """
        method = METHODS[rpc]
        sent = [request] if isinstance(request, Message | bytes) else request
        raw = [one if isinstance(one, bytes) else one.SerializeToString() for one in sent]
        answer_class = GetMessageClass(method.output_type)
        kind = ("stream" if method.client_streaming else "unary") + (
            "_stream" if method.server_streaming else "_unary"
        )
        make: Callable[..., Any] = getattr(self.channel, kind)
        callable_ = make(f"/{rpc}", request_serializer=None, response_deserializer=None)
        given = iter(raw) if method.client_streaming else raw[0]
        answer = callable_(given, timeout=_TIMEOUT_S)
        if not method.server_streaming:
            return [answer_class.FromString(answer)]
        if method.name == "WatchEvents":
            first = next(answer)
            answer.cancel()
            return [answer_class.FromString(first)]
        return [answer_class.FromString(item) for item in answer]

    def close(self) -> None:
        """Close the connection."""
        self._plain.close()


def _stub_of(service: ServiceDescriptor, channel: grpc.Channel) -> Any:
    module = service.file.name.removesuffix(".proto").replace("/", ".")
    return getattr(import_module(f"{module}_pb2_grpc"), f"{service.name}Stub")(channel)


class _Authorized(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Adds the key, and a deadline where the call has none, so that no test can hang."""

    def __init__(self, secret: str | None) -> None:
        self._metadata = (("authorization", f"Bearer {secret}"),) if secret else ()

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_key(details), request)

    intercept_unary_stream = intercept_unary_unary
    intercept_stream_unary = intercept_unary_unary
    intercept_stream_stream = intercept_unary_unary

    def _with_key(self, details: Any) -> Any:
        return _Details(
            details.method,
            _TIMEOUT_S if details.timeout is None else details.timeout,
            (*(details.metadata or ()), *self._metadata),
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )


@dataclass(frozen=True, slots=True)
class _Details(grpc.ClientCallDetails):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any
