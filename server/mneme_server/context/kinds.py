"""The kind of memory that context brings."""

from mneme_server.corpus.kinds import MemoryKind

SESSION = MemoryKind("session")
"""Summaries of sessions."""
