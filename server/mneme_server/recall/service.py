"""RecallService."""

from __future__ import annotations

from mneme.v1 import recall_service_pb2 as pb

from mneme_server.recall import messages as convert
from mneme_server.recall.search import Recall
from mneme_server.transport.call import Call


class RecallServicer:
    """Serves `mneme.v1.RecallService`."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    def Recall(self, request: pb.RecallRequest, call: Call) -> pb.RecallResponse:
        """Recall what bears on a query."""
        answer = self._recall(call.tenant, convert.recall_query(request))
        return convert.recall_response(answer)
