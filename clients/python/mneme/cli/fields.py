"""Tables of the fields of requests, each with the option that it is taken from.

Fields(
    category=text("A group, e.g. deployment."),
    agent_id=text("The agent it is for.", "--agent", metavar="ID"),
    tags=texts("A label; repeatable.", "--tag"),
)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args

import typer

_ANNOTATED: Any = Annotated


class Sent:
    """Beside a parameter in its annotation: what is sent of the value that a line gave.

    Args:
        of: makes it of the value; None leaves the field out.
    """

    def __init__(self, of: Callable[[Any], Any]) -> None:
        self.of = of


class Fields(dict[str, Any]):
    """The fields of a request, or of a message in it, each with the parameter it is taken from.

    A value is a parameter as typer wants it, `Annotated[str | None, typer.Option(help=…)]`, or the
    `Fields` of a message. An option that declares no flag has the field's name. A line may leave a
    parameter out if it can be None, or is a flag.
    """

    def parameters(self) -> Iterator[inspect.Parameter]:
        """The parameters of all fields, in their order."""
        for name, annotation in self.items():
            if isinstance(annotation, Fields):
                yield from annotation.parameters()
            else:
                kind, default = inspect.Parameter.KEYWORD_ONLY, _default(annotation)
                yield inspect.Parameter(name, kind, annotation=annotation, default=default)

    def take(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take these fields out of what a line gave; what it did not give is left out."""
        taken = {}
        for name, annotation in self.items():
            if isinstance(annotation, Fields):
                value: Any = annotation.take(given) or None
            elif (value := given.pop(name)) is not None:
                for sent in annotation.__metadata__:
                    value = sent.of(value) if isinstance(sent, Sent) else value
            if value is not None:
                taken[name] = value
        return taken


def _default(annotation: Any) -> Any:
    """What a parameter is where a line leaves it out."""
    kind = annotation.__origin__
    if kind is bool:
        return False
    may_be_none = kind is Any or type(None) in get_args(kind)
    return None if may_be_none else inspect.Parameter.empty


def option(
    kind: Any,
    help: str | None = None,
    *flags: str,
    sent: Callable[[Any], Any] | None = None,
    **shown: Any,
) -> Any:
    """An option in a table of fields.

    Args:
        kind: what it is given as; one that can be None may be left out.
        help: what its help says.
        flags: what people type; left out: the field's name.
        sent: makes what is sent of what was given.
        shown: what else typer's options take.
    """
    more = () if sent is None else (Sent(sent),)
    return _ANNOTATED[kind, typer.Option(*flags, help=help, **shown), *more]


def argument(metavar: str | None, help: str | None = None, kind: Any = str, **shown: Any) -> Any:
    """An argument in a table of fields; as `option`."""
    return _ANNOTATED[kind, typer.Argument(metavar=metavar, help=help, **shown)]


def text(help: str | None = None, *flags: str, **shown: Any) -> Any:
    """A text that may be left out."""
    return option(str | None, help, *flags, **shown)


def texts(help: str | None = None, *flags: str, **shown: Any) -> Any:
    """Texts, each with the option."""
    return option(list[str] | None, help, *flags, **shown)


def number(help: str | None = None, *flags: str, kind: Any = float, **shown: Any) -> Any:
    """A number that may be left out."""
    return option(kind | None, help, *flags, **shown)


def flag(help: str | None = None, *flags: str) -> Any:
    """A flag."""
    return option(bool, help, *flags)


def choice(names: Any, help: str | None = None, *flags: str, **shown: Any) -> Any:
    """One of the names of a Literal, in any case, which may be left out."""
    return option(names | None, help, *flags, case_sensitive=False, **shown)
