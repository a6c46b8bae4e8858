"""Recall: memories found by meaning and by words."""

from __future__ import annotations

from mneme.v1 import recall_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.embedding.port import ModelUnavailable
from mneme_server.engine.settings import ServerSettings
from mneme_server.features.recall.reranker import DeferredReranker
from mneme_server.features.recall.reranker_factory import build_reranker
from mneme_server.features.recall.search import Recall
from mneme_server.features.recall.service import RecallServicer
from mneme_server.features.recall.settings import RecallSettings


def _build(host: Host) -> Parts:
    runtime = host.runtime
    reranker = _reranker(host.settings(RecallSettings), host.settings(ServerSettings).embed_threads)
    recall = Recall(
        host.tenants,
        runtime.questions,
        runtime.asking,
        reranker,
        model_id=runtime.model.model_id,
    )
    return Parts(
        services=[
            Service(
                recall_service_pb2.DESCRIPTOR.services_by_name["RecallService"],
                RecallServicer(recall, host.kinds.by_name),
            )
        ],
        offers=[recall],
        close=reranker.close if reranker is not None else None,
    )


def _reranker(settings: RecallSettings, threads: int) -> DeferredReranker | None:
    """Return the reranker of the settings; None when there is none.

    Raises:
        FailedPrecondition: MODEL_NOT_LOADED, the settings name none that can be had.
    """
    key = settings.reranker_api_key
    try:
        model = build_reranker(
            settings.reranker,
            url=settings.reranker_url,
            api_key=key.get_secret_value() if key else None,
            threads=threads,
        )
    except (ValueError, ModelUnavailable) as error:
        raise FailedPrecondition(
            f"MNEME_RERANKER: {error}", reason=Reason.MODEL_NOT_LOADED
        ) from error
    return (
        DeferredReranker(model, patience_s=settings.reranker_seconds) if model is not None else None
    )


CAPABILITY = Capability(name="recall", build=_build)
