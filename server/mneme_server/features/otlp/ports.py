"""Ports to what taking in telemetry needs from storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.features.events.ports import EventsUnit
from mneme_server.features.otlp.model import Received, SpanRecord


class Inbox(Protocol):
    """What was received and is no event yet."""

    def put(self, rows: Sequence[Received]) -> None:
        """Add rows; those that are there already stay as they are."""
        ...

    def waiting(self, most: int) -> int:
        """Return how many rows there are, counted up to `most`."""
        ...

    def bytes_waiting(self) -> int:
        """Return how many bytes of spans there are."""
        ...

    def complete(self, trace_ids: Collection[str], now_us: int) -> None:
        """Have the rows of these traces become events now, but for those that are patient."""
        ...

    def due(self, now_us: int, limit: int) -> tuple[Sequence[Received], Sequence[str]]:
        """Return rows that are due, the one that waits longest first, and the ids of those that
        cannot be read."""
        ...

    def next_due_us(self) -> int | None:
        """Return when the next row is due; None when there is none."""
        ...

    def of_traces(self, trace_ids: Collection[str], limit: int) -> Sequence[Received]:
        """Return rows of these traces."""
        ...

    def attempts(self, ids: Collection[str]) -> Mapping[str, int]:
        """Return how often each of these rows was put off."""
        ...

    def remove(self, ids: Collection[str]) -> None:
        """Remove rows."""
        ...

    def defer(self, ids: Collection[str], until_us: int) -> None:
        """Put rows off that could not become events, and count that."""
        ...


class KnownSpans(Protocol):
    """What is kept of spans whose events are recorded."""

    def of_traces(self, trace_ids: Collection[str], limit: int) -> Sequence[SpanRecord]:
        """Return the sessions of these traces, and what is kept of at most `limit` spans."""
        ...

    def traces(self, trace_ids: Collection[str]) -> set[str]:
        """Return those of these traces that have a session."""
        ...

    def keep(self, known: Sequence[SpanRecord], now_us: int) -> None:
        """Keep these; what is kept already stays as it is."""
        ...

    def drop(self, before_us: int, limit: int) -> int:
        """Drop what was kept before a time, some of it; return how much."""
        ...


class TelemetryUnit(EventsUnit, Protocol):
    """One transaction, as far as telemetry is concerned."""

    @property
    def otlp_inbox(self) -> Inbox:
        """The tenant's inbox."""
        ...

    @property
    def otlp_known(self) -> KnownSpans:
        """What is kept of the tenant's spans."""
        ...
