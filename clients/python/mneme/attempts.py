"""Attempts: past lessons before the work, a reflection after it."""

from mneme._async.attempts import AsyncAttempt
from mneme._attempt import PAST_LESSONS, AttemptRecord, tags_of
from mneme._sync.attempts import Attempt

__all__ = ["PAST_LESSONS", "AsyncAttempt", "Attempt", "AttemptRecord", "tags_of"]
