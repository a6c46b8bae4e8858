"""What one side of the client offers, the other offers too, and says so in the same words."""

from __future__ import annotations

import inspect
import re
from typing import Any

import mneme
import pytest
from mneme.attempts import AsyncAttempt, Attempt
from mneme.choosing import AsyncChoice, AsyncChooser, Choice, Chooser

Callables = dict[str, Any]

PAIRS = [
    (mneme.AsyncMnemeClient, mneme.MnemeClient),
    (AsyncAttempt, Attempt),
    (AsyncChooser, Chooser),
    (AsyncChoice, Choice),
    (mneme.local_async, mneme.local),
]
WAITING = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
OF_PYTHON = {"__init__", *WAITING, *WAITING.values()}


def offered(of: Any) -> Callables:
    """What may be called of a class, by the name that it has in synchronous code."""
    if not inspect.isclass(of):
        return {"": of}
    members = inspect.getmembers(of, lambda it: inspect.isfunction(it) or isinstance(it, property))
    return {
        WAITING.get(name, name): member.fget if isinstance(member, property) else member
        for name, member in members
        if not name.startswith("_") or name in OF_PYTHON
    }


def synchronous(words: str | None) -> str | None:
    """The words without those that tell where to wait."""
    return words and re.sub(r"\b(async|await) |_async\b|Async(?=[A-Z])", "", words)


def parameters(of: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(of).parameters.values()]


def operations() -> tuple[type, type]:
    """The classes of the operations that a method of either client starts."""
    found: list[type] = []
    for of in (mneme.AsyncMnemeClient, mneme.MnemeClient):
        kind = inspect.signature(of.backup).return_annotation.partition("[")[0]
        found.append(inspect.unwrap(of.backup).__globals__[kind])
    return found[0], found[1]


@pytest.mark.parametrize(("other", "one"), [*PAIRS, operations()], ids=lambda it: it.__name__)
def test_both_sides_have_the_same_methods_with_the_same_parameters_and_defaults(
    other: Any, one: Any
) -> None:
    assert {name: parameters(of) for name, of in offered(other).items()} == {
        name: parameters(of) for name, of in offered(one).items()
    }


def test_a_stream_can_be_left_and_closed_on_both_sides() -> None:
    both = {name: parameters(of) for name, of in offered(mneme.AsyncStream).items()}
    for name in ("close", "__enter__", "__exit__"):
        assert both[name] == parameters(offered(mneme.Stream)[name])


@pytest.mark.parametrize(("other", "one"), [*PAIRS, operations()], ids=lambda it: it.__name__)
def test_both_sides_say_the_same_of_what_they_offer(other: Any, one: Any) -> None:
    assert synchronous(other.__doc__) == one.__doc__
    assert {name: synchronous(of.__doc__) for name, of in offered(other).items()} == {
        name: of.__doc__ for name, of in offered(one).items()
    }
