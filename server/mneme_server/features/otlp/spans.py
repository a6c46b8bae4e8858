"""Spans, read by the table in `vocabulary.py`, and what they take from those above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mneme_server.common.canonical import Json
from mneme_server.common.texts import composed, is_blank
from mneme_server.features.otlp.conversation import (
    ConversationMessage,
    ToolCall,
    read_json,
    said_in,
    text_of,
    unflattened,
)
from mneme_server.features.otlp.model import (
    Attributes,
    Received,
    SpanRecord,
    TelemetryKind,
    TelemetrySpan,
)
from mneme_server.features.otlp.vocabulary import (
    BY_FIELD,
    DETAIL_EVENTS,
    KINDS,
    MESSAGE_EVENTS,
    SpanField,
)

_KIND_OF = [
    (row.attribute, {value: kind for kind, values in row.values.items() for value in values})
    for row in KINDS
]
MAX_ID = 200
_MAX_TOKENS = 10**12
_MAX_COST_USD = 1e9
_NO_SERVICE = "unknown_service"


def kind_of(attributes: Attributes) -> TelemetryKind | None:
    """Return what a span is by its attributes; None when they do not say, or it is another thing,
    like the computing of an embedding."""
    for attribute, kinds in _KIND_OF:
        kind = kinds.get(str(attributes.get(attribute, "")))
        if kind is not None:
            return kind
    return None


def value_of(attributes: Attributes, field: SpanField) -> Json:
    """Return what the first attribute says that tells this; None when none does."""
    for name in BY_FIELD[field]:
        found = unflattened(attributes, name) if name.endswith(".") else attributes.get(name)
        if found is not None and found != "":
            return found
    return None


def name_of(attributes: Attributes, field: SpanField) -> str:
    """Return an id or a name, as the API takes it; empty when there is none."""
    value = value_of(attributes, field)
    return as_id(text_of(value)) if isinstance(value, str | int | float) else ""


def as_id(text: str) -> str:
    """Return a text as ids are kept, without what they may not hold, cut where it is too long; ""
    if nothing of it can be seen."""
    kept = "".join(c for c in composed(text) if c >= " " and c != "\x7f").strip()[:MAX_ID]
    return "" if is_blank(kept) else kept


def result_of(attributes: Attributes) -> Json:
    """Return what a tool answered; of a message that holds the answer, its content."""
    value = read_json(value_of(attributes, SpanField.RESULT))
    message = value.get("data", value) if isinstance(value, dict) else value
    if isinstance(message, dict) and "tool_call_id" in message and "content" in message:
        return read_json(message["content"])
    return value


def tokens_of(attributes: Attributes, field: SpanField) -> int:
    """Return a number of tokens; 0 when it is not told or none."""
    return int(_number_of(attributes, field, _MAX_TOKENS))


def cost_of(attributes: Attributes) -> float:
    """Return the cost in USD; 0 when it is not told."""
    return float(_number_of(attributes, SpanField.COST, _MAX_COST_USD))


def _number_of(attributes: Attributes, field: SpanField, most: float) -> int | float:
    """Return a number that something counts or costs; 0 when it is none, as true and false are."""
    value = value_of(attributes, field)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most:
        return value
    return 0


def error_of(span: TelemetrySpan) -> str:
    """Return what went wrong, where the span says that something did; empty when it does not."""
    for note in span.notes:
        if note.name == "exception" and span.failed:
            said = note.attributes.get("exception.message") or note.attributes.get("exception.type")
            if said:
                return text_of(said)
    if span.failed and span.error:
        return span.error
    kind = value_of(span.attributes, SpanField.ERROR)
    if kind:
        return text_of(kind)
    return "it failed, and did not say why" if span.failed else ""


def gathered(span: TelemetrySpan, logs: Sequence[TelemetrySpan]) -> Attributes:
    """Return a span's attributes with those of the events that tell its details."""
    found: dict[str, Json] = {}
    for note in span.notes:
        if note.name in DETAIL_EVENTS:
            found |= note.attributes
    for log in logs:
        if log.name in DETAIL_EVENTS:
            found |= log.attributes
            if isinstance(log.body, dict):
                found |= log.body
    return found | dict(span.attributes) if found else span.attributes


def conversation(
    span: TelemetrySpan, logs: Sequence[TelemetrySpan]
) -> tuple[list[ConversationMessage], list[ConversationMessage]]:
    """Return what a model was told and what it said, of a span and the log records in it."""
    attributes = gathered(span, logs)
    told = said_in(value_of(attributes, SpanField.SYSTEM), "system")
    told += said_in(value_of(attributes, SpanField.INPUT), "user")
    said = said_in(value_of(attributes, SpanField.OUTPUT), "assistant")
    if not said:
        said = _from_parts(attributes)
    if not told and not said:
        told, said = _from_events(span, logs)
    return told, said


def _from_parts(attributes: Attributes) -> list[ConversationMessage]:
    """Return the answer of a model where its text and its calls are told apart."""
    text = value_of(attributes, SpanField.OUTPUT_TEXT)
    calls: list[ToolCall] = []
    for one in said_in({"tool_calls": value_of(attributes, SpanField.OUTPUT_CALLS)}, "assistant"):
        calls += one.calls
    said = ConversationMessage("assistant", text_of(text).strip(), tuple(calls))
    return [said] if said.text or said.calls else []


def _from_events(
    span: TelemetrySpan, logs: Sequence[TelemetrySpan]
) -> tuple[list[ConversationMessage], list[ConversationMessage]]:
    """Return what is told by events, or log records, that hold one message each."""
    found: list[tuple[int, str, Json]] = [
        (note.time_us, note.name, dict(note.attributes)) for note in span.notes
    ]
    found += [
        (log.start_us, log.name, log.body if log.body else dict(log.attributes)) for log in logs
    ]
    told: list[ConversationMessage] = []
    said: list[ConversationMessage] = []
    for _time, name, given in sorted(found, key=lambda one: one[0]):
        role = MESSAGE_EVENTS.get(name)
        if role is None:
            continue
        content = given
        if isinstance(given, dict) and "gen_ai.event.content" in given:
            content = given["gen_ai.event.content"]
        (said if name == "gen_ai.choice" else told).extend(said_in(content, role))
    return told, said


class Family:
    """The spans of one trace: what is due, what waits, what is kept of what was before, and what
    those further down take from those above.

    A session is chosen once. A span's own counts first, then that of the nearest span above it that
    names one, then the trace's. The trace's is what was chosen before; else the root's own, else
    that of the first span that names one, else the trace's id. A root that comes after its trace
    has one joins that, because events never move.
    """

    def __init__(
        self, due: Sequence[Received], waiting: Sequence[Received], known: Sequence[SpanRecord]
    ) -> None:
        rows = sorted((*due, *waiting), key=lambda one: (not one.span.is_root, one.span.start_us))
        self._rows = {one.span.span_id: one for one in rows if not one.span.is_log}
        self._has_logs = any(one.span.is_log for one in rows)
        self._known = {one.span_id: one for one in known}
        self._trace_id = rows[0].span.trace_id if rows else ""
        chosen = self._known.get("")
        self._chosen = chosen.session_id if chosen else ""
        named = (one.session_id for one in rows if one.session_id)
        self._trace_session = self._chosen or next(named, "") or self._trace_id
        self._user = next((one.user_id for one in rows if one.user_id), "")
        self._taken: dict[str, _FromAbove] = {}
        self._holds_model = self._above_all(lambda one: self.kind(one) is TelemetryKind.MODEL)
        self._fails_below = self._above_all(self._failed)

    def session(self, span: TelemetrySpan) -> str:
        """Return the session of a span, or of a log record."""
        return self._of(span).session_id or self._trace_session

    def user(self, span: TelemetrySpan) -> str:
        """Return the user that a span names, or one above it, or any of the trace."""
        return self._of(span).user_id or self._user

    def agent(self, span: TelemetrySpan) -> str:
        """Return the agent that a span names, or one above it; else the service."""
        if agent := self._of(span).agent_id:
            return agent
        row = self._rows.get(span.span_id)
        service = (row.span if row else span).service
        return "" if service.startswith(_NO_SERVICE) else as_id(service)

    def kind(self, span_id: str) -> TelemetryKind:
        """Return what a span is; what says nothing of itself is something else."""
        known = self._known.get(span_id)
        if known is not None:
            return known.kind
        row = self._rows.get(span_id)
        return (kind_of(row.span.attributes) if row else None) or TelemetryKind.OTHER

    def holds_model(self, span_id: str) -> bool:
        """Tell whether there is a model's call further down: then this is the same call, told by
        another instrumentation."""
        return span_id in self._holds_model

    def failed_below(self, span_id: str) -> bool:
        """Tell whether something further down failed."""
        return span_id in self._fails_below

    def now_known(self, spans: Sequence[TelemetrySpan]) -> list[SpanRecord]:
        """Return what is to be kept of spans, and of the trace."""
        kept = [
            SpanRecord(
                span.trace_id,
                span.span_id,
                span.parent_id,
                self.session(span),
                self.kind(span.span_id),
                span.failed,
            )
            for span in spans
            if self.kind(span.span_id) is not TelemetryKind.OTHER
        ]
        named = self._trace_session != self._trace_id
        if self._trace_id and not self._chosen and (kept or self._has_logs or named):
            kept.append(
                SpanRecord(self._trace_id, "", "", self._trace_session, TelemetryKind.TRACE)
            )
        return kept

    def _failed(self, span_id: str) -> bool:
        if self.kind(span_id) is TelemetryKind.OTHER:
            return False
        known = self._known.get(span_id)
        row = self._rows.get(span_id)
        return known.failed if known is not None else row is not None and row.span.failed

    def _parent(self, span_id: str) -> str:
        row = self._rows.get(span_id)
        if row is not None:
            return row.span.parent_id
        known = self._known.get(span_id)
        return known.parent_id if known is not None else ""

    def _of(self, span: TelemetrySpan) -> _FromAbove:
        """Return what is named for a span, or for a log record: by itself where its span is not
        here, then by its span and those above."""
        above = self._from_above(span.span_id)
        if not span.is_log or span.span_id in self._rows:
            return above
        wanted = (SpanField.SESSION, SpanField.USER, SpanField.AGENT)
        return _FromAbove(*(name_of(span.attributes, one) for one in wanted)).or_else(above)

    def _from_above(self, span_id: str) -> _FromAbove:
        """Return what a span names or takes from above; each span is looked at once."""
        way: dict[str, None] = {}  # Whatever a sender makes of parents, it comes to an end.
        while span_id and span_id not in self._taken and span_id not in way:
            way[span_id] = None
            span_id = self._parent(span_id)
        taken = self._taken.get(span_id, _NOTHING)
        for below in reversed(way):
            taken = self._taken[below] = self._named(below).or_else(taken)
        return taken

    def _named(self, span_id: str) -> _FromAbove:
        known, row = self._known.get(span_id), self._rows.get(span_id)
        session_id = known.session_id if known is not None else ""
        if row is None:
            return _FromAbove(session_id=session_id)
        if not session_id and not (row.span.is_root and self._chosen):
            session_id = row.session_id
        return _FromAbove(session_id, row.user_id, name_of(row.span.attributes, SpanField.AGENT))

    def _above_all(self, is_one: Callable[[str], bool]) -> set[str]:
        """Return the spans above any that is such a one; each is looked at once."""
        above: set[str] = set()
        for span_id in {*self._rows, *self._known} - {""}:
            if is_one(span_id):
                up = self._parent(span_id)
                while up and up not in above and up != span_id:
                    above.add(up)
                    up = self._parent(up)
        return above


class _FromAbove(NamedTuple):
    """What a span names, or takes from above; empty where neither does."""

    session_id: str = ""
    user_id: str = ""
    agent_id: str = ""

    def or_else(self, above: _FromAbove) -> _FromAbove:
        """Take from above what this does not name."""
        return _FromAbove(*(own or other for own, other in zip(self, above, strict=True)))


_NOTHING = _FromAbove()
