"""What is left of a forgotten event: its place in the chain.

Neither the event's id nor its session's is kept, since callers choose them and may put anybody's
name there: their SHA-256 is, so that who knows one can ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import attrgetter

from mneme_server.features.events.chain import Link


def digest_of(name: str) -> str:
    """Return what is kept of the id of a forgotten event or session: a SHA-256 in hex."""
    return hashlib.sha256(b"mneme.forgotten\0" + name.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ForgottenPlace:
    """The place of a forgotten event. `session` and `event` are what `digest_of` returns."""

    session: str
    event: str
    sequence: int
    prev_hash: str
    hash: str
    hash_version: int
    commitment: bytes
    forgotten_us: int

    @property
    def id(self) -> str:
        """What the place is called: nobody knows the event's id any more."""
        return f"forgotten-{self.event[:16]}"


@dataclass(frozen=True, slots=True)
class ForgottenSession:
    """A session of which everything was forgotten: its chain's length and head."""

    session: str
    event_count: int
    head_hash: str
    forgotten_us: int

    @property
    def id(self) -> str:
        """What the session is called in reports."""
        return f"forgotten-{self.session[:16]}"


def in_order(events: Sequence[Link], places: Sequence[Link], limit: int) -> list[Link]:
    """Return the first `limit` links of a chain, of what is there and of what was forgotten."""
    return list(islice(merge(events, places, key=attrgetter("sequence")), limit))
