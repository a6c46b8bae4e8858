"""WakeUp: the last handover, what bears on it, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from mneme_server.common.clock import now_us
from mneme_server.context.beside import LearnedBeside
from mneme_server.context.model import Awakening, PastSession, Related, SessionScope
from mneme_server.context.narrative import narrate
from mneme_server.context.patterns import patterns_of
from mneme_server.context.ports import ContextUnit
from mneme_server.context.relating import related_to
from mneme_server.context.sessions import load, vectors_of
from mneme_server.context.suggestions import suggestions_of
from mneme_server.corpus.tenant import TenantMemory, Tenants
from mneme_server.learn.ports import TextEmbedder

MIN_SIMILARITY = 0.35
"""About where unrelated summaries end under the default model."""
_EVIDENCE = 20
"""Related sessions that patterns are looked for in, at least."""
_LATER = 5


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Tells what an agent needs at the start of a session."""

    tenants: Tenants[ContextUnit]
    embedder: TextEmbedder
    learned: LearnedBeside

    def __call__(
        self,
        tenant_id: str,
        *,
        project: str,
        agent_id: str,
        limit: int,
        min_similarity: float = MIN_SIMILARITY,
    ) -> Awakening:
        """Return the last session, the sessions related to it, patterns and next steps.

        Without a project it is that of the last handover, or of the last session without one.

        Raises:
            EmbeddingError: a summary had to be embedded again, and the backend failed.
        """
        now = now_us()
        asked = SessionScope(project=project, agent_id=agent_id)
        with self.tenants.open(tenant_id) as memory:
            with memory.read() as unit:
                last = _last(unit, asked)
                if last is None or last.summary is None:
                    return Awakening(None, narrative=narrate(None, (), (), (), (), now))
                scope = SessionScope(
                    project=project or last.session.project, agent_id=agent_id
                )
                later = _later(unit, scope, last)
                found, considered = self._related(
                    unit, memory, last, scope, max(limit, _EVIDENCE), min_similarity, now
                )
            patterns = patterns_of([last, *(one.past for one in found)])
            suggestions = suggestions_of(
                last, patterns, lambda error: self.learned.advice_on(tenant_id, error)
            )
        related = found[:limit]
        return Awakening(
            last=last,
            later=later,
            related=related,
            patterns=patterns,
            suggestions=suggestions,
            narrative=narrate(last, later, related, patterns, suggestions, now),
            considered=considered,
        )

    def _related(
        self,
        unit: ContextUnit,
        memory: TenantMemory[ContextUnit],
        last: PastSession,
        scope: SessionScope,
        limit: int,
        min_similarity: float,
        now: int,
    ) -> tuple[list[Related], int]:
        assert last.summary is not None
        (vector,) = vectors_of(unit, self.embedder, [last.summary.text])
        return related_to(
            unit,
            memory.index,
            vector,
            scope,
            without=last.session.id,
            min_similarity=min_similarity,
            limit=limit,
            now_us=now,
        )


def _last(unit: ContextUnit, scope: SessionScope) -> PastSession | None:
    """Return the session that was handed over last; else the one with a summary that ended last."""
    handover = unit.handovers.last(scope.project, scope.agent_id)
    if handover is not None:
        return load(unit, [handover.session_id]).get(handover.session_id)
    for session in unit.summaries.ended_after(scope, 1):
        return load(unit, [session.id]).get(session.id)
    return None


def _later(unit: ContextUnit, scope: SessionScope, last: PastSession) -> list[PastSession]:
    """Return sessions that ended after the last handover without leaving one."""
    if last.handover is None:
        return []
    since = SessionScope(
        project=scope.project, agent_id=scope.agent_id, start_us=last.handover.created_us
    )
    ids = [s.id for s in unit.summaries.ended_after(since, _LATER) if s.id != last.session.id]
    known = load(unit, ids)
    return [known[key] for key in ids if key in known and known[key].handover is None]
