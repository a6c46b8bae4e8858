"""The worker that makes sessions' summaries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import MnemeError, NotFound
from mneme_server.common.foreground import Foreground
from mneme_server.context.documents import session_document
from mneme_server.context.model import Handover, QueuedSummary, SessionSummary
from mneme_server.context.ports import ContextUnit
from mneme_server.context.reading import read_notes
from mneme_server.context.summarizing import summarize
from mneme_server.corpus.document import Scope
from mneme_server.corpus.pipeline import BackgroundEmbedder
from mneme_server.corpus.ports import Matrix
from mneme_server.corpus.tenant import TenantMemory
from mneme_server.corpus.turns import TenantWorker, retry_delay_s
from mneme_server.events.model import Session, SessionStatus
from mneme_server.events.summaries import LATE_US

BATCH = 16
"""Sessions a step takes from one tenant before it is the next one's turn."""

_log = structlog.get_logger(__name__)


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
        foreground: the calls that it gives way to.
        idle_us: after so long without an event an active session is summarised.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[TenantMemory[ContextUnit]]],
        embedder: BackgroundEmbedder,
        *,
        foreground: Foreground,
        idle_us: int,
    ) -> None:
        super().__init__("summary", thread="session-summaries")
        self._open_tenant = open_tenant
        self._embedder = embedder
        self._foreground = foreground
        self._idle_us = idle_us

    def step(self, tenant_id: str) -> int | None:
        """Make one batch of the tenant's summaries."""
        with self._open_tenant(tenant_id) as memory:
            with memory.read() as unit:
                queued = unit.summary_queue.due(now_us(), BATCH)
                if not queued:
                    return unit.summary_queue.next_due_us()
            self._foreground.give_way()
            started = time.monotonic()
            ready = self._put_off_active(memory, queued)
            made: list[_Made] = []
            for item in ready:
                try:
                    made.append(_make(memory, item.session_id))
                except Exception as error:  # One session must not hold back the others.
                    self._put_off_failed(memory, [item], error)
            self._store(memory, made)
            if made:
                _log.debug(
                    "sessions summarised", tenant=tenant_id, sessions=len(made),
                    ms=round((time.monotonic() - started) * 1000),
                )  # fmt: skip
        return now_us()

    def _put_off_active(
        self, memory: TenantMemory[ContextUnit], queued: Sequence[QueuedSummary]
    ) -> list[QueuedSummary]:
        """Put off sessions that are still at work; return the others."""
        with memory.read() as unit:
            later = self._still_active(unit, queued)
        if later:
            with memory.write() as unit:
                # Again, inside the transaction: one of them may have ended meanwhile.
                later = self._still_active(unit, queued)
                for session_id, until_us in later.items():
                    unit.summary_queue.defer([session_id], until_us=until_us)
        return [item for item in queued if item.session_id not in later]

    def _still_active(self, unit: ContextUnit, queued: Sequence[QueuedSummary]) -> dict[str, int]:
        """Return the sessions that are at work, and when they will have been idle long enough."""
        now = now_us()
        later: dict[str, int] = {}
        sessions = unit.sessions.get_many([item.session_id for item in queued])
        for session in sessions.values():
            if session.status == SessionStatus.ACTIVE:
                recorded = unit.summaries.recorded_us(session.id)
                idle_at = (session.started_us if recorded is None else recorded) + self._idle_us
                if idle_at > now:
                    later[session.id] = idle_at
        return later

    def _store(
        self,
        memory: TenantMemory[ContextUnit],
        made: Sequence[_Made],
    ) -> None:
        if not made:
            return
        vectors = self._embedded([item.summary.text for item in made])
        with memory.write() as unit:
            ids = [item.session.id for item in made]
            now = unit.sessions.get_many(ids)
            handovers = unit.handovers.get_many(ids)
            unit.summaries.save([item.summary for item in made])
            unit.documents.remove(Scope.SESSION, ids)
            unit.documents.add(
                [session_document(now[item.session.id], item.summary) for item in made], vectors
            )
            unchanged = [
                item.session.id
                for item in made
                if now[item.session.id] == item.session
                and handovers.get(item.session.id) == item.handover
            ]
            unit.summary_queue.finish(unchanged)
            # What changed meanwhile has its summary of before, and gets another.
            again = [session_id for session_id in ids if session_id not in unchanged]
            unit.summary_queue.defer(again, until_us=now_us() + LATE_US)

    def _embedded(self, texts: Sequence[str]) -> Matrix | None:
        """Return their vectors; None when the backend fails: they are found by their words until
        the embedding queue has them."""
        try:
            return self._embedder.embed(texts)
        except Exception as error:
            _log.warning("summaries are stored before they are embedded", error=str(error))
            return None

    def _put_off_failed(
        self, memory: TenantMemory[ContextUnit], failed: Sequence[QueuedSummary], error: Exception
    ) -> None:
        attempts = max(item.attempts for item in failed)
        delay_s = retry_delay_s(attempts)
        with memory.write() as unit:
            unit.summary_queue.defer(
                [item.session_id for item in failed],
                until_us=now_us() + int(delay_s * MICROSECONDS),
                error=str(error) or type(error).__name__,
            )
        _log.warning(
            "sessions could not be summarised, will be tried again", tenant=memory.tenant_id,
            sessions=len(failed), retry_in_s=delay_s, error=str(error),
            exc_info=not isinstance(error, MnemeError),
        )  # fmt: skip


def _make(memory: TenantMemory[ContextUnit], session_id: str) -> _Made:
    with memory.read() as unit:
        session = unit.sessions.get(session_id)
        handover = unit.handovers.get_many([session_id]).get(session_id)
    if session is None:
        raise NotFound(f"there is no session {session_id!r}", field="session_id")
    notes = read_notes(memory, session_id)
    return _Made(session, handover, summarize(session, notes, handover, now_us()))
