"""Episodes and skills that context reports: those that bear on a topic, where there is evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.experience import Attempt, Near, ProvenSkill
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.recall.confidence import FACTS_BY_DEFAULT
from mneme_server.features.recall.model import Recalled, RecallQuery
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.model import EPISODE, SKILL, Skill, score_of
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills

_LOOKED_AT = 20
"""What is recalled of either kind, of which few are shown: the record of a skill may lift it."""
_FAILS = 0.5
"""A skill whose success rate is below this for sure is no advice."""


@dataclass(frozen=True, slots=True)
class SearchExperience:
    """Implements `features.context.experience.ExperienceSearch`."""

    tenants: OpenTenants
    recall: Recall
    kinds: frozenset[MemoryKind] = frozenset({EPISODE, SKILL})

    def attempts_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[Attempt]:
        """Return the attempts near a topic, the best first."""
        documents = DocumentFilter(
            kinds=frozenset({EPISODE}),
            user_id=filter_.user_id,
            agent_id=filter_.agent_id,
            project=filter_.project,
            start_us=filter_.start_us,
            end_us=filter_.end_us,
            shared=filter_.shared,
        )
        found = self._near(tenant_id, topic, documents, near, min_confidence=min_confidence)[:limit]
        if not found:
            return ()
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlEpisodes).get_many([one.document.source_id for one in found])
        return [
            Attempt(
                episode_id=episode.id,
                task=episode.task,
                success=episode.success,
                reward=episode.reward,
                critique=episode.critique,
                occurred_us=episode.occurred_us,
                score=one.score,
                similarity=one.similarity,
            )
            for one in found
            if (episode := stored.get(one.document.source_id)) is not None
        ]

    def skills_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[ProvenSkill]:
        """Return the skills near a topic that were used and do not fail more often than not, the
        best first; for a user none that attempts for another one taught."""
        documents = DocumentFilter(
            kinds=frozenset({SKILL}),
            user_id=filter_.user_id,
            project=filter_.project,
            shared=filter_.shared,
        )
        found = self._near(tenant_id, topic, documents, near, min_confidence=min_confidence)
        if not found:
            return ()
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlSkills).get_many([one.document.source_id for one in found])
            if filter_.user_id:
                stored = _without_others(unit, stored, filter_.user_id)
        proven = [
            _proven(skill, one)
            for one in found
            if (skill := stored.get(one.document.source_id)) is not None and _has_proof(skill)
        ]
        return sorted(proven, key=lambda one: -one.score)[:limit]

    def _near(
        self,
        tenant_id: str,
        topic: str,
        documents: DocumentFilter,
        near: Near,
        *,
        min_confidence: float,
    ) -> list[Recalled]:
        with self.tenants.open(tenant_id) as tenant:
            if not tenant.index.select(DocumentFilter(kinds=documents.kinds)).count:
                return []  # Most tenants have none: they pay for no search.
        query = RecallQuery(
            text=topic,
            filter=documents,
            limit=_LOOKED_AT,
            min_confidence=min_confidence,
            bare=True,
        )
        found = self.recall.search(tenant_id, query).results
        return [one for one in found if near(topic, one, self.recall.scale)]


def _without_others(
    unit: CorpusUnit, skills: Mapping[str, Skill], user_id: str
) -> dict[str, Skill]:
    """Return the skills that no attempt for another user taught."""
    sources = {source for skill in skills.values() for source in skill.source_ids}
    others = unit.get(SqlEpisodes).of_others(sources, user_id)
    return {key: skill for key, skill in skills.items() if others.isdisjoint(skill.source_ids)}


def _has_proof(skill: Skill) -> bool:
    _, high = skill.record.interval
    return skill.record.uses > 0 and high >= _FAILS


def _proven(skill: Skill, found: Recalled) -> ProvenSkill:
    low, high = skill.record.interval
    return ProvenSkill(
        skill_id=skill.id,
        name=skill.name,
        description=skill.description,
        uses=skill.record.uses,
        successes=skill.record.successes,
        low=low,
        high=high,
        score=score_of(found.score, low),
        similarity=found.similarity,
        updated_us=skill.updated_us,
    )
