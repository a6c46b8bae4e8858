"""RecallService."""

from __future__ import annotations

from collections.abc import Mapping

from mneme.v1 import recall_service_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.recall import messages as convert
from mneme_server.features.recall.search import Recall


class RecallServicer:
    """Serves `mneme.v1.RecallService`."""

    def __init__(self, recall: Recall, kinds: Mapping[str, MemoryKind]) -> None:
        self._recall = recall
        self._kinds = kinds

    def Recall(self, request: pb.RecallRequest, call: Call) -> pb.RecallResponse:
        """Recall what bears on a query."""
        answer = self._recall.search(call.tenant, convert.recall_query(request, self._kinds))
        return convert.recall_response(answer)
