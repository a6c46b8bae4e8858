"""`mneme sessions`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mneme._generated.choices import SessionStatusChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.event_table import EVENT_COLUMNS, event_row
from mneme.cli.options import Agent, Limit, Project, Tags, User, listed, page_size
from mneme.cli.output import Column
from mneme.cli.session_search import search
from mneme.cli.times import From, To
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Session

EndStatus = Literal["completed", "error"]

app = App(help="What agents did, run by run.")

_COLUMNS = (
    Column("Session", style="cyan"),
    Column("Agent", flexible=True),
    Column("Status"),
    Column("Started", optional=1),
    Column("Events", right=True),
    Column("Tool calls", right=True, optional=2),
    Column("Errors", right=True),
    Column("Project", flexible=True, optional=3),
    Column("Tags", flexible=True, optional=4),
)

app.command("search")(search)

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]


@app.command("list")
def list_(
    cli: Cli,
    *,
    agent: Agent = None,
    user: User = None,
    project: Project = None,
    status: Annotated[SessionStatusChoice | None, typer.Option(case_sensitive=False)] = None,
    tag: Tags = None,
    start: From = None,
    end: To = None,
    limit: Limit = 50,
) -> None:
    """List sessions, most recently started first."""
    with cli.connect() as client:
        walk = client.iter_sessions(
            agent_id=agent,
            user_id=user,
            project=project,
            status=status,
            tags=tag,
            start_time=start,
            end_time=end,
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def show(
    cli: Cli,
    *,
    session_id: SessionId,
    events: Annotated[
        int, typer.Option(min=0, metavar="N", help="Also show the first N events.")
    ] = 20,
) -> None:
    """Show one session with its counters and its first events."""
    with cli.connect() as client:
        session = client.get_session(session_id).session
        if cli.out.as_json:
            cli.out.message(session)
            return
        cli.out.facts(_facts(session))
        if events:
            walk = client.iter_events(session_id=session_id, page_size=min(events, 1000))
            cli.out.line("")
            cli.out.table(EVENT_COLUMNS, [event_row(event) for event in islice(walk, events)])
    if session.event_count > events > 0:
        cli.out.remark(
            f"{cells.count(session.event_count - events)} more: "
            f"mneme events list --session {session_id} --limit 0"
        )


@app.command()
def start(
    cli: Cli,
    *,
    session_id: Annotated[
        str | None, typer.Option("--id", help="Its id; made if left out.")
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent that runs it.")] = None,
    agent_name: Annotated[str | None, typer.Option(help="The agent's human-readable name.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="The user it serves.")] = None,
    project: Annotated[str | None, typer.Option(help="The project it works on.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")] = None,
    metadata: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="Free JSON.")
    ] = None,
) -> None:
    """Start a session, and print its id."""
    with cli.connect() as client:
        answer = client.start_session(
            session_id=session_id,
            agent_id=agent,
            agent_name=agent_name,
            user_id=user,
            project=project,
            tags=tag,
            metadata=metadata,
        )
    cli.out.done(answer.session.id, answer.session)


@app.command()
def end(
    cli: Cli,
    *,
    session_id: SessionId,
    status: Annotated[
        EndStatus, typer.Option(case_sensitive=False, help="How it ended.")
    ] = "completed",
) -> None:
    """End a session."""
    with cli.connect() as client:
        answer = client.end_session(session_id, status=status)
    session = answer.session
    cli.out.done(
        f"ended {session_id} after {cells.plural(session.event_count, 'event')}, "
        f"{cells.plural(session.error_count, 'error')}",
        session,
    )


def _row(session: Session) -> list[str]:
    return [
        cells.preview(session.id),
        cells.preview(session.agent_id),
        _status(session),
        cells.when(session.started_at),
        cells.count(session.event_count),
        cells.count(session.tool_call_count),
        cells.count(session.error_count),
        cells.preview(session.project),
        cells.preview(", ".join(session.tags)),
    ]


def _facts(session: Session) -> list[tuple[str, str]]:
    tokens = session.total_input_tokens + session.total_output_tokens
    return [
        ("Session", cells.preview(session.id)),
        ("Status", _status(session)),
        ("Agent", cells.preview(f"{session.agent_id} {session.agent_name}")),
        ("User", cells.preview(session.user_id)),
        ("Project", cells.preview(session.project)),
        ("Tags", cells.preview(", ".join(session.tags))),
        ("Started", cells.when(session.started_at)),
        ("Ended", cells.when(session.ended_at)),
        ("Events", cells.count(session.event_count)),
        ("Tool calls", cells.count(session.tool_call_count)),
        ("Errors", cells.count(session.error_count)),
        ("Model calls", cells.count(session.llm_call_count) if session.llm_call_count else ""),
        ("Tokens", cells.count(tokens) if tokens else ""),
        ("Cost", f"{session.total_cost_usd:.4f} USD" if session.total_cost_usd else ""),
        ("Metadata", _metadata(session)),
        ("Head hash", session.head_hash),
    ]


def _metadata(session: Session) -> str:
    return cells.preview(cells.json_text(session.metadata), 1000)


def _status(session: Session) -> str:
    return cells.name(session.status)
