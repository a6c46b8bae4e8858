"""Events and sessions: what agents did, recorded for good."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import event_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.events import messages
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.grading import GradeSessions, ReadGrades
from mneme_server.features.events.model import SessionFilter
from mneme_server.features.events.recording import RecordEvents, SessionListeners
from mneme_server.features.events.service import EventServicer
from mneme_server.features.events.sessions import EndSession, ReadEvents, StartSession
from mneme_server.features.events.store.events import SqlEvents, event_details
from mneme_server.features.events.store.forgetting import FORGETS
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.events.verification import VerifyEvents
from mneme_server.features.events.watches import Watches


def _build(host: Host) -> Parts:
    runtime = host.runtime
    listeners = SessionListeners()
    watches = Watches(
        host.tenants, runtime.steps.run, begun=messages.watch_begun, made=messages.watched
    )
    runtime.listen(watches)
    runtime.also_follow(watches.watched)
    record = RecordEvents(host.tenants, listeners, runtime.writing, runtime.at_once)
    verify = VerifyEvents(host.tenants)
    grade = GradeSessions(host.tenants, listeners)
    servicer = EventServicer(
        start_session=StartSession(host.tenants, listeners),
        end_session=EndSession(host.tenants, listeners),
        grade=grade,
        grades=ReadGrades(host.tenants),
        record_events=record,
        read=ReadEvents(host.tenants),
        watches=watches,
        verify_events=verify,
        watchdog=runtime.watchdog,
    )
    return Parts(
        figures=[
            Figure("events", lambda unit: unit.get(SqlEvents).total()),
            Figure("sessions", lambda unit: unit.get(SqlSessions).count(SessionFilter())),
        ],
        services=[
            Service(
                event_service_pb2.DESCRIPTOR.services_by_name["EventService"],
                servicer,
            )
        ],
        offers=[listeners, record, verify, grade],
        purge=watches.purge,
    )


CAPABILITY = Capability(
    name="events",
    build=_build,
    kinds={EVENT: event_details},
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
