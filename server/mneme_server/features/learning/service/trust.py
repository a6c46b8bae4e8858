"""The calls that tell whether to trust a policy: how it does, what it is worth, why it chooses."""

from __future__ import annotations

from mneme.v1 import learning_service_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.features.learning.explanation.explanation import Explain
from mneme_server.features.learning.messages import sessions as convert
from mneme_server.features.learning.messages import trust
from mneme_server.features.learning.messages.spaces import given
from mneme_server.features.learning.sessions.evaluation import Evaluate
from mneme_server.features.learning.sessions.metrics import MeasureSession


class TrustCalls:
    """Serves what `mneme.v1.LearningService` says of how sessions do, and why."""

    def __init__(
        self,
        measure: MeasureSession,
        evaluate: Evaluate,
        explain: Explain,
    ) -> None:
        self._measure = measure
        self._evaluate = evaluate
        self._explain = explain

    def GetLearningMetrics(
        self, request: pb.GetLearningMetricsRequest, call: Call
    ) -> pb.GetLearningMetricsResponse:
        """Tell how a session does."""
        found = self._measure.measure(
            call.tenant, request.session_id, request.window_size, request.history_size
        )
        judged = (
            self._evaluate.evaluate(call.tenant, request.session_id) if request.evaluate else None
        )
        return pb.GetLearningMetricsResponse(
            metrics=convert.metrics(found),
            evaluation=None
            if judged is None
            else trust.evaluation(
                judged.evaluation, steps=judged.steps, truncated=judged.truncated
            ),
        )

    def Explain(self, request: pb.ExplainRequest, call: Call) -> pb.ExplainResponse:
        """Explain a choice."""
        found = self._explain.explain(
            call.tenant, request.session_id, trust.explained(request), given(request, "action")
        )
        return pb.ExplainResponse(explanation=trust.explanation(found))
