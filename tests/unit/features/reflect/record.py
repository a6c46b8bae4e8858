"""A tenant's record in memory, behind the port that the analyses read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.history import Column, EventFact, HistoryFilter, SessionRow
from mneme_server.features.events.model import Session, SessionStatus, Severity
from mneme_server.features.events.outcomes import judged
from mneme_server.features.reflect.history import History, load

HOUR = 3_600.0
DAY = 24 * HOUR
_ERRORS = (EventType.TOOL_ERROR, EventType.ERROR)


@dataclass
class Kept:
    """One event."""

    session: str
    kind: str
    time: int
    sequence: int
    cursor: int
    agent: str = ""
    severity: int = Severity.INFO
    name: str = ""
    call: str = ""
    model: str = ""
    cost: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    duration: int = -1
    error: str = ""
    text: str = ""
    payload: str = "{}"

    @property
    def message(self) -> str | None:
        is_error = self.kind in _ERRORS or self.severity >= Severity.ERROR
        return (self.error or self.text) if is_error else None

    @property
    def trace(self) -> int:
        is_answer = self.kind == EventType.TOOL_RESPONSE and self.message is None
        return int(is_answer and "Traceback (most recent call last):" in self.text)


@dataclass
class Record:
    """Sessions and events; times are in seconds."""

    rows: dict[str, SessionRow] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    events: list[Kept] = field(default_factory=list)

    def session(
        self,
        name: str,
        at: float = 0.0,
        *,
        status: SessionStatus = SessionStatus.ACTIVE,
        tags: tuple[str, ...] = (),
        project: str = "",
        agent: str = "agent",
        **metadata: Any,
    ) -> str:
        """Start a session; `metadata` may say how it ended (`reward`, `success`)."""
        text, started_us = json.dumps(metadata), round(at * 1e6)
        outcome = judged(Session(name, status=status, metadata_json=text)).outcome
        self.rows[name] = SessionRow(
            name, agent, tags, status, text, started_us, project=project, outcome=outcome
        )
        self.projects[name] = project
        return name

    def handover(self, name: str, at: float = 0.0) -> None:
        """A session that only its handover opened."""
        self.session(name, at, status=SessionStatus.COMPLETED)
        self.rows[name] = self.rows[name]._replace(declared=False)

    def add(self, session: str, kind: EventType, at: float, **fields: Any) -> Kept:
        """Record an event of a session, which it opens when it is new."""
        row = self.rows.get(session) or self.rows[self.session(session, at)]
        if "payload" in fields:
            fields["payload"] = json.dumps(fields["payload"], sort_keys=True)
        severity = Severity.ERROR if kind in _ERRORS else Severity.INFO
        given: dict[str, Any] = {"agent": row.agent_id, "severity": severity} | fields
        number = len(self.events) + 1
        kept = Kept(session, kind, round(at * 1e6), number, number, **given)
        self.events.append(kept)
        return kept

    def call(
        self, session: str, tool: str, at: float, *, error: str = "", arguments: Any = None
    ) -> None:
        """Record a call of a tool and its answer."""
        call = f"call-{len(self.events)}"
        payload = {} if arguments is None else {"arguments": arguments}
        self.add(session, EventType.TOOL_CALL, at, name=tool, call=call, payload=payload)
        if error:
            self.add(session, EventType.TOOL_ERROR, at, name=tool, call=call, error=error)
        else:
            self.add(session, EventType.TOOL_RESPONSE, at, name=tool, call=call)

    def history(self, *columns: Column, **filter_: Any) -> History:
        """Read it as an analysis does."""
        return load(self, HistoryFilter(**filter_), columns)

    # The port.

    def sessions(self, filter_: HistoryFilter) -> Iterator[SessionRow]:
        for row in self.rows.values():
            if filter_.project in ("", self.projects[row.id]) and set(filter_.tags) <= {*row.tags}:
                yield row

    def scan(
        self, filter_: HistoryFilter, columns: Sequence[Column]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        known = {row.id for row in self.sessions(filter_)}
        chosen = [
            event
            for event in self.events
            if event.session in known
            and filter_.agent_id in ("", event.agent)
            and (filter_.start_us is None or event.time >= filter_.start_us)
            and (filter_.end_us is None or event.time < filter_.end_us)
        ]
        for start in range(0, len(chosen), 7):
            some = chosen[start : start + 7]
            yield [tuple(getattr(event, column.value) for event in some) for column in columns]

    def payloads(self, cursors: Sequence[int]) -> Iterator[tuple[int, str]]:
        for cursor in sorted(cursors):
            yield cursor, self.events[cursor - 1].payload

    def facts(self, cursors: Sequence[int]) -> Mapping[int, EventFact]:
        return {cursor: _fact(self.events[cursor - 1]) for cursor in cursors}


def _fact(event: Kept) -> EventFact:
    return EventFact(
        f"event-{event.cursor}", event.session, event.time, event.kind, event.name, event.model,
        event.text, event.message or "", event.input_tokens, event.output_tokens,
    )  # fmt: skip
