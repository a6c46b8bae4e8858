"""The intake of what instrumented agents send: it is durable before it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.otlp.model import IntakeResult, Received, TelemetrySpan
from mneme_server.features.otlp.spans import name_of
from mneme_server.features.otlp.store import SqlInbox, SqlKnownSpans
from mneme_server.features.otlp.vocabulary import DETAIL_EVENTS, MESSAGE_EVENTS, SpanField

MAX_WAITING = 200_000
"""Spans and log records of a tenant that may wait to become events."""
_RETRY_S = 2.0
_LATEST_US = 253_402_300_799_000_000
"""The last second of the year 9999, as everywhere in the API."""


@dataclass(slots=True)
class RefusedExports:
    """Exports that were refused because too much waited."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class TakeTelemetry:
    """The use case: take spans and log records of a tenant.

    Args:
        tenants: the open tenants.
        wake: called with the tenant and the time at which the first of them is due.
        wait_s: how long a span waits for the root of its trace, in seconds.
        most_bytes: how many bytes of a tenant may wait.
        refused: counts what was refused because too much waited.
    """

    tenants: OpenTenants
    wake: Callable[[str, int], object]
    wait_s: float
    most_bytes: int
    refused: RefusedExports = field(default_factory=RefusedExports)

    def take(self, tenant_id: str, spans: Sequence[TelemetrySpan]) -> IntakeResult:
        """Put them into the tenant's inbox; return how many, and why others were not taken.

        What is in the inbox already, or was, changes nothing when it comes again.

        Raises:
            ResourceExhausted: too much waits already; nothing was taken.
        """
        now, taken = now_us(), IntakeResult()
        rows: list[Received] = []
        for span in spans:
            problem = _problem(span)
            if problem:
                taken.refuse(problem)
            elif span.is_log and not _says_something(span):
                taken.taken += 1  # An ordinary line of a log: it becomes nothing.
            else:
                rows.append(self._received(span, now))
        if rows:
            self._store(tenant_id, rows, now)
        taken.taken += len(rows)
        return taken

    def _received(self, span: TelemetrySpan, now: int) -> Received:
        session_id = name_of(span.attributes, SpanField.SESSION)
        waits = span.is_log or not (session_id or span.is_root)
        return Received(
            id=_id_of(span),
            span=span,
            session_id=session_id,
            user_id=name_of(span.attributes, SpanField.USER),
            due_us=now + int(self.wait_s * MICROSECONDS) if waits else now,
            patient=span.is_log,
        )

    def _require_room(self, inbox: SqlInbox) -> None:
        if inbox.waiting(MAX_WAITING) >= MAX_WAITING:
            what = f"{MAX_WAITING:,} spans wait"
        elif (waiting := inbox.bytes_waiting()) >= self.most_bytes:
            what = f"spans of {waiting:,} bytes wait (MNEME_OTLP_INBOX_BYTES: {self.most_bytes:,})"
        else:
            return
        self.refused.count += 1
        raise ResourceExhausted(
            f"{what} to become events; send this again in a moment",
            reason=Reason.QUEUE_FULL,
            retry_after_s=_RETRY_S,
        )

    def _store(self, tenant_id: str, rows: Sequence[Received], now: int) -> None:
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            inbox = unit.get(SqlInbox)
            self._require_room(inbox)
            inbox.put(rows)
            traces = {row.span.trace_id for row in rows}
            complete = {row.span.trace_id for row in rows if row.span.is_root}
            complete |= unit.get(SqlKnownSpans).traces(traces - complete)
            inbox.complete(complete, now)
            due_us = inbox.next_due_us()
        if due_us is not None:
            self.wake(tenant_id, due_us)


def _problem(span: TelemetrySpan) -> str:
    """Return why a span cannot be taken; empty when it can."""
    if span.is_log:
        if (
            _says_something(span)
            and not span.trace_id
            and not name_of(span.attributes, SpanField.SESSION)
        ):
            return "a log record must be written within a span, or name its conversation"
    elif len(span.trace_id) != 32 or not span.trace_id.strip("0"):
        return "a trace_id must be 16 bytes (32 hexadecimal digits in JSON) and not all zero"
    elif len(span.span_id) != 16 or not span.span_id.strip("0"):
        return "a span_id must be 8 bytes (16 hexadecimal digits in JSON) and not all zero"
    elif span.parent_id and len(span.parent_id) != 16:
        return "a parent_span_id must be 8 bytes (16 hexadecimal digits in JSON) or empty"
    if not 0 < span.start_us <= _LATEST_US or not 0 < span.end_us <= _LATEST_US:
        return "a time must be set, and not beyond the year 9999"
    return ""


def _says_something(log: TelemetrySpan) -> bool:
    return log.name in MESSAGE_EVENTS or log.name in DETAIL_EVENTS


def _id_of(span: TelemetrySpan) -> str:
    if not span.is_log:
        return f"{span.trace_id}:{span.span_id}"
    content = canonical_json([span.name, span.start_us, span.body, dict(span.attributes)])
    digest = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{span.trace_id}:{span.span_id}:{digest}"
