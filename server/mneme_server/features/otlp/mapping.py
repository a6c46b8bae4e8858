"""The mapping from the spans of a trace to events of sessions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from mneme_server.common.canonical import Json, JsonObject, canonical_json
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import NewEvent, Severity
from mneme_server.features.otlp.conversation import (
    ConversationMessage,
    ToolCall,
    clean,
    clean_text,
    read_json,
)
from mneme_server.features.otlp.model import Received, SpanRecord, TelemetryKind, TelemetrySpan
from mneme_server.features.otlp.spans import (
    Family,
    as_id,
    conversation,
    cost_of,
    error_of,
    gathered,
    name_of,
    result_of,
    tokens_of,
    value_of,
)
from mneme_server.features.otlp.vocabulary import DETAIL_EVENTS, SpanField

MAX_PAYLOAD = 262_144
"""Characters of JSON that are kept of what a tool was given, or answered."""
SILENT = (
    "This session's model calls came without their texts. Most instrumentations send them only when"
    " they are told to, for example by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT."
)


@dataclass(slots=True)
class Mapped:
    """What the due spans of a trace become, and what is kept of them."""

    events: list[NewEvent] = field(default_factory=list)
    known: list[SpanRecord] = field(default_factory=list)
    later: list[Received] = field(default_factory=list)
    """Calls of models that came without texts, which log records may bring yet."""


def mapped(
    due: Sequence[Received], waiting: Sequence[Received], known: Sequence[SpanRecord]
) -> Mapped:
    """Return what the spans and log records of one trace become.

    Args:
        due: those that become events now.
        waiting: those that wait for more.
        known: what is kept of those before; a span among them becomes nothing again.
    """
    family = Family(due, waiting, known)
    before = {one.span_id for one in known if one.span_id}
    fresh = [one for one in due if one.span.is_log or one.is_told or one.span.span_id not in before]
    return _Trace(family, fresh).map()


class _Trace:
    """The due spans of one trace on their way."""

    def __init__(self, family: Family, due: Sequence[Received]) -> None:
        self._family = family
        self._events: dict[str, NewEvent] = {}
        self._rows = {one.span.span_id: one for one in due if not one.span.is_log}
        self._later: list[Received] = []
        self._spans = sorted(
            (one.span for one in self._rows.values()), key=lambda s: (s.start_us, s.span_id)
        )
        logs = [one.span for one in due if one.span.is_log]
        here = {span.span_id for span in self._spans}
        self._logs: dict[str, list[TelemetrySpan]] = {span_id: [] for span_id in here}
        for log in logs:
            if log.span_id in here:
                self._logs[log.span_id].append(log)
        self._alone = sorted(
            (log for log in logs if log.span_id not in here), key=lambda log: log.start_us
        )

    def map(self) -> Mapped:
        """Return what they become."""
        by_kind: dict[TelemetryKind, list[TelemetrySpan]] = {kind: [] for kind in TelemetryKind}
        for span in self._spans:
            by_kind[self._family.kind(span.span_id)].append(span)
        models = [
            s for s in by_kind[TelemetryKind.MODEL] if not self._family.holds_model(s.span_id)
        ]
        talks = [(span, *conversation(span, self._logs[span.span_id])) for span in models]
        asked = _RequestedCalls(
            call for _span, told, said in talks for call in _calls((*told, *said))
        )
        for span in by_kind[
            TelemetryKind.TOOL
        ]:  # First: a span tells more of a call than a message.
            self._tool(span, asked)
        for span, told, said in talks:
            self._model(span, told, said)
        for span in by_kind[TelemetryKind.AGENT]:
            self._agent(span)
        for logs in self._together():
            told, said = conversation(logs[0], logs)
            self._talk(logs[0], told, said)
        events = sorted(self._events.values(), key=lambda e: e.timestamp_us or 0)
        return Mapped(events, self._family.now_known(self._spans), self._later)

    def _together(self) -> Iterator[list[TelemetrySpan]]:
        """Yield the log records whose spans are not here by their spans and sessions. Outside of
        any span, what tells the details of a call is all that is told of it: another record's would
        take their place."""
        found: dict[tuple[str, str], list[TelemetrySpan]] = {}
        for log in self._alone:
            if not log.span_id and log.name in DETAIL_EVENTS:
                yield [log]
            else:
                found.setdefault((log.span_id, self._family.session(log)), []).append(log)
        yield from found.values()

    def _model(
        self,
        span: TelemetrySpan,
        told: Sequence[ConversationMessage],
        said: Sequence[ConversationMessage],
    ) -> None:
        row = self._rows[span.span_id]
        self._talk(span, told, ())
        if not row.is_told:
            self._call(span)
        self._talk(span, told, said)
        if told or said:
            return
        if row.is_told:
            self._note_silence(span)
        else:
            self._later.append(row.for_texts())

    def _call(self, span: TelemetrySpan) -> None:
        error = clean_text(error_of(span))
        attributes = gathered(span, self._logs[span.span_id])
        payload: dict[str, Json] = {"span": clean_text(span.name, 200)}
        if provider := name_of(attributes, SpanField.PROVIDER):
            payload["provider"] = provider
        self._add(
            span,
            _of_span(span, ""),
            EventType.LLM_CALL,
            span.start_us,
            payload=payload,
            model=name_of(attributes, SpanField.MODEL),
            input_tokens=tokens_of(attributes, SpanField.INPUT_TOKENS),
            output_tokens=tokens_of(attributes, SpanField.OUTPUT_TOKENS),
            cost_usd=cost_of(attributes),
            duration_us=max(0, span.end_us - span.start_us),
            error=error,
            severity=Severity.ERROR if error else None,
        )

    def _note_silence(self, span: TelemetrySpan) -> None:
        session = self._family.session(span)
        self._add(
            span, f"otel:silent:{_short(session)}", EventType.CUSTOM, span.start_us,
            name="no texts were sent", text=SILENT, searchable=False,
        )  # fmt: skip

    def _talk(
        self,
        span: TelemetrySpan,
        told: Sequence[ConversationMessage],
        said: Sequence[ConversationMessage],
    ) -> None:
        """Record messages that were not recorded before. What is told is recorded at the start of
        the call, what is said at its end."""
        session = self._family.session(span)
        hashed = _short(session)
        for place, one in enumerate((*told, *said)):
            hashed = one.after(hashed)
            time_us = span.start_us if place < len(told) else span.end_us
            if one.text and one.role != "tool":
                self._add(
                    span, f"otel:{hashed[:40]}", EventType.MESSAGE, time_us,
                    text=clean_text(one.text), payload={"role": one.role},
                )  # fmt: skip
            for number, call in enumerate(one.calls):
                call_id = as_id(call.id)
                event_id = _of_call(session, call_id) if call_id else f"otel:{hashed[:40]}:{number}"
                self._add(
                    span, f"{event_id}:call", EventType.TOOL_CALL, time_us, name=as_id(call.name),
                    call_id=call_id, payload=_payload("arguments", call.arguments),
                )  # fmt: skip
            for number, answer in enumerate(one.answers):
                call_id = as_id(answer.call_id)
                event_id = _of_call(session, call_id) if call_id else f"otel:{hashed[:40]}:{number}"
                name = as_id(answer.name) or self._name_of_call(event_id)
                self._add(
                    span, f"{event_id}:answer", EventType.TOOL_RESPONSE, time_us, name=name,
                    call_id=call_id, payload=_payload("result", answer.result),
                )  # fmt: skip

    def _name_of_call(self, event_id: str) -> str:
        call = self._events.get(f"{event_id}:call")
        return call.name if call is not None else ""

    def _tool(self, span: TelemetrySpan, asked: _RequestedCalls) -> None:
        name = name_of(span.attributes, SpanField.TOOL) or as_id(span.name)
        arguments = read_json(value_of(span.attributes, SpanField.ARGUMENTS))
        call_id = name_of(span.attributes, SpanField.CALL_ID) or asked.take(name, arguments)
        session = self._family.session(span)
        event_id = _of_call(session, call_id) if call_id else _of_span(span, "")
        self._add(
            span, f"{event_id}:call", EventType.TOOL_CALL, span.start_us, name=name,
            call_id=call_id, payload=_payload("arguments", arguments),
        )  # fmt: skip
        error = clean_text(error_of(span))
        result = result_of(span.attributes)
        self._add(
            span,
            f"{event_id}:answer",
            EventType.TOOL_ERROR if error else EventType.TOOL_RESPONSE,
            span.end_us,
            name=name,
            call_id=call_id,
            payload=_payload("result", result),
            error=error,
            duration_us=max(0, span.end_us - span.start_us),
        )

    def _agent(self, span: TelemetrySpan) -> None:
        """Record the failure of what holds other spans, unless it is that of one of them."""
        error = clean_text(error_of(span))
        if error and not self._family.failed_below(span.span_id):
            self._add(
                span, _of_span(span, ":error"), EventType.ERROR, span.end_us,
                name=as_id(span.name), error=error,
            )  # fmt: skip

    def _add(
        self,
        span: TelemetrySpan,
        event_id: str,
        event_type: EventType,
        time_us: int,
        **said: object,
    ) -> None:
        if event_id in self._events:
            return
        metadata: dict[str, Json] = {"source": "opentelemetry"}
        if span.trace_id:
            metadata |= {"trace_id": span.trace_id, "span_id": span.span_id}
        if user := self._family.user(span):
            metadata["user_id"] = user
        event = NewEvent(
            session_id=self._family.session(span),
            event_type=event_type.value,
            id=event_id,
            agent_id=self._family.agent(span),
            timestamp_us=time_us,
            metadata=metadata,
        )
        for name, value in said.items():
            setattr(event, name, value)
        self._events[event_id] = event


class _RequestedCalls:
    """The calls of tools that models asked for: spans of tools may not say which they are."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        ids: dict[str, dict[str, None]] = {}
        for call in calls:
            of_these = ids.setdefault(_spelled(call.name, call.arguments), {})
            if call.id:
                of_these[as_id(call.id)] = None
        self._ids = {spelled: deque(found) for spelled, found in ids.items()}

    def take(self, name: str, arguments: Json) -> str:
        """Return the id of the first call of this tool with these arguments that is not taken;
        empty when there is none."""
        ids = self._ids.get(_spelled(name, arguments))
        return ids.popleft() if ids else ""


def _spelled(name: str, arguments: Json) -> str:
    return canonical_json([name, arguments])


def _calls(messages: Iterable[ConversationMessage]) -> Iterator[ToolCall]:
    for one in messages:
        yield from one.calls


def _payload(name: str, value: Json) -> JsonObject:
    if value is None or value == "":
        return {}
    kept = clean(value)
    text = canonical_json(kept)
    return {name: kept if len(text) <= MAX_PAYLOAD else clean_text(text, MAX_PAYLOAD)}


def _of_span(span: TelemetrySpan, what: str) -> str:
    return f"otel:{span.trace_id}:{span.span_id}{what}"


def _of_call(session_id: str, call_id: str) -> str:
    return f"otel:{_short(f'{session_id}/{call_id}')}"


def _short(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
