"""LearningService; what tells sessions of experience is in `recording.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mneme.v1 import learning_service_pb2 as pb

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import MnemeError
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.learning.acting import Act
from mneme_server.features.learning.algorithm import Algorithm
from mneme_server.features.learning.ending import EndSession
from mneme_server.features.learning.evaluating import Evaluate
from mneme_server.features.learning.explaining_choices import Explain
from mneme_server.features.learning.exporting import DownloadModel
from mneme_server.features.learning.importing.importing import ImportExperience
from mneme_server.features.learning.measuring import Measure
from mneme_server.features.learning.messages import sessions as convert
from mneme_server.features.learning.messages import steps, trust
from mneme_server.features.learning.messages.values import given
from mneme_server.features.learning.model import Status
from mneme_server.features.learning.ports import SessionFilter
from mneme_server.features.learning.predicting import Predict
from mneme_server.features.learning.recording import Record
from mneme_server.features.learning.service.recording import RecordingCalls, session_of
from mneme_server.features.learning.sessions import Sessions, StartSession
from mneme_server.features.learning.shaping_rewards import ShapeReward
from mneme_server.features.learning.training import Train, Trained
from mneme_server.features.learning.trajectories import Trajectories
from mneme_server.features.learning.transferring import Transfer

_ONE_BY_ONE = BatchLimits(items=1)
"""Messages of a stream are answered as they come."""


class LearningServicer(RecordingCalls):
    """Serves `mneme.v1.LearningService`."""

    def __init__(
        self,
        *,
        algorithms: Callable[[str], Sequence[Algorithm]],
        start_session: StartSession,
        end_session: EndSession,
        download_model: DownloadModel,
        sessions: Sessions,
        predict: Predict,
        record: Record,
        trajectories: Trajectories,
        import_experience: ImportExperience,
        measure: Measure,
        evaluate: Evaluate,
        explain: Explain,
        shape_reward: ShapeReward,
        transfer: Transfer,
        act: Act,
        train: Train,
        watchdog: Watchdog,
        foreground: Foreground,
    ) -> None:
        self._algorithms = algorithms
        self._start_session = start_session
        self._end_session = end_session
        self._download_model = download_model
        self._sessions = sessions
        self._predict = predict
        self._record = record
        self._trajectories = trajectories
        self._import = import_experience
        self._measure = measure
        self._evaluate = evaluate
        self._explain = explain
        self._shape_reward = shape_reward
        self._transfer = transfer
        self._act = act
        self._train = train
        self._watchdog = watchdog
        self._foreground = foreground

    def DescribeAlgorithms(
        self, request: pb.DescribeAlgorithmsRequest, _call: Call
    ) -> pb.DescribeAlgorithmsResponse:
        """Describe the algorithms."""
        found = self._algorithms(request.algorithm)
        return pb.DescribeAlgorithmsResponse(
            algorithms=[convert.description(algorithm) for algorithm in found]
        )

    def StartSession(
        self, request: pb.LearningServiceStartSessionRequest, call: Call
    ) -> pb.LearningServiceStartSessionResponse:
        """Start or resume a session."""
        session, resumed = self._start_session(call.tenant, convert.new_session(request))
        return pb.LearningServiceStartSessionResponse(
            session=convert.session(session), resumed=resumed
        )

    def GetLearningSession(
        self, request: pb.GetLearningSessionRequest, call: Call
    ) -> pb.GetLearningSessionResponse:
        """Return a session."""
        session = self._sessions.get(call.tenant, request.session_id)
        return pb.GetLearningSessionResponse(session=convert.session(session))

    def ListLearningSessions(
        self, request: pb.ListLearningSessionsRequest, call: Call
    ) -> pb.ListLearningSessionsResponse:
        """List sessions."""
        pages = Pages(request)
        after = pages.after(int)
        filter_ = SessionFilter(
            request.algorithm, Status(request.status) if request.status else None
        )
        found = self._sessions.page(
            call.tenant, filter_, after[0] if after else None, pages.size + 1
        )
        page, token = pages.cut(found, lambda last: (last.number,))
        return pb.ListLearningSessionsResponse(
            sessions=[convert.session(one, with_actions=False) for one in page],
            next_page_token=token,
        )

    def DeleteLearningSession(
        self, request: pb.DeleteLearningSessionRequest, call: Call
    ) -> pb.DeleteLearningSessionResponse:
        """Delete a session."""
        self._sessions.delete(call.tenant, request.session_id)
        return pb.DeleteLearningSessionResponse()

    def Predict(self, request: pb.PredictRequest, call: Call) -> pb.PredictResponse:
        """Choose an action."""
        made = self._predict(
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
                    answer = self._act(call.tenant, steps.act_message(request, session_id))
            except MnemeError as error:
                error.metadata["message_index"] = str(index)
                raise
            # Who never reads holds up who writes, without end.
            with self._watchdog.limit(_ONE_BY_ONE.idle_s, call.cancel):
                yield steps.act_answer(answer, scores=request.with_scores)

    def Train(self, request: pb.TrainRequest, call: Call) -> Iterator[pb.TrainResponse]:
        """Learn again, and tell how far it is."""
        for trained in self._train(
            call.tenant, request.session_id, request.num_steps, request.batch_size
        ):
            with self._watchdog.limit(_ONE_BY_ONE.idle_s, call.cancel):
                yield _progress(trained, request.num_steps)

    def GetMetrics(self, request: pb.GetMetricsRequest, call: Call) -> pb.GetMetricsResponse:
        """Tell how a session does."""
        found = self._measure(
            call.tenant, request.session_id, request.window_size, request.history_size
        )
        judged = self._evaluate(call.tenant, request.session_id) if request.evaluate else None
        return pb.GetMetricsResponse(
            metrics=convert.metrics(found),
            evaluation=None
            if judged is None
            else trust.evaluation(
                judged.evaluation, steps=judged.steps, truncated=judged.truncated
            ),
        )

    def Explain(self, request: pb.ExplainRequest, call: Call) -> pb.ExplainResponse:
        """Explain a choice."""
        found = self._explain(
            call.tenant, request.session_id, trust.explained(request), given(request, "action")
        )
        return pb.ExplainResponse(explanation=trust.explanation(found))

    def ShapeReward(self, request: pb.ShapeRewardRequest, call: Call) -> pb.ShapeRewardResponse:
        """Shape a reward."""
        found = self._shape_reward(call.tenant, request.session_id, trust.wanted(request))
        return trust.shaped(request.extrinsic_reward, found)

    def Transfer(self, request: pb.TransferRequest, call: Call) -> pb.TransferResponse:
        """Transfer what was learned."""
        found = self._transfer(
            call.tenant,
            request.source_session_id,
            request.target_session_id,
            kind=trust.TRANSFERS[request.transfer_type],
            least=request.similarity_threshold,
        )
        return trust.transferred(found)

    def EndSession(
        self, request: pb.LearningServiceEndSessionRequest, call: Call
    ) -> pb.LearningServiceEndSessionResponse:
        """End a session."""
        ended = self._end_session(
            call.tenant,
            request.session_id,
            export=not request.skip_export,
            least=request.min_performance,
            skill=not request.skip_skill,
        )
        session = ended.session
        lasted = (session.ended_us or session.updated_us) - session.created_us
        return pb.LearningServiceEndSessionResponse(
            session=convert.session(session),
            metrics=convert.metrics(ended.metrics),
            model_path=ended.path,
            model_bytes=ended.size,
            meets_skill_bar=ended.meets_bar,
            skill_id=ended.skill_id,
            skill_created=ended.skill_is_new,
            session_duration=convert.duration(lasted),
        )

    def DownloadModel(
        self, request: pb.DownloadModelRequest, call: Call
    ) -> Iterator[pb.DownloadModelResponse]:
        """Stream an exported model."""
        model = self._download_model(call.tenant, request.session_id)
        yield pb.DownloadModelResponse(model=convert.exported(model))
        for part in model.parts:
            yield pb.DownloadModelResponse(data=part)


def _sized(requests: Iterator[pb.ActRequest]) -> Iterator[tuple[pb.ActRequest, int]]:
    for request in requests:
        yield request, 1


def _progress(trained: Trained, steps: int) -> pb.TrainResponse:
    return pb.TrainResponse(
        steps_completed=trained.done,
        num_steps=steps,
        updates=trained.updates,
        loss=trained.since.loss,
        value_mean=trained.since.value,
        gradient_norm=trained.since.gradient_norm or None,
        steps_per_second=trained.done / trained.took_s if trained.took_s else 0.0,
        training_time=convert.duration(int(trained.took_s * MICROSECONDS)),
    )
