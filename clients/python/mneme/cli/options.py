"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, TypeVar

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli.output import Output
from mneme.cli.values import event_type

ItemT = TypeVar("ItemT")

MAX_PAGE = 1000

Agent = Annotated[str | None, typer.Option(metavar="ID", help="Of this agent.")]
Session = Annotated[str | None, typer.Option(metavar="ID", help="Of this session.")]
User = Annotated[str | None, typer.Option(metavar="ID", help="For this user.")]
Project = Annotated[str | None, typer.Option(metavar="NAME", help="On this project.")]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="With this label; repeatable.")
]
Types = Annotated[
    list[Any] | None,
    typer.Option(
        "--type",
        parser=event_type,
        metavar="TYPE",
        help="Of this type: message, tool_call, tool_error, … or any other; repeatable.",
    ),
]
MinSeverity = Annotated[
    SeverityChoice | None, typer.Option(case_sensitive=False, help="At least this severe.")
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=0, metavar="N", help="At most this many; 0 for all.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def page_size(limit: int) -> int:
    """How many to fetch at once when `limit` are wanted."""
    return min(limit + 1, MAX_PAGE) if limit else MAX_PAGE


def first(items: Iterable[ItemT], limit: int, out: Output) -> Iterator[ItemT]:
    """The first `limit` items, and a remark when there are more; all of them for 0."""
    if not limit:
        yield from items
        return
    walk = iter(items)
    yield from islice(walk, limit)
    if next(walk, None) is not None:
        out.remark(f"There are more than {limit}; --limit 0 shows all.")
