"""The calls that concern policies: asked for actions, trained, transferred."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import learning_service_pb2 as pb

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import MnemeError
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_duration
from mneme_server.edge.grpc.errors import fields
from mneme_server.features.learning.messages import steps, trust
from mneme_server.features.learning.service.experience import session_of
from mneme_server.features.learning.sessions.prediction import Act, Predict
from mneme_server.features.learning.sessions.shaped_rewards import ShapeReward
from mneme_server.features.learning.sessions.train import Train, TrainProgress
from mneme_server.features.learning.transfer.transfer import Transfer

_ONE_BY_ONE = BatchLimits(items=1)
"""Messages of a stream are answered as they come."""


class PolicyCalls:
    """Serves what `mneme.v1.LearningService` says of what a session learns and chooses."""

    def __init__(
        self,
        *,
        predict: Predict,
        act: Act,
        train: Train,
        transfer: Transfer,
        shape: ShapeReward,
        watchdog: Watchdog,
    ) -> None:
        self._predict = predict
        self._act = act
        self._train = train
        self._transfer = transfer
        self._shape = shape
        self._watchdog = watchdog

    def Predict(self, request: pb.PredictRequest, call: Call) -> pb.PredictResponse:
        """Choose an action."""
        made = self._predict.predict(
            call.tenant,
            request.session_id,
            steps.asked(request),
            explore=request.explore,
            baseline=trust.baseline(request),
        )
        return pb.PredictResponse(
            prediction=steps.prediction(made, scores=True), gate=trust.verdict(made.verdict)
        )

    def Act(
        self, request_iterator: Iterator[pb.ActRequest], call: Call
    ) -> Iterator[pb.ActResponse]:
        """Tell and ask, message by message."""
        messages = Batches(_sized(request_iterator), _ONE_BY_ONE)
        call.on_end(messages.end)
        session_id = ""
        for index, (request,) in enumerate(messages):
            try:
                session_id = session_of(request.session_id, session_id)
                with fields(prediction_id="feedback[{item}].prediction_id"):
                    answer = self._act.act(call.tenant, steps.act_message(request, session_id))
            except MnemeError as error:
                error.metadata["message_index"] = str(index)
                raise
            # Who never reads holds up who writes, without end.
            with self._watchdog.limit(_ONE_BY_ONE.idle_s, call.cancel):
                yield steps.act_answer(answer, scores=request.with_scores)

    def Train(self, request: pb.TrainRequest, call: Call) -> Iterator[pb.TrainResponse]:
        """Learn again, and tell how far it is."""
        for trained in self._train.train(
            call.tenant, request.session_id, request.num_steps, request.batch_size
        ):
            with self._watchdog.limit(_ONE_BY_ONE.idle_s, call.cancel):
                yield _progress(trained, request.num_steps)

    def Transfer(self, request: pb.TransferRequest, call: Call) -> pb.TransferResponse:
        """Transfer what was learned, or take it back."""
        if request.undo:
            self._transfer.undo(call.tenant, request.source_session_id, request.target_session_id)
            return pb.TransferResponse(
                worth="The target knows what its own steps teach, and nothing else."
            )
        found = self._transfer.transfer(
            call.tenant,
            request.source_session_id,
            request.target_session_id,
            kind=trust.TRANSFERS[request.transfer_type],
            least=request.similarity_threshold,
            dry_run=request.dry_run,
        )
        return trust.transferred(found)

    def ShapeReward(self, request: pb.ShapeRewardRequest, call: Call) -> pb.ShapeRewardResponse:
        """Shape a reward."""
        found = self._shape.shape(call.tenant, request.session_id, trust.wanted(request))
        return trust.shaped(request.extrinsic_reward, found)


def _sized(requests: Iterator[pb.ActRequest]) -> Iterator[tuple[pb.ActRequest, int]]:
    for request in requests:
        yield request, 1


def _progress(trained: TrainProgress, steps: int) -> pb.TrainResponse:
    return pb.TrainResponse(
        steps_completed=trained.done,
        num_steps=steps,
        updates=trained.updates,
        loss=trained.since.loss,
        value_mean=trained.since.value,
        gradient_norm=trained.since.gradient_norm or None,
        steps_per_second=trained.done / trained.took_s if trained.took_s else 0.0,
        training_time=to_duration(int(trained.took_s * MICROSECONDS)),
    )
