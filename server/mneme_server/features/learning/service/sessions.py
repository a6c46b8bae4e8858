"""The calls that concern sessions: started, shown, ended with a model to download, deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mneme.v1 import learning_service_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_duration
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.learning.algorithms.algorithm import Algorithm
from mneme_server.features.learning.export.exports import DownloadModel
from mneme_server.features.learning.export.session_end import EndLearningSession
from mneme_server.features.learning.messages import sessions as convert
from mneme_server.features.learning.model import LearningStatus
from mneme_server.features.learning.ports import LearningSessionFilter
from mneme_server.features.learning.sessions.sessions import (
    LearningSessions,
    StartLearningSession,
)


class SessionCalls:
    """Serves what `mneme.v1.LearningService` says of sessions and their algorithms."""

    def __init__(
        self,
        algorithms: Callable[[str], Sequence[Algorithm]],
        start: StartLearningSession,
        sessions: LearningSessions,
        end: EndLearningSession,
        download: DownloadModel,
    ) -> None:
        self._algorithms = algorithms
        self._start = start
        self._sessions = sessions
        self._end = end
        self._download = download

    def ListAlgorithms(
        self, request: pb.ListAlgorithmsRequest, _call: Call
    ) -> pb.ListAlgorithmsResponse:
        """Describe the algorithms."""
        found = self._algorithms(request.algorithm)
        return pb.ListAlgorithmsResponse(
            algorithms=[convert.description(algorithm) for algorithm in found]
        )

    def StartLearningSession(
        self, request: pb.StartLearningSessionRequest, call: Call
    ) -> pb.StartLearningSessionResponse:
        """Start or resume a session."""
        session, resumed = self._start.start(call.tenant, convert.new_session(request))
        return pb.StartLearningSessionResponse(session=convert.session(session), resumed=resumed)

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
        filter_ = LearningSessionFilter(
            request.algorithm, LearningStatus(request.status) if request.status else None
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
        session = self._sessions.delete(call.tenant, request.session_id)
        return pb.DeleteLearningSessionResponse(session=convert.session(session))

    def EndLearningSession(
        self, request: pb.EndLearningSessionRequest, call: Call
    ) -> pb.EndLearningSessionResponse:
        """End a session."""
        ended = self._end.end(
            call.tenant,
            request.session_id,
            export=not request.skip_export,
            least=request.min_performance,
            skill=not request.skip_skill,
        )
        session = ended.session
        lasted = (session.ended_us or session.updated_us) - session.created_us
        return pb.EndLearningSessionResponse(
            session=convert.session(session),
            metrics=convert.metrics(ended.metrics),
            model_path=ended.path,
            model_bytes=ended.size,
            meets_skill_bar=ended.meets_bar,
            skill_id=ended.skill_id,
            skill_created=ended.skill_is_new,
            session_duration=to_duration(lasted),
        )

    def DownloadModel(
        self, request: pb.DownloadModelRequest, call: Call
    ) -> Iterator[pb.DownloadModelResponse]:
        """Stream an exported model."""
        model = self._download.download(call.tenant, request.session_id)
        yield pb.DownloadModelResponse(model=convert.exported(model))
        for part in model.parts:
            yield pb.DownloadModelResponse(data=part)
