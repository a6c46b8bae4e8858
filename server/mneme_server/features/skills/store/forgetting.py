"""Forgetting of episodes and skills."""

from __future__ import annotations

from sqlalchemy import select

from mneme_server.engine.corpus.forgetting import SESSION, TOUCHED, Items, merged
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.portable import json_items, listed
from mneme_server.features.skills.model import EPISODE, MADE, SKILL
from mneme_server.features.skills.store.tables import (
    episode_memories,
    episode_tags,
    episodes,
    skill_links,
    skill_tags,
    skill_uses,
    skills,
)

_MEMORY = "memory"


class SkillsForgetter(SqlForgetter):
    """Forgets episodes and skills. An episode follows from its session, from events that it was
    filled from, and from memories that it rests on; a skill from any of the episodes that it was
    consolidated from, which it quotes, and from a policy that it was made of.
    """

    rows = (
        Rows(
            EPISODE.name, episodes.c.id,
            user=episodes.c.user_id, agent=episodes.c.agent_id, session=episodes.c.session_id,
            project=episodes.c.project, tag=episode_tags.c.tag, document=EPISODE, total="episodes",
        ),
        Rows(
            SKILL.name, skills.c.id,
            project=skills.c.project, tag=skill_tags.c.tag, document=SKILL, total="skills",
        ),
    )  # fmt: skip

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        filled = super().derived({SESSION: found.get(TOUCHED, set())}).get(EPISODE.name, set())
        if filled:
            of_these = episodes.c.id.in_(listed(array(filled)))
            filled = self.select(episodes.c.id, of_these, episodes.c.filled != "[]")
        follow = [super().derived(found), {EPISODE.name: filled}]
        if memories := found.get(_MEMORY):
            rest = episode_memories.c.memory_id.in_(listed(array(memories)))
            follow.append({EPISODE.name: self.select(episode_memories.c.episode_id, rest)})
        if made := found.get(MADE):
            follow.append(
                {SKILL.name: self.select(skills.c.id, skills.c.id.in_(listed(array(made))))}
            )
        if gone := found.get(EPISODE.name):
            each = json_items(skills.c.sources)
            source = select(each.c.value).where(each.c.value.in_(listed(array(gone))))
            follow.append({
                SKILL.name: self.select(skills.c.id, skills.c.sources != "[]", source.exists())
            })  # fmt: skip
        return merged(follow)


FORGETS = Forgets(
    SkillsForgetter,
    {
        episodes: "deleted",
        episode_tags: "deleted with their episode",
        episode_memories: "deleted with their episode, which goes with the memory",
        skills: "deleted",
        skill_tags: "deleted with their skill",
        skill_uses: "deleted with their skill",
        skill_links: "deleted with either of their skills",
    },
)
