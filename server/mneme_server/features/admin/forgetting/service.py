"""AdminService's calls that concern forgetting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from mneme.v1 import admin_service_pb2 as pb
from mneme.v1 import operation_pb2

from mneme_server.common.errors import error_of
from mneme_server.common.identity import new_id
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.engine.corpus.forgetting import ForgetSelection
from mneme_server.features.admin.forgetting.erasure import FORGET, Erase, request_of
from mneme_server.features.admin.forgetting.forgetting import Forget
from mneme_server.features.admin.forgetting.messages import previewed, receipt, selection_of
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.operations import Operations

_PATIENCE_S = 60.0
"""How long a caller waits who says nothing about it."""


class ForgettingCalls:
    """Serves the calls of `mneme.v1.AdminService` that forget.

    Args:
        tenants: those that there are.
        forget: finds and hides.
        erase: knows what became of it.
        kinds: starts operations.
        operations: follows those that were started.
        lent: lends room on a full disk.
    """

    def __init__(
        self,
        tenants: Tenants,
        forget: Forget,
        erase: Erase,
        kinds: OperationKinds,
        operations: Operations,
        *,
        lent: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._tenants = tenants
        self._forget = forget
        self._erase = erase
        self._kinds = kinds
        self._operations = operations
        self._lent = lent

    def Forget(self, request: pb.ForgetRequest, call: Call) -> pb.ForgetResponse:
        """Forget, and wait until it is erased; or tell what would be forgotten."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        selection = selection_of(request)
        with fields(kind="items"):
            if request.dry_run:
                found = self._forget.preview(tenant_id, selection)
                return pb.ForgetResponse(receipt=previewed(tenant_id, found))
            started = self._start(tenant_id, request.operation_id, selection)
        seconds = call.time_left() or _PATIENCE_S
        ended = self._operations.wait(call.caller, started.id, seconds=seconds)
        if ended.error is not None:
            raise error_of(ended.error)
        return pb.ForgetResponse(
            receipt=receipt(tenant_id, self._erase.told(tenant_id, started.id))
        )

    def StartForget(self, request: pb.StartForgetRequest, call: Call) -> pb.StartForgetResponse:
        """Start to forget."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        with fields(kind="items"):
            started = self._start(tenant_id, request.operation_id, selection_of(request))
        return pb.StartForgetResponse(operation=started)

    def go_on(self) -> None:
        """Start the operations again that erase what was asked to be forgotten and is not erased:
        the server may have stopped before they were kept."""
        for tenant_id, forgetting_id, asked in self._forget.catalog.unfinished():
            self._kinds.start(FORGET, tenant_id, forgetting_id, request_of(forgetting_id, asked))

    def _start(
        self, tenant_id: str, operation_id: str, selection: ForgetSelection
    ) -> operation_pb2.Operation:
        operation_id = operation_id or new_id()
        with self._lent():
            return self._kinds.start(
                FORGET,
                tenant_id,
                operation_id,
                request_of(operation_id, self._forget.asked(tenant_id, selection)),
                lambda: self._forget.hide(tenant_id, operation_id, selection),
            )
