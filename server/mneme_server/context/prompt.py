"""Context as text for a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mneme_server.context.model import active_us
from mneme_server.context.relative import ago
from mneme_server.context.words import cut
from mneme_server.events.outcome import Outcome
from mneme_server.learn.model import FoundLesson
from mneme_server.learn.reflection_model import FoundReflection
from mneme_server.learn.reflection_model import prompt_of as reflections_prompt

if TYPE_CHECKING:
    from mneme_server.context.retrieval import ContextSession

NOTHING = "No relevant past context found."
_SUMMARY_CHARS = 600
_CONTENT_CHARS = 300


def prompt_of(
    topic: str,
    sessions: Sequence[ContextSession],
    lessons: Sequence[FoundLesson],
    reflections: Sequence[FoundReflection],
    now_us: int,
) -> str:
    """Return sessions, lessons and reflections as markdown; `NOTHING` without any."""
    parts = []
    if sessions:
        parts.append(f"## Past sessions on “{cut(topic, 100)}”")
        parts += ["\n".join(_session(found, now_us)) for found in sessions]
    if lessons:
        parts.append("## Lessons")
        parts.append(
            "\n".join(
                f"- {found.lesson.title}: {cut(found.lesson.content, _CONTENT_CHARS)}"
                for found in lessons
            )
        )
    if reflections:
        parts.append(reflections_prompt([found.reflection for found in reflections]).strip())
    return "\n\n".join(parts) or NOTHING


def _session(found: ContextSession, now_us: int) -> Iterator[str]:
    session = found.past.session
    about = [ago(active_us(session), now_us), session.agent_name or session.agent_id]
    if found.past.summary and found.past.summary.outcome != Outcome.UNKNOWN:
        about.append(found.past.summary.outcome.name.lower())
    yield f"### Session {session.id} ({', '.join(filter(None, about))})"
    if found.past.summary is not None:
        yield cut(found.past.summary.text, _SUMMARY_CHARS)
    for event in found.key_events:
        yield f"- {event.text}"
