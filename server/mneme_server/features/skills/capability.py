"""Episodes and skills: what was attempted, and what works."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import skill_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.context.experience import Experience
from mneme_server.features.events.grading import GradeSessions
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.consolidation import Consolidation
from mneme_server.features.skills.episodes import DependentEpisodes, Episodes, follow_grades
from mneme_server.features.skills.experience import SearchExperience
from mneme_server.features.skills.model import EPISODE, SKILL, EpisodeFilter, SkillFilter
from mneme_server.features.skills.service import SkillServicer
from mneme_server.features.skills.skills import DependentSkills, Skills
from mneme_server.features.skills.store.episodes import EPISODE_DETAILS, SqlEpisodes
from mneme_server.features.skills.store.forgetting import FORGETS
from mneme_server.features.skills.store.skills import SKILL_DETAILS, SqlSkills


def _build(host: Host) -> Parts:
    runtime, recall = host.runtime, host.get(Recall)
    host.get(Experience).bring(SearchExperience(host.tenants, recall))
    episodes = Episodes(host.tenants, runtime.writing, recall)
    host.get(GradeSessions).follow(follow_grades)
    skills = Skills(host.tenants, runtime.writing, recall)
    consolidation = Consolidation(host.tenants, runtime.writing, recall)
    return Parts(
        services=[
            Service(
                skill_service_pb2.DESCRIPTOR.services_by_name["SkillService"],
                SkillServicer(episodes, skills, consolidation),
            )
        ],
        offers=[episodes, skills, consolidation],
        dependents=[DependentEpisodes(), DependentSkills()],
        figures=[
            Figure("episodes", lambda unit: unit.get(SqlEpisodes).count(EpisodeFilter())),
            Figure("skills", lambda unit: unit.get(SqlSkills).count(SkillFilter())),
            Figure("average_episode_reward", lambda unit: unit.get(SqlEpisodes).average_reward()),
            Figure("average_skill_success_rate", lambda unit: unit.get(SqlSkills).average_rate()),
        ],
    )


CAPABILITY = Capability(
    name="skills",
    build=_build,
    kinds={EPISODE: EPISODE_DETAILS, SKILL: SKILL_DETAILS},
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
