"""The kind of memory that this capability brings."""

from mneme_server.engine.corpus.kinds import MemoryKind

MEMORY = MemoryKind("memory", successor="superseded_by")
"""Memories, superseded ones too: those are archived."""
