"""OperationService."""

from __future__ import annotations

from mneme.v1 import operation_service_pb2 as pb

from mneme_server.common.clock import MICROSECONDS
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import stored_duration
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.operations.messages import OperationKinds, time_to_wait
from mneme_server.features.operations.model import OperationFilter, OperationState
from mneme_server.features.operations.operations import Operations

_USUAL_WAIT_S = 20.0


class OperationServicer:
    """Serves `mneme.v1.OperationService`."""

    def __init__(self, operations: Operations, kinds: OperationKinds) -> None:
        self._operations = operations
        self._kinds = kinds

    def GetOperation(self, request: pb.GetOperationRequest, call: Call) -> pb.GetOperationResponse:
        """Return an operation as it is now."""
        found = self._operations.get(call.caller, request.operation_id, request.tenant_id)
        return pb.GetOperationResponse(operation=self._kinds.message(found))

    def ListOperations(
        self, request: pb.ListOperationsRequest, call: Call
    ) -> pb.ListOperationsResponse:
        """List operations."""
        pages = Pages(request)
        after = pages.after(int)
        found = self._operations.list(
            call.caller,
            OperationFilter(
                tenant_id=request.tenant_id,
                kind=request.kind,
                states=frozenset(map(OperationState, request.states)),
            ),
            after[0] if after else None,
            pages.size + 1,
        )
        page, token = pages.fit(found, self._kinds.message, lambda last: (last.number,))
        return pb.ListOperationsResponse(operations=page, next_page_token=token)

    def WaitOperation(
        self, request: pb.WaitOperationRequest, call: Call
    ) -> pb.WaitOperationResponse:
        """Wait for the end of an operation."""
        asked_us = stored_duration(request, "max_wait")
        wait_s = _USUAL_WAIT_S if asked_us is None else asked_us / MICROSECONDS
        found = self._operations.wait(
            call.caller,
            request.operation_id,
            request.tenant_id,
            seconds=time_to_wait(call, wait_s),
        )
        return pb.WaitOperationResponse(operation=self._kinds.message(found))

    def CancelOperation(
        self, request: pb.CancelOperationRequest, call: Call
    ) -> pb.CancelOperationResponse:
        """Have an operation stop."""
        found = self._operations.cancel(call.caller, request.operation_id, request.tenant_id)
        return pb.CancelOperationResponse(operation=self._kinds.message(found))
