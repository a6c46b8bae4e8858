"""The calls that discover."""

from __future__ import annotations

from mneme.v1 import discovery_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.engine.scheduling.jobs.jobs import Jobs
from mneme_server.features.causal.discovering import Discover, require_known_before
from mneme_server.features.causal.messages import discovery as convert
from mneme_server.features.causal.running import InACall
from mneme_server.features.operations.messages import OperationKinds


class DiscoveryCalls:
    """Serves what `mneme.v1.CausalService` says of discovery."""

    _discover: Discover
    _jobs: Jobs
    _operations: OperationKinds

    def Discover(self, request: pb.DiscoverRequest, call: Call) -> pb.DiscoverResponse:
        """Discover, and wait for it."""
        step = InACall(self._jobs, call.tenant)
        found = self._discover(call.tenant, convert.question(request), step, at_once=True)
        return convert.discovered(found)

    def StartDiscover(
        self, request: pb.StartDiscoverRequest, call: Call
    ) -> pb.StartDiscoverResponse:
        """Start discovering."""
        question = convert.asked_in(request)
        require_known_before(question, "question.adjust_for")
        started = self._operations.start(
            "discover",
            call.tenant,
            request.operation_id,
            {"question": question.as_json()},
            key_id=call.key_id,
        )
        return pb.StartDiscoverResponse(operation=started)
