"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli.fields import option
from mneme.cli.values import event_type, json_object

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
