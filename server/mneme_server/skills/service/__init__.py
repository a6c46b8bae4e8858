"""SkillService, told by what its calls concern: episodes and skills."""

from __future__ import annotations

from mneme_server.runtime.foreground import Foreground
from mneme_server.skills.episodes import Episodes
from mneme_server.skills.service.episodes import EpisodeCalls


class SkillServicer(EpisodeCalls):
    """Serves `mneme.v1.SkillService`."""

    def __init__(self, episodes: Episodes, foreground: Foreground) -> None:
        self._episodes = episodes
        self._foreground = foreground
