"""How a session or an attempt ended."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

from mneme_server.features.events.model import SessionStatus

REWARD_OF_SUCCESS = 0.5
"""A session whose metadata holds a reward of at least this succeeded."""


class Outcome(IntEnum):
    """How it ended. The numbers are stored; they are those of `mneme.v1.Outcome`."""

    UNKNOWN = 0
    SUCCESS = 1
    PARTIAL = 2
    FAILURE = 3


_WORDS = {
    "success": Outcome.SUCCESS, "succeeded": Outcome.SUCCESS, "completed": Outcome.SUCCESS,
    "partial": Outcome.PARTIAL,
    "failure": Outcome.FAILURE, "failed": Outcome.FAILURE, "error": Outcome.FAILURE,
}  # fmt: skip

_BY_STATUS = {
    SessionStatus.ACTIVE: Outcome.UNKNOWN,
    SessionStatus.COMPLETED: Outcome.SUCCESS,
    SessionStatus.ERROR: Outcome.FAILURE,
}


def outcome_of(status: int, metadata_json: str) -> Outcome:
    """Return how a session ended.

    Its metadata decides where it says so, by "reward" (a number), "success" (a boolean) or
    "outcome" (a word), in this order; else its status.
    """
    if metadata_json != "{}":
        said = _said(json.loads(metadata_json))
        if said is not None:
            return said
    return _BY_STATUS[SessionStatus(status)]


REWARDS = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}
"""What an outcome is worth where no reward is recorded."""


def reward_of(status: int, metadata_json: str) -> float | None:
    """Return a session's reward: that in its metadata, or what its outcome is worth; None if it is
    not known how it ended."""
    if metadata_json != "{}":
        reward = json.loads(metadata_json).get("reward")
        if isinstance(reward, int | float) and not isinstance(reward, bool):
            return float(reward)
    return REWARDS.get(outcome_of(status, metadata_json))


def _said(metadata: dict[str, Any]) -> Outcome | None:
    reward = metadata.get("reward")
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        return Outcome.SUCCESS if reward >= REWARD_OF_SUCCESS else Outcome.FAILURE
    success = metadata.get("success")
    if isinstance(success, bool):
        return Outcome.SUCCESS if success else Outcome.FAILURE
    word = metadata.get("outcome")
    return _WORDS.get(word.lower()) if isinstance(word, str) else None
