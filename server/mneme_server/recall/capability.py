"""Recall: memories found by meaning and by words."""

from __future__ import annotations

from mneme.v1 import recall_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.recall.search import Recall
from mneme_server.recall.service import RecallServicer
from mneme_server.transport.service import Service


def _build(host: Host) -> Parts:
    runtime = host.runtime
    recall = Recall(host.tenants, runtime.embedder, runtime.foreground, runtime.asking)
    return Parts(
        services=[
            Service(
                recall_service_pb2.DESCRIPTOR.services_by_name["RecallService"],
                RecallServicer(recall, host.kinds.by_name),
            )
        ],
        offers=[recall],
    )


CAPABILITY = Capability(name="recall", build=_build)
