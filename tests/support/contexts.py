"""Short ways to make handovers and to ask for context."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb

from support.api import Api
from support.making import recall

T = TypeVar("T")
_PATIENCE_S = 60.0


def sleep(
    api: Api,
    session_id: str,
    *progress: str,
    todos: tuple[tuple[str, int], ...] = (),
    decisions: tuple[tuple[str, str], ...] = (),
    contexts: tuple[str, ...] = (),
    **fields: Any,
) -> pb.Handover:
    """Store a handover; todos are (content, priority), decisions (what, why)."""
    request = pb.SleepRequest(
        session_id=session_id,
        progress=progress,
        open_todos=[pb.Todo(content=content, priority=rank) for content, rank in todos],
        decisions=[pb.Decision(decision=what, rationale=why) for what, why in decisions],
        locked_contexts=[pb.LockedContext(label=label) for label in contexts],
        **fields,
    )
    return api.context.Sleep(request).handover


def wake_up(api: Api, **fields: Any) -> pb.WakeUpResponse:
    """Wake up."""
    return api.context.WakeUp(pb.WakeUpRequest(**fields))


def get_context(api: Api, topic: str, **fields: Any) -> pb.GetContextResponse:
    """Ask for context."""
    return api.context.GetContext(pb.GetContextRequest(topic=topic, **fields))


def sessions_found(answer: pb.GetContextResponse) -> list[str]:
    """Return the sessions of an answer, the best first."""
    return [session.session_id for session in answer.sessions]


def end(api: Api, session_id: str, **fields: Any) -> None:
    """End a session."""
    api.events.EndSession(events_pb.EndSessionRequest(session_id=session_id, **fields))


def summaries(api: Api, query: str = "session", **fields: Any) -> dict[str, str]:
    """Return the summaries of sessions, by session, as a recall in scope SESSION finds them."""
    answer = recall(api, query, scopes=["session"], limit=100, **fields)
    return {result.source_id: result.text for result in answer.results}


def eventually(look: Callable[[], T], so: Callable[[T], bool]) -> T:
    """Look until it is so, and return what was seen.

    Raises:
        AssertionError: it did not come to pass within a minute.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        seen = look()
        if so(seen):
            return seen
        assert time.monotonic() < until, f"it did not come to pass; last seen: {seen}"
        time.sleep(0.02)


def summarised(api: Api, *session_ids: str) -> dict[str, str]:
    """Wait until these sessions have summaries; return all there are."""
    return eventually(lambda: summaries(api), lambda seen: set(session_ids) <= seen.keys())
