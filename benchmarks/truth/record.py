"""A tenant's record in memory, behind the port that the analyses read: no server for each seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from mneme_server.features.events.history import Column, EventFact, HistoryFilter, SessionRow
from mneme_server.features.events.model import Session, SessionStatus, Severity
from mneme_server.features.events.outcomes import judged

DAY = 86_400.0


@dataclass(slots=True)
class MadeEvent:
    """One event. Its fields are named as the columns; times and durations in microseconds."""

    session: str
    kind: str
    time: int
    sequence: int
    cursor: int
    agent: str
    severity: int = Severity.INFO
    name: str = ""
    call: str = ""
    model: str = ""
    cost: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    duration: int = -1
    message: str | None = None
    text: str = ""
    payload: str = "{}"
    trace: int = 0


@dataclass
class MadeRecord:
    """Sessions and events; times are in seconds since 1970."""

    rows: dict[str, SessionRow] = field(default_factory=dict)
    events: list[MadeEvent] = field(default_factory=list)

    def session(
        self,
        at: float,
        won: bool | None,
        *,
        agent: str = "a",
        tags: tuple[str, ...] = (),
        **metadata: object,
    ) -> str:
        """Start a session that is known to have been won or not; return its id."""
        name = f"s{len(self.rows):05d}"
        if won is not None:
            metadata["reward"] = float(won)
        status = SessionStatus.ERROR if won is False else SessionStatus.COMPLETED
        text, started_us = json.dumps(metadata), round(at * 1e6)
        outcome = judged(Session(name, status=status, metadata_json=text)).outcome
        self.rows[name] = SessionRow(
            name, agent, tags, status, text, started_us, project="made", outcome=outcome
        )
        return name

    def add(self, session: str, at: float, kind: str, **fields: Any) -> None:
        """Record an event."""
        number = len(self.events) + 1
        agent = self.rows[session].agent_id
        self.events.append(
            MadeEvent(session, kind, round(at * 1e6), number, number, agent, **fields)
        )

    def call(
        self, session: str, at: float, tool: str, error: str = "", arguments: object = None
    ) -> None:
        """Record a call of a tool and its answer, a second later."""
        call = f"c{len(self.events)}"
        given = {"n": call} if arguments is None else arguments
        payload = json.dumps({"arguments": given})
        self.add(session, at, "tool_call", name=tool, call=call, payload=payload)
        if error:
            self.add(
                session, at + 1, "tool_error", name=tool, call=call, message=error,
                severity=Severity.ERROR,
            )  # fmt: skip
        else:
            self.add(session, at + 1, "tool_response", name=tool, call=call)

    def answer(self, session: str, at: float, cost: float, seconds: float) -> None:
        """Record the answer of a model."""
        self.add(
            session, at, "llm_response", model="m", cost=cost, duration=round(seconds * 1e6),
            input_tokens=1_000, output_tokens=100,
        )  # fmt: skip

    # The port, and what leads to it.

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[MadeRecord]:
        """As tenants are opened."""
        yield self

    @contextmanager
    def read(self) -> Iterator[MadeRecord]:
        """As a tenant is read."""
        yield self

    def get(self, _repository: type) -> MadeRecord:
        """Return itself as whatever reads the record."""
        return self

    def sessions(self, _filter: HistoryFilter) -> Iterator[SessionRow]:
        """Yield all sessions."""
        yield from self.rows.values()

    def scan(
        self, _filter: HistoryFilter, columns: Sequence[Column]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield all events at once."""
        if self.events:
            yield [list(map(attrgetter(column.value), self.events)) for column in columns]

    def payloads(self, cursors: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield payloads."""
        for cursor in sorted(cursors):
            yield cursor, self.events[cursor - 1].payload

    def facts(self, cursors: Sequence[int]) -> Mapping[int, EventFact]:
        """Return events as findings show them."""
        return {cursor: _fact(self.events[cursor - 1]) for cursor in cursors}


def _fact(event: MadeEvent) -> EventFact:
    return EventFact(
        f"event-{event.cursor}", event.session, event.time, event.kind, event.name, event.model,
        event.text, event.message or "", event.input_tokens, event.output_tokens,
    )  # fmt: skip
