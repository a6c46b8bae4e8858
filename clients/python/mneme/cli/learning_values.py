"""States, actions, spaces and settings as the command line takes them."""

from __future__ import annotations

import json
from typing import Any

import typer

from mneme.cli.values import not_json


def value(text: str) -> Any:
    """A state or an action: JSON, or a label as it is.

    Raises:
        typer.BadParameter: it begins like JSON and is none, or is no state and no action.
    """
    from mneme.errors import ArgumentError
    from mneme.spaces import value_fields

    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise typer.BadParameter(not_json(error)) from error
        given = text
    if given is None or isinstance(given, bool):
        given = text
    try:
        return value_fields(given)
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from error


def space(text: str) -> Any:
    """A space, as JSON.

    Raises:
        typer.BadParameter: the text is no space.
    """
    from mneme.errors import ArgumentError
    from mneme.spaces import space_fields

    try:
        return space_fields(json.loads(text))
    except json.JSONDecodeError as error:
        raise typer.BadParameter(not_json(error)) from error
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from error


def setting(text: str) -> tuple[str, Any]:
    """A setting of an algorithm, KEY=VALUE; a value that is a number is one.

    Raises:
        typer.BadParameter: there is no KEY=.
    """
    key, equals, given = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    try:
        return key, float(given)
    except ValueError:
        return key, given
