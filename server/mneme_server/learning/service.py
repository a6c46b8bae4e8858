"""LearningService."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mneme.v1 import learning_service_pb2 as pb

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.common.ids import new_id
from mneme_server.common.watchdog import Watchdog
from mneme_server.learning.acting import Act
from mneme_server.learning.algorithm import Algorithm
from mneme_server.learning.ending import EndSession
from mneme_server.learning.evaluating import Evaluate
from mneme_server.learning.explaining_choices import Explain
from mneme_server.learning.measuring import Measure
from mneme_server.learning.messages import sessions as convert
from mneme_server.learning.messages import steps, trust
from mneme_server.learning.messages.values import given
from mneme_server.learning.model import Status, Told
from mneme_server.learning.ports import SessionFilter
from mneme_server.learning.predicting import Predict
from mneme_server.learning.recording import Record
from mneme_server.learning.sessions import Sessions, StartSession
from mneme_server.learning.shaping_rewards import ShapeReward
from mneme_server.learning.training import Train, Trained
from mneme_server.learning.transferring import Transfer
from mneme_server.transport.batches import Batches, BatchLimits
from mneme_server.transport.call import Call
from mneme_server.transport.fields import fields
from mneme_server.transport.paging import Pages

_ONE_BY_ONE = BatchLimits(items=1)
"""Messages of a stream are answered as they come."""


class LearningServicer:
    """Serves `mneme.v1.LearningService`."""

    def __init__(
        self,
        *,
        algorithms: Callable[[str], Sequence[Algorithm]],
        start_session: StartSession,
        end_session: EndSession,
        sessions: Sessions,
        predict: Predict,
        record: Record,
        measure: Measure,
        evaluate: Evaluate,
        explain: Explain,
        shape_reward: ShapeReward,
        transfer: Transfer,
        act: Act,
        train: Train,
        watchdog: Watchdog,
    ) -> None:
        self._algorithms = algorithms
        self._start_session = start_session
        self._end_session = end_session
        self._sessions = sessions
        self._predict = predict
        self._record = record
        self._measure = measure
        self._evaluate = evaluate
        self._explain = explain
        self._shape_reward = shape_reward
        self._transfer = transfer
        self._act = act
        self._train = train
        self._watchdog = watchdog

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

    def Feedback(self, request: pb.FeedbackRequest, call: Call) -> pb.FeedbackResponse:
        """Tell what came of an action."""
        with fields(id="feedback_id"):
            recorded = self._record(
                call.tenant,
                request.session_id,
                [steps.told(request, "")],
                trajectory_id=request.feedback_id or None,
            )
        return pb.FeedbackResponse(
            transition=recorded.steps[0].number,
            duplicate=recorded.duplicate,
            updates=recorded.learned.updates,
            loss=recorded.learned.loss,
            value_mean=recorded.learned.value,
            episode_reward=recorded.episode_reward,
            episodes_completed=recorded.counts.episodes,
        )

    def RecordExperience(
        self, request: pb.RecordExperienceRequest, call: Call
    ) -> pb.RecordExperienceResponse:
        """Record a trajectory."""
        trajectory_id = request.trajectory_id or new_id()
        told = [steps.told(step, f"steps[{place}].") for place, step in enumerate(request.steps)]
        with fields(id="trajectory_id", prediction_id="steps[{item}].prediction_id"):
            recorded = self._record(
                call.tenant,
                request.session_id,
                [_of_trajectory(step, trajectory_id) for step in told],
                trajectory_id=trajectory_id,
                field="steps[{item}].",
            )
        return pb.RecordExperienceResponse(
            trajectory_id=trajectory_id,
            steps_recorded=0 if recorded.duplicate else len(recorded.steps),
            total_reward=sum(step.reward for step in recorded.steps),
            transitions=recorded.counts.transitions,
            updates=recorded.learned.updates,
            experience_bytes=recorded.bytes,
            utilization=recorded.bytes / self._record.most_bytes,
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
                session_id = _session_of(request, session_id)
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
        for trained in self._train(call.tenant, request.session_id, request.num_steps):
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
        ended = self._end_session(call.tenant, request.session_id, export=not request.skip_export)
        session = ended.session
        lasted = (session.ended_us or session.updated_us) - session.created_us
        return pb.LearningServiceEndSessionResponse(
            session=convert.session(session),
            metrics=convert.metrics(ended.metrics),
            model_path=ended.path,
            model_bytes=ended.size,
            meets_skill_bar=ended.is_worth(request.min_performance),
            session_duration=convert.duration(lasted),
        )


def _sized(requests: Iterator[pb.ActRequest]) -> Iterator[tuple[pb.ActRequest, int]]:
    for request in requests:
        yield request, 1


def _session_of(request: pb.ActRequest, before: str) -> str:
    """Return the session of a message: its own, or that of the message before."""
    if before and request.session_id not in ("", before):
        raise InvalidArgument(
            "session_id: is another than that of the stream's first message", field="session_id"
        )
    session_id = request.session_id or before
    if not session_id:
        raise InvalidArgument(
            "session_id: is required in the first message",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="session_id",
        )
    return session_id


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


def _of_trajectory(step: Told, trajectory_id: str) -> Told:
    """Return a step with the trajectory as its actor, unless it names one: trajectories that are
    told at once are episodes of their own."""
    if step.actor or step.prediction_id:
        return step
    return replace(step, actor=trajectory_id)
