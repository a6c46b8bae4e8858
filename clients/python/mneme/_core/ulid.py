"""Identifiers that sort by the time at which they were made."""

from __future__ import annotations

import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32.
# Two characters at a time: an id for every event of a large batch should cost next to nothing.
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(120, -1, -10)


def new_ulid() -> str:
    """A ULID: 48 bits of milliseconds since 1970 and 80 random bits, in 26 characters."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join([_PAIRS[bits >> shift & 1023] for shift in _SHIFTS])
