"""ContextService."""

from __future__ import annotations

from dataclasses import replace

from mneme.v1 import context_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.context import messages as convert
from mneme_server.features.context.items import ContextFormat
from mneme_server.features.context.profile import GetProfile
from mneme_server.features.context.retrieval import GetContext, SearchSessions
from mneme_server.features.context.sessions import GetTimeline
from mneme_server.features.context.sleep import Sleep
from mneme_server.features.context.wake_up import WakeUp
from mneme_server.features.memory.model import OfUser
from mneme_server.features.recall.messages import as_of


class ContextServicer:
    """Serves `mneme.v1.ContextService`."""

    def __init__(
        self,
        *,
        get_context: GetContext,
        get_profile: GetProfile,
        sleep: Sleep,
        wake_up: WakeUp,
        search_sessions: SearchSessions,
        get_timeline: GetTimeline,
    ) -> None:
        self._get_context = get_context
        self._get_profile = get_profile
        self._sleep = sleep
        self._wake_up = wake_up
        self._search_sessions = search_sessions
        self._get_timeline = get_timeline

    def GetContext(self, request: pb.GetContextRequest, call: Call) -> pb.GetContextResponse:
        """Return what bears on a topic."""
        wanted = convert.context_wanted(request)
        found = self._get_context.on(
            call.tenant,
            request.topic,
            replace(convert.activity_filter(request), shared=not request.only_own),
            wanted,
            counted=not request.peek,
        )
        return convert.context(found, wanted.written)

    def GetProfile(self, request: pb.GetProfileRequest, call: Call) -> pb.GetProfileResponse:
        """Return what is known of a user."""
        written = ContextFormat(request.format)
        whose = OfUser(request.user_id, request.agent_id, request.project)
        found = self._get_profile.of(call.tenant, whose, request.token_budget, written)
        return convert.profile(found, written)

    def Sleep(self, request: pb.SleepRequest, call: Call) -> pb.SleepResponse:
        """Store a handover."""
        if not (request.session_id or request.project):
            raise InvalidArgument(
                "give the session, or the project whose latest session it is",
                reason=Reason.MISSING_REQUIRED_FIELD,
                field="session_id",
            )
        slept = self._sleep.store(call.tenant, convert.handover_given(request))
        return pb.SleepResponse(handover=convert.handover(slept.handover), stored=slept.stored)

    def WakeUp(self, request: pb.WakeUpRequest, call: Call) -> pb.WakeUpResponse:
        """Return what an agent needs at the start of a session."""
        woken = self._wake_up.awaken(
            call.tenant,
            project=request.project,
            agent_id=request.agent_id,
            user_id=request.user_id,
            limit=request.limit,
            min_similarity=request.min_similarity,
            with_experience=not request.without_experience,
        )
        return convert.awakening(woken)

    def SearchSessions(
        self, request: pb.SearchSessionsRequest, call: Call
    ) -> pb.SearchSessionsResponse:
        """Search sessions."""
        found, answer = self._search_sessions.search(
            call.tenant,
            request.query,
            convert.activity_filter(request),
            limit=request.limit,
            min_score=request.min_score,
            as_of=as_of(request),
        )
        return pb.SearchSessionsResponse(
            results=[convert.found_session(one) for one in found],
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def GetTimeline(self, request: pb.GetTimelineRequest, call: Call) -> pb.GetTimelineResponse:
        """List sessions with their links to earlier ones."""
        pages = Pages(request)
        entries = self._get_timeline.entries(
            call.tenant,
            convert.activity_filter(request),
            pages.after(int, str),
            pages.size + 1,
            request.links,
        )
        page, token = pages.cut(
            entries, lambda last: (last.past.session.started_us, last.past.session.id)
        )
        return pb.GetTimelineResponse(
            entries=[convert.timeline_entry(entry) for entry in page], next_page_token=token
        )
