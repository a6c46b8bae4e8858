"""Short ways to ask for analyses."""

from __future__ import annotations

from typing import Any

from mneme._core.convert import fill
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import reflect_service_pb2 as pb

from support.api import Api
from support.making import TOOL_CALL, TOOL_ERROR, at, event, struct

ERRORS = pb.ANALYSIS_ERROR_PATTERNS
SEQUENCES = pb.ANALYSIS_TOOL_SEQUENCES
COST = pb.ANALYSIS_COST_ANALYSIS
TRENDS = pb.ANALYSIS_PERFORMANCE_TRENDS
COMPARISON = pb.ANALYSIS_SESSION_COMPARISON
ANALYSES = (ERRORS, SEQUENCES, COST, TRENDS, COMPARISON)


def reflect(api: Api, analysis: Any, params: dict[str, Any] | None = None, **fields: Any) -> Any:
    """Ask for an analysis."""
    request = pb.ReflectRequest(analysis=analysis, **fields)
    if params is not None:
        fill(request, {pb.Analysis.Name(analysis).removeprefix("ANALYSIS_").lower(): params})
    return api.reflect.Reflect(request)


def session(api: Api, name: str, seconds: float, tools: str, **fields: Any) -> None:
    """Record a session that calls tools, one a letter; a capital letter is a call that fails."""
    metadata = {key: fields.pop(key) for key in ("reward", "success") if key in fields}
    api.events.StartSession(
        events_pb.StartSessionRequest(
            session_id=name, started_at=at(seconds), metadata=struct(**metadata), **fields
        )
    )
    recorded = []
    for step, tool in enumerate(tools):
        moment = seconds + step
        call = {"name": tool.lower(), "call_id": f"{name}-{step}", "at": moment}
        recorded.append(event("", name, TOOL_CALL, searchable=False, **call))
        if tool.isupper():
            message = f"tool {tool.lower()} failed after {step * 37 + len(name)} tries"
            recorded.append(event("", name, TOOL_ERROR, searchable=False, error=message, **call))
    api.events.RecordEvents(events_pb.RecordEventsRequest(events=recorded))
    api.events.EndSession(
        events_pb.EndSessionRequest(
            session_id=name,
            status=events_pb.SESSION_STATUS_COMPLETED,
            ended_at=at(seconds + len(tools)),
        )
    )
