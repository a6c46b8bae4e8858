"""The kind of memory that context brings."""

from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.features.events.event_types import EVENT

SESSION = MemoryKind("session", parts=frozenset({EVENT}))
"""Summaries of sessions."""
