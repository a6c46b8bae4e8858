"""`mneme sessions`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mneme._generated.choices import GradeSourceChoice, OutcomeChoice, SessionStatusChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.event_table import EVENT_COLUMNS
from mneme.cli.fields import Fields, argument, choice, flag, number, text, texts
from mneme.cli.options import Agent, Project, Tags, User, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.session_search import search
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import Session

EndStatus = Literal["completed", "error"]

app = App(help="What agents did, run by run.")
app.command("search")(search)

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]


_SAYS = {
    "agent": "the agent", "metadata": "its metadata", "grader": "a grader", "person": "a person",
}  # fmt: skip


def _outcome(session: Session) -> str:
    """How it turned out, and who said so."""
    if session.outcome is None:
        return "" if session.status == "active" else "unknown"
    return f"{session.outcome}, says {_SAYS[session.outcome_by or 'agent']}"


def _tokens(session: Session) -> str:
    tokens = session.total_input_tokens + session.total_output_tokens
    return cells.count(tokens) if tokens else ""


_FACTS: dict[str, cells.Shown] = {
    "Session": "id",
    "Status": "status",
    "Outcome": _outcome,
    "Reward": "reward:g",
    "Agent": lambda it: cells.preview(f"{it.agent_id} {it.agent_name}"),
    "User": "user_id",
    "Project": "project",
    "Tags": "tags",
    "Started": "started_at",
    "Ended": "ended_at",
    "Events": "event_count",
    "Tool calls": "tool_call_count",
    "Errors": "error_count",
    "Model calls": lambda it: cells.count(it.llm_call_count) if it.llm_call_count else "",
    "Tokens": _tokens,
    "Cost": lambda it: f"{it.total_cost_usd:.4f} USD" if it.total_cost_usd else "",
    "Metadata": lambda it: cells.preview(cells.json_text(it.metadata), 1000),
    "Head hash": "head_hash",
}

_sessions = Resource(
    app,
    "session",
    columns=(
        Column("Session", "id", style="cyan"),
        Column("Agent", "agent_id", flexible=True),
        Column("Status", "status"),
        Column("Outcome", lambda it: it.outcome or ("" if it.status == "active" else "unknown")),
        Column("Started", "started_at", optional=1),
        Column("Events", "event_count", right=True),
        Column("Tool calls", "tool_call_count", right=True, optional=2),
        Column("Errors", "error_count", right=True),
        Column("Project", "project", flexible=True, optional=3),
        Column("Tags", "tags", flexible=True, optional=4),
    ),
)
_sessions.list(
    "iter_sessions",
    "List sessions, most recently started first.",
    Fields(
        agent_id=Agent,
        user_id=User,
        project=Project,
        status=choice(SessionStatusChoice),
        outcome=choice(OutcomeChoice),
        tags=Tags,
        start_time=From,
        end_time=To,
        include_system=flag("Also what Mneme itself records, such as alerts.", "--system"),
    ),
)


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
        cli.out.facts(cells.facts_of(session, _FACTS))
        if events:
            walk = client.iter_events(session_id=session_id, page_size=min(events, 1000))
            cli.out.line("")
            cli.out.things(EVENT_COLUMNS, islice(walk, events))
    if session.event_count > events > 0:
        cli.out.remark(
            f"{cells.count(session.event_count - events)} more: "
            f"mneme events list --session {session_id} --limit 0"
        )


_sessions.create(
    "start_session",
    "Start a session, and print its id.",
    Fields(
        session_id=text("Its id; made if left out.", "--id"),
        agent_id=text("The agent that runs it.", "--agent", metavar="ID"),
        agent_name=text("The agent's human-readable name."),
        user_id=text("The user it serves.", "--user", metavar="ID"),
        project=text("The project it works on."),
        tags=texts("A label; repeatable.", "--tag"),
        metadata=free_json("Free JSON."),
    ),
    name="start",
)


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


_grades = Resource(
    app,
    "grade",
    columns=(
        Column("Session", "session_id", style="cyan"),
        Column("Outcome", "outcome"),
        Column("Reward", "reward:g", right=True),
        Column("By", lambda it: cells.preview(f"{it.source} {it.grader}")),
        Column("Graded", "graded_at", optional=1),
        Column("Comment", "comment", flexible=True),
    ),
)
_grades.list(
    "iter_grades",
    "List who said how sessions turned out, the latest first.",
    Fields(
        session_id=text("Of this session.", "--session", metavar="ID"),
        grader=text("By this one."),
    ),
    name="grades",
)
_grades.change(
    "grade",
    "grade_session",
    "Say how a session turned out, at any time.",
    Fields(
        session_id=argument("SESSION", "The session's id."),
        outcome=choice(OutcomeChoice, "How it turned out; left out: as the reward says."),
        reward=number("How good the result was, by custom from 0 to 1."),
        source=choice(GradeSourceChoice, "Whether a person says so."),
        grader=text("Who: a name, a test suite, a model.", "--by", metavar="NAME"),
        comment=text("Why."),
        grade_id=text("The grade's id; made if left out.", "--id"),
    ),
    said="graded {session_id}: {0.outcome}",
)
