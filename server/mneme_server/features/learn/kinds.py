"""The kinds of memory that learning brings."""

from mneme_server.engine.corpus.kinds import MemoryKind

LESSON = MemoryKind("lesson")
"""Lessons, archived ones too. The category of one is its own."""
REFLECTION = MemoryKind("reflection", of_session=True)
"""Reflections on attempts."""
KNOWLEDGE = MemoryKind("knowledge")
"""Entries of the knowledge log."""
