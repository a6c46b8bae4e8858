"""ReflectService."""

from __future__ import annotations

import grpc
from mneme.v1 import reflect_service_pb2 as pb
from mneme.v1 import reflect_service_pb2_grpc as pb_grpc

from mneme_server.reflect import messages as convert
from mneme_server.reflect.model import Analysis
from mneme_server.reflect.reflecting import Reflect
from mneme_server.transport.call import current_caller


class ReflectServicer(pb_grpc.ReflectServiceServicer):
    """Serves `mneme.v1.ReflectService`."""

    def __init__(self, reflect: Reflect) -> None:
        self._reflect = reflect

    def Reflect(
        self, request: pb.ReflectRequest, context: grpc.ServicerContext
    ) -> pb.ReflectResponse:
        """Run one analysis."""
        reflection = self._reflect(
            current_caller().tenant_id,
            Analysis(request.analysis),
            convert.history_filter(request),
            convert.params(request),
            request.limit,
        )
        return convert.reflect_response(reflection)
