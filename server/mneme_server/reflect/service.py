"""ReflectService."""

from __future__ import annotations

from mneme.v1 import reflect_service_pb2 as pb

from mneme_server.reflect import messages as convert
from mneme_server.reflect.model import Analysis
from mneme_server.reflect.reflecting import Reflect
from mneme_server.transport.call import Call


class ReflectServicer:
    """Serves `mneme.v1.ReflectService`."""

    def __init__(self, reflect: Reflect) -> None:
        self._reflect = reflect

    def Reflect(self, request: pb.ReflectRequest, call: Call) -> pb.ReflectResponse:
        """Run one analysis."""
        reflection = self._reflect(
            call.tenant,
            Analysis(request.analysis),
            convert.history_filter(request),
            convert.params(request),
            request.limit,
        )
        return convert.reflect_response(reflection)
