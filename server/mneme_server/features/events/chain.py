"""The hash chain that proves a session's events were neither changed, reordered nor removed.

An event's hash covers a commitment to its content, not the content itself: salt and content can be
erased later, and the chain still verifies. What is hashed is spelled out byte by byte in
docs/adr/0009-the-hash-chain.md, so that anyone can recompute it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Protocol

from mneme_server.common.canonical import canonical_json, quoted
from mneme_server.common.stored import UNREADABLE
from mneme_server.features.events.model import Event

HASH_VERSION = 2
"""Which bytes an event's hash covers."""
SALT_BYTES = 16

_LENGTH_BYTES = 4
_SEQUENCE_BYTES = 8
_EXACT = 2**53  # Beyond it a double no longer holds every whole number.
_PLACE = _SEQUENCE_BYTES.to_bytes(_LENGTH_BYTES, "big")


class ChainLink(Protocol):
    """A link of a chain: an event, or the place of one that was forgotten."""

    @property
    def id(self) -> str:
        """The event's id, or what the place is called."""
        ...

    @property
    def sequence(self) -> int:
        """Its place in the chain, from 1."""
        ...

    @property
    def prev_hash(self) -> str:
        """The hash of the link before it; "" of the first."""
        ...

    @property
    def hash(self) -> str:
        """Its hash."""
        ...

    @property
    def hash_version(self) -> int:
        """Which bytes the hash covers."""
        ...

    @property
    def commitment(self) -> bytes:
        """What its hash covers of its content."""
        ...


def _field(value: bytes) -> bytes:
    return len(value).to_bytes(_LENGTH_BYTES, "big") + value


_HEAD = _field(b"mneme.event.v2") + _field(bytes([HASH_VERSION]))


def salts(count: int) -> Iterator[bytes]:
    """Yield so many new salts: drawn at once, for that is what takes time."""
    drawn = os.urandom(SALT_BYTES * count)
    for start in range(0, len(drawn), SALT_BYTES):
        yield drawn[start : start + SALT_BYTES]


def chain(event: Event, prev_hash: str, salt: bytes) -> None:
    """Put an event behind the one with the hash `prev_hash`: give it salt, commitment and hash.

    Everything else of it must be final, `sequence` and `recorded_us` too.
    """
    event.prev_hash = prev_hash
    event.hash_version = HASH_VERSION
    event.salt = salt
    event.commitment = commitment(event)
    event.hash = event_hash(event)


def commitment(event: Event) -> bytes:
    """Return the SHA-256 of an event's salt and its content in canonical JSON."""
    return hashlib.sha256(event.salt + content_of(event).encode()).digest()


def content_of(event: Event) -> str:
    """Return an event's content, as it is committed to, in canonical JSON.

    Times are texts: not every language's numbers hold microseconds until the year 9999.
    """
    duration = "null" if event.duration_us is None else f'"{event.duration_us}"'
    # Spelled here as `canonical_json` would: to set up its encoder each time took twice as long.
    content = (
        quoted(event.id),
        quoted(event.session_id),
        quoted(event.agent_id),
        quoted(event.event_type),
        f'{int(event.severity)},"{event.timestamp_us}"',
        quoted(event.text),
        quoted(event.name),
        quoted(event.call_id),
        quoted(event.error),
        quoted(event.model),
        _spelled(event.input_tokens),
        _spelled(event.output_tokens),
        _spelled(_number(event.cost_usd)),
        duration,
        "true" if event.searchable else "false",
        f'"{event.recorded_us}"',
        event.payload_json,
        event.metadata_json,
    )
    return f"[{','.join(content)}]"


def event_hash(event: ChainLink) -> str:
    """Return the hash, in hex, that a link must have by its version, commitment and place.

    Raises:
        ValueError: the version is unknown, or the hash before it is none.
    """
    if event.hash_version != HASH_VERSION:
        raise ValueError(f"its hash is of version {event.hash_version}, which is unknown")
    before, place = bytes.fromhex(event.prev_hash), event.sequence.to_bytes(_SEQUENCE_BYTES, "big")
    covered = _HEAD + _field(before) + _PLACE + place + _field(event.commitment)
    return hashlib.sha256(covered).hexdigest()


def _number(value: float) -> int | float:
    """Return a whole number as JSON writes it, without a fraction."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _spelled(value: float) -> str:
    return repr(value) if type(value) is int else canonical_json(value)


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
    forgotten: int = 0

    def follow(self, events: Iterable[ChainLink]) -> None:
        """Check the next links; stops at the first that does not fit."""
        for event in events:
            if self.broken is not None:
                return
            reason = self._fault(event)
            if reason:
                self.broken = BrokenLink(self.session_id, event.id, self.length + 1, reason)
                return
            self.length += 1
            self.forgotten += not isinstance(event, Event)
            self.head_hash = event.hash

    def damaged(self, event_id: str, reason: str) -> None:
        """Note that what comes next cannot be read."""
        self.broken = BrokenLink(self.session_id, event_id, self.length + 1, reason)

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

    def _fault(self, event: ChainLink) -> str:
        if event.sequence != self.length + 1:
            return f"its sequence is {event.sequence}, {self.length + 1} was expected"
        if event.prev_hash != self.head_hash:
            return "prev_hash is not the hash of the event before it"
        try:
            if isinstance(event, Event) and event.commitment != commitment(event):
                return "its content does not give its commitment"
            if event.hash != event_hash(event):
                return "its commitment and place do not give its hash"
        except UNREADABLE as error:
            return f"it cannot be hashed ({error})"
        return ""


def digest_of(name: str) -> str:
    """Return what is kept of the id of a forgotten event or session: a SHA-256 in hex."""
    return hashlib.sha256(b"mneme.forgotten\0" + name.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ForgottenPlace:
    """What is left of a forgotten event: its place in the chain. `session` and `event` are what
    `digest_of` returns.

    Neither the event's id nor its session's is kept, since callers choose them and may put
    anybody's name there: their SHA-256 is, so that who knows one can ask for it.
    """

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


def in_order(
    events: Sequence[ChainLink], places: Sequence[ChainLink], limit: int
) -> list[ChainLink]:
    """Return the first `limit` links of a chain, of what is there and of what was forgotten."""
    return list(islice(merge(events, places, key=attrgetter("sequence")), limit))
