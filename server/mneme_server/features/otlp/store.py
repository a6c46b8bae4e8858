"""The inbox of telemetry, and what is kept of spans that left it, in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Row,
    Select,
    SmallInteger,
    Table,
    Text,
    bindparam,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.forgetting import SESSION, ForgetSelection, Items, merged
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import insert, least, listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import chunks, delete_among, rows_among
from mneme_server.engine.store.schema import (
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.otlp.model import (
    Note,
    Received,
    SpanRecord,
    TelemetryKind,
    TelemetrySpan,
)

# Spans and log records that are no events yet.
otlp_inbox = Table(
    "otlp_inbox",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("trace_id"),
    # What it names itself; empty when it names none.
    text_column("session_id"),
    text_column("user_id"),
    # The span, as JSON.
    text_column("span"),
    Column("patient", Boolean, nullable=False),
    Column("attempts", SmallInteger, nullable=False),
    time_column("due_at"),
    # Of `span`, in UTF-8.
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("otlp_inbox_by_due", "tenant_id", "due_at"),
    Index("otlp_inbox_by_size", "tenant_id", "bytes"),
    Index("otlp_inbox_by_trace", "tenant_id", "trace_id"),
    info=rows_are("span", "id"),
)

# Spans that became events, and the sessions of traces (whose span_id is empty).
otlp_known = Table(
    "otlp_known",
    metadata,
    tenant_key(),
    Column("trace_id", Text, nullable=False, primary_key=True),
    Column("span_id", Text, nullable=False, primary_key=True),
    text_column("parent_id"),
    text_column("session_id"),
    text_column("kind"),
    Column("failed", Boolean, nullable=False),
    time_column("kept_at"),
    Index("otlp_known_by_time", "tenant_id", "kept_at"),
    Index("otlp_known_by_session", "tenant_id", "session_id"),
    info=rows_are("span", "span_id"),
    sqlite_with_rowid=False,
)

SPAN = "span"
TRACE = "trace"
_MOST_ATTEMPTS = 1_000
_FIELDS = tuple(name for name in TelemetrySpan.__dataclass_fields__ if name != "notes")
_ALWAYS = {"trace_id": "", "span_id": "", "parent_id": "", "name": "", "start_us": 0, "end_us": 0}
_put = Prepared(
    insert(otlp_inbox).on_conflict_do_nothing(), tuple(c.name for c in otlp_inbox.columns)
)
_keep = Prepared(
    insert(otlp_known).on_conflict_do_nothing(), tuple(c.name for c in otlp_known.columns)
)
_first_due = Prepared(
    select(func.min(otlp_inbox.c.due_at).label("due_at")).where(
        otlp_inbox.c.tenant_id == bindparam("tenant")
    )
)


class SqlInbox:
    """What was received and is no event yet."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def put(self, rows: Sequence[Received]) -> None:
        """Add rows; those that are there already stay as they are."""
        if rows:
            _put.insert(self._connection, [_row(row, self._tenant_id) for row in rows])

    def waiting(self, most: int) -> int:
        """Return how many rows there are, counted up to `most`."""
        some = (
            select(otlp_inbox.c.due_at)
            .where(otlp_inbox.c.tenant_id == self._tenant_id)
            .limit(most)
            .subquery()
        )
        return self._connection.execute(select(func.count()).select_from(some)).scalar_one()

    def bytes_waiting(self) -> int:
        """Return how many bytes of spans there are."""
        query = select(func.coalesce(func.sum(otlp_inbox.c.bytes), 0)).where(
            otlp_inbox.c.tenant_id == self._tenant_id
        )
        return int(self._connection.execute(query).scalar_one())

    def complete(self, trace_ids: Collection[str], now_us: int) -> None:
        """Have the rows of these traces become events now, but for those that are patient."""
        for some in chunks(sorted(set(trace_ids) - {""})):
            self._connection.execute(
                update(otlp_inbox)
                .where(
                    otlp_inbox.c.tenant_id == self._tenant_id,
                    otlp_inbox.c.trace_id.in_(some),
                    otlp_inbox.c.due_at > now_us,
                    otlp_inbox.c.patient.is_(False),
                    otlp_inbox.c.attempts == 0,
                )
                .values(due_at=now_us)
            )

    def due(self, now_us: int, limit: int) -> tuple[Sequence[Received], Sequence[str]]:
        """Return rows that are due, the one that waits longest first, and the ids of those that
        cannot be read."""
        lost: list[str] = []

        def note(loss: DataLoss) -> None:
            lost.append(loss.metadata.get("id", ""))

        query = (
            select(otlp_inbox)
            .where(otlp_inbox.c.tenant_id == self._tenant_id, otlp_inbox.c.due_at <= now_us)
            .order_by(otlp_inbox.c.due_at)
            .limit(limit)
        )
        return read_rows(self._connection, query, _received, kind="span", lost=note), lost

    def next_due_us(self) -> int | None:
        """Return when the next row is due; None when there is none."""
        row = _first_due.first(self._connection, {"tenant": self._tenant_id})
        return None if row is None or row.due_at is None else int(row.due_at)

    def of_traces(self, trace_ids: Collection[str], limit: int) -> Sequence[Received]:
        """Return rows of these traces."""
        found: list[Received] = []
        for some in chunks(sorted(trace_ids)):
            query = (
                select(otlp_inbox)
                .where(otlp_inbox.c.tenant_id == self._tenant_id, otlp_inbox.c.trace_id.in_(some))
                .limit(limit - len(found))
            )
            found += read_rows(
                self._connection, query, _received, kind="span", lost=lambda _loss: None
            )
            if len(found) >= limit:
                break
        return found

    def attempts(self, ids: Collection[str]) -> Mapping[str, int]:
        """Return how often each of these rows was put off."""
        query = select(otlp_inbox.c.id, otlp_inbox.c.attempts)
        rows = rows_among(self._connection, self._tenant_id, query, otlp_inbox.c.id, ids)
        return {row.id: int(row.attempts) for row in rows}

    def remove(self, ids: Collection[str]) -> None:
        """Remove rows."""
        delete_among(self._connection, self._tenant_id, otlp_inbox.c.id, ids)

    def defer(self, ids: Collection[str], until_us: int) -> None:
        """Put rows off that could not become events, and count that."""
        for some in chunks(ids):
            self._connection.execute(
                update(otlp_inbox)
                .where(otlp_inbox.c.tenant_id == self._tenant_id, otlp_inbox.c.id.in_(some))
                .values(due_at=until_us, attempts=least(otlp_inbox.c.attempts + 1, _MOST_ATTEMPTS))
            )


class SqlKnownSpans:
    """What is kept of spans whose events are recorded."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def of_traces(self, trace_ids: Collection[str], limit: int) -> Sequence[SpanRecord]:
        """Return the sessions of these traces, and what is kept of at most `limit` spans."""
        found: list[SpanRecord] = []
        for some in chunks(sorted(trace_ids)):
            of_these = (
                otlp_known.c.tenant_id == self._tenant_id, otlp_known.c.trace_id.in_(some)
            )  # fmt: skip
            for query in (
                select(otlp_known).where(*of_these, otlp_known.c.span_id == ""),
                select(otlp_known).where(*of_these, otlp_known.c.span_id != "").limit(limit),
            ):
                rows = read_rows(self._connection, query, _known, kind="span", key="span_id")
                found += rows
            limit = max(0, limit - len(rows))
        return found

    def traces(self, trace_ids: Collection[str]) -> set[str]:
        """Return those of these traces that have a session."""
        query, mine = select(otlp_known.c.trace_id), (self._connection, self._tenant_id)
        query = query.where(otlp_known.c.span_id == "")
        rows = rows_among(*mine, query, otlp_known.c.trace_id, sorted(trace_ids))
        return {row.trace_id for row in rows}

    def keep(self, known: Sequence[SpanRecord], now_us: int) -> None:
        """Keep these; what is kept already stays as it is."""
        if known:
            _keep.insert(
                self._connection,
                [
                    {
                        "tenant_id": self._tenant_id,
                        "trace_id": one.trace_id,
                        "span_id": one.span_id,
                        "parent_id": one.parent_id,
                        "session_id": one.session_id,
                        "kind": one.kind.value,
                        "failed": one.failed,
                        "kept_at": now_us,
                    }
                    for one in known
                ],
            )

    def drop(self, before_us: int, limit: int) -> int:
        """Drop what was kept before a time, some of it; return how much."""
        columns = otlp_known.c
        old = (
            select(columns.trace_id, columns.span_id)
            .where(columns.tenant_id == self._tenant_id, columns.kept_at < before_us)
            .limit(limit)
        )
        gone = self._connection.execute(old).all()
        for some in chunks([(row.trace_id, row.span_id) for row in gone]):
            self._connection.execute(
                delete(otlp_known).where(
                    columns.tenant_id == self._tenant_id,
                    tuple_(columns.trace_id, columns.span_id).in_(some),
                )
            )
        return len(gone)


def _row(received: Received, tenant_id: str) -> dict[str, Any]:
    span = _written(received.span)
    return {
        "tenant_id": tenant_id,
        "id": received.id,
        "trace_id": received.span.trace_id,
        "session_id": received.session_id,
        "user_id": received.user_id,
        "span": span,
        "bytes": len(span.encode(errors="surrogatepass")),
        "patient": received.patient,
        "attempts": received.attempts,
        "due_at": received.due_us,
    }


def _written(span: TelemetrySpan) -> str:
    said = {name: value for name in _FIELDS if (value := getattr(span, name))}
    if span.notes:
        said["notes"] = [asdict(note) for note in span.notes]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


@reads("span")
def _received(row: Row[Any]) -> Received:
    said = json.loads(row.span)
    notes = tuple(Note(**note) for note in said.pop("notes", ()))
    span = TelemetrySpan(**(_ALWAYS | said), notes=notes)
    return Received(
        row.id, span, row.session_id, row.user_id, row.due_at, row.patient, row.attempts
    )


@reads("span", key="span_id")
def _known(row: Row[Any]) -> SpanRecord:
    return SpanRecord(
        row.trace_id,
        row.span_id,
        row.parent_id,
        row.session_id,
        TelemetryKind(row.kind),
        row.failed,
    )


class TelemetryForgetter(SqlForgetter):
    """Forgets spans that are no events yet, and what is kept of those that became events.

    A span that waits names a session or a user, or is of whom another span of its trace names, or
    of the session that its trace has.
    """

    rows = (
        Rows(SPAN, otlp_inbox.c.id, user=otlp_inbox.c.user_id, session=otlp_inbox.c.session_id),
        # By session: what is kept of one names nothing else.
        Rows(TRACE, otlp_known.c.session_id, session=otlp_known.c.session_id),
    )

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        found = [super().named(selection)]
        if user := selection.user_id:
            columns = otlp_inbox.c
            of_user = self._traces(columns.user_id == user)
            ids = self.select(columns.id, columns.user_id == "", columns.trace_id.in_(of_user))
            found.append({SPAN: ids})
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        derived = super().derived(found)
        if not (sessions := found.get(SESSION)):
            return derived
        columns, wanted = otlp_inbox.c, listed(array(sessions))
        chosen = select(otlp_known.c.trace_id).where(
            otlp_known.c.tenant_id == self._tenant_id, otlp_known.c.session_id.in_(wanted)
        )
        silent = self.select(
            columns.id,
            columns.session_id == "",
            columns.trace_id != "",
            or_(
                columns.trace_id.in_(wanted),  # A trace whose session nobody names is one itself.
                columns.trace_id.in_(chosen),
                columns.trace_id.in_(self._traces(columns.session_id.in_(wanted))),
            ),
        )
        return merged((derived, {SPAN: silent}))

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`. A trace is a session itself where nobody names one."""
        yield from super().names(what)
        if what == SESSION:
            yield from self.distinct(otlp_inbox.c.trace_id)

    def _traces(self, condition: ColumnElement[bool]) -> Select[tuple[str]]:
        columns = otlp_inbox.c
        return select(columns.trace_id).where(
            columns.tenant_id == self._tenant_id, columns.trace_id != "", condition
        )


FORGETS = Forgets(
    TelemetryForgetter,
    {
        otlp_inbox: "deleted with the session or the user that they name, or their trace does",
        otlp_known: "deleted with their session",
    },
)
