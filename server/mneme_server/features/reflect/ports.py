"""What reflecting needs from storage."""

from __future__ import annotations

from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.history import HistoryReader


class ReflectUnit(CorpusUnit, Protocol):
    """One transaction, as far as reflecting is concerned."""

    @property
    def history(self) -> HistoryReader:
        """The tenant's record, read by columns."""
        ...
