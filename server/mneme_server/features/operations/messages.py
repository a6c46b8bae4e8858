"""Operations on the wire, and what the schema says of those that RPCs start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any as AnyType

from google.protobuf import json_format, symbol_database
from google.protobuf.any_pb2 import Any
from google.protobuf.descriptor import ServiceDescriptor
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme.v1 import operation_pb2 as pb

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import error_of
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.errors import failure_of, internal_failure
from mneme_server.edge.grpc.methods import StartedKind, kinds_started_by
from mneme_server.features.operations.model import LongWork, Operation, OperationState
from mneme_server.features.operations.operations import Operations

QUICK_S = 1.0
"""So long a call waits for the operation that it starts; `operation.proto` says so."""
_OF_DEADLINE = 0.25
_LONGEST_RESERVE_S = 1.0
"""So much of the time that a call has is left for its answer to arrive, on a busy machine too."""
_CANCELLED = 1
_UNIQUE = ""


class OperationKinds:
    """The kinds of operations that capabilities bring, and how they look on the wire."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._kinds: dict[str, StartedKind] = {}

    def bring(self, service: ServiceDescriptor, works: Mapping[str, LongWork]) -> None:
        """Take the works behind RPCs of a service that start operations, by their kinds. Several
        capabilities may bring some each.

        Raises:
            LookupError: the option `starts` of none of its RPCs names one of these kinds.
            ValueError: one of these kinds was brought before.
        """
        said = {kind.name: kind for kind in kinds_started_by(service)}
        if not works.keys() <= said.keys():
            raise LookupError(
                f"{service.name} starts operations {_listed(said)} (option mneme.v1.starts), and"
                f" a capability brings the work of {_listed(works)}"
            )
        for name, work in works.items():
            self._operations.bring(name, work)
            self._kinds[name] = said[name]

    def require_all(self, services: Iterable[ServiceDescriptor]) -> None:
        """Check, once all capabilities are made, that what these services start has its work.

        Raises:
            LookupError: a kind has none.
        """
        for service in services:
            missing = {kind.name for kind in kinds_started_by(service)} - self._kinds.keys()
            if missing:
                raise LookupError(
                    f"{service.name} starts operations {_listed(missing)} (option mneme.v1.starts),"
                    " and no capability brings their work"
                )

    def start(
        self,
        kind: str,
        tenant_id: str,
        operation_id: str,
        request: JsonObject,
        require: Callable[[], JsonObject | None] = lambda: None,
        *,
        key_id: str = "",
    ) -> Operation:
        """Start an operation of a kind that was brought; return it as it is now.

        Raises:
            As `Operations.start`.
        """
        return self._operations.start(
            kind,
            scope=self._kinds[kind].scope,
            tenant_id=tenant_id,
            operation_id=operation_id,
            request=request,
            require=require,
            key_id=key_id,
        )

    def answer(self, call: Call, started: Operation) -> pb.Operation:
        """Return what a call answers that has started an operation: as it has ended, if it is
        quick, or as it is after a moment."""
        return self.message(self._operations.wait_for(started, time_to_wait(call, QUICK_S)))

    def call_off_of(self, tenant_id: str) -> None:
        """Call off the operations that are a tenant's: it is to be deleted, and would wait."""
        self._operations.call_off_of(tenant_id)

    def message(self, operation: Operation) -> pb.Operation:
        """Return an operation as a message."""
        message = pb.Operation(
            id=operation.key.id,
            kind=operation.kind,
            tenant_id=operation.tenant_id,
            state=pb.OperationState.Name(operation.state),
            done=operation.done,
            cancellable=operation.cancellable and not operation.done,
            attempts=operation.attempts,
            created_at=to_timestamp(operation.created_us),
        )
        for name, time_us in (
            ("started_at", operation.started_us),
            ("ended_at", operation.ended_us),
            ("expires_at", operation.expires_us),
        ):
            if time_us is not None:
                getattr(message, name).CopyFrom(to_timestamp(time_us))
        if operation.progress is not None:
            message.progress.stage = operation.progress.stage
            message.progress.done = operation.progress.done
            message.progress.total = operation.progress.total
        if operation.state is OperationState.SUCCEEDED:
            message.response.CopyFrom(self._response(operation))
        elif operation.done:
            message.error.CopyFrom(_error(operation))
        return message

    def _response(self, operation: Operation) -> Any:
        packed = Any()
        kind = self._kinds.get(operation.kind)
        if kind is not None:
            response = symbol_database.Default().GetSymbol(kind.response)()
            json_format.ParseDict(dict(operation.result or {}), response)
            packed.Pack(response)
        return packed


def time_to_wait(call: Call, seconds: float) -> float:
    """Return how long a call may wait that would wait so many seconds."""
    left_s = call.time_left()
    if left_s is None:
        return seconds
    return min(seconds, left_s - min(_LONGEST_RESERVE_S, _OF_DEADLINE * left_s))


def _error(operation: Operation) -> AnyType:
    facts = operation.error
    if facts is None:
        return Status(code=_CANCELLED, message="it was cancelled")
    if "error_id" in facts:
        return internal_failure(str(facts["error_id"]), _UNIQUE).status
    failure = failure_of(error_of(facts), _UNIQUE)
    assert failure is not None
    return failure.status


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
