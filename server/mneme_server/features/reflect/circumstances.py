"""What else is known of sessions and calls, so that what is compared is not what that explains: the
task, who ran it, when, its labels, how long it was, and where in its session a call stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mneme_server.features.events.event_types import EventPart, playing
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.reflect.calls import Calls
from mneme_server.features.reflect.history import History, Ints, SessionColumns, kind_is
from mneme_server.features.reflect.wording import plural
from mneme_server.statistics.association import LEAST_CLUSTERS, Likeness
from mneme_server.statistics.inference import Floats

_NO_TASK = 0.2
"""A first request that so many of the sessions share is no task."""
_MOSTLY = 0.5
_MOST_REQUESTS = 20_000
"""Sessions whose first requests are read."""
_LEAST_OF_ONE = 10
"""Sessions that share something before it is allowed for."""
_MOST_AGENTS = 12
_MOST_LABELS = 12
_LENGTHS = 6
_SESSIONS_A_COLUMN = 12
_MOST_TOOLS = 15
_SAYS_THE_OUTCOME = frozenset(
    {"reward", "success", "outcome", "status", "result", "score", "resolved", "solved", "passed",
     "failed", "pass", "fail", "verdict", "grade"}
)  # fmt: skip
_PLACES = np.array([1, 2, 3, 4, 6, 9, 13, 21, 40])
"""Where in its session a call stands: the first, the second, the third, the fourth or fifth, …"""


@dataclass
class Circumstances:
    """What is known of the sessions of a history.

    `task` (s,) numbers what each session was about, sessions that do not say it being each of their
    own; `repeats` tells whether most sessions are of a task that others are of, too.
    """

    history: History
    task: Ints
    named: list[str]
    repeats: bool

    @property
    def sessions(self) -> SessionColumns:
        """The sessions."""
        return self.history.sessions

    def tasks_if_repeated(self, sessions: Ints) -> int:
        """Return of how many tasks sessions are, 0 where tasks do not repeat."""
        return len(np.unique(self.task[sessions])) if self.repeats else 0

    def untested(self) -> list[str]:
        """Return the note that sessions are of too few tasks for a test, if they are."""
        tasks = len(np.unique(self.task))
        if not self.repeats or tasks >= LEAST_CLUSTERS:
            return []
        return [
            f"the sessions are of {plural(tasks, 'task')}, and attempts at one task are alike: what"
            f" goes with what is counted, and tested only from {LEAST_CLUSTERS} tasks on"
        ]

    def likenesses(self, chosen: Ints, least: int, *, within: bool = True) -> list[Likeness]:
        """Return the ways in which sessions (k,) may be alike: by task, and by user.

        Args:
            chosen: the sessions.
            least: sessions with a trait, and without, that are needed where no task repeats.
            within: whether to compare within tasks.
        """
        tasks = _dense(self.task[chosen])
        by_task = (
            Likeness(tasks, LEAST_CLUSTERS, within=within)
            if self.repeats
            else Likeness(tasks, least)
        )
        users = [trait.user for trait in self.sessions.traits]
        of_users = groups_of([users[i] for i in chosen.tolist()])
        count = int(of_users.max()) + 1 if len(of_users) else 0
        if LEAST_CLUSTERS < count <= _MOSTLY * len(chosen):
            return [by_task, Likeness(of_users, LEAST_CLUSTERS)]
        return [by_task]

    def design(
        self, chosen: Ints, *, only_when: bool = False, without_length: bool = False
    ) -> Floats:
        """Return what is known of sessions (k,) beside what is compared, shape (k, d): 1, when it
        was, who ran it, and, unless that is all, its frequent labels and how many calls it made."""
        columns = [np.ones(len(chosen)), *_powers(self.sessions.start_us[chosen])]
        room = max(len(chosen) // _SESSIONS_A_COLUMN - len(columns), 0)
        agents = [self.sessions.traits[i].agent for i in chosen.tolist()]
        found = _indicators(groups_of(agents), _MOST_AGENTS)
        if not only_when:
            found += self._labels(chosen)
            found += [] if without_length else [*self._lengths[chosen].T]
        return np.column_stack([*columns, *found[:room]])

    @cached_property
    def _lengths(self) -> Floats:
        """Return in which of a few ranges the number of calls of each session lies (s, l)."""
        called = kind_is(self.history, *playing(EventPart.CALL))
        size = len(self.sessions)
        if not called.any():
            return np.zeros((size, 0))
        count = np.bincount(self.history.session[called], minlength=size)
        ends = np.unique(np.quantile(count, np.arange(1, _LENGTHS) / _LENGTHS))
        ranges = np.searchsorted(ends, count, side="left")
        return np.column_stack(
            [*(ranges[:, None] == np.arange(1, len(ends) + 1)).T.astype(float), np.sqrt(count)]
        )

    def _labels(self, chosen: Ints) -> list[Floats]:
        tags = [self.sessions.tags[i] for i in chosen.tolist()]
        counts = Counter(tag for some in tags for tag in set(some) if not says_the_outcome(tag))
        frequent = [
            tag for tag, count in counts.most_common(_MOST_LABELS)
            if _LEAST_OF_ONE <= count <= len(chosen) - _LEAST_OF_ONE
        ]  # fmt: skip
        return [np.array([tag in some for some in tags], float) for tag in frequent]


def label_key(label: str) -> str:
    """Return what a label is of: "reward" of "reward:1"."""
    return label.replace("=", ":").partition(":")[0].strip().lower()


def says_the_outcome(label: str) -> bool:
    """Tell whether a label, such as "reward:1", says how a session ended: that it ended so is no
    finding, and what is compared at the same outcome never differs."""
    return label_key(label) in _SAYS_THE_OUTCOME


def circumstances(history: History, reader: HistoryReader) -> Circumstances:
    """Return what is known of the sessions: the tasks that they name, else their first requests."""
    keys: list[Hashable] = [trait.task or None for trait in history.sessions.traits]
    silent = [i for i, key in enumerate(keys) if key is None]
    requests = _first_requests(history, reader, silent)
    shared = Counter(requests.values())
    for i, request in requests.items():
        if shared[request] < max(2, _NO_TASK * len(keys)):
            keys[i] = request
    named = [key if isinstance(key, str) else "" for key in keys]
    task = groups_of([i if key is None else key for i, key in enumerate(keys)])
    of_task = np.bincount(task)[task] if len(task) else task
    repeats = bool(len(task)) and float((of_task > 1).mean()) >= _MOSTLY
    return Circumstances(history, task, named, repeats)


def _first_requests(
    history: History, reader: HistoryReader, sessions: Sequence[int]
) -> dict[int, int]:
    """Return a hash of the first thing that somebody said in each session, where somebody did."""
    if not sessions or len(sessions) > _MOST_REQUESTS:
        return {}
    said = np.flatnonzero(kind_is(history, *playing(EventPart.TALK)))
    of, first = np.unique(history.session[said], return_index=True)
    wanted = np.isin(of, sessions)
    cursors = history[Column.CURSOR][said[first[wanted]]].tolist()
    places = dict(zip(cursors, of[wanted].tolist(), strict=True))
    return {
        places[cursor]: hash(" ".join(fact.text.split()))
        for cursor, fact in reader.facts(cursors).items()
        if fact.text
    }


class CallPlaces:
    """What is known of calls (c,): the tool, and the place in the session."""

    def __init__(self, calls: Calls) -> None:
        count = len(calls)
        new = np.r_[True, calls.session[1:] != calls.session[:-1]] if count else np.zeros(0, bool)
        begun = np.maximum.accumulate(np.where(new, np.arange(count), 0)) if count else new
        self._place = np.searchsorted(_PLACES, np.arange(count) - begun + 1, side="left")
        self._tool = calls.tool

    def design(self, chosen: Ints, *, by_tool: bool) -> Floats:
        """Return what is known of some calls (k,), shape (k, d): 1, their tool if that is asked
        for, and their place."""
        columns = _indicators(self._place[chosen], len(_PLACES))
        if by_tool:
            columns += _indicators(self._tool[chosen], _MOST_TOOLS)
        return np.column_stack([np.ones(len(chosen), np.float32), *columns])


def _powers(times: Ints) -> list[Floats]:
    """Return the order in time, from -1 to 1, and its square."""
    order = np.argsort(np.argsort(times, kind="stable"), kind="stable")
    place = 2 * order / max(len(times) - 1, 1) - 1
    return [place, place**2]


def _indicators(codes: Ints, most: int) -> list[Floats]:
    """Return a column (k,) for each frequent value but the most frequent one."""
    counts = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
    frequent = np.argsort(-counts, kind="stable")[1 : most + 1]
    return [
        (codes == code).astype(np.float32) for code in frequent if counts[code] >= _LEAST_OF_ONE
    ]


def groups_of(keys: Sequence[Hashable]) -> Ints:
    """Return numbers (n,) from 0 on, the same for the same keys."""
    codes: dict[Hashable, int] = {}
    return np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)


def _dense(codes: Ints) -> Ints:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)
