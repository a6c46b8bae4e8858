"""Operations as tests follow them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.symbol_database import Default
from mneme.v1 import operation_pb2 as pb
from mneme.v1 import operation_service_pb2 as service_pb
from mneme_server.features.operations.model import OperationTask

from support.api import DETAILS_KEY, METHODS, Api
from support.server import LocalServer

T = TypeVar("T")

PATIENCE_S = 60.0


def get(api: Api, operation_id: str) -> pb.Operation:
    """Return an operation as it is now."""
    answer = api.operation.GetOperation(service_pb.GetOperationRequest(operation_id=operation_id))
    return answer.operation


def ended(api: Api, operation_id: str) -> pb.Operation:
    """Return an operation once it has ended."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        request = service_pb.WaitOperationRequest(operation_id=operation_id)
        request.max_wait.FromSeconds(5)
        operation = api.operation.WaitOperation(request).operation
        if operation.done:
            return operation
    raise AssertionError(f"it did not end: {operation}")


class Failed(grpc.RpcError):  # type: ignore[misc]
    """What an operation failed with, as a call that fails says it: `support.api.refused` reads
    it."""

    def __init__(self, status: Any) -> None:
        super().__init__(status.message)
        self._status = status

    def code(self) -> grpc.StatusCode:
        """Return the status."""
        return next(code for code in grpc.StatusCode if code.value[0] == self._status.code)

    def details(self) -> str:
        """Return the message."""
        return str(self._status.message)

    def trailing_metadata(self) -> list[tuple[str, bytes]]:
        """Return the details."""
        return [(DETAILS_KEY, self._status.SerializeToString())]


def finished(api: Api, request: Message) -> Any:
    """Send the request of an RPC that starts an operation; return what the operation came to, once
    it has ended.

    Raises:
        Failed: it failed.
    """
    name = request.DESCRIPTOR.name.removesuffix("Request")
    (rpc,) = (rpc for rpc in METHODS if rpc.endswith(f"/{name}"))
    (answer,) = api.call(rpc, request)
    operation = answer.operation
    if not operation.done:
        operation = ended(api, operation.id)
    if operation.HasField("error"):
        raise Failed(operation.error)
    return response(operation)


def response(operation: pb.Operation) -> Any:
    """Return what an operation came to."""
    assert operation.state == pb.OPERATION_STATE_SUCCEEDED, operation
    kind = Default().GetSymbol(operation.response.TypeName())
    message: Message = kind()
    assert operation.response.Unpack(message)
    return message


def in_the_end(call: Callable[[], T]) -> T:
    """Call, and again while the tenant is being restored or embedded again, as clients do."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                raise
            time.sleep(0.02)


class Holds:
    """Holds the operations of a kind up while the block runs: each says that it has begun, waits
    until it may go on, and comes to nothing. `commits` makes them such as cannot be called off."""

    def __init__(self, server: LocalServer, kind: str, *, commits: bool = False) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self._works = server.application._operations._works
        self._kind = kind
        self._commits = commits

    def __enter__(self) -> Holds:
        self._real, self._works[self._kind] = self._works[self._kind], self
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._works[self._kind] = self._real

    def run(self, task: OperationTask) -> Mapping[str, Any]:
        """Wait."""
        if self._commits:
            task.commit()
        self.begun.set()
        while not self.go_on.wait(0.01):
            if not self._commits:
                task.report("waiting")
        return {}

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Nothing is left of it."""
