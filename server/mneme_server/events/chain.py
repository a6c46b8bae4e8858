"""The hash chain that proves a session's events were neither changed, reordered nor removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from mneme_server.common.canonical import canonical_json
from mneme_server.events.model import Event

_EXACT = 2**53  # Beyond it a double no longer holds every whole number.


def event_hash(event: Event, prev_hash: str) -> str:
    """Return the SHA-256, in hex, of an event's content and the hash before it.

    What is hashed is spelled out at `mneme.v1.Event.hash`, so that anyone can recompute it.
    """
    head = canonical_json(
        [
            prev_hash,
            event.id,
            event.session_id,
            event.agent_id,
            int(event.event_type),
            int(event.severity),
            event.timestamp_us,
            event.text,
            event.name,
            event.call_id,
            event.error,
            event.model,
            event.input_tokens,
            event.output_tokens,
            _number(event.cost_usd),
            event.duration_us,
        ]
    )
    # payload and metadata are canonical JSON already: splice them instead of encoding them again.
    content = f"{head[:-1]},{event.payload_json},{event.metadata_json}]"
    return hashlib.sha256(content.encode()).hexdigest()


def _number(value: float) -> int | float:
    """Return a whole number as JSON writes it, without a fraction."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first event of a session that does not verify, and why."""

    session_id: str
    event_id: str
    sequence: int
    reason: str


@dataclass(slots=True)
class ChainWalk:
    """Walks one session's events in the order of their sequence."""

    session_id: str
    length: int = 0
    head_hash: str = ""
    broken: BrokenLink | None = None

    def follow(self, events: Iterable[Event]) -> None:
        """Check the next events; stops at the first that does not fit."""
        for event in events:
            if self.broken is not None:
                return
            reason = self._fault(event)
            if reason:
                self.broken = BrokenLink(self.session_id, event.id, self.length + 1, reason)
                return
            self.length += 1
            self.head_hash = event.hash

    def finish(self, expected_length: int, expected_head: str) -> BrokenLink | None:
        """Compare the walk with what the session says; return what is broken, if anything."""
        if self.broken is None and self.length != expected_length:
            self.broken = BrokenLink(
                self.session_id,
                "",
                self.length + 1,
                f"the session counts {expected_length} events, {self.length} are stored",
            )
        if self.broken is None and self.head_hash != expected_head:
            self.broken = BrokenLink(
                self.session_id, "", self.length, "the head hash is not that of the last event"
            )
        return self.broken

    def _fault(self, event: Event) -> str:
        if event.sequence != self.length + 1:
            return f"its sequence is {event.sequence}, {self.length + 1} was expected"
        if event.prev_hash != self.head_hash:
            return "prev_hash is not the hash of the event before it"
        if event.hash != event_hash(event, event.prev_hash):
            return "its content does not give its hash"
        return ""
