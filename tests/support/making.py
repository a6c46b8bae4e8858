"""Short ways to make what tests send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import causal_pb2
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as skill_pb

from support.api import Api

MESSAGE = "message"
TOOL_CALL = "tool_call"
TOOL_ERROR = "tool_error"
LLM_CALL = "llm_call"
LLM_RESPONSE = "llm_response"
CUSTOM = "custom"


def struct(**values: Any) -> Struct:
    """Return a Struct of these values."""
    made = Struct()
    made.update(values)
    return made


def at(seconds: float) -> Timestamp:
    """Return the Timestamp that many seconds after a day in 2026."""
    made = Timestamp()
    made.FromMicroseconds(round((1_780_000_000 + seconds) * 1_000_000))
    return made


def event(text: str = "", session: str = "s", kind: str = MESSAGE, **fields: Any) -> Any:
    """Return a NewEvent; `at` is seconds as for the function of that name, `payload` a mapping."""
    if "at" in fields:
        fields["timestamp"] = at(fields.pop("at"))
    for name in ("payload", "metadata"):
        if isinstance(fields.get(name), Mapping):
            fields[name] = struct(**fields[name])
    return events_pb.NewEvent(text=text, session_id=session, event_type=kind, **fields)


def record(
    api: Api, *events: events_pb.NewEvent, wait: bool = False
) -> Sequence[events_pb.EventReceipt]:
    """Record events in one batch and return their receipts."""
    request = events_pb.RecordEventsRequest(events=events, wait_indexed=wait)
    return api.events.RecordEvents(request).receipts


def session_of(api: Api, session_id: str) -> events_pb.Session:
    """Return a session."""
    return api.events.GetSession(events_pb.GetSessionRequest(session_id=session_id)).session


def list_events(api: Api, **fields: Any) -> list[events_pb.Event]:
    """Return all events that match, over all pages."""
    request = events_pb.ListEventsRequest(**fields)
    found: list[events_pb.Event] = []
    while True:
        page = api.events.ListEvents(request)
        found += page.events
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def verify(api: Api, session_id: str = "") -> events_pb.VerifyEventsResponse:
    """Walk hash chains."""
    return api.events.VerifyEvents(events_pb.VerifyEventsRequest(session_id=session_id or None))


def recall(api: Api, query: str, **fields: Any) -> recall_pb.RecallResponse:
    """Recall."""
    return api.recall.Recall(recall_pb.RecallRequest(query=query, **fields))


def ids_of(answer: recall_pb.RecallResponse) -> list[str]:
    """Return the ids of what was recalled, the best first."""
    return [result.source_id for result in answer.results]


def lesson(api: Api, title: str, content: str = "", **fields: Any) -> learn_pb.Lesson:
    """Save a lesson and return it."""
    if isinstance(fields.get("context"), Mapping):
        fields["context"] = struct(**fields["context"])
    request = learn_pb.CreateLessonRequest(title=title, content=content or title, **fields)
    return api.learn.CreateLesson(request).lesson


def episode(api: Api, task: str, *, success: bool = True, **fields: Any) -> episode_pb.Episode:
    """Store an episode and return it."""
    request = episode_pb.CreateEpisodeRequest(task=task, success=success, **fields)
    return api.skill.CreateEpisode(request).episode


def skill(api: Api, name: str, **fields: Any) -> skill_pb.Skill:
    """Save a skill and return it."""
    return api.skill.CreateSkill(skill_pb.CreateSkillRequest(name=name, **fields)).skill


def create_edge(
    api: Api, cause: str, effect: str, uplift: float, **fields: Any
) -> causal_pb2.CausalEdge:
    """Add a causal edge and return it."""
    request = causal_pb2.CreateEdgeRequest(cause=cause, effect=effect, uplift=uplift, **fields)
    return api.causal.CreateEdge(request).edge


def list_lessons(api: Api, **filter_: Any) -> list[learn_pb.Lesson]:
    """Return the lessons that match; there must be fewer than a page holds."""
    request = learn_pb.ListLessonsRequest(filter=learn_pb.LessonFilter(**filter_), page_size=1000)
    return list(api.learn.ListLessons(request).lessons)


def search_lessons(
    api: Api, query: str, limit: int = 0, min_score: float = 0, **filter_: Any
) -> list[str]:
    """Return the ids of the lessons found, the best first."""
    request = learn_pb.SearchLessonsRequest(
        query=query, limit=limit, min_score=min_score, filter=learn_pb.LessonFilter(**filter_)
    )
    return [found.lesson.id for found in api.learn.SearchLessons(request).results]


def export_lessons(api: Api, **filter_: Any) -> list[learn_pb.Lesson]:
    """Return the exported lessons."""
    request = learn_pb.ExportLessonsRequest(filter=learn_pb.LessonFilter(**filter_))
    return [answer.lesson for answer in api.learn.ExportLessons(request)]


def stream(api: Api, events: Iterable[events_pb.NewEvent]) -> events_pb.StreamEventsResponse:
    """Record events as a stream, and return the last acknowledgement."""
    requests = (events_pb.StreamEventsRequest(event=item) for item in events)
    return list(api.events.StreamEvents(requests))[-1]
