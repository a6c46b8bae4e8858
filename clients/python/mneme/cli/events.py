"""`mneme events`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme._generated.choices import SeverityChoice
from mneme.cli import cells, exits
from mneme.cli.app import App, Cli
from mneme.cli.event_table import EVENT_COLUMNS, event_row
from mneme.cli.options import Agent, Limit, MinSeverity, Session, Types, listed, page_size
from mneme.cli.output import Column
from mneme.cli.times import From, To, parse_start
from mneme.cli.values import event_type, json_object, seconds
from mneme.cli.watching import watch

if TYPE_CHECKING:
    from mneme.types import NewEventFields

app = App(help="What happened, event by event.")
app.command("watch")(watch)


_BROKEN_COLUMNS = (
    Column("Session", style="cyan"),
    Column("Event"),
    Column("Place", right=True),
    Column("What does not fit", flexible=True),
)


@app.command("list")
def list_(
    cli: Cli,
    *,
    session: Session = None,
    agent: Agent = None,
    type_: Types = None,
    min_severity: MinSeverity = None,
    name: Annotated[str | None, typer.Option(help="With this name, e.g. a tool's.")] = None,
    start: From = None,
    end: To = None,
    newest: Annotated[bool, typer.Option("--newest", help="Newest first.")] = False,
    limit: Limit = 50,
) -> None:
    """List events by time. `mneme import` reads the output of --json."""
    with cli.connect() as client:
        walk = client.iter_events(
            session_id=session,
            agent_id=agent,
            event_types=type_,
            min_severity=min_severity,
            name=name,
            start_time=start,
            end_time=end,
            descending=newest,
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, EVENT_COLUMNS, event_row)


@app.command()
def record(
    cli: Cli,
    *,
    session: Annotated[str, typer.Option(metavar="ID", help="The session it belongs to.")],
    type_: Annotated[
        str,
        typer.Option(
            "--type",
            parser=event_type,
            metavar="TYPE",
            help="What happened: message, tool_call, tool_error, … or any other name.",
        ),
    ],
    text: Annotated[str | None, typer.Option(help="What to remember it by.")] = None,
    name: Annotated[str | None, typer.Option(help="The tool's name, or what happened.")] = None,
    error: Annotated[str | None, typer.Option(help="The error's message.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="Who acted.")] = None,
    severity: Annotated[SeverityChoice | None, typer.Option(case_sensitive=False)] = None,
    payload: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="Arguments, results.")
    ] = None,
    metadata: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="Versions, hosts.")
    ] = None,
    at: Annotated[
        datetime | None,
        typer.Option(parser=parse_start, metavar="TIME", help="When it happened; default now."),
    ] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="Its id; made if left out.")] = None,
    call_id: Annotated[str | None, typer.Option(help="Links a call with its answer.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name.")] = None,
    input_tokens: Annotated[int | None, typer.Option(min=0)] = None,
    output_tokens: Annotated[int | None, typer.Option(min=0)] = None,
    cost: Annotated[float | None, typer.Option(min=0, metavar="USD")] = None,
    duration: Annotated[
        timedelta | None, typer.Option(parser=seconds, metavar="SECONDS", help="How long it took.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it can be found by meaning too.")
    ] = False,
) -> None:
    """Record one event, and print its id. `mneme import` records many."""
    event: dict[str, Any] = {
        "id": event_id,
        "session_id": session,
        "agent_id": agent,
        "event_type": type_,
        "severity": severity,
        "timestamp": at,
        "text": text,
        "payload": payload,
        "metadata": metadata,
        "name": name,
        "call_id": call_id,
        "error": error,
        "model": model,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cost_usd": cost,
        "duration": duration,
    }
    with cli.connect() as client:
        receipt = client.record_events([cast("NewEventFields", event)], wait_indexed=wait).receipts[
            0
        ]
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
            rows = [[b.session_id, b.event_id, str(b.sequence), b.reason] for b in answer.broken]
            cli.out.table(_BROKEN_COLUMNS, rows)
        if answer.head_hash:
            cli.out.line(f"head {answer.head_hash}")
    if not answer.valid:
        raise typer.Exit(exits.FAILED)
