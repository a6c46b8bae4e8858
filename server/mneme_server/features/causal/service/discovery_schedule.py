"""The calls that concern discovering every night."""

from __future__ import annotations

from mneme.v1 import discovery_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.features.causal.messages import discovery as convert
from mneme_server.features.causal.nightly import Nightly


class DiscoveryScheduleCalls:
    """Serves what `mneme.v1.CausalService` says of schedules."""

    _nightly: Nightly

    def GetDiscoverySchedule(
        self, request: pb.GetDiscoveryScheduleRequest, call: Call
    ) -> pb.GetDiscoveryScheduleResponse:
        """Return the schedule."""
        found = self._nightly.get(call.tenant)
        return pb.GetDiscoveryScheduleResponse(schedule=convert.schedule(found))

    def SetDiscoverySchedule(
        self, request: pb.SetDiscoveryScheduleRequest, call: Call
    ) -> pb.SetDiscoveryScheduleResponse:
        """Set the schedule."""
        schedule = self._nightly.set(
            call.tenant,
            enabled=request.enabled,
            minute=convert.minute(request.time),
            question=convert.asked_in(request),
        )
        return pb.SetDiscoveryScheduleResponse(schedule=convert.schedule(schedule))
