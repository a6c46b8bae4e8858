"""The record as columns: what every analysis computes on.

A million events take some 70 MB here instead of a gigabyte as objects. Texts become numbers as they
are read, error messages become templates; only what a finding shows is read again, by its cursor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline, turns
from mneme_server.common.masking import NO_MESSAGE, template_of
from mneme_server.features.events.event_types import ERROR_TYPES
from mneme_server.features.events.history import Column, HistoryFilter, HistoryReader
from mneme_server.features.events.model import Outcome, Severity
from mneme_server.features.events.tasks import task_named
from mneme_server.features.reflect.model import EVIDENCE
from mneme_server.features.reflect.named_errors import MOST_NAMES, SessionEnds, renamed
from mneme_server.features.reflect.template_groups import MAX_GROUPED, group

Array: TypeAlias = NDArray[Any]
Ints: TypeAlias = NDArray[np.int64]

NONE = -1
"""Stands for no template, no duration."""
MAX_TEMPLATES = 50_000
"""Different templates before grouping; errors beyond them are counted together."""
OTHER_ERRORS = "(other messages)"

_BASE = (
    Column.SESSION, Column.TIME, Column.SEQUENCE, Column.KIND, Column.SEVERITY, Column.CURSOR
)  # fmt: skip
_NUMBERS: dict[Column, Any] = {
    Column.TIME: np.int64,
    Column.SEQUENCE: np.int32,
    Column.SEVERITY: np.int8,
    Column.CURSOR: np.int64,
    Column.COST: np.float64,
    Column.INPUT_TOKENS: np.int64,
    Column.OUTPUT_TOKENS: np.int64,
    Column.DURATION: np.int64,
    Column.TRACE: np.int8,
}
_CODED = (Column.KIND, Column.AGENT, Column.NAME, Column.MODEL)
_MEMORY_OF_MESSAGES = 20_000
_NEVER = np.iinfo(np.int64).max


class TextCodes(dict[str, int]):
    """Texts as numbers, in the order in which they were first seen."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code

    def encode(self, texts: Sequence[str]) -> Array:
        """Return the numbers (n,) of these texts; new ones get the next."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))

    @property
    def texts(self) -> list[str]:
        """The texts by their numbers."""
        return list(self)


class SessionTraits(NamedTuple):
    """What sessions may have in common; empty where it is not said."""

    task: str
    project: str
    agent: str
    user: str


@dataclass(slots=True)
class SessionColumns:
    """The sessions looked at, by their first event's time. Arrays are (s,)."""

    ids: list[str]
    outcome: Array
    start_us: Ints
    tags: list[tuple[str, ...]]
    traits: list[SessionTraits]
    has_events: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def newest(self, sessions: Ints) -> tuple[str, ...]:
        """Return the ids of the newest of these sessions."""
        latest = np.unique(sessions)[::-1][:EVIDENCE]
        return tuple(self.ids[i] for i in latest)


@dataclass(slots=True)
class History:
    """Events (n,), by session, time and place in the chain; only the columns that were asked for
    are filled.

    `session` counts in `sessions`; kind, agent, name and model in the lists of their texts; the
    message is a number in `templates`, `NONE` for events that are no errors; the call is a hash of
    the call's id, 0 for none.
    """

    sessions: SessionColumns
    session: Array
    columns: dict[Column, Array]
    kinds: list[str]
    agents: list[str]
    names: list[str]
    models: list[str]
    templates: list[str]
    caps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.session)

    def __getitem__(self, column: Column) -> Array:
        return self.columns[column]

    @property
    def is_error(self) -> NDArray[np.bool_]:
        """Which events count as errors (n,)."""
        return kind_is(self, *ERROR_TYPES) | (self[Column.SEVERITY] >= int(Severity.ERROR))


def load(
    reader: HistoryReader,
    filter_: HistoryFilter,
    wanted: Sequence[Column],
) -> History:
    """Read the record.

    Sessions count when one of their events matches, or, where they have none at all in range, when
    they started in it.
    """
    return _Loader(reader, filter_, (*_BASE, *wanted)).load()


class _Loader:
    def __init__(
        self,
        reader: HistoryReader,
        filter_: HistoryFilter,
        columns: Sequence[Column],
    ) -> None:
        self._reader = reader
        self._filter = filter_
        self._columns = columns
        self._codes = {column: TextCodes() for column in _CODED}
        self._templates = _Templates()
        self._parts: dict[Column, list[Array]] = {column: [] for column in columns}

    def load(self) -> History:
        known = _FilteredSessions(self._reader, self._filter)
        places = {session_id: i for i, session_id in enumerate(known.ids)}
        for chunk in self._reader.scan(self._filter, self._columns):
            with turns.computing():
                self._take(dict(zip(self._columns, chunk, strict=True)), places)
        columns = {column: self._joined(column) for column in self._columns}
        session, time = columns.pop(Column.SESSION), columns[Column.TIME]
        sessions, renumbered = known.looked_at(session, time)
        session = renumbered[session]
        by_session = np.lexsort((columns[Column.SEQUENCE], time, session))
        del time
        history = History(
            sessions=sessions,
            session=session[by_session],
            columns={},
            kinds=self._codes[Column.KIND].texts,
            agents=self._codes[Column.AGENT].texts,
            names=self._codes[Column.NAME].texts,
            models=self._codes[Column.MODEL].texts,
            templates=[],
            notes=known.notes(),
        )
        # One column at a time: the unsorted one is gone before the next is sorted.
        for column in list(columns):
            history.columns[column] = columns.pop(column)[by_session]
        if Column.MESSAGE in history.columns:
            self._templates.finish(history)
        return history

    def _take(self, chunk: dict[Column, Sequence[Any]], places: dict[str, int]) -> None:
        sessions = chunk[Column.SESSION]
        parts = self._parts
        parts[Column.SESSION].append(
            np.fromiter(map(places.__getitem__, sessions), np.int32, len(sessions))
        )
        for column, values in chunk.items():
            if column in _NUMBERS:
                parts[column].append(np.array(values, _NUMBERS[column]))
            elif column in self._codes:
                parts[column].append(self._codes[column].encode(values))
            elif column is Column.CALL:
                parts[column].append(np.fromiter(map(hash, values), np.int64, len(values)))
            elif column is Column.MESSAGE:
                parts[column].append(self._templates.encode(values))

    def _joined(self, column: Column) -> Array:
        """Return the parts of a column as one array, and let them go."""
        parts = self._parts.pop(column)
        return np.concatenate(parts) if parts else np.empty(0, _NUMBERS.get(column, np.int32))


class _FilteredSessions:
    """The sessions of the filter, at whatever time."""

    def __init__(self, reader: HistoryReader, filter_: HistoryFilter) -> None:
        self.ids: list[str] = []
        self._outcomes: list[int] = []
        self._started: list[int] = []
        self._tags: list[tuple[str, ...]] = []
        self._traits: list[SessionTraits] = []
        self._in_range: list[bool] = []
        self._declared: list[bool] = []
        self._left_out = 0
        shared: dict[Any, Any] = {}
        low = -_NEVER if filter_.start_us is None else filter_.start_us
        high = _NEVER if filter_.end_us is None else filter_.end_us
        for row in reader.sessions(filter_):
            self.ids.append(row.id)
            self._outcomes.append(row.outcome)
            self._started.append(row.started_us)
            self._tags.append(shared.setdefault(row.tags, row.tags))
            traits = SessionTraits(
                task_named(row.metadata_json, row.tags), row.project, row.agent_id, row.user_id
            )
            self._traits.append(shared.setdefault(traits, traits))
            self._declared.append(row.declared)
            self._in_range.append(
                low <= row.started_us < high and filter_.agent_id in ("", row.agent_id)
            )

    def looked_at(self, session: Ints, time: Ints) -> tuple[SessionColumns, Array]:
        """Return the sessions that count, and for each known one its number among them, or `NONE`.

        Args:
            session: the events' sessions (n,), as places in `ids`.
            time: the events' times (n,).
        """
        start = np.full(len(self.ids), _NEVER)
        np.minimum.at(start, session, time)
        silent = start == _NEVER
        start[silent] = np.array(self._started, np.int64)[silent]
        in_range = np.array(self._in_range, bool)
        # What only a handover opened did no work that could be compared with others'.
        empty = silent & in_range & ~np.array(self._declared, bool)
        self._left_out = int(empty.sum())
        kept = np.flatnonzero(~silent | (in_range & ~empty)).tolist()
        # Ties by id, so that the same record always gives the same order.
        kept.sort(key=lambda place: (start[place], self.ids[place]))
        renumbered = np.full(len(self.ids), NONE, np.int32)
        renumbered[kept] = np.arange(len(kept), dtype=np.int32)
        sessions = SessionColumns(
            ids=[self.ids[place] for place in kept],
            outcome=np.array([self._outcomes[place] for place in kept], np.int8),
            start_us=start[kept],
            tags=[self._tags[place] for place in kept],
            traits=[self._traits[place] for place in kept],
            has_events=~silent[kept],
        )
        return sessions, renumbered

    def notes(self) -> list[str]:
        """Return what a reader should know of the sessions."""
        if not self._left_out:
            return []
        holds = "holds" if self._left_out == 1 else "hold"
        sessions = "session" if self._left_out == 1 else "sessions"
        return [f"{self._left_out:,} {sessions} left out that {holds} no events, only a handover"]


class _Templates(dict[str | None, int]):
    """Error messages as numbers of their templates. Remembers the messages seen last."""

    def __init__(self) -> None:
        super().__init__({None: NONE})
        self._codes = TextCodes()
        self._template: list[str] = []
        self._names: dict[str, set[str]] = {}
        self._overflowed = False

    def __missing__(self, message: str) -> int:
        template = template_of(message) if message else NO_MESSAGE
        if len(self._names) >= MAX_TEMPLATES and template not in self._names:
            self._overflowed, template = True, OTHER_ERRORS
        code = self._codes[self._named(message, template)]
        if code == len(self._template):
            self._template.append(template)
        if len(self) > _MEMORY_OF_MESSAGES:
            self.clear()
            self[None] = NONE
        self[message] = code
        return code

    def _named(self, message: str, template: str) -> str:
        """Return the template with whom the message names, as long as these are a few."""
        names = self._names.setdefault(template, set())
        if len(names) > MOST_NAMES or "<id>" not in template:
            return template
        named = template_of(message, with_names=True)
        names.add(named)
        return named

    def encode(self, messages: Sequence[str | None]) -> Array:
        """Return the numbers (n,) of the messages' templates; `NONE` for None."""
        return np.fromiter(map(self.__getitem__, messages), np.int32, len(messages))

    def finish(self, history: History) -> None:
        """Group the templates of each tool, and renumber the errors by their groups."""
        errors = history.columns[Column.MESSAGE]
        rows = np.flatnonzero(errors != NONE)
        names = history[Column.NAME][rows] if Column.NAME in history.columns else 0 * rows
        texts = self._codes.texts
        pairs, inverse, counts = np.unique(
            np.stack([names, errors[rows]]), axis=1, return_inverse=True, return_counts=True
        )
        outcome = history.sessions.outcome
        ends = SessionEnds(outcome != Outcome.UNKNOWN, outcome == Outcome.FAILURE)
        grouped = TextCodes()
        new_codes = np.empty(pairs.shape[1], np.int32)
        compared = True
        for name in np.unique(pairs[0]):
            deadline.check()  # The messages of one tool may take a second.
            mine = np.flatnonzero(pairs[0] == name)
            of_tool: Counter[str] = Counter()
            for i in mine:
                of_tool[self._template[pairs[1, i]]] += int(counts[i])
            groups, complete = group(of_tool)
            compared &= complete
            of_code = {int(i): groups[self._template[i]] for i in pairs[1, mine]}
            here = rows[names == name]
            of_code = renamed(of_code, texts, ends, history.session[here], errors[here])
            for i in mine:
                new_codes[i] = grouped[of_code[int(pairs[1, i])]]
        renumbered = np.full(len(errors), NONE, np.int32)
        renumbered[rows] = new_codes[inverse.ravel()]
        history.columns[Column.MESSAGE] = renumbered
        history.templates = grouped.texts
        if self._overflowed:
            history.caps.append(
                f"there are more than {MAX_TEMPLATES:,} different error messages; the rest is"
                f" counted as {OTHER_ERRORS}"
            )
        if not compared:
            history.caps.append(
                f"only the {MAX_GROUPED:,} most frequent error messages of a tool were compared"
                " with each other"
            )


def kind_is(history: History, *kinds: str) -> NDArray[np.bool_]:
    """Return which events are of these kinds (n,)."""
    asked = np.array([kind in kinds for kind in history.kinds], bool)
    found: NDArray[np.bool_] = asked[history[Column.KIND]]
    return found
