"""The spans of a trace, and what those further down take from those above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mneme_server.features.otlp.model import Known, Received, Span, SpanKind
from mneme_server.features.otlp.reading import as_id, kind_of, name_of
from mneme_server.features.otlp.vocabulary import Field

_NO_SERVICE = "unknown_service"


class Family:
    """One trace: what is due, what waits, and what is kept of what was before.

    A session is chosen once. A span's own counts first, then that of the nearest span above it that
    names one, then the trace's. The trace's is what was chosen before; else the root's own, else
    that of the first span that names one, else the trace's id. A root that comes after its trace
    has one joins that, because events never move.
    """

    def __init__(
        self, due: Sequence[Received], waiting: Sequence[Received], known: Sequence[Known]
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
        self._holds_model = self._above_all(lambda one: self.kind(one) is SpanKind.MODEL)
        self._fails_below = self._above_all(self._failed)

    def session(self, span: Span) -> str:
        """Return the session of a span, or of a log record."""
        return self._of(span).session_id or self._trace_session

    def user(self, span: Span) -> str:
        """Return the user that a span names, or one above it, or any of the trace."""
        return self._of(span).user_id or self._user

    def agent(self, span: Span) -> str:
        """Return the agent that a span names, or one above it; else the service."""
        if agent := self._of(span).agent_id:
            return agent
        row = self._rows.get(span.span_id)
        service = (row.span if row else span).service
        return "" if service.startswith(_NO_SERVICE) else as_id(service)

    def kind(self, span_id: str) -> SpanKind:
        """Return what a span is; what says nothing of itself is something else."""
        known = self._known.get(span_id)
        if known is not None:
            return known.kind
        row = self._rows.get(span_id)
        return (kind_of(row.span.attributes) if row else None) or SpanKind.OTHER

    def holds_model(self, span_id: str) -> bool:
        """Tell whether there is a model's call further down: then this is the same call, told by
        another instrumentation."""
        return span_id in self._holds_model

    def failed_below(self, span_id: str) -> bool:
        """Tell whether something further down failed."""
        return span_id in self._fails_below

    def now_known(self, spans: Sequence[Span]) -> list[Known]:
        """Return what is to be kept of spans, and of the trace."""
        kept = [
            Known(
                span.trace_id,
                span.span_id,
                span.parent_id,
                self.session(span),
                self.kind(span.span_id),
                span.failed,
            )
            for span in spans
            if self.kind(span.span_id) is not SpanKind.OTHER
        ]
        named = self._trace_session != self._trace_id
        if self._trace_id and not self._chosen and (kept or self._has_logs or named):
            kept.append(Known(self._trace_id, "", "", self._trace_session, SpanKind.TRACE))
        return kept

    def _failed(self, span_id: str) -> bool:
        if self.kind(span_id) is SpanKind.OTHER:
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

    def _of(self, span: Span) -> _FromAbove:
        """Return what is named for a span, or for a log record: by itself where its span is not
        here, then by its span and those above."""
        above = self._from_above(span.span_id)
        if not span.is_log or span.span_id in self._rows:
            return above
        wanted = (Field.SESSION, Field.USER, Field.AGENT)
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
        return _FromAbove(session_id, row.user_id, name_of(row.span.attributes, Field.AGENT))

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
