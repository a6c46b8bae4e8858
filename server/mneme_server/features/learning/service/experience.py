"""The calls that tell sessions of experience."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import learning_import_pb2 as import_pb
from mneme.v1 import learning_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.learning.imports.experience_import import ImportExperience
from mneme_server.features.learning.messages import imports, steps
from mneme_server.features.learning.model import TrajectoryInput
from mneme_server.features.learning.sessions.experience import (
    RecordedTrajectories,
    RecordExperience,
)
from mneme_server.features.learning.sessions.sessions import Trajectories

_LIMITS = BatchLimits(items=100)


class ExperienceCalls:
    """Serves what `mneme.v1.LearningService` says of experience."""

    def __init__(
        self,
        record: RecordExperience,
        trajectories: Trajectories,
        imports: ImportExperience,
        watchdog: Watchdog,
    ) -> None:
        self._record = record
        self._trajectories = trajectories
        self._imports = imports
        self._watchdog = watchdog

    def Feedback(self, request: pb.FeedbackRequest, call: Call) -> pb.FeedbackResponse:
        """Tell what came of an action."""
        with fields(id="feedback_id"):
            recorded = self._record.steps(
                call.tenant,
                request.session_id,
                [steps.told(request, "")],
                feedback_id=request.feedback_id or None,
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
        told = steps.trajectory(request)
        with fields(id="trajectory_id", prediction_id="steps[{item}].prediction_id"):
            done = self._record.trajectories(call.tenant, request.session_id, [told])
        recorded = done.recorded.get(0, ())
        return pb.RecordExperienceResponse(
            trajectory_id=told.id,
            steps_recorded=len(recorded),
            total_reward=sum(step.reward for step in told.steps),
            transitions=done.counts.transitions,
            updates=done.learned.updates,
            experience_bytes=done.bytes,
            utilization=done.bytes / self._record.most_bytes,
        )

    def RecordTrajectories(
        self, request_iterator: Iterator[pb.RecordTrajectoriesRequest], call: Call
    ) -> Iterator[pb.RecordTrajectoriesResponse]:
        """Record a stream of trajectories batch by batch, and acknowledge each."""
        stream = _Stream()
        batches = Batches(stream.read(request_iterator), _LIMITS)
        call.on_end(batches.end)
        answer = pb.RecordTrajectoriesResponse()
        try:
            for batch in batches:
                with fields(id="trajectory_id", prediction_id="steps[{item}].prediction_id"):
                    done = self._record.trajectories(call.tenant, stream.session_id, batch)
                answer = self._acknowledged(answer, batch, done)
                # Who never reads holds up who writes, without end.
                with self._watchdog.limit(_LIMITS.idle_s, call.cancel):
                    yield answer
        except MnemeError as error:
            place = error.metadata.pop("trajectory", None)
            if place is not None:
                error.metadata["message_index"] = str(answer.acknowledged_count + int(place))
            error.metadata["recorded"] = str(answer.acknowledged_count)
            raise
        if not answer.acknowledged_count:
            yield answer

    def _acknowledged(
        self,
        before: pb.RecordTrajectoriesResponse,
        batch: list[TrajectoryInput],
        done: RecordedTrajectories,
    ) -> pb.RecordTrajectoriesResponse:
        return pb.RecordTrajectoriesResponse(
            acknowledged_count=before.acknowledged_count + len(batch),
            known_count=before.known_count + len(done.known),
            steps_recorded=before.steps_recorded + sum(map(len, done.recorded.values())),
            trajectory_ids=[one.id for one in batch],
            transitions=done.counts.transitions,
            updates=before.updates + done.learned.updates,
            experience_bytes=done.bytes,
            utilization=done.bytes / self._record.most_bytes,
        )

    def ListTrajectories(
        self, request: pb.ListTrajectoriesRequest, call: Call
    ) -> pb.ListTrajectoriesResponse:
        """List trajectories."""
        pages = Pages(request)
        after = pages.after(int)
        found = self._trajectories.page(
            call.tenant, request.session_id, after[0] if after else None, pages.size + 1
        )
        page, token = pages.fit(found, steps.recorded_trajectory, lambda last: (last.first,))
        return pb.ListTrajectoriesResponse(trajectories=page, next_page_token=token)

    def ImportExperience(
        self, request: import_pb.ImportExperienceRequest, call: Call
    ) -> Iterator[import_pb.ImportExperienceResponse]:
        """Import experience, and tell how far it is."""
        plan = imports.plan(request)
        for report in self._imports.import_records(call.tenant, request.session_id, plan):
            with self._watchdog.limit(_LIMITS.idle_s, call.cancel):
                yield imports.report(report)


def session_of(given: str, before: str) -> str:
    """Return the session of a stream's message: its own, or that of the message before.

    Raises:
        InvalidArgument: there is none, or it is another one.
    """
    if before and given not in ("", before):
        raise InvalidArgument(
            "session_id: is another than that of the stream's first message", field="session_id"
        )
    session_id = given or before
    if not session_id:
        raise InvalidArgument(
            "session_id: is required in the first message",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="session_id",
        )
    return session_id


class _Stream:
    """A stream of trajectories, and the session that they are for."""

    def __init__(self) -> None:
        self.session_id = ""

    def read(
        self, requests: Iterator[pb.RecordTrajectoriesRequest]
    ) -> Iterator[tuple[TrajectoryInput, int]]:
        """Yield the trajectories and their sizes in bytes, encoded."""
        for index, request in enumerate(requests):
            try:
                self.session_id = session_of(request.session_id, self.session_id)
                yield steps.trajectory(request), request.ByteSize()
            except InvalidArgument as error:
                error.metadata["message_index"] = str(index)
                raise
