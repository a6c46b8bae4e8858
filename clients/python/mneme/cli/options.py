"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli.output import Column, Output
from mneme.cli.values import event_type

if TYPE_CHECKING:
    from mneme._core.answers import Answer

ItemT = TypeVar("ItemT", bound="Answer[Any]")

MAX_PAGE = 1000

Agent = Annotated[str | None, typer.Option(metavar="ID", help="Of this agent.")]
Session = Annotated[str | None, typer.Option(metavar="ID", help="Of this session.")]
User = Annotated[str | None, typer.Option(metavar="ID", help="For this user.")]
Project = Annotated[str | None, typer.Option(metavar="NAME", help="On this project.")]
WithoutExperience = Annotated[
    bool, typer.Option("--without-experience", help="Leave out episodes and skills.")
]
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


def listed(
    out: Output,
    walk: Iterable[ItemT],
    limit: int,
    columns: Sequence[Column],
    row: Callable[[ItemT], Sequence[str]],
) -> None:
    """Write the first `limit` items as a table, one `row` of cells each; as JSON, as they come."""
    rows, found = [], False
    for item in first(walk, limit, out):
        found = True
        if out.as_json:
            out.message(item)
        else:
            rows.append(row(item))
    out.table(columns, rows)
    if not found:
        out.remark("There are none.")


def first(items: Iterable[ItemT], limit: int, out: Output) -> Iterator[ItemT]:
    """The first `limit` items, and a remark when there are more; all of them for 0."""
    if not limit:
        yield from items
        return
    walk = iter(items)
    yield from islice(walk, limit)
    if next(walk, None) is not None:
        out.remark(f"There are more than {limit}; --limit 0 shows all.")
