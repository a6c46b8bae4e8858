"""The ports of learning to a tenant's store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mneme_server.features.learning.model import (
    LearningSession,
    LearningStatus,
)


@dataclass(frozen=True, slots=True)
class LearningSessionFilter:
    """Which sessions are meant; what is empty does not filter."""

    algorithm: str = ""
    status: LearningStatus | None = None


class ModelFiles(Protocol):
    """Copies of exported models, as files on the server's disk."""

    def write(self, tenant_id: str, session: LearningSession, data: bytes) -> str:
        """Write a session's model, in place of the one before; return its path in the data folder.
        Empty, and nothing is written, where the tenant has no folder that is its own."""
        ...

    def remove(self, tenant_id: str, session: LearningSession) -> None:
        """Remove a session's model, if there is one."""
        ...
