"""The context service's messages, from and to the domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import reflection_pb2

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import time_range, to_timestamp
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.context.attempts import Attempts
from mneme_server.features.context.experience import Attempt, ProvenSkill
from mneme_server.features.context.items import ContextFormat, FittedItem
from mneme_server.features.context.model import (
    Awakening,
    Collected,
    ContextSession,
    Evidence,
    Handover,
    KeyEvent,
    PastSession,
    Profile,
    ProfileItem,
    Related,
    SessionSummary,
)
from mneme_server.features.context.profile import session_of
from mneme_server.features.context.retrieval import (
    ContextWanted,
    FoundContext,
    FoundSession,
)
from mneme_server.features.context.sessions import TimelineEntry
from mneme_server.features.context.words import cut
from mneme_server.features.events import messages as events
from mneme_server.features.events.history import ActivityFilter, active_us
from mneme_server.features.learn import messages as learn
from mneme_server.features.recall.messages import as_of

_RELATED_CHARS = 300
_EXPERIENCE_CHARS = 600
_LISTS = {
    "progress": pb.HANDOVER_LIST_PROGRESS,
    "completed_todos": pb.HANDOVER_LIST_COMPLETED_TODOS,
    "open_todos": pb.HANDOVER_LIST_OPEN_TODOS,
    "decisions": pb.HANDOVER_LIST_DECISIONS,
    "files": pb.HANDOVER_LIST_FILES,
    "unresolved_errors": pb.HANDOVER_LIST_UNRESOLVED_ERRORS,
}


def activity_filter(request: Any) -> ActivityFilter:
    """Return the filter of a request that has these fields; those that it lacks do not filter."""
    start_us, end_us = time_range(request)
    return ActivityFilter(
        user_id=getattr(request, "user_id", ""),
        agent_id=request.agent_id,
        project=request.project,
        start_us=start_us,
        end_us=end_us,
    )


handover_given = MessageReader(
    pb.SleepRequest,
    Handover,
    made={"files": lambda message, _path: tuple(dict.fromkeys(message.files))},
)
"""Return the handover that a request stores."""
handover = reads("handover", "session_id")(
    message_writer(
        Handover,
        pb.Handover,
        spelled={"duration_s": "duration_seconds"},
        parts={
            "collected": message_writer(
                Collected, pb.CollectedEntry, parts={"kind": _LISTS.__getitem__}
            )
        },
        made={
            "created_at": lambda stored: (
                to_timestamp(stored.created_us) if stored.created_us else None
            )
        },
        unshown=["created_us"],
    )
)
"""Return the message of a handover."""
summary = reads("summary", "session_id")(
    message_writer(
        SessionSummary,
        pb.SessionSummary,
        spelled={"text": "summary"},
        unshown=["tools", "errors", "files", "created_us"],
    )
)
"""Return the message of a summary."""


def context_wanted(request: pb.GetContextRequest) -> ContextWanted:
    """Return how much of a context a request wants, and how it is to be read.

    Raises:
        InvalidArgument: there is no such time zone.
    """
    return ContextWanted(
        limit=request.limit,
        budget=request.token_budget,
        written=ContextFormat(request.format),
        min_confidence=request.min_confidence if request.HasField("min_confidence") else None,
        with_experience=not request.without_experience,
        as_of=as_of(request),
    )


def context(found: FoundContext, written: ContextFormat) -> pb.GetContextResponse:
    """Return the message of what bears on a topic."""
    return pb.GetContextResponse(
        sessions=[_context_session(one) for one in found.sessions],
        lessons=[learn.found_lesson(one) for one in found.lessons],
        reflections=[learn.found_reflection(one) for one in found.reflections],
        total_sessions=found.total,
        text=found.composition.text,
        words_only=found.words_only,
        episodes=[_context_episode(one) for one in found.attempts],
        skills=[_context_skill(one) for one in found.skills],
        outcome=f"CONTEXT_OUTCOME_{found.composition.outcome.name}",
        items=[_context_item(one) for one in found.composition.items],
        token_count=found.composition.tokens,
        left_out_count=found.composition.left_out,
        messages=_messages(found.composition.text) if written is ContextFormat.MESSAGES else (),
    )


def profile(found: Profile, written: ContextFormat) -> pb.GetProfileResponse:
    """Return the message of what is known of a user."""
    return pb.GetProfileResponse(
        items=[_profile_item(one) for one in found.items],
        text=found.text,
        token_count=found.tokens,
        left_out_count=found.left_out,
        messages=_messages(found.text) if written is ContextFormat.MESSAGES else (),
    )


def _profile_item(found: ProfileItem) -> pb.ProfileItem:
    memory = found.memory
    return pb.ProfileItem(
        memory_id=memory.id,
        text=memory.text,
        reason=f"PROFILE_REASON_{found.reason.name}",
        since=to_timestamp(memory.since_us),
        last_said=to_timestamp(memory.last_said_us),
        confirmed_count=memory.confirmed_count,
        importance=f"IMPORTANCE_{memory.importance.name}",
        agent_id=memory.agent_id,
        project=memory.project,
        session_id=session_of(memory),
        token_count=found.tokens,
    )


def _messages(text: str) -> Sequence[pb.ContextMessage]:
    return [pb.ContextMessage(role="user", content=text)] if text else []


def _context_item(fitted: FittedItem) -> pb.ContextItem:
    item = fitted.item
    return pb.ContextItem(
        kind=item.kind,
        source_id=item.id,
        text=item.text,
        timestamp=to_timestamp(item.at_us),
        worth=item.worth,
        similarity=item.similarity,
        session_id=item.session_id,
        role=item.said_by,
        token_count=fitted.tokens,
        attempts=None if item.attempts is None else _attempts(item.attempts),
        pinned=item.pinned,
        excerpt=item.excerpt,
    )


def _attempts(made: Attempts) -> pb.ContextAttempts:
    return pb.ContextAttempts(
        task=made.task,
        tried_count=len(made.sessions),
        succeeded_count=made.succeeded,
        failed_count=made.failed,
        differed=made.differed,
        session_ids=[one.session_id for one in made.sessions],
    )


def awakening(woken: Awakening) -> pb.WakeUpResponse:
    """Return the message of what an agent needs."""
    last = woken.last
    return pb.WakeUpResponse(
        last_handover=handover(last.handover) if last and last.handover else None,
        last_summary=summary(last.summary) if last and last.summary else None,
        related=[_related(one) for one in woken.related],
        patterns=[
            pb.WorkPattern(
                type=pattern.type,
                description=pattern.description,
                session_ids=pattern.evidence.session_ids,
                event_ids=pattern.evidence.event_ids,
            )
            for pattern in woken.patterns
        ],
        suggestions=[_suggestion(s.type, s.description, s.evidence) for s in woken.suggestions],
        text=woken.narrative,
        sessions_considered=woken.considered,
        not_compared=woken.not_compared,
        profile=[_profile_item(one) for one in woken.profile.items],
    )


def found_session(found: FoundSession) -> pb.FoundSession:
    """Return the message of a session that was found."""
    return pb.FoundSession(
        session=events.session(found.past.session),
        summary=_optional_summary(found.past),
        score=found.score,
        similarity=found.similarity,
    )


def timeline_entry(entry: TimelineEntry) -> pb.TimelineEntry:
    """Return the message of a session in its time."""
    return pb.TimelineEntry(
        session=events.session(entry.past.session),
        summary=_optional_summary(entry.past),
        related=[
            pb.SessionLink(session_id=link.session_id, similarity=link.similarity)
            for link in entry.related
        ],
    )


def _context_session(found: ContextSession) -> pb.ContextSession:
    session, made = found.past.session, found.past.summary
    return pb.ContextSession(
        session_id=session.id,
        summary=made.text if made else "",
        relevance_score=found.score,
        similarity=found.similarity,
        started_at=to_timestamp(session.started_us),
        ended_at=None if session.ended_us is None else to_timestamp(session.ended_us),
        key_events=_key_events(found.key_events),
        agent_id=session.agent_id,
        outcome=cast("reflection_pb2.Outcome", made.outcome if made else 0),
    )


def _context_episode(found: Attempt) -> pb.ContextEpisode:
    return pb.ContextEpisode(
        episode_id=found.episode_id,
        task=cut(found.task, _EXPERIENCE_CHARS),
        success=found.success,
        reward=found.reward,
        critique=cut(found.critique, _EXPERIENCE_CHARS),
        occurred_at=to_timestamp(found.occurred_us),
        score=found.score,
        similarity=found.similarity,
    )


def _context_skill(found: ProvenSkill) -> pb.ContextSkill:
    return pb.ContextSkill(
        skill_id=found.skill_id,
        name=found.name,
        description=cut(found.description, _EXPERIENCE_CHARS),
        use_count=found.uses,
        success_count=found.successes,
        success_low=found.low,
        success_high=found.high,
        score=found.score,
        similarity=found.similarity,
    )


def _key_events(chosen: Sequence[KeyEvent]) -> list[pb.KeyEvent]:
    return [
        pb.KeyEvent(
            event_id=event.event_id,
            event_type=event.event_type,
            summary=event.text,
            timestamp=to_timestamp(event.timestamp_us),
        )
        for event in chosen
    ]


def _related(one: Related) -> pb.RelatedSession:
    past = one.past
    said = past.handover.summary if past.handover else past.summary.text if past.summary else ""
    pinned = past.handover.locked_contexts if past.handover else ()
    return pb.RelatedSession(
        session_id=past.session.id,
        summary=cut(said, _RELATED_CHARS),
        created_at=to_timestamp(
            past.handover.created_us if past.handover else active_us(past.session)
        ),
        similarity=one.similarity,
        recency=one.recency,
        importance=one.importance,
        score=one.score,
        files=past.files,
        tools=past.tools,
        contexts=[locked.label for locked in pinned],
    )


def _suggestion(kind: str, description: str, evidence: Evidence) -> pb.Suggestion:
    return pb.Suggestion(
        type=kind,
        description=description,
        session_ids=evidence.session_ids,
        event_ids=evidence.event_ids,
        lesson_ids=evidence.lesson_ids,
        reflection_ids=evidence.reflection_ids,
        episode_ids=evidence.episode_ids,
        skill_ids=evidence.skill_ids,
    )


def _optional_summary(past: PastSession) -> pb.SessionSummary | None:
    return summary(past.summary) if past.summary else None
