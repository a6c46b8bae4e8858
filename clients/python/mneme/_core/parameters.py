"""What a parameter of a method takes."""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter of a method, or a field of a message that one takes.

    Args:
        kind: "text", "integer", "number", "flag", "choice", "time", "json" for free JSON, or the
            name of a message.
        about: what it is, in a sentence.
        many: it takes several.
        required: it cannot be left out.
        optional: "", 0 or False says something else than leaving it out.
        prose: texts of it may hold line breaks.
        least: the least number.
        most: the greatest number, how many characters a text has at most, or how many there are.
        default: what it is when it is left out, if that is not nothing.
        choices: the names that there are.
    """

    kind: str
    about: str
    many: bool = False
    required: bool = False
    optional: bool = False
    prose: bool = False
    least: float | None = None
    most: float | None = None
    default: str | float | None = None
    choices: tuple[str, ...] = ()
