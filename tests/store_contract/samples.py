"""One of each thing that a tenant's store keeps."""

from __future__ import annotations

import hashlib
from typing import Any

from mneme_server.features.events.model import Agent, Event, Outcome, Session
from mneme_server.features.learn.model import Lesson, Reflection
from mneme_server.features.learning.model import Definition, Export, LearningMode, LearningSession
from mneme_server.features.learning.spaces import OpenLabels, OpenObject
from mneme_server.features.memory.model import Memory


def session(session_id: str, **fields: Any) -> Session:
    return Session(session_id, agent_id="agent", started_us=10, **fields)


def event(event_id: str, session_id: str, sequence: int, **fields: Any) -> Event:
    """Return an event; its place in the session's chain is the caller's business."""
    given = {
        "agent_id": "agent", "event_type": "message", "severity": 2, "timestamp_us": sequence,
        "text": f"the text of {event_id}", "name": "", "call_id": "", "error": "", "model": "",
        "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_us": None,
        "payload_json": "{}", "metadata_json": "{}", "searchable": True, "hash_version": 2,
        "salt": b"salt", "commitment": b"commitment",
    } | fields  # fmt: skip
    return Event(event_id, session_id, sequence=sequence, **given)


def agent(agent_id: str, **fields: Any) -> Agent:
    return Agent(agent_id, **({"event_count": 1} | fields))


def lesson(lesson_id: str, **fields: Any) -> Lesson:
    return Lesson(lesson_id, f"title of {lesson_id}", "content", "testing", **fields)


def reflection(reflection_id: str, **fields: Any) -> Reflection:
    return Reflection(reflection_id, "s1", "a task", Outcome.SUCCESS, attempt_number=1, **fields)


def memory(memory_id: str, **fields: Any) -> Memory:
    return Memory(memory_id, f"what {memory_id} says", **fields)


def learning_session(session_id: str) -> LearningSession:
    definition = Definition("linucb", {}, OpenObject(), OpenLabels(), 0, LearningMode.INLINE)
    return LearningSession(
        number=0, id=session_id, definition=definition, version=1, secret=b"secret",
        created_us=1, updated_us=1,
    )  # fmt: skip


def export_of(data: bytes) -> Export:
    return Export(hashlib.sha256(data).digest(), len(data), 5)
