"""Tool calls: those there were, those that failed, and the sequences in which they came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.events.event_types import CALL_ANSWERS, EventPart, playing
from mneme_server.features.events.history import Column
from mneme_server.features.reflect.history import NONE, Array, History, Ints, kind_is

NEEDED = (Column.NAME, Column.CALL)
"""The columns that calls are made of."""


@dataclass(slots=True)
class Calls:
    """Tool calls (c,), in the order of the events.

    `session`, `tool` (a name's number) and `event` (its place among the events) are (c,).
    `failures` are the errors of tools (f,) as places among the events, `failed` (f,) the calls that
    they answer, `named` (f,) the tools that they name themselves. `outside` are errors (o,) outside
    tools, `after` (o,) the last call of their session before them, `NONE` without one.
    """

    session: Ints
    tool: Ints
    event: Ints
    failures: Ints
    failed: Ints
    named: Ints
    outside: Ints
    after: Ints

    def __len__(self) -> int:
        return len(self.session)

    def failing_tools(self, names: list[str]) -> Ints:
        """Return the tool of each of `failures` (f,): that of the call, which may be spelled
        otherwise in the answer or left out there; the answer's own where the call names none."""
        named = np.array([bool(name) for name in names], bool)
        of_call = self.tool[self.failed]
        return np.where(named[of_call], of_call, self.named)


def find_calls(history: History) -> Calls:
    """Find the calls, and match errors with them.

    An error of a tool (TOOL_ERROR, or a TOOL_RESPONSE or TOOL_CALL that is severe enough) belongs
    to the call with its call id, else to the tool's last call before it in the session. An error
    that answers no call stands for a call that was not recorded. A call that names no tool is one
    of the tool that its answer names.
    """
    is_error = history.is_error
    is_call = kind_is(history, *playing(EventPart.CALL))
    answers = is_error & kind_is(history, *CALL_ANSWERS)
    failures = np.flatnonzero(answers | (is_error & is_call))
    recorded = np.flatnonzero(is_call)
    tool = _tools(history, recorded)
    answered = _answered(history, recorded, failures)
    implied = failures[answered == NONE]
    answered = np.where(answered == NONE, failures, answered)
    events = np.union1d(recorded, implied)
    outside = np.flatnonzero(is_error & ~answers & ~is_call)
    session = history.session[events].astype(np.int64)
    after = np.searchsorted(events, outside) - 1
    none = (
        (after < 0) | (session[np.maximum(after, 0)] != history.session[outside])
        if len(events)
        else np.ones(len(outside), bool)
    )
    return Calls(
        session=session,
        tool=tool[events],
        event=events,
        failures=failures,
        failed=np.searchsorted(events, answered),
        named=history[Column.NAME][failures].astype(np.int64),
        outside=outside,
        after=np.where(none, NONE, after),
    )


def _tools(history: History, recorded: Ints) -> Ints:
    """Return the tool (n,) that each event is about: the one that it names, of a call that names
    none the one that its answer does. That it goes through counts for a tool as that it fails."""
    tool = history[Column.NAME].astype(np.int64)
    named = _is_named(history)
    if named[recorded].all():
        return tool
    answers = np.flatnonzero(kind_is(history, *CALL_ANSWERS) & named)
    answered = _answered(history, recorded, answers)
    telling = (answered != NONE) & ~named[answered]
    tool[answered[telling]] = tool[answers[telling]]
    return tool


def _is_named(history: History) -> NDArray[np.bool_]:
    """Return which events name a tool (n,)."""
    named: NDArray[np.bool_] = np.array([name != "" for name in history.names], bool)[
        history[Column.NAME]
    ]
    return named


def _answered(history: History, recorded: Ints, failures: Ints) -> Ints:
    """Return the call (f,) that each failure answers, as its place among the events, or `NONE`."""
    session = history.session.astype(np.int64)
    name, call = history[Column.NAME].astype(np.int64), history[Column.CALL]
    found: Ints = np.where(np.isin(failures, recorded), failures, NONE)
    # By the call's id: the last one before it, since some agents use ids again; else wherever in
    # the session it stands, since clocks differ.
    with np.errstate(over="ignore"):
        by_id = call ^ (session * np.int64(-7046029254386353131))
    has_id = call != 0
    of_ids = recorded[has_id[recorded]]
    end = np.full(len(failures), len(history))
    for before in (failures, end):
        open_ = (found == NONE) & has_id[failures]
        found[open_] = _last_before(by_id, of_ids, failures[open_], before[open_])
    # Else by the tool's name; without a name, whatever was called last.
    names = len(history.names) + 1
    open_ = (found == NONE) & ~has_id[failures]
    is_named = _is_named(history)
    named = open_ & is_named[failures]
    by_name = session * names + name
    found[named] = _last_before(by_name, recorded, failures[named], failures[named])
    open_ &= found == NONE
    last = _last_before(session, recorded, failures[open_], failures[open_])
    # Or if neither names it.
    fits = ~is_named[failures[open_]] | ~is_named[last]
    found[open_] = np.where(fits, last, NONE)
    return found


def _last_before(key: Ints, candidates: Ints, asked: Ints, before: Ints) -> Ints:
    """Return for each of `asked` the last of `candidates` with its key that stands before `before`,
    or `NONE`."""
    if not len(candidates) or not len(asked):
        return np.full(len(asked), NONE, np.int64)
    keys, codes = np.unique(key[candidates], return_inverse=True)
    span = len(key) + 1
    ordered = codes.astype(np.int64) * span + candidates
    order = np.argsort(ordered)
    code = np.searchsorted(keys, key[asked])
    known = (code < len(keys)) & (keys[np.minimum(code, len(keys) - 1)] == key[asked])
    place = np.searchsorted(ordered[order], code * span + before) - 1
    hit = candidates[order[np.maximum(place, 0)]]
    fits = known & (place >= 0) & (key[hit] == key[asked])
    return np.where(fits, hit, NONE).astype(np.int64)


@dataclass(slots=True)
class Grams:
    """The sequences of one length.

    `code` (c,) is the sequence that begins at each call, `NONE` where its session ends before it
    does; `example` (g,) is a call where each sequence begins.
    """

    length: int
    code: Ints
    example: Ints

    def __len__(self) -> int:
        return len(self.example)

    def tools(self, calls: Calls, names: list[str], code: int) -> tuple[str, ...]:
        """Return a sequence's tools."""
        start = self.example[code]
        return tuple(names[i] for i in calls.tool[start : start + self.length])

    def before_call(self, calls: Calls) -> Ints:
        """Return the sequence (c,) that ends just before each call, in its session."""
        before = _shifted(self.code, self.length)
        # Where the calls are fewer than the sequence is long, both sides are empty.
        begun = max(len(calls) - self.length, 0)
        elsewhere = calls.session[self.length :] != calls.session[:begun]
        before[self.length :][elsewhere] = NONE
        return before

    def up_to_call(self) -> Ints:
        """Return the sequence (c,) that ends with each call."""
        return _shifted(self.code, self.length - 1)


def _shifted(code: Ints, by: int) -> Ints:
    moved = np.full_like(code, NONE)
    moved[by:] = code[: max(len(code) - by, 0)]
    return moved


def grams_of(calls: Calls, lengths: range) -> list[Grams]:
    """Return the sequences of each length, overlapping ones counted each."""
    found: list[Grams] = []
    count = len(calls)
    tools = int(calls.tool.max()) + 1 if count else 1
    code: Ints = calls.tool.copy()
    last = np.arange(count)
    for length in range(1, lengths.stop):
        if length > 1:
            last = last + 1
            inside = (last < count) & (code != NONE)
            inside[inside] = calls.session[last[inside]] == calls.session[np.flatnonzero(inside)]
            joined = code * tools + calls.tool[np.minimum(last, count - 1)] if count else code
            code = np.where(inside, joined, NONE)
        code, example = _dense(code)
        if length in lengths:
            found.append(Grams(length, code, example))
    return found


def _dense(code: Ints) -> tuple[Ints, Ints]:
    """Number the codes from 0; return them, and the first place of each."""
    valid = np.flatnonzero(code != NONE)
    _, first, inverse = np.unique(code[valid], return_index=True, return_inverse=True)
    dense = np.full(len(code), NONE, np.int64)
    dense[valid] = inverse
    return dense, valid[first]


def runs_of(same: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return where runs begin (r,) and how long they are (r,); `same` (c,) tells whether an item
    continues the run of the one before it."""
    starts = np.flatnonzero(~same)
    return starts, np.diff(np.r_[starts, len(same)])
