"""The worker that makes events of what was received."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import NamedTuple, Protocol

import structlog

from mneme_server.common.clock import DAY_US, HOUR_US, MICROSECONDS, now_us
from mneme_server.common.errors import MnemeError, ResourceExhausted, Unavailable
from mneme_server.common.keyed_locks import KeyedLocks
from mneme_server.common.pages import parts
from mneme_server.engine.background.tenant_worker import MOST_ATTEMPTS, TenantWorker, retry_delay_s
from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.events.model import EventReceipt, NewEvent
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.otlp.mapping import Mapped, mapped
from mneme_server.features.otlp.model import Received, SpanRecord
from mneme_server.features.otlp.store import SqlInbox, SqlKnownSpans

JOB = "telemetry"
BATCH = 2_000
"""Rows that a step takes from one tenant before it is the next one's turn."""
_RECORDED = 1_000
"""Events that are recorded in one transaction."""
_CONTEXT = 20_000
"""Rows of their traces that are looked at beside those that are due, and spans that were before."""
KEPT_US = 30 * DAY_US
"""How long is known which spans became events, and which session a trace has."""
_DROPPED = 5_000
_LOST_US = HOUR_US
"""How long a row stays put that cannot be read."""

_log = structlog.get_logger(__name__)


class RecordsEvents(Protocol):
    """What records events: all of a batch or none, and the same again once."""

    def record(self, tenant_id: str, new_events: Sequence[NewEvent]) -> list[EventReceipt]:
        """Record events."""
        ...


class TelemetryWorker(TenantWorker):
    """Makes events of the inboxes of all tenants.

    A trace's rows leave the inbox once its events are recorded. Whoever is interrupted in between
    makes the same events again, which have the same ids, and change nothing.

    Args:
        open_tenant: lends a tenant's memory.
        record: records events.
        wait_s: how long a call without texts waits for log records that bring them, in seconds.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        record: RecordsEvents,
        wait_s: float,
    ) -> None:
        super().__init__("telemetry", thread="telemetry")
        self._open_tenant = open_tenant
        self._record = record
        self._wait_us = int(wait_s * MICROSECONDS)
        self._making = KeyedLocks[str]()  # Held, by tenant, while events are made.

    def step(self, tenant_id: str) -> int | None:
        """Make events of one batch of the tenant's rows."""
        with self._open_tenant(tenant_id) as tenant, self._making.holding(tenant_id):
            now = now_us()
            with tenant.read() as unit:
                inbox = unit.get(SqlInbox)
                due, lost = inbox.due(now, BATCH)
                if not due and not lost:
                    return inbox.next_due_us()
                traces = {row.span.trace_id for row in due}
                beside = inbox.of_traces(traces, _CONTEXT)
                known = unit.get(SqlKnownSpans).of_traces(traces, _CONTEXT)
            if lost:
                self._put_off_lost(tenant, lost)
            self.give_way()
            due = _with_texts(due, beside)
            ids = {row.id for row in due}
            waiting = [row for row in beside if row.id not in ids]
            self._become(tenant, _by_trace(due), _by_trace(waiting), _by_trace_known(known))
            with tenant.write() as unit:
                unit.get(SqlKnownSpans).drop(now - KEPT_US, _DROPPED)
        return now_us()

    @contextmanager
    def while_forgetting(self, tenant: OpenTenant) -> Iterator[Callable[[Items], object]]:
        """Make no events while something is forgotten; see
        `engine.corpus.forgetting.WhileForgetting`."""
        with self._making.holding(tenant.tenant_id):
            yield lambda _items: None

    def _become(
        self,
        tenant: OpenTenant,
        due: Mapping[_TraceKey, Sequence[Received]],
        waiting: Mapping[_TraceKey, Sequence[Received]],
        known: Mapping[str, Sequence[SpanRecord]],
    ) -> None:
        """Make events of several traces at once; of each by itself when that fails."""
        try:
            made = [
                mapped(rows, waiting.get(trace, ()), known.get(trace.id, ()))
                for trace, rows in due.items()
            ]
            self._finish(tenant, made, [row for rows in due.values() for row in rows])
        except (ResourceExhausted, Unavailable):
            raise  # It has nothing to do with what is recorded.
        except Exception as error:
            if len(due) == 1:
                self._put_off(tenant, [row for rows in due.values() for row in rows], error)
                return
            for trace, rows in due.items():
                self._become(tenant, {trace: rows}, waiting, known)

    def _finish(self, tenant: OpenTenant, made: Sequence[Mapped], rows: Sequence[Received]) -> None:
        events = [event for one in made for event in one.events]
        for batch in parts(events, _RECORDED):
            with tenant.read() as unit:
                there = unit.get(SqlEvents).by_ids([event.id for event in batch])
            new = {event.id: event for event in batch if event.id not in there}
            if new:
                self._record.record(tenant.tenant_id, list(new.values()))
        known = [known for one in made for known in one.known]
        settled = {one.trace_id for one in known}
        settled |= {row.span.trace_id for row in rows if row.span.is_root}
        now = now_us()
        with tenant.write() as unit:
            inbox = unit.get(SqlInbox)
            unit.get(SqlKnownSpans).keep(known, now)
            inbox.remove([row.id for row in rows])
            inbox.put(
                [replace(row, due_us=now + self._wait_us) for one in made for row in one.later]
            )
            # What came meanwhile did not see that its trace has a session by now.
            inbox.complete(settled, now)

    def _put_off_lost(self, tenant: OpenTenant, lost: Sequence[str]) -> None:
        _log.error(
            "received spans cannot be read", tenant=tenant.tenant_id, spans=len(lost), first=lost[0]
        )
        with tenant.read() as unit:
            attempts = unit.get(SqlInbox).attempts(lost)
        self._defer(tenant, attempts, _LOST_US)

    def _put_off(self, tenant: OpenTenant, rows: Sequence[Received], error: Exception) -> None:
        delay_s = retry_delay_s(max(row.attempts for row in rows))
        _log.error(
            "spans could not become events", tenant=tenant.tenant_id,
            trace=rows[0].span.trace_id, spans=len(rows), retry_in_s=delay_s, error=str(error),
            exc_info=not isinstance(error, MnemeError),
        )  # fmt: skip
        attempts = {row.id: row.attempts for row in rows}
        self._defer(tenant, attempts, int(delay_s * MICROSECONDS))

    @staticmethod
    def _defer(tenant: OpenTenant, attempts: Mapping[str, int], delay_us: int) -> None:
        """Put rows off that failed: some times, then once for long, since a later version may be
        able to; then they go. Nothing is tried for ever, nor holds room for ever."""
        again = [row for row, before in attempts.items() if before < MOST_ATTEMPTS - 1]
        late = [row for row, before in attempts.items() if before == MOST_ATTEMPTS - 1]
        gone = [row for row, before in attempts.items() if before >= MOST_ATTEMPTS]
        now = now_us()
        with tenant.write() as unit:
            inbox = unit.get(SqlInbox)
            inbox.defer(again, now + delay_us)
            inbox.defer(late, now + KEPT_US)
            inbox.remove(gone)
        if late:
            _log.error(
                "spans failed too often, are kept and tried once more", tenant=tenant.tenant_id,
                spans=len(late), first=late[0], retry_in_days=KEPT_US // DAY_US,
            )  # fmt: skip
        if gone:
            _log.error(
                "spans never became events and are gone", tenant=tenant.tenant_id,
                spans=len(gone), first=gone[0],
            )  # fmt: skip


def _with_texts(due: Sequence[Received], beside: Sequence[Received]) -> list[Received]:
    """Return what is due, with what waits beside it for the same: the log records of a call that
    waits for its texts, and the call that log records bring them for."""
    found = {row.id: row for row in due}
    wanted = {_span_of(row) for row in due if row.patient} - {("", "")}
    found |= {row.id: row for row in beside if row.patient and _span_of(row) in wanted}
    return list(found.values())


def _span_of(row: Received) -> tuple[str, str]:
    return (row.span.trace_id, row.span.span_id) if row.span.span_id else ("", "")


class _TraceKey(NamedTuple):
    """What belongs together: a trace, or what is outside of any and names the same session."""

    id: str
    session_id: str


def _by_trace(rows: Sequence[Received]) -> dict[_TraceKey, list[Received]]:
    found: dict[_TraceKey, list[Received]] = {}
    for row in rows:
        trace_id = row.span.trace_id
        trace = _TraceKey(trace_id, "" if trace_id else row.session_id)
        found.setdefault(trace, []).append(row)
    return found


def _by_trace_known(rows: Sequence[SpanRecord]) -> dict[str, list[SpanRecord]]:
    found: dict[str, list[SpanRecord]] = {}
    for row in rows:
        found.setdefault(row.trace_id, []).append(row)
    return found
