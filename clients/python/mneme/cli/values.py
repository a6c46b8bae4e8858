"""Values of options that need more than typer's own conversion."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, get_args

import typer

from mneme._generated.choices import EventTypeName, MemoryKindChoice
from mneme.cli.exits import InputError


def not_json(error: json.JSONDecodeError) -> str:
    """Where a text stops being JSON."""
    return f"is not JSON: it goes wrong at line {error.lineno}, column {error.colno}"


def json_object(text: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        typer.BadParameter: the text is none.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(not_json(error)) from error
    if not isinstance(value, dict):
        raise typer.BadParameter('is not a JSON object; give {"key": "value", …}')
    return value


def text_of(given: str) -> str:
    """What was given, or what standard input holds for "-".

    Raises:
        InputError: it holds nothing.
    """
    if given != "-":
        return given
    text = sys.stdin.read().strip()
    if not text:
        raise InputError("standard input is empty")
    return text


def without_empty(values: list[str]) -> list[str]:
    """The values but empty ones: a single empty one leaves none of a list."""
    return [value for value in values if value]


def number_or_empty(text: str) -> float | str:
    """A number, or the empty text, which lifts one.

    Raises:
        typer.BadParameter: the text is neither.
    """
    try:
        return float(text) if text else ""
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a number") from error


def one_of(choices: Any) -> Callable[[str], Any]:
    """A parser of one of the names of a Literal, in any case. For options that repeat.

    What it returns raises `typer.BadParameter` for anything else.
    """
    names = get_args(choices)

    def parse(text: str) -> str:
        name = text.strip().lower().replace("-", "_")
        if name not in names:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(names)}")
        return name

    return parse


def event_type(text: str) -> str:
    """An event's type: a known one in any case, with hyphens too, or any other as it is."""
    name = text.strip()
    folded = name.lower().replace("-", "_")
    return folded if folded in get_args(EventTypeName) else name


def scope(text: str) -> MemoryKindChoice:
    """A kind of memory, in the singular or plural.

    Raises:
        typer.BadParameter: there is no such kind.
    """
    name = text.strip().lower().replace("-", "_")
    choices = get_args(MemoryKindChoice)
    choice: MemoryKindChoice
    for choice in choices:
        if name in forms(choice):
            return choice
    raise typer.BadParameter(f"{text!r} is none of {', '.join(choices)}")


def forms(choice: str) -> tuple[str, ...]:
    """A name in the singular and the plural."""
    return choice, f"{choice}s", choice.removesuffix("y") + "ies"


def seconds(text: str) -> timedelta:
    """A duration in seconds.

    Raises:
        typer.BadParameter: the text is not a number.
    """
    try:
        return timedelta(seconds=float(text.removesuffix("s")))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is not a number of seconds") from error
