"""How much one answer carries."""

from __future__ import annotations

PAGE_BYTES = 3 * 1024 * 1024
"""A page holds fewer rows when they are large: gRPC's clients refuse answers above 4 MiB unless
they are told otherwise, and the server those above `MNEME_MAX_MESSAGE_BYTES`."""

_ESCAPED = 6
"""Characters of JSON, as in `\\u0001`, that are one byte of a message at most."""


def least_bytes(texts: int, json: int) -> int:
    """Return how many bytes an answer takes at least that holds so many characters of texts, and as
    objects what is so many characters of canonical JSON."""
    return texts + json // _ESCAPED
