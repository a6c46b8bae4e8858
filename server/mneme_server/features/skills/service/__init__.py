"""SkillService, told by what its calls concern: episodes and skills."""

from __future__ import annotations

from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.skills.consolidating import ConsolidateSkills
from mneme_server.features.skills.episodes import Episodes
from mneme_server.features.skills.service.episodes import EpisodeCalls
from mneme_server.features.skills.service.skills import SkillCalls
from mneme_server.features.skills.skills import Skills


class SkillServicer(EpisodeCalls, SkillCalls):
    """Serves `mneme.v1.SkillService`."""

    def __init__(
        self,
        episodes: Episodes,
        skills: Skills,
        consolidate: ConsolidateSkills,
        foreground: Foreground,
    ) -> None:
        self._consolidate = consolidate
        self._episodes = episodes
        self._skills = skills
        self._foreground = foreground
