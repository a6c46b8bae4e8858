"""What the schemas cannot say: the few names that are chosen by hand.

A service that is added later needs no line here unless one of its RPCs would be called like
another service's; the generator then stops and names both.
"""

from __future__ import annotations

# RPC -> the client's method, where two services use one name.
METHOD_NAMES = {
    "LearningService.StartSession": "start_learning_session",
    "LearningService.EndSession": "end_learning_session",
    "LearningService.ListSessions": "list_learning_sessions",
    "MemoryService.GetStats": "get_memory_stats",
}

# The schemas say so of every id that a caller may choose; the client then chooses it, so that
# sending the request again is harmless.
CLIENT_MADE_ID = "a ulid is made when it is empty"

# Writes that may be sent twice with the effect of one, beyond those whose ids the client makes
# and those whose RPC declares `idempotency_level`.
REPEATABLE_WRITES = frozenset(
    {
        "AdminService.RevokeApiKey",
        "EventService.EndSession",
        "LearnService.DeleteLesson",
        "LearnService.UpdateLesson",
    }
)

# Methods and parameters of the client itself.
RESERVED_METHODS = frozenset({"address", "aclose", "attempt", "close", "metadata", "raw"})
RESERVED_PARAMETERS = frozenset({"self", "timeout"})
