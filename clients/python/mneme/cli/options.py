"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli import cells
from mneme.cli.fields import option
from mneme.cli.output import Column, Output
from mneme.cli.values import event_type, json_object

if TYPE_CHECKING:
    from mneme._core.answers import Answer

ItemT = TypeVar("ItemT", bound="Answer[Any]")

MAX_PAGE = 1000

Agent = Annotated[str | None, typer.Option("--agent", metavar="ID", help="Of this agent.")]
Session = Annotated[str | None, typer.Option("--session", metavar="ID", help="Of this session.")]
User = Annotated[str | None, typer.Option("--user", metavar="ID", help="For this user.")]
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
BestOf = Annotated[int, typer.Option("--limit", "-n", min=1, max=100)]
Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")]
Task = Annotated[str, typer.Argument(metavar="TASK", help="The task at hand, in words.")]
Etag = Annotated[
    str | None,
    typer.Option(
        metavar="ETAG", help="Its etag as `get` shows it: refuse if it has changed since."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def free_json(help: str | None = None, *flags: str) -> Any:
    """A JSON object."""
    return option(Any, help, *flags, parser=json_object, metavar="JSON")


def page_size(limit: int) -> int:
    """How many to fetch at once when `limit` are wanted."""
    return min(limit + 1, MAX_PAGE) if limit else MAX_PAGE


def listed(
    out: Output,
    walk: Iterable[ItemT],
    limit: int,
    columns: Sequence[Column],
    row: Callable[[ItemT], Sequence[str]] | None = None,
) -> None:
    """Write the first `limit` things of a walk as a table; as JSON, as they come."""
    rows, found = [], False
    for thing in first(walk, limit, out):
        found = True
        if out.as_json:
            out.message(thing)
        else:
            rows.append(row(thing) if row else [cells.cell_of(thing, one.shown) for one in columns])
    out.table(columns, rows)
    if not found:
        out.remark("There are none.")


def found(
    out: Output, answer: Any, columns: Sequence[Column], one: str, many: str | None = None
) -> None:
    """Write what a search found, best first, or say of how many things none fits."""
    if out.as_json:
        out.message(answer)
        return
    out.things(columns, answer.results)
    if not answer.results:
        out.remark(f"None of {cells.plural(answer.searched_count, one, many)} fits.")


def first(items: Iterable[ItemT], limit: int, out: Output) -> Iterator[ItemT]:
    """The first `limit` items, and a remark when there are more; all of them for 0."""
    if not limit:
        yield from items
        return
    walk = iter(items)
    yield from islice(walk, limit)
    if next(walk, None) is not None:
        out.remark(f"There are more than {limit}; --limit 0 shows all.")
