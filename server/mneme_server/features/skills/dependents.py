"""Episodes and skills that rest on what is deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mneme_server.features.skills.kinds import EPISODE, SKILL
from mneme_server.features.skills.ports import SkillsUnit


class DependentEpisodes:
    """Episodes whose memories are deleted. Implements `engine.corpus.dependents.Dependents`."""

    name = "episodes"

    def resting_on(self, unit: SkillsUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the episodes that name one of the memories."""
        return unit.episodes.resting_on(gone["memories"])

    def remove(self, unit: SkillsUnit, ids: Collection[str]) -> None:
        """Delete the episodes; skills that came from others, too, name only those from now on."""
        unit.skills.forget_sources(ids)
        unit.episodes.remove_many(ids)
        unit.documents.remove(EPISODE, list(ids))


class DependentSkills:
    """Skills whose episodes are all deleted. Implements `engine.corpus.dependents.Dependents`."""

    name = "skills"

    def resting_on(self, unit: SkillsUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the skills that came from some of the episodes and from no others."""
        going = set(gone["episodes"])
        sources = unit.skills.sources_among(going)
        return {one for one, episodes in sources.items() if going.issuperset(episodes)}

    def remove(self, unit: SkillsUnit, ids: Collection[str]) -> None:
        """Delete the skills."""
        for skill_id in ids:
            unit.skills.remove(skill_id)
        unit.documents.remove(SKILL, list(ids))
