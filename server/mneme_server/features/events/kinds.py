"""The kind of memory that events bring."""

from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.features.events.event_types import ERROR_TYPES, Part, playing

EVENT = MemoryKind(
    "event",
    # A tool's call, answer or error stands for itself.
    spoken=playing(Part.TALK, Part.MODEL_CALL, Part.REPLY, Part.NOTE) | {""},
    failed=ERROR_TYPES,
    lasting=True,
    commits=True,
)
"""Recorded events. The category of one is its type in lower case."""
