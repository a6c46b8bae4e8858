"""Names that the clients keep for themselves."""

from __future__ import annotations

# Methods and parameters of the client itself.
RESERVED_METHODS = frozenset(
    {"address", "aclose", "attempt", "close", "metadata", "operation", "raw", "record_all"}
)
RESERVED_PARAMETERS = frozenset({"self", "timeout"})
