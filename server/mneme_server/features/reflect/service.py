"""ReflectService."""

from __future__ import annotations

from mneme.v1 import reflect_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.call import Call
from mneme_server.features.reflect import messages as convert
from mneme_server.features.reflect.analyses import Analyses


class ReflectServicer:
    """Serves `mneme.v1.ReflectService`."""

    def __init__(self, analyses: Analyses) -> None:
        self._analyses = analyses

    def Reflect(self, request: pb.ReflectRequest, call: Call) -> pb.ReflectResponse:
        """Run one analysis."""
        params, filter_ = convert.params(request), convert.history_filter(request)
        try:
            report = self._analyses.run(call.tenant, params, filter_, request.limit)
        except InvalidArgument as error:  # Of a request that keeps the rules, only parameters.
            error.field = f"{convert.params_field(request)}.{error.field}"
            raise
        return convert.reflect_response(report)
