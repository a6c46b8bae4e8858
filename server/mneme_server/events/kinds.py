"""The kind of memory that events bring."""

from mneme_server.corpus.kinds import MemoryKind

EVENT = MemoryKind(
    "event",
    # A tool's call, answer or error stands for itself.
    spoken=frozenset({"message", "llm_call", "llm_response", "custom", ""}),
    failed=frozenset({"tool_error", "error"}),
)
"""Recorded events. The category of one is its type in lower case."""
