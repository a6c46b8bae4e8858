"""Identifiers that sort by the time at which they were made."""

from __future__ import annotations

import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32.
_LENGTH = 26


def new_ulid() -> str:
    """A ULID: 48 bits of milliseconds since 1970 and 80 random bits, in 26 characters."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[bits >> 5 * place & 31] for place in reversed(range(_LENGTH)))
