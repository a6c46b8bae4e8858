"""What is shown of recalled episodes and skills beside their texts."""

from __future__ import annotations

import json

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.store.kinds import Details
from mneme_server.features.skills.skill_model import Tally
from mneme_server.features.skills.store.tables import episodes, skills


def _episode(
    success: bool, reward: float, latency_ms: int | None, tokens_used: int | None
) -> JsonObject:
    return {
        "success": success,
        "reward": reward,
        "latency_ms": latency_ms,
        "tokens_used": tokens_used,
    }


EPISODE_DETAILS = Details(
    key=episodes.c.id,
    columns=(
        episodes.c.success,
        episodes.c.reward,
        episodes.c.latency_ms,
        episodes.c.tokens_used,
    ),
    decode=_episode,
    followed=True,
)


def _skill(name: str, reported: str, learned: str) -> JsonObject:
    tally = Tally(*json.loads(reported)) + Tally(*json.loads(learned))
    return {
        "name": name,
        "uses": tally.uses,
        "success_rate": tally.rate,
        "lower_bound": tally.interval[0],
    }


SKILL_DETAILS = Details(
    key=skills.c.id,
    columns=(skills.c.name, skills.c.reported, skills.c.learned),
    decode=_skill,  # Not followed: a use that leaves the rate as it is changes no document.
)
