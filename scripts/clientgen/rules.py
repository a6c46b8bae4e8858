"""What the schemas cannot say: the few names that are chosen by hand.

A service that is added later needs no line here unless one of its RPCs would be called like
another service's; the generator then stops and names both.
"""

from __future__ import annotations

# RPC -> the client's method, where two services use one name.
METHOD_NAMES = {
    "LearningService.StartSession": "start_learning_session",
    "LearningService.EndSession": "end_learning_session",
    "MemoryService.GetStats": "get_memory_stats",
}

# Methods and parameters of the client itself.
RESERVED_METHODS = frozenset(
    {"address", "aclose", "attempt", "close", "metadata", "operation", "raw", "record_all"}
)
RESERVED_PARAMETERS = frozenset({"self", "timeout"})
