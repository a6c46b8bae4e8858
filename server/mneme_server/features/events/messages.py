"""Translation between the event service's messages and the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from google.protobuf.duration_pb2 import Duration
from mneme.v1 import event_service_pb2 as pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_duration,
    stored_time,
    struct_of,
    time_range,
    to_timestamp,
)
from mneme_server.features.events.event_types import type_named
from mneme_server.features.events.model import (
    Agent,
    Event,
    EventFilter,
    NewEvent,
    Session,
    SessionFilter,
    SessionStatus,
    Severity,
)
from mneme_server.features.events.sessions import NewSession

_SEVERITIES = {int(severity): severity for severity in Severity}


def new_event(message: pb.NewEvent, field: str) -> NewEvent:
    """Return the event of a message; `field` is its path in the request."""
    return NewEvent(
        id=message.id,
        session_id=message.session_id,
        agent_id=message.agent_id,
        event_type=type_named(message.event_type),
        severity=_SEVERITIES.get(message.severity),
        timestamp_us=stored_time(message, "timestamp", field),
        text=message.text,
        payload=json_of(message, "payload", field),
        metadata=json_of(message, "metadata", field),
        name=message.name,
        call_id=message.call_id,
        error=message.error,
        model=message.model,
        input_tokens=message.input_tokens,
        output_tokens=message.output_tokens,
        cost_usd=message.cost_usd,
        duration_us=stored_duration(message, "duration", field),
        searchable=message.searchable if message.HasField("searchable") else None,
    )


@reads("event")
def event(recorded: Event) -> pb.Event:
    """Return the message of an event."""
    message = pb.Event(
        id=recorded.id,
        session_id=recorded.session_id,
        agent_id=recorded.agent_id,
        event_type=recorded.event_type,
        severity=cast("pb.Severity", recorded.severity),
        timestamp=to_timestamp(recorded.timestamp_us),
        text=recorded.text,
        payload=struct_of(recorded.payload_json),
        metadata=struct_of(recorded.metadata_json),
        name=recorded.name,
        call_id=recorded.call_id,
        error=recorded.error,
        model=recorded.model,
        input_tokens=recorded.input_tokens,
        output_tokens=recorded.output_tokens,
        cost_usd=recorded.cost_usd,
        searchable=recorded.searchable,
        sequence=recorded.sequence,
        recorded_at=to_timestamp(recorded.recorded_us),
        prev_hash=recorded.prev_hash,
        hash=recorded.hash,
        hash_version=recorded.hash_version,
        salt=recorded.salt,
        commitment=recorded.commitment.hex(),
    )
    if recorded.duration_us is not None:
        message.duration.CopyFrom(_duration(recorded.duration_us))
    return message


def new_session(request: pb.StartSessionRequest) -> NewSession:
    """Return the session that a request starts."""
    return NewSession(
        id=request.session_id,
        agent_id=request.agent_id,
        agent_name=request.agent_name,
        user_id=request.user_id,
        project=request.project,
        tags=tuple(request.tags),
        metadata=json_of(request, "metadata"),
        started_us=stored_time(request, "started_at"),
    )


@reads("session")
def session(stored: Session) -> pb.Session:
    """Return the message of a session."""
    return pb.Session(
        id=stored.id,
        agent_id=stored.agent_id,
        agent_name=stored.agent_name,
        user_id=stored.user_id,
        project=stored.project,
        tags=stored.tags,
        metadata=struct_of(stored.metadata_json),
        status=cast("pb.SessionStatus", stored.status),
        started_at=to_timestamp(stored.started_us),
        ended_at=None if stored.ended_us is None else to_timestamp(stored.ended_us),
        last_event_at=(
            None if stored.last_event_us is None else to_timestamp(stored.last_event_us)
        ),
        event_count=stored.event_count,
        tool_call_count=stored.tool_call_count,
        error_count=stored.error_count,
        llm_call_count=stored.llm_call_count,
        total_cost_usd=stored.total_cost_usd,
        total_input_tokens=stored.total_input_tokens,
        total_output_tokens=stored.total_output_tokens,
        head_hash=stored.head_hash,
        system=stored.system,
    )


@reads("agent")
def agent(stored: Agent) -> pb.Agent:
    """Return the message of an agent."""
    return pb.Agent(
        id=stored.id,
        name=stored.name,
        first_seen_at=to_timestamp(stored.first_seen_us),
        last_seen_at=to_timestamp(stored.last_seen_us),
        session_count=stored.session_count,
        event_count=stored.event_count,
        tool_call_count=stored.tool_call_count,
        error_count=stored.error_count,
        total_cost_usd=stored.total_cost_usd,
    )


def session_filter(request: pb.ListSessionsRequest) -> SessionFilter:
    """Return the filter of a request."""
    start_us, end_us = time_range(request)
    return SessionFilter(
        agent_id=request.agent_id,
        user_id=request.user_id,
        project=request.project,
        status=SessionStatus(request.status) if request.status else None,
        tags=tuple(request.tags),
        start_us=start_us,
        end_us=end_us,
        with_system=request.include_system,
    )


def event_filter(request: pb.ListEventsRequest) -> EventFilter:
    """Return the filter of a request."""
    start_us, end_us = time_range(request)
    return replace(watch_filter(request), name=request.name, start_us=start_us, end_us=end_us)


def watch_begun(cursor: int) -> pb.WatchEventsResponse:
    """Return the first message of a watch: where it begins."""
    return pb.WatchEventsResponse(cursor=str(cursor))


def watched(recorded: Event) -> pb.WatchEventsResponse:
    """Return the message of a watched event."""
    return pb.WatchEventsResponse(event=event(recorded), cursor=str(recorded.cursor))


def watch_filter(request: pb.WatchEventsRequest | pb.ListEventsRequest) -> EventFilter:
    """Return the part of a filter that watching has too."""
    return EventFilter(
        session_id=request.session_id,
        agent_id=request.agent_id,
        project=request.project,
        event_types=tuple(map(type_named, request.event_types)),
        min_severity=_SEVERITIES.get(request.min_severity),
    )


def _duration(microseconds: int) -> Duration:
    duration = Duration()
    duration.FromMicroseconds(microseconds)
    return duration
