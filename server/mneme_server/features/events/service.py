"""EventService."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import grade_pb2

from mneme_server.common import turns
from mneme_server.common.errors import InvalidArgument, MnemeError
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import stored_time
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.open_stream import Source
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.events import messages as convert
from mneme_server.features.events.grading import GradeSessions, ReadGrades
from mneme_server.features.events.model import EventReceipt, NewEvent, SessionStatus
from mneme_server.features.events.recording import RecordEvents
from mneme_server.features.events.sessions import EndSession, ReadEvents, StartSession
from mneme_server.features.events.verification import VerifyEvents
from mneme_server.features.events.watches import Watches

_LAST_CURSOR = 2**63 - 1


class EventServicer:
    """Serves `mneme.v1.EventService`."""

    def __init__(
        self,
        *,
        start_session: StartSession,
        end_session: EndSession,
        grade: GradeSessions,
        grades: ReadGrades,
        record_events: RecordEvents,
        read: ReadEvents,
        watches: Watches[pb.WatchEventsResponse],
        verify_events: VerifyEvents,
        watchdog: Watchdog,
        stream_limits: BatchLimits | None = None,
    ) -> None:
        self._start_session = start_session
        self._end_session = end_session
        self._grade = grade
        self._grades = grades
        self._record_events = record_events
        self._read = read
        self._watches = watches
        self._verify_events = verify_events
        self._watchdog = watchdog
        self._stream_limits = stream_limits or BatchLimits()

    def StartSession(self, request: pb.StartSessionRequest, call: Call) -> pb.StartSessionResponse:
        """Start a session."""
        session = self._start_session.start(call.tenant, convert.new_session(request))
        return pb.StartSessionResponse(session=convert.session(session))

    def EndSession(self, request: pb.EndSessionRequest, call: Call) -> pb.EndSessionResponse:
        """End a session."""
        status = SessionStatus(request.status)
        session = self._end_session.end(
            call.tenant,
            request.session_id,
            status,
            stored_time(request, "ended_at"),
            observed=request.observed,
        )
        return pb.EndSessionResponse(session=convert.session(session))

    def GradeSession(self, request: pb.GradeSessionRequest, call: Call) -> pb.GradeSessionResponse:
        """Grade a session."""
        with fields(id="grade_id"):
            grade, session = self._grade.one(call.tenant, convert.grade_of_session(request))
        return pb.GradeSessionResponse(session=convert.session(session), grade=convert.grade(grade))

    def RecordGrades(
        self, request: grade_pb2.RecordGradesRequest, call: Call
    ) -> grade_pb2.RecordGradesResponse:
        """Record a batch of grades."""
        given = [
            convert.new_grade(one, f"grades[{place}]") for place, one in enumerate(request.grades)
        ]
        named = {one: f"grades[{{item}}].{one}" for one in ("id", "outcome", "session_id")}
        with fields(**named):
            graded = self._grade.many(call.tenant, given)
        duplicates = sum(one.duplicate for one in graded)
        return grade_pb2.RecordGradesResponse(
            grades=turns.each(convert.grade, [one.grade for one in graded]),
            recorded_count=len(graded) - duplicates,
            duplicate_count=duplicates,
        )

    def ListGrades(
        self, request: grade_pb2.ListGradesRequest, call: Call
    ) -> grade_pb2.ListGradesResponse:
        """List grades."""
        pages = Pages(request)
        grades = self._grades.page(
            call.tenant, convert.grade_filter(request), pages.after(int, str), pages.size + 1
        )
        page, token = pages.fit(grades, convert.grade, lambda last: (last.graded_us, last.id))
        return grade_pb2.ListGradesResponse(grades=page, next_page_token=token)

    def RecordEvents(self, request: pb.RecordEventsRequest, call: Call) -> pb.RecordEventsResponse:
        """Record a batch of events."""
        new_events = turns.each(_new_event, list(enumerate(request.events)))
        with fields(id="events[{item}].id"):
            receipts = self._record_events.record(
                call.tenant,
                new_events,
                wait_indexed=request.wait_indexed,
                observed=request.observed,
            )
        duplicates = sum(receipt.duplicate for receipt in receipts)
        return pb.RecordEventsResponse(
            receipts=turns.each(_receipt, receipts),
            recorded_count=len(receipts) - duplicates,
            duplicate_count=duplicates,
        )

    def StreamEvents(
        self, request_iterator: Iterator[pb.StreamEventsRequest], call: Call
    ) -> Iterator[pb.StreamEventsResponse]:
        """Record a stream of events batch by batch, and acknowledge each."""
        batches = Batches(_streamed(request_iterator), self._stream_limits)
        call.on_end(batches.end)
        acknowledged = duplicates = 0
        try:
            for batch in batches:
                receipts = self._record_events.record(call.tenant, batch)
                acknowledged += len(receipts)
                duplicates += sum(receipt.duplicate for receipt in receipts)
                # Who never reads holds up who writes, without end.
                with self._watchdog.limit(self._stream_limits.idle_s, call.cancel):
                    yield _acknowledgement(acknowledged, duplicates)
        except MnemeError as error:
            _locate(error, acknowledged)
            error.metadata["recorded"] = str(acknowledged)
            raise
        if not acknowledged:
            yield _acknowledgement(0, 0)

    def GetSession(self, request: pb.GetSessionRequest, call: Call) -> pb.GetSessionResponse:
        """Return a session."""
        session = self._read.session(call.tenant, request.session_id)
        return pb.GetSessionResponse(session=convert.session(session))

    def ListSessions(self, request: pb.ListSessionsRequest, call: Call) -> pb.ListSessionsResponse:
        """List sessions."""
        pages = Pages(request)
        key = pages.after(int, str)
        sessions, total = self._read.sessions(
            call.tenant, convert.session_filter(request), key, pages.size + 1
        )
        page, token = pages.fit(sessions, convert.session, lambda last: (last.started_us, last.id))
        return pb.ListSessionsResponse(sessions=page, next_page_token=token, total_size=total)

    def ListEvents(self, request: pb.ListEventsRequest, call: Call) -> pb.ListEventsResponse:
        """List events."""
        pages = Pages(request)
        events = self._read.events(
            call.tenant,
            convert.event_filter(request),
            pages.after(int, int),
            pages.size + 1,
            descending=request.descending,
        )
        page, token = pages.fit(
            events,
            convert.event,
            lambda last: (last.timestamp_us, last.cursor),
        )
        return pb.ListEventsResponse(events=page, next_page_token=token)

    def ListAgents(self, request: pb.ListAgentsRequest, call: Call) -> pb.ListAgentsResponse:
        """List agents."""
        pages = Pages(request)
        key = pages.after(str)
        agents = self._read.agents(call.tenant, key[0] if key else None, pages.size + 1)
        page, token = pages.cut(agents, lambda last: (last.id,))
        return pb.ListAgentsResponse(
            agents=[convert.agent(agent) for agent in page], next_page_token=token
        )

    def WatchEvents(
        self, request: pb.WatchEventsRequest, call: Call
    ) -> Source[pb.WatchEventsResponse]:
        """Follow events until the caller or the server ends the stream."""
        return self._watches.follow(
            call.tenant, convert.watch_filter(request), _cursor(request.after_cursor)
        )

    def VerifyEvents(self, request: pb.VerifyEventsRequest, call: Call) -> pb.VerifyEventsResponse:
        """Walk hash chains."""
        found = self._verify_events.verify(call.tenant, request.session_id)
        return pb.VerifyEventsResponse(
            valid=found.broken_count == 0,
            sessions_checked=found.sessions_checked,
            events_checked=found.events_checked,
            broken_chains=[
                pb.BrokenChain(
                    session_id=link.session_id,
                    event_id=link.event_id,
                    sequence=link.sequence,
                    reason=link.reason,
                )
                for link in found.broken
            ],
            broken_count=found.broken_count,
            head_hash=found.head_hash,
            events_forgotten=found.events_forgotten,
        )


def _new_event(given: tuple[int, pb.NewEvent]) -> NewEvent:
    index, event = given
    return convert.new_event(event, f"events[{index}]")


def _streamed(requests: Iterator[pb.StreamEventsRequest]) -> Iterator[tuple[NewEvent, int]]:
    """Yield the events of a stream and their sizes in bytes, encoded."""
    for index, request in enumerate(requests):
        try:
            yield convert.new_event(request.event, "event"), request.ByteSize()
        except InvalidArgument as error:
            error.metadata["message_index"] = str(index)
            raise


def _acknowledgement(events: int, duplicates: int) -> pb.StreamEventsResponse:
    return pb.StreamEventsResponse(
        acknowledged_count=events,
        recorded_count=events - duplicates,
        duplicate_count=duplicates,
    )


def _locate(error: MnemeError, start: int) -> None:
    """Name the message of the stream where the error names an event of the batch.

    `start` is the place of the batch's first event in the stream.
    """
    if error.item is not None:
        error.metadata["message_index"] = str(start + error.item)
        error.field = f"event.{error.field}"


def _cursor(text: str) -> int | None:
    if not text:
        return None
    cursor = int(text)
    if cursor > _LAST_CURSOR:
        raise InvalidArgument(f"after_cursor: {text} is not a cursor", field="after_cursor")
    return cursor


def _receipt(receipt: EventReceipt) -> pb.EventReceipt:
    return pb.EventReceipt(
        id=receipt.id,
        sequence=receipt.sequence,
        hash=receipt.hash,
        duplicate=receipt.duplicate,
    )
