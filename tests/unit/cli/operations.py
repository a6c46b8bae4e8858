"""Operations as a scripted server has them."""

from __future__ import annotations

from importlib import import_module

from google.protobuf.message import Message
from mneme.messages import Operation, WaitOperationResponse
from unit.client.scripted import ScriptedServer


def running(kind: str = "backup") -> Operation:
    """An operation that is under way."""
    operation = Operation(id="op-1", kind=kind, tenant_id="acme", state=2, cancellable=True)
    operation.progress.stage, operation.progress.done, operation.progress.total = "copying", 1, 4
    return operation


def ended(response: Message, kind: str = "backup") -> Operation:
    """One that has succeeded."""
    operation = Operation(id="op-1", kind=kind, tenant_id="acme", state=3, done=True, attempts=1)
    operation.response.Pack(response)
    return operation


def ends_with(served: ScriptedServer, method: str, response: Message) -> None:
    """Have a method start an operation that ends with this."""
    answer = getattr(import_module("mneme.messages"), f"{method}Response")
    served.on(method, answer(operation=running()))
    served.on("WaitOperation", WaitOperationResponse(operation=ended(response)))
