"""Episodes as Discover needs them: what was known before each, what it had, and what came of it."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.ports import Matrix as Vectors
from mneme_server.features.causal.model import SKILL, TAG, TOOL, NotAdjustedReason, node
from mneme_server.features.skills.comparison import says_the_outcome
from mneme_server.features.skills.model import Episode

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]

TASK_DIRECTIONS = 16
"""Directions of meaning, those in which tasks differ most, that are adjusted for."""
_TASKS_LEARNED_FROM = 2_000
_MOST_LEVELS = 15
_LEAST_OF_A_LEVEL = 10
_UNIT = 1e-9
_SKILLS = ("skills", "skill")
_LEVELS = ("agent", "user", "project")
_DECIDED = ("strategy", "prompt", "model", "configuration", "config", "variant")
"""Metadata that say what was decided before an attempt."""
_LESSONS = ("lessons", "lesson")
_ABOUT = "about"
_NO_TASK = 0.2
_MOST_CHARACTERS = 200
_ALWAYS = frozenset(("task", *_LEVELS, "time"))


class EpisodeTable:
    """Episodes, taken in page by page.

    Args:
        adjust_for: names of metadata, or labels ("tag:NAME"), that were known before the attempts.
        resolve: returns the ids of skills, by what episodes call them: ids or names.
        with_tools: whether tools are causes. What an attempt calls follows from how far it came.
    """

    def __init__(
        self,
        adjust_for: Sequence[str],
        resolve: Callable[[Iterable[str]], Mapping[str, str]],
        *,
        with_tools: bool = False,
    ) -> None:
        self._adjust_for = adjust_for
        self._resolve = resolve
        self._with_tools = with_tools
        self._about: array[int] = array("l")
        self._outcomes = array("d")
        self._times = array("d")
        self._tasks = _TaskDirections()
        self._levels: dict[str, array[int]] = {name: array("l") for name in _LEVELS}
        self._numbers: dict[str, array[float]] = {name: array("d") for name in adjust_for}
        self._words: dict[str, array[int]] = {name: array("l") for name in adjust_for}
        self._in_none = dict.fromkeys(one for one in adjust_for if one not in _ALWAYS)
        self._codes: dict[str, dict[object, int]] = defaultdict(dict)
        self._having: dict[str, array[int]] = defaultdict(lambda: array("l"))
        self._latest: dict[str, list[str]] = defaultdict(list)
        self.count = 0

    @property
    def not_embedded(self) -> int:
        """How many episodes' tasks have no vector."""
        return self._tasks.missing

    @property
    def in_none(self) -> list[str]:
        """What is to be adjusted for, and no episode has."""
        return list(self._in_none) if self.count else []

    def add(self, episodes: Sequence[Episode], vectors: Mapping[str, Vectors]) -> None:
        """Take in a page, the latest first, with the vectors (d,) of tasks that have some."""
        used = {one.id: _used_skills(one) for one in episodes}
        ids = self._resolve({name for names in used.values() for name in names})
        for episode in episodes:
            self._outcomes.extend((episode.reward, float(episode.success)))
            self._times.append(float(episode.occurred_us))
            self._about.append(self._code(_ABOUT, _about(episode)))
            self._tasks.add(vectors.get(episode.id))
            for name, value in (
                ("agent", episode.agent_id), ("user", episode.user_id),
                ("project", episode.project),
            ):  # fmt: skip
                self._levels[name].append(self._code(name, value))
            self._take_named(episode)
            for cause in self._causes(episode, [ids[n] for n in used[episode.id] if n in ids]):
                self._having[cause].append(self.count)
                if len(self._latest[cause]) < _MOST_LEVELS:
                    self._latest[cause].append(episode.id)
            self.count += 1

    def _take_named(self, episode: Episode) -> None:
        metadata = json.loads(episode.metadata_json) if self._adjust_for else {}
        for name in self._adjust_for:
            kind, _, label = name.partition(":")
            value: Any = metadata.get(name)
            if kind == TAG and label:
                value = label in episode.tags or None
            number = isinstance(value, int | float) and not isinstance(value, bool)
            self._numbers[name].append(float(value) if number else float("nan"))
            said = value if isinstance(value, str | bool) else None
            if number or said is not None:
                self._in_none.pop(name, None)
            self._words[name].append(self._code(name, said))

    def _code(self, name: str, value: object) -> int:
        codes = self._codes[name]
        return codes.setdefault(value, len(codes))

    def _causes(self, episode: Episode, skills: Sequence[str]) -> set[str]:
        found = {node(TOOL, tool) for tool in episode.tools} if self._with_tools else set()
        found |= _decided(episode, self._adjust_for)
        found |= {node(TAG, tag) for tag in episode.tags if not says_the_outcome(tag)}
        found |= {node(SKILL, skill) for skill in skills}
        return found.difference(self._adjust_for)

    def causes(self) -> Mapping[str, Rows]:
        """Return the episodes that had each cause, by their places, the most frequent first."""
        ordered = sorted(self._having.items(), key=lambda one: (-len(one[1]), one[0]))
        return {cause: np.array(rows, np.int64) for cause, rows in ordered}

    def tasks(self) -> NDArray[np.int64]:
        """Return the number of the task of each episode, shape (n,). One that a fifth of them share
        is none: each of these is of its own."""
        codes = np.array(self._about, np.int64)
        shared = np.bincount(codes)[codes] > max(_NO_TASK * len(codes), 1) if len(codes) else codes
        return np.where(shared, -1 - np.arange(len(codes)), codes)

    def evidence(self, cause: str) -> Sequence[str]:
        """Return the ids of the latest episodes that had a cause."""
        return self._latest[cause]

    def outcomes(self) -> Matrix:
        """Return reward and success of each episode, shape (n, 2)."""
        return np.array(self._outcomes, np.float64).reshape(-1, 2)

    def features(self) -> tuple[Matrix, list[str]]:
        """Return what was known before each episode, shape (n, d): the first column is 1, the
        others have a mean of 0 and a deviation of 1; and the names of what that is."""
        columns: list[Matrix] = []
        names: list[str] = []

        if not self.count:
            return np.zeros((0, 1)), names

        def take(name: str, block: Matrix) -> None:
            varied = block.std(axis=0) > _UNIT
            if varied.any():
                columns.append(block[:, varied])
                names.append(name)

        take("task", self._tasks.directions())
        for name, codes in self._levels.items():
            take(name, _indicators(np.array(codes)))
        take("time", _powers(np.array(self._times)))
        for name in self._adjust_for:
            amounts = _amounts(np.array(self._numbers[name]))
            take(name, np.hstack([amounts, _indicators(np.array(self._words[name]))]))
        block = np.hstack(columns) if columns else np.zeros((self.count, 0))
        block = (block - block.mean(axis=0)) / block.std(axis=0)
        return np.hstack([np.ones((self.count, 1)), block]), names

    def not_in(self, names: Collection[str]) -> Mapping[str, NotAdjustedReason]:
        """Return what is to be adjusted for and is not among the names of `features`, and why."""
        return {
            one: NotAdjustedReason.SAME_IN_ALL
            if len(set(self._levels.get(one, self._words[one]))) == 1
            else NotAdjustedReason.TOO_FEW_ALIKE
            for one in self._adjust_for
            if self.count and one not in names
        }


class _TaskDirections:
    """The directions in which tasks differ most, learned from the first that come."""

    def __init__(self) -> None:
        self._first: list[Vectors | None] = []
        self._basis: tuple[Matrix, Matrix] | None = None
        self._parts: list[Matrix] = []
        self.missing = 0

    def add(self, vector: Vectors | None) -> None:
        self.missing += vector is None
        self._first.append(vector)
        if len(self._first) >= _TASKS_LEARNED_FROM:
            self._project()

    def _project(self) -> None:
        known = [one for one in self._first if one is not None]
        if self._basis is None and known:
            self._basis = _basis(np.stack(known).astype(np.float64))
        part = np.zeros((len(self._first), TASK_DIRECTIONS + 1))
        if self._basis is not None:
            mean, directions = self._basis
            have = np.array([one is not None for one in self._first])
            stacked = np.stack(known).astype(np.float64) if known else np.zeros((0, len(mean)))
            part[have, : len(directions)] = (stacked - mean) @ directions.T
            part[~have, TASK_DIRECTIONS] = 1.0
        self._parts.append(part)
        self._first = []

    def directions(self) -> Matrix:
        """Return the tasks by direction, with whether each has no vector, shape (n, ...)."""
        if self._first:
            self._project()
        return np.vstack(self._parts) if self._parts else np.zeros((0, 1))


def _basis(vectors: Matrix) -> tuple[Matrix, Matrix]:
    """Return the mean of vectors (n, d) and the directions in which they differ most (k, d).

    By the covariance, which is much smaller than the vectors: a decomposition of these themselves
    takes many times as long.
    """
    mean = vectors.mean(axis=0)
    apart = vectors - mean
    _, directions = np.linalg.eigh(apart.T @ apart)  # The least first, as columns.
    return mean, directions.T[::-1][: min(TASK_DIRECTIONS, len(vectors))]


def _about(episode: Episode) -> str:
    """Return what an episode was about: the task that its metadata name, else its own."""
    if '"task_id"' in episode.metadata_json:
        said = json.loads(episode.metadata_json).get("task_id")
        if isinstance(said, str | int) and said != "":
            return f"id:{said}"
    return " ".join(episode.task.split())


def _decided(episode: Episode, adjust_for: Sequence[str]) -> set[str]:
    """Return what was decided before an attempt, as its metadata say: "strategy:NAME", and the
    lessons that were shown."""
    if not any(f'"{name}"' in episode.metadata_json for name in (*_DECIDED, *_LESSONS)):
        return set()
    metadata = json.loads(episode.metadata_json)
    found = {
        f"{name}:{metadata[name]}"
        for name in _DECIDED
        if name not in adjust_for and isinstance(metadata.get(name), str | int | float)
    }
    for name in _LESSONS:
        value = metadata.get(name)
        shown = value if isinstance(value, list) else [value]
        found |= {f"lesson:{one}" for one in shown if isinstance(one, str) and one}
    return {one for one in found if len(one) <= _MOST_CHARACTERS}


def _used_skills(episode: Episode) -> list[str]:
    """Return what an episode's metadata calls the skills that it used."""
    if not any(name in episode.metadata_json for name in _SKILLS):
        return []
    metadata = json.loads(episode.metadata_json)
    named: list[object] = []
    for name in _SKILLS:
        value = metadata.get(name)
        named += value if isinstance(value, list) else [value]
    return [one for one in named if isinstance(one, str) and one]


def _amounts(numbers: Matrix) -> Matrix:
    """Return whether each number is known, and how far it is from the usual one, shape (n, 2)."""
    known = ~np.isnan(numbers)
    found = np.zeros((len(numbers), 2))
    found[:, 0] = known
    if known.any():
        halves = numbers[known] / 2  # Whose differences are finite, as those of numbers may not be.
        apart = halves - np.median(halves)
        # Nor are the squares of large ones; the unit does not matter.
        found[known, 1] = apart / max(1.0, float(np.abs(apart).max()))
    return found


def _indicators(codes: NDArray[np.int64]) -> Matrix:
    """Return a column for each frequent value; the rare ones together are what is left."""
    common = [
        code
        for code, count in Counter(codes.tolist()).most_common(_MOST_LEVELS)
        if count >= _LEAST_OF_A_LEVEL
    ]
    if not common:
        return np.zeros((len(codes), 1))
    found: Matrix = (codes[:, None] == np.array(common)).astype(np.float64)
    # Where each value has its column, one of them says nothing new.
    return found[:, 1:] if found.sum() == len(codes) and len(common) > 1 else found


def _powers(times: Matrix) -> Matrix:
    """Return the order in time, from -1 to 1, and its square and cube: what changes slowly."""
    order = np.argsort(np.argsort(times, kind="stable"), kind="stable")
    place = 2 * order / max(len(times) - 1, 1) - 1
    return np.column_stack([place, place**2, place**3])
