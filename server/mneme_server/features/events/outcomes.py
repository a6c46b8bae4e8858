"""How sessions turned out, and whose word counts: a person's before a grader's, that before what
the metadata says, that before the agent's own status. That a session ended does not say how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mneme_server.features.events.model import (
    Grade,
    GradeSource,
    Outcome,
    Session,
    SessionStatus,
)

REWARD_OF_SUCCESS = 0.5
"""A session whose reward is at least this succeeded."""
_WORDS = {
    "success": Outcome.SUCCESS, "succeeded": Outcome.SUCCESS, "completed": Outcome.SUCCESS,
    "partial": Outcome.PARTIAL,
    "failure": Outcome.FAILURE, "failed": Outcome.FAILURE, "error": Outcome.FAILURE,
}  # fmt: skip
BY_STATUS = {
    SessionStatus.ACTIVE: Outcome.UNKNOWN,
    SessionStatus.COMPLETED: Outcome.SUCCESS,
    SessionStatus.ERROR: Outcome.FAILURE,
}
"""What an agent says of its session by the status with which it ends it."""


def outcome_of_reward(reward: float) -> Outcome:
    """Return how it turned out where only a reward was said."""
    return Outcome.SUCCESS if reward >= REWARD_OF_SUCCESS else Outcome.FAILURE


def judged_by_metadata(session: Session) -> Session:
    """Return the session with what its metadata says of how it turned out, unless a grade does.

    "reward" (a number) decides, else "success" (a boolean), else "outcome" (a word).
    """
    if session.outcome_by > GradeSource.METADATA or session.metadata_json == "{}":
        return session
    metadata = json.loads(session.metadata_json)
    reward = _reward(metadata)
    outcome = _said(metadata) if reward is None else outcome_of_reward(reward)
    if outcome is None:
        return session
    return replace(session, outcome=outcome, outcome_by=GradeSource.METADATA, reward=reward)


def judged_by_status(session: Session) -> Session:
    """Return the session with what its agent says of how it turned out, by the status with which it
    ended it, where nobody else does."""
    said = session.status != SessionStatus.ACTIVE and not session.observed
    if session.outcome_by > GradeSource.AGENT or not said:
        return session
    outcome = BY_STATUS[session.status]
    return replace(session, outcome=outcome, outcome_by=GradeSource.AGENT, reward=None)


def judged(session: Session) -> Session:
    """Return the session with what its metadata says, else its status."""
    return judged_by_status(judged_by_metadata(session))


def judged_by_grades(session: Session, grades: Sequence[Grade]) -> Session:
    """Return the session with what the grade says that counts, of all that it has."""
    if not grades:
        return session
    best = max(grades, key=lambda one: (one.source, one.graded_us, one.recorded_us, one.id))
    return replace(session, outcome=best.outcome, outcome_by=best.source, reward=best.reward)


def succeeded(session: Session) -> bool:
    """Tell whether a session succeeded as others say than its agent."""
    return session.outcome == Outcome.SUCCESS and session.outcome_by > GradeSource.AGENT


def unjudged(session: Session) -> Session:
    """Return the session as if nobody had said how it turned out."""
    nobody = GradeSource.NOBODY
    return replace(session, outcome=Outcome.UNKNOWN, outcome_by=nobody, reward=None)


def _reward(metadata: dict[str, Any]) -> float | None:
    reward = metadata.get("reward")
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        return float(reward)
    return None


def _said(metadata: dict[str, Any]) -> Outcome | None:
    success = metadata.get("success")
    if isinstance(success, bool):
        return Outcome.SUCCESS if success else Outcome.FAILURE
    word = metadata.get("outcome")
    return _WORDS.get(word.lower()) if isinstance(word, str) else None
