"""RecallService."""

from __future__ import annotations

import grpc
from mneme.v1 import recall_service_pb2 as pb
from mneme.v1 import recall_service_pb2_grpc as pb_grpc

from mneme_server.recall import messages as convert
from mneme_server.recall.search import Recall
from mneme_server.transport.call import current_caller


class RecallServicer(pb_grpc.RecallServiceServicer):
    """Serves `mneme.v1.RecallService`."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    def Recall(self, request: pb.RecallRequest, context: grpc.ServicerContext) -> pb.RecallResponse:
        """Recall what bears on a query."""
        answer = self._recall(current_caller().tenant_id, convert.recall_query(request))
        return convert.recall_response(answer)
