"""Steps that regular expressions take, counted: what is said of their time holds on a busy machine.

A pattern is walked as a backtracking engine walks it, by Python's own parse of it. Single
characters, ends of words and what lies behind are left to the engine itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import pytest

_SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY)
_READ = ("match", "search", "finditer", "findall", "split", "sub")
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT)


class StepCounter:
    """Stands in for patterns, and counts the steps of all of them: characters that are compared."""

    def __init__(self) -> None:
        self.steps = 0

    def watch(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        """Count what the patterns of modules take from now on."""
        for module in modules:
            for name, value in vars(module).copy().items():
                if isinstance(value, re.Pattern):
                    monkeypatch.setattr(module, name, _Counted(value, self))


class _Counted:
    def __init__(self, pattern: re.Pattern[str], counter: StepCounter) -> None:
        self._pattern, self._counter = pattern, counter
        self._tree = parser.parse(pattern.pattern, pattern.flags)
        self._state = self._tree.state
        self._compiled: dict[int, re.Pattern[str]] = {}

    def __getattr__(self, name: str) -> Any:
        """A method of the pattern; one that reads a text counts what that takes."""
        method = getattr(self._pattern, name)
        if name not in _READ:
            return method

        def counted(*given: Any, **how: Any) -> Any:
            text, *span = given[1:] if name == "sub" else given
            if name == "match":
                self._at(text, *span)
            else:
                once = name == "search" or 1 in (how.get("count"), how.get("maxsplit"))
                self._through(text, once, *span)
            return method(*given, **how)

        return counted

    def _through(self, text: str, once: bool, start: int = 0, end: int = 1 << 60) -> None:
        text = text[:end]
        while start <= len(text):
            found = self._at(text, start)
            if found is not None and once:
                return
            start = start + 1 if found is None else max(found, start + 1)

    def _at(self, text: str, start: int = 0, end: int = 1 << 60) -> int | None:
        return next(self._ends(self._tree, 0, text[:end], start, {}), None)

    def _ends(
        self, tree: Any, item: int, text: str, at: int, groups: dict[int, str]
    ) -> Iterator[int]:
        """Yield where `tree` may end from its `item` on, in the order in which it is tried."""
        self._counter.steps += 1
        if item == len(tree):
            yield at
            return
        op, given = tree[item]
        for end in self._ends_of(op, given, text, at, groups):
            yield from self._ends(tree, item + 1, text, end, groups)

    def _ends_of(
        self, op: Any, given: Any, text: str, at: int, groups: dict[int, str]
    ) -> Iterator[int]:
        if op in _REPEATS:
            least, most, inner = given
            if len(inner) == 1 and inner[0][0] in _SINGLE:
                yield from self._run(inner[0], least, most, text, at, lazy=op is ops.MIN_REPEAT)
            else:
                yield from self._repeat(inner, least, most, text, at, groups)
        elif op is ops.BRANCH:
            for branch in given[1]:
                yield from self._ends(branch, 0, text, at, groups)
        elif op is ops.SUBPATTERN:
            for end in self._ends(given[3], 0, text, at, groups):
                groups[given[0]] = text[at:end]
                yield end
        elif op is ops.GROUPREF:
            if text.startswith(groups.get(given, "\0"), at):
                yield at + len(groups[given])
        elif op in (ops.ASSERT, ops.ASSERT_NOT) and given[0] > 0:
            found = next(self._ends(given[1], 0, text, at, groups), None)
            if (found is not None) is (op is ops.ASSERT):
                yield at
        elif (found := self._one((op, given)).match(text, at)) is not None:
            yield found.end()

    def _run(
        self, single: Any, least: int, most: int, text: str, at: int, *, lazy: bool
    ) -> Iterator[int]:
        one, end = self._one(single), at
        while (lazy and end - at < least) or (not lazy and end - at < most):
            if one.match(text, end) is None:
                break
            self._counter.steps += 1
            end += 1
        if not lazy:
            yield from range(end, at + least - 1, -1)
            return
        while end - at >= least:
            yield end
            if end - at == most or one.match(text, end) is None:
                return
            self._counter.steps += 1
            end += 1

    def _repeat(
        self, inner: Any, least: int, most: int, text: str, at: int, groups: dict[int, str]
    ) -> Iterator[int]:
        if most > 0:
            for end in self._ends(inner, 0, text, at, groups):
                if end > at:
                    yield from self._repeat(inner, least - 1, most - 1, text, end, groups)
        if least <= 0:
            yield at

    def _one(self, single: Any) -> re.Pattern[str]:
        """A single item of the pattern, compiled; trees live as long as their pattern."""
        key = id(single[1]) if not isinstance(single[1], int) else hash(single)
        if key not in self._compiled:
            part = parser.SubPattern(self._state, [single])
            self._compiled[key] = compiler.compile(part, self._pattern.flags)
        return self._compiled[key]
