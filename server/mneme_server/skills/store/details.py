"""What is shown of recalled episodes beside their texts."""

from __future__ import annotations

from mneme_server.common.canonical import JsonObject
from mneme_server.skills.store.tables import episodes
from mneme_server.storage.kinds import Details


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
)
