"""Summaries of sessions, made without a language model, and the worker that keeps them up to date;
what changes a session queues it in the same transaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import MnemeError, NotFound, ResourceExhausted, Unavailable
from mneme_server.common.humanize import lasting
from mneme_server.engine.background.tenant_worker import MOST_ATTEMPTS, TenantWorker, retry_delay_s
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.index.words.languages import language_of
from mneme_server.engine.tenants.embedding import BackgroundEmbedder
from mneme_server.features.context.model import (
    SESSION,
    Handover,
    QueuedSummary,
    SessionError,
    SessionSummary,
)
from mneme_server.features.context.notes import (
    MAX_TOOL_SEQUENCE,
    MESSAGE_CHARS,
    SessionNotes,
    duration_s,
    event_pages,
)
from mneme_server.features.context.store.handovers import SqlHandovers
from mneme_server.features.context.store.summaries import SqlSummaries, SqlSummaryQueue
from mneme_server.features.context.words import (
    area_words,
    cut,
    ended,
    error_topics,
    frequent_words,
    language_in,
    words_of,
)
from mneme_server.features.events.history import active_us
from mneme_server.features.events.model import Outcome, Session, SessionStatus
from mneme_server.features.events.outcomes import succeeded
from mneme_server.features.events.recording import Committed
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions

BATCH = 16
"""Sessions a step takes from one tenant before it is the next one's turn."""
MAX_TOPICS = 20
_MAX_TEXT = 4_000
SUMMARY_JOB = "summaries"
"""The job that makes them."""
LATE_US = MICROSECONDS
"""Late events come in numbers: a summary is made again this long after the first of them."""

_log = structlog.get_logger(__name__)


def summarize(
    session: Session, notes: SessionNotes, handover: Handover | None, now_us: int
) -> SessionSummary:
    """Return what the session came to."""
    errors = notes.errors(succeeded=succeeded(session))
    return SessionSummary(
        session_id=session.id,
        text=_text(session, notes, errors, handover),
        topics=tuple(_topics(session, notes, errors, handover)),
        tools=tuple(notes.tools.most_common()),
        tool_sequence=tuple(notes.sequence[:MAX_TOOL_SEQUENCE]),
        error_summary=_error_summary(errors),
        errors=tuple(errors[:20]),
        files=tuple(notes.files.values()),
        outcome=session.outcome,
        created_us=now_us,
        updated_us=now_us,
    )


def _text(
    session: Session,
    notes: SessionNotes,
    errors: Sequence[SessionError],
    handover: Handover | None,
) -> str:
    """What it was about comes first: an embedding model reads the beginning only."""
    said = [*_messages(notes)]
    left = [handover.summary, *_said_about_todos(handover)] if handover is not None else []
    # What was collected of the messages' words comes after them, what somebody wrote before.
    lines = [*said, *left] if handover is None or handover.all_collected else [*left, *said]
    lines += _facts(session, notes, errors)
    if session.event_count or not any(lines):
        lines.append(_circumstances(session, notes))
    return "\n".join(ended(line) for line in lines if line)[:_MAX_TEXT]


def _messages(notes: SessionNotes) -> Iterator[str]:
    need = cut(notes.need, MESSAGE_CHARS)
    if need:
        yield need
    if notes.end and notes.end not in notes.need:
        yield f"At the end: {notes.end}"


def _facts(session: Session, notes: SessionNotes, errors: Sequence[SessionError]) -> Iterator[str]:
    if notes.tools:
        counted = [
            name if count == 1 else f"{name} ×{count}"
            for name, count in notes.tools.most_common(10)
        ]
        yield f"Tools: {', '.join(counted)}."
    if errors:
        yield f"Errors: {_error_summary(errors)}"
    if notes.files:
        yield f"Files: {', '.join(list(notes.files)[:8])}."
    if notes.models or session.total_cost_usd:
        yield f"Models: {_models(session, notes)}."
    if session.tags:
        yield f"Tags: {', '.join(session.tags)}."


def _models(session: Session, notes: SessionNotes) -> str:
    parts = [", ".join(name for name, _ in notes.models.most_common(4))]
    tokens = session.total_input_tokens + session.total_output_tokens
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if session.total_cost_usd:
        parts.append(f"{session.total_cost_usd:.4f} USD")
    return ", ".join(part for part in parts if part)


def _circumstances(session: Session, notes: SessionNotes) -> str:
    agent = session.agent_name or session.agent_id
    parts = [f"Agent {agent}" if agent else ""]
    duration = duration_s(session, notes)
    parts.append(lasting(duration) if duration else "")
    parts.append(f"{session.event_count} event{'' if session.event_count == 1 else 's'}")
    parts.append("still open" if session.status == SessionStatus.ACTIVE else _ending(session))
    said = ", ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."


def _ending(session: Session) -> str:
    """Return how it ended: that it did does not say whether its work was done."""
    if session.outcome == Outcome.UNKNOWN:
        return "ended"
    how = "partial success" if session.outcome == Outcome.PARTIAL else session.outcome.name.lower()
    return f"ended in {how}"


def _said_about_todos(handover: Handover) -> Iterator[str]:
    if handover.open_todos:
        yield f"Open: {', '.join(cut(todo.content, 200) for todo in handover.open_todos[:5])}."


def _error_summary(errors: Sequence[SessionError]) -> str:
    if not errors:
        return ""
    said = []
    for error in errors[:5]:
        where = f"{error.tool}: " if error.tool else ""
        often = f" (×{error.count})" if error.count > 1 else ""
        said.append(f"{where}{cut(error.example, 160)}{often}")
    more = sum(error.count for error in errors[5:])
    return ended("; ".join(said) + (f"; and {more} more" if more else ""))


def _topics(
    session: Session,
    notes: SessionNotes,
    errors: Sequence[SessionError],
    handover: Handover | None,
) -> list[str]:
    found = [*session.tags]
    found += [name for name, _ in notes.tools.most_common(8)]
    for error in errors[:4]:
        found += error_topics(error.template)
    found += _subjects(notes, handover)
    by_lower = {topic.lower(): topic for topic in reversed(found)}
    return list(dict.fromkeys(by_lower[topic.lower()] for topic in found))[:MAX_TOPICS]


def _subjects(notes: SessionNotes, handover: Handover | None) -> list[str]:
    """Return what was talked about, words that came twice at least, and what was handed over."""
    counts: Counter[str] = Counter()
    if handover is not None:
        said = [*handover.progress, *handover.completed_todos]
        said += [part for d in handover.decisions for part in (d.decision, d.rationale)]
        said += [c.label.replace("_", " ") for c in handover.locked_contexts]
        language = language_in(said)
        for text in said:
            counts.update(words_of(text, language_of(text) or language))
    areas: Counter[str] = Counter()
    for path in [*(handover.files if handover else ()), *notes.files]:
        areas.update(set(area_words(path)))
    repeated = Counter({word: count for word, count in notes.words.items() if count > 1})
    return [
        *frequent_words(areas, 3), *frequent_words(counts, 10), *frequent_words(repeated, 6)
    ]  # fmt: skip


def session_document(session: Session, summary: SessionSummary) -> Document:
    """Return the document of a session: found by its summary, at the time when it ended."""
    return Document(
        doc_id=0,
        kind=SESSION,
        source_id=session.id,
        text=summary.text,
        timestamp_us=active_us(session),
        session_id=session.id,
        agent_id=session.agent_id,
        user_id=session.user_id,
        project=session.project,
        category=summary.outcome.name.lower(),
        tags=session.tags,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """A summary with what it was made from."""

    session: Session
    handover: Handover | None
    summary: SessionSummary


class SummaryWorker(TenantWorker):
    """Makes the queued summaries of all tenants.

    Args:
        open_tenant: lends a tenant's memory.
        embedder: makes the vectors of summaries.
        idle_us: after so long without an event an active session is summarised.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        embedder: BackgroundEmbedder,
        *,
        idle_us: int,
    ) -> None:
        super().__init__("summary", thread="session-summaries")
        self._open_tenant = open_tenant
        self._embedder = embedder
        self._idle_us = idle_us

    def step(self, tenant_id: str) -> int | None:
        """Make one batch of the tenant's summaries."""
        with self._open_tenant(tenant_id) as tenant:
            with tenant.read() as unit:
                queued = unit.get(SqlSummaryQueue).due(now_us(), BATCH)
                if not queued:
                    return unit.get(SqlSummaryQueue).next_due_us()
            self.give_way()
            started = time.monotonic()
            ready = self._put_off_active(tenant, queued)
            made: list[_Made] = []
            for item in ready:
                try:
                    made.append(_make(tenant, item.session_id))
                except Exception as error:  # One session must not hold back the others.
                    self._put_off_failed(tenant, [item], error)
            self._store(tenant, made)
            if made:
                _log.debug(
                    "sessions summarised", tenant=tenant_id, sessions=len(made),
                    ms=round((time.monotonic() - started) * 1000),
                )  # fmt: skip
        return now_us()

    def _put_off_active(
        self, tenant: OpenTenant, queued: Sequence[QueuedSummary]
    ) -> list[QueuedSummary]:
        """Put off sessions that are still at work; return the others."""
        with tenant.read() as unit:
            later = self._still_active(unit, queued)
        if later:
            with tenant.write() as unit:
                # Again, inside the transaction: one of them may have ended meanwhile.
                later = self._still_active(unit, queued)
                for session_id, until_us in later.items():
                    unit.get(SqlSummaryQueue).defer([session_id], until_us=until_us)
        return [item for item in queued if item.session_id not in later]

    def _still_active(self, unit: CorpusUnit, queued: Sequence[QueuedSummary]) -> dict[str, int]:
        """Return the sessions that are at work, and when they will have been idle long enough."""
        now = now_us()
        later: dict[str, int] = {}
        sessions = unit.get(SqlSessions).get_many([item.session_id for item in queued])
        for session in sessions.values():
            if session.status == SessionStatus.ACTIVE:
                recorded = unit.get(SqlActivity).recorded_us(session.id)
                idle_at = (session.started_us if recorded is None else recorded) + self._idle_us
                if idle_at > now:
                    later[session.id] = idle_at
        return later

    def _store(
        self,
        tenant: OpenTenant,
        made: Sequence[_Made],
    ) -> None:
        if not made:
            return
        vectors = self._embedded([item.summary.text for item in made])
        with tenant.write() as unit:
            # One that is off the queue was handed over, which summarised it, or forgotten.
            queue = unit.get(SqlSummaryQueue)
            queued = queue.queued([item.session.id for item in made])
            left = [at for at, item in enumerate(made) if item.session.id in queued]
            kept = [made[at] for at in left]
            ids = [item.session.id for item in kept]
            now = unit.get(SqlSessions).get_many(ids)
            handovers = unit.get(SqlHandovers).get_many(ids)
            unit.get(SqlSummaries).save([item.summary for item in kept])
            unit.documents.remove(SESSION, ids)
            unit.documents.add(
                [session_document(now[item.session.id], item.summary) for item in kept],
                None if vectors is None else vectors[left],
            )
            unchanged = [
                item.session.id
                for item in kept
                if now[item.session.id] == item.session
                and handovers.get(item.session.id) == item.handover
            ]
            queue.finish(unchanged)
            # What changed meanwhile has its summary of before, and gets another.
            again = [session_id for session_id in ids if session_id not in unchanged]
            queue.defer(again, until_us=now_us() + LATE_US)

    def _embedded(self, texts: Sequence[str]) -> Matrix | None:
        """Return their vectors; None when the backend fails: they are found by their words until
        the embedding queue has them."""
        try:
            return self._embedder.embed(texts)
        except Exception as error:
            _log.warning("summaries are stored before they are embedded", error=str(error))
            return None

    def _put_off_failed(
        self, tenant: OpenTenant, failed: Sequence[QueuedSummary], error: Exception
    ) -> None:
        attempts = max(item.attempts for item in failed)
        ids = [item.session_id for item in failed]
        if attempts + 1 >= MOST_ATTEMPTS and not isinstance(
            error, (ResourceExhausted, Unavailable)
        ):
            with tenant.write() as unit:
                unit.get(SqlSummaryQueue).finish(ids)
            _log.error(
                "sessions cannot be summarised, until more happens in them",
                tenant=tenant.tenant_id, sessions=ids, error=str(error),
                exc_info=not isinstance(error, MnemeError),
            )  # fmt: skip
            return
        delay_s = retry_delay_s(attempts)
        with tenant.write() as unit:
            unit.get(SqlSummaryQueue).defer(
                ids,
                until_us=now_us() + int(delay_s * MICROSECONDS),
                error=str(error) or type(error).__name__,
            )
        _log.warning(
            "sessions could not be summarised, will be tried again", tenant=tenant.tenant_id,
            sessions=len(failed), retry_in_s=delay_s, error=str(error),
            exc_info=not isinstance(error, MnemeError),
        )  # fmt: skip


def _make(tenant: OpenTenant, session_id: str) -> _Made:
    with tenant.read() as unit:
        session = unit.get(SqlSessions).get(session_id)
        handover = unit.get(SqlHandovers).get_many([session_id]).get(session_id)
    if session is None:
        raise NotFound(f"there is no session {session_id!r}", field="session_id")
    notes = SessionNotes()
    for page in event_pages(tenant, session_id):
        notes.add(page)
    return _Made(session, handover, summarize(session, notes, handover, now_us()))


@dataclass(frozen=True, slots=True)
class SummarySchedule:
    """Queues sessions for their summaries. Implements `SessionListener`.

    Args:
        idle_us: after so long without an event an active session gets one.
        wake: told the tenant and the time, in microseconds since 1970, once it is committed.
    """

    idle_us: int
    wake: Callable[[str, int], object]

    def changed(
        self,
        unit: CorpusUnit,
        sessions: Sequence[Session],
        ended_before: Collection[str],
        now_us: int,
    ) -> Committed:
        """Queue sessions that something was recorded in, or that ended, or changed after that.

        No agent ran those of the system: there is nothing to sum up.
        """
        due = {
            session.id: self._due(session, session.id in ended_before, now_us)
            for session in sessions
            if not session.system
        }
        if not due:
            return lambda _tenant_id: None
        unit.get(SqlSummaryQueue).request(due)
        earliest = min(due.values())
        return lambda tenant_id: self.wake(tenant_id, earliest)

    def _due(self, session: Session, late: bool, now_us: int) -> int:
        if session.status == SessionStatus.ACTIVE:
            return now_us + self.idle_us
        return now_us + LATE_US if late else now_us
