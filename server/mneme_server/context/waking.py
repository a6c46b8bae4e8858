"""WakeUp: the last handover, what bears on it, and what to do next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from mneme_server.common.clock import now_us
from mneme_server.context.beside import LearnedBeside
from mneme_server.context.model import Awakening, PastSession, SessionScope
from mneme_server.context.narrative import narrate
from mneme_server.context.patterns import Topics, patterns_of, topic_key
from mneme_server.context.ports import ContextUnit
from mneme_server.context.relating import related_to
from mneme_server.context.sessions import latest, load, vectors_of
from mneme_server.context.suggestions import suggestions_of
from mneme_server.corpus.ports import CorpusIndex
from mneme_server.corpus.tenant import TenantMemory, Tenants
from mneme_server.learn.ports import TextEmbedder

MIN_SIMILARITY = 0.35
"""About where unrelated summaries end under the default model."""
_EVIDENCE = 20
"""Related sessions that patterns are looked for in, at least."""
_LATER = 5
_LATEST = 20
_TOPICS_OF = 300
"""Sessions that tell which topics are common, the latest ones: enough for a share."""


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

        When the last session's summary is not embedded yet and cannot be soon, no other session is
        compared with it.
        """
        now = now_us()
        asked = SessionScope(project=project, agent_id=agent_id)
        with self.tenants.open(tenant_id) as memory:
            with memory.read() as unit:
                last = _last(unit, memory.index, asked)
                if last is None or last.summary is None:
                    return _narrated(Awakening(None), now)
                scope = replace(asked, project=project or last.session.project)
                later = _later(unit, memory.index, scope, last)
                vector = vectors_of(unit, self.embedder, [last.summary.text]).get(last.summary.text)
                found, considered = (
                    ([], 0)
                    if vector is None
                    else related_to(
                        unit,
                        memory.index,
                        vector,
                        scope,
                        without=last.session.id,
                        min_similarity=min_similarity,
                        limit=max(limit, _EVIDENCE),
                        now_us=now,
                    )
                )
            compared = [last, *(one.past for one in found)]
            patterns = patterns_of(compared, self._topics(memory, scope.project, len(compared)))
            suggestions = suggestions_of(
                last, patterns, lambda error: self.learned.advice_on(tenant_id, error)
            )
        woken = Awakening(
            last=last,
            later=later,
            related=found[:limit],
            patterns=patterns,
            suggestions=suggestions,
            considered=considered,
            not_compared=vector is None,
        )
        return _narrated(woken, now)

    @staticmethod
    def _topics(memory: TenantMemory[ContextUnit], project: str, compared: int) -> Topics:
        """Return what the project's sessions are about; of all, where those are all of its."""
        with memory.read() as unit:
            ids = latest(unit, memory.index, SessionScope(project=project), _TOPICS_OF)
            if project and len(ids) <= compared:
                ids = latest(unit, memory.index, SessionScope(), _TOPICS_OF)
            found = unit.summaries.topics(ids)
        counts = Counter(key for topics in found for key in {topic_key(one) for one in topics})
        return Topics(len(found), counts)


def _narrated(woken: Awakening, now: int) -> Awakening:
    return replace(woken, narrative=narrate(woken, now))


def _last(unit: ContextUnit, index: CorpusIndex, scope: SessionScope) -> PastSession | None:
    """Return the session that was handed over last; else the one with a summary that ended last."""
    handover = unit.handovers.last(scope.project, scope.agent_id)
    if handover is not None:
        return load(unit, [handover.session_id]).get(handover.session_id)
    ids = latest(unit, index, scope, _LATEST)
    known = load(unit, ids)
    past = [known[key] for key in ids if key in known]
    # A session in which nothing happened does not hide one in which something did.
    return next((one for one in past if one.session.event_count), past[0] if past else None)


def _later(
    unit: ContextUnit, index: CorpusIndex, scope: SessionScope, last: PastSession
) -> list[PastSession]:
    """Return sessions that were active after the last handover and left none."""
    if last.handover is None:
        return []
    since = replace(scope, start_us=last.handover.created_us)
    ids = [key for key in latest(unit, index, since, _LATER) if key != last.session.id]
    known = load(unit, ids)
    return [known[key] for key in ids if key in known and known[key].handover is None]
