"""Forgetting on the wire."""

from __future__ import annotations

from google.protobuf import json_format
from mneme.v1 import admin_service_pb2 as pb
from mneme.v1 import forgetting_pb2, operation_pb2

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.conversions import time_range, to_timestamp
from mneme_server.engine.corpus.forgetting import ForgetFilter, ForgetSelection
from mneme_server.features.admin.forgetting.erasure import FORGET
from mneme_server.features.admin.forgetting.model import Forgetting, ForgettingOutcome

_ONE_OF = ("user_id", "agent_id", "session_id", "items", "filter")


def selection_of(request: pb.ForgetRequest) -> ForgetSelection:
    """Return what a request names.

    Raises:
        InvalidArgument: it names nothing, or in more ways than one.
    """
    named = [name for name in _ONE_OF[:-1] if getattr(request, name)]
    if request.HasField("filter"):
        named.append("filter")
    if len(named) != 1:
        given = f"not {' and '.join(named)} together" if named else "nothing is named"
        raise InvalidArgument(
            "say what to forget by one of user_id, agent_id, session_id, items and filter:"
            f" {given}",
            reason=Reason.INVALID_PARAMETER if named else Reason.MISSING_REQUIRED_FIELD,
            field=named[1] if named else "user_id",
        )
    items: dict[str, set[str]] = {}
    for place, item in enumerate(request.items):
        if not item.kind:
            raise InvalidArgument(
                "say what kind of thing it is, for instance memory",
                reason=Reason.MISSING_REQUIRED_FIELD,
                field=f"items[{place}].kind",
            )
        items.setdefault(item.kind, set()).add(item.id)
    return ForgetSelection(
        user_id=request.user_id,
        agent_id=request.agent_id,
        session_id=request.session_id,
        items={kind: frozenset(ids) for kind, ids in items.items()},
        filter=_filter(request.filter) if request.HasField("filter") else None,
    )


def _filter(given: forgetting_pb2.ForgetFilter) -> ForgetFilter:
    if not given.ListFields():
        raise InvalidArgument(
            "a filter that lets everything through is not taken; to forget all of a tenant, delete"
            " the tenant",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="filter",
        )
    start_us, end_us = time_range(given)
    return ForgetFilter(
        kinds=frozenset(given.kinds),
        user_id=given.user_id,
        agent_id=given.agent_id,
        session_id=given.session_id,
        project=given.project,
        tags=frozenset(given.tags),
        start_us=start_us,
        end_us=end_us,
    )


def dry_run(tenant_id: str, outcome: ForgettingOutcome) -> operation_pb2.Operation:
    """Return what a dry run answers: an operation that never was one, and has ended."""
    done = operation_pb2.Operation(
        kind=FORGET,
        tenant_id=tenant_id,
        state=operation_pb2.OPERATION_STATE_SUCCEEDED,
        done=True,
    )
    done.response.Pack(_previewed(tenant_id, outcome))
    return done


def _previewed(tenant_id: str, outcome: ForgettingOutcome) -> forgetting_pb2.ForgetReceipt:
    return forgetting_pb2.ForgetReceipt(
        tenant_id=tenant_id,
        counts=[
            forgetting_pb2.ForgottenCount(kind=kind, count=count)
            for kind, count in outcome.counts.items()
        ],
        policies=outcome.policies,
    )


def receipt(tenant_id: str, forgetting: Forgetting) -> forgetting_pb2.ForgetReceipt:
    """Return the receipt of a forgetting, as far as it has come."""
    if forgetting.receipt is not None:
        return json_format.ParseDict(dict(forgetting.receipt), forgetting_pb2.ForgetReceipt())
    said = _previewed(tenant_id, forgetting.outcome)
    said.id = forgetting.id
    said.leaves.extend(
        forgetting_pb2.LeafRange(first=first, last=last) for first, last in forgetting.leaves
    )
    said.hidden_at.CopyFrom(to_timestamp(forgetting.hidden_us))
    return said
