"""AdminService's calls that concern forgetting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from mneme.v1 import admin_service_pb2 as pb

from mneme_server.common.identity import new_id
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.features.admin.forgetting.erasure import FORGET, Erase, request_of
from mneme_server.features.admin.forgetting.forgetting import Forget
from mneme_server.features.admin.forgetting.messages import dry_run, receipt, selection_of
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds


class ForgettingCalls:
    """Serves the calls of `mneme.v1.AdminService` that forget.

    Args:
        tenants: those that there are.
        forget: finds and hides.
        erase: knows what became of it.
        kinds: starts operations.
        lent: lends room on a full disk.
    """

    def __init__(
        self,
        tenants: Tenants,
        forget: Forget,
        erase: Erase,
        kinds: OperationKinds,
        *,
        lent: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._tenants = tenants
        self._forget = forget
        self._erase = erase
        self._kinds = kinds
        self._lent = lent

    def Forget(self, request: pb.ForgetRequest, call: Call) -> pb.ForgetResponse:
        """Hide what is to be forgotten, and start to erase it; or tell what would be forgotten."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        selection = selection_of(request)
        with fields(kind="items"):
            if request.dry_run:
                found = self._forget.preview(tenant_id, selection)
                return pb.ForgetResponse(operation=dry_run(tenant_id, found))
            operation_id = request.operation_id or new_id()
            with self._lent():
                started = self._kinds.start(
                    FORGET,
                    tenant_id,
                    operation_id,
                    request_of(operation_id, self._forget.asked(tenant_id, selection)),
                    lambda: self._forget.hide(tenant_id, operation_id, selection),
                )  # Without the key: what is hidden is erased, though it be revoked.
        answer = self._kinds.answer(call, started)
        if answer.HasField("response"):  # Servers may have come back since it ended.
            answer.response.Pack(receipt(tenant_id, self._erase.told(tenant_id, operation_id)))
        return pb.ForgetResponse(operation=answer)

    def go_on(self) -> None:
        """Start the operations again that erase what was asked to be forgotten and is not erased:
        the server may have stopped before they were kept."""
        for tenant_id, forgetting_id, asked in self._forget.catalog.unfinished():
            self._kinds.start(FORGET, tenant_id, forgetting_id, request_of(forgetting_id, asked))
