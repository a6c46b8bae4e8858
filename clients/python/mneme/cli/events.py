"""`mneme events`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli import cells, exits
from mneme.cli.app import App, Cli
from mneme.cli.event_table import EVENT_COLUMNS, EVENT_FILTER
from mneme.cli.fields import Fields, choice, flag, number, option, text
from mneme.cli.options import free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.times import From, To, parse_start
from mneme.cli.values import event_type, seconds
from mneme.cli.watching import watch

app = App(help="What happened, event by event.")
app.command("watch")(watch)


_BROKEN_COLUMNS = (
    Column("Session", "session_id", style="cyan"),
    Column("Event", "event_id"),
    Column("Place", "sequence:d", right=True),
    Column("What does not fit", "reason", flexible=True),
)


_events = Resource(app, columns=EVENT_COLUMNS)
_events.list(
    "iter_events",
    "List events by time. `mneme import` reads the output of --json.",
    Fields(
        **EVENT_FILTER,
        name=text("With this name, e.g. a tool's."),
        start_time=From,
        end_time=To,
        descending=flag("Newest first.", "--newest"),
    ),
)


@app.command()
def record(
    cli: Cli,
    *,
    event: Annotated[
        Any,
        Fields(
            session_id=option(str, "The session it belongs to.", "--session", metavar="ID"),
            event_type=option(
                str,
                "What happened: message, tool_call, tool_error, … or any other name.",
                "--type",
                parser=event_type,
                metavar="TYPE",
            ),
            text=text("What to remember it by."),
            name=text("The tool's name, or what happened."),
            error=text("The error's message."),
            agent_id=text("Who acted.", "--agent", metavar="ID"),
            severity=choice(SeverityChoice),
            payload=free_json("Arguments, results."),
            metadata=free_json("Versions, hosts."),
            timestamp=option(
                datetime | None,
                "When it happened; default now.",
                "--at",
                parser=parse_start,
                metavar="TIME",
            ),
            id=text("Its id; made if left out.", "--id"),
            call_id=text("Links a call with its answer."),
            model=text("The model's name."),
            input_tokens=number(kind=int, min=0),
            output_tokens=number(kind=int, min=0),
            cost_usd=number(None, "--cost", min=0, metavar="USD"),
            duration=option(
                timedelta | None, "How long it took.", parser=seconds, metavar="SECONDS"
            ),
        ),
    ],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it can be found by meaning too.")
    ] = False,
) -> None:
    """Record one event, and print its id. `mneme import` records many."""
    with cli.connect() as client:
        receipt = client.record_events([event], wait_indexed=wait).receipts[0]
    cli.out.done(receipt.id, receipt)


@app.command()
def verify(
    cli: Cli,
    *,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Only this session's chain.")
    ] = None,
) -> None:
    """Check that no recorded event was changed, moved or removed. Exit code 1 if any was."""
    with cli.connect() as client:
        answer = client.verify_events(session_id=session)
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        walked = (
            f"{cells.plural(answer.events_checked, 'event')} in "
            f"{cells.plural(answer.sessions_checked, 'session')}"
        )
        if answer.valid:
            cli.out.line(f"intact: {walked}")
        else:
            cli.out.line(f"{cells.plural(answer.broken_count, 'broken chain')}; walked {walked}")
            cli.out.things(_BROKEN_COLUMNS, answer.broken_chains)
        if answer.head_hash:
            cli.out.line(f"head {answer.head_hash}")
    if not answer.valid:
        raise typer.Exit(exits.FAILED)
