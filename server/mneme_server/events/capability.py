"""Events and sessions: what agents did, recorded for good."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import event_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.events import messages
from mneme_server.events.kinds import EVENT
from mneme_server.events.reading import ReadEvents
from mneme_server.events.recording import RecordEvents
from mneme_server.events.service import EventServicer
from mneme_server.events.session_listeners import SessionListeners
from mneme_server.events.sessions import EndSession, StartSession
from mneme_server.events.store.activity import SqlActivity
from mneme_server.events.store.agents import SqlAgents
from mneme_server.events.store.details import event_details
from mneme_server.events.store.events import SqlEvents
from mneme_server.events.store.forgetting import FORGETS
from mneme_server.events.store.forgotten import SqlForgotten
from mneme_server.events.store.history import SqlHistory
from mneme_server.events.store.measures import SqlRecordMeasures
from mneme_server.events.store.sessions import SqlSessions
from mneme_server.events.verifying import VerifyEvents
from mneme_server.events.watching import Watches
from mneme_server.transport.service import Service


def _build(host: Host) -> Parts:
    runtime = host.runtime
    listeners = SessionListeners()
    watches = Watches(
        host.tenants, runtime.steps.run, begun=messages.watch_begun, made=messages.watched
    )
    runtime.listen(watches)
    runtime.also_follow(watches.watched)
    record = RecordEvents(host.tenants, listeners, runtime.foreground, runtime.writing)
    verify = VerifyEvents(host.tenants)
    servicer = EventServicer(
        start_session=StartSession(host.tenants, listeners),
        end_session=EndSession(host.tenants, listeners),
        record_events=record,
        read=ReadEvents(host.tenants, runtime.foreground),
        watches=watches,
        verify_events=verify,
        foreground=runtime.foreground,
        watchdog=runtime.watchdog,
    )
    return Parts(
        figures=[
            Figure("events", lambda unit: unit.events.total()),
            Figure("sessions", lambda unit: unit.sessions.total()),
        ],
        services=[
            Service(
                event_service_pb2.DESCRIPTOR.services_by_name["EventService"],
                servicer,
            )
        ],
        offers=[listeners, record, verify],
        purge=watches.purge,
    )


CAPABILITY = Capability(
    name="events",
    build=_build,
    kinds={EVENT: event_details},
    repositories={
        "sessions": SqlSessions,
        "events": SqlEvents,
        "agents": SqlAgents,
        "forgotten": SqlForgotten,
        "history": SqlHistory,
        "measures": SqlRecordMeasures,
        "activity": SqlActivity,
    },
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
