"""`mneme learning import`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import ActionSourceChoice, RecordKindChoice
from mneme.cli import cells, exits
from mneme.cli.app import Cli
from mneme.cli.exits import InputError
from mneme.cli.options import Agent, Project, Tags, User
from mneme.cli.output import Column, terminal
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import ImportExperienceResponse

_ACTIONS = (
    Column("Action", flexible=True),
    Column("Steps", right=True),
    Column("Mean reward", right=True),
)


def state_field(text: str) -> dict[str, str]:
    """A field of a state: PATH, or NAME=PATH."""
    name, equals, path = text.partition("=")
    return {"name": name, "path": path} if equals else {"path": text}


def import_(
    cli: Cli,
    *,
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session to fill.")],
    state: Annotated[
        list[Any],
        typer.Option(
            parser=state_field,
            metavar="[NAME=]PATH",
            help="What a state is made of: project, metadata.KEY, tags, previous_tool, …;"
            " repeatable.",
        ),
    ],
    kind: Annotated[
        RecordKindChoice | None, typer.Option(case_sensitive=False, help="What to import.")
    ] = None,
    action_tag: Annotated[
        str | None,
        typer.Option(metavar="PREFIX", help="The action is the label that begins with this."),
    ] = None,
    action_field: Annotated[
        str | None, typer.Option(metavar="PATH", help="The action is this field.")
    ] = None,
    reward_field: Annotated[
        str | None, typer.Option(metavar="PATH", help="The reward is this field, not the outcome.")
    ] = None,
    failed_call_reward: Annotated[
        float | None, typer.Option(help="An additional reward for each call that failed.")
    ] = None,
    agent: Agent = None,
    user: User = None,
    project: Project = None,
    tag: Tags = None,
    start: From = None,
    end: To = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Record nothing; show what would be recorded.")
    ] = False,
) -> None:
    """Fill a session from recorded sessions or episodes; what was imported before stays."""
    if action_tag is not None and action_field is not None:
        raise InputError("give --action-tag or --action-field, not both")
    source: ActionSourceChoice = (
        "tag" if action_tag is not None else "field" if action_field is not None else "tool"
    )
    selection: dict[str, Any] = {
        "agent_id": agent,
        "user_id": user,
        "project": project,
        "tags": tag or [],
    }
    if start is not None:
        selection["start_time"] = start
    if end is not None:
        selection["end_time"] = end
    with (
        cli.connect() as client,
        client.import_experience(
            session_id,
            state,
            kind=kind,
            selection=selection,  # type: ignore[arg-type]
            action_source=source,
            action_name=action_tag if action_tag is not None else action_field,
            reward_field=reward_field,
            failed_call_reward=failed_call_reward,
            dry_run=dry_run,
        ) as messages,
    ):
        _follow(cli, messages)


def _follow(cli: Cli, messages: Iterable[ImportExperienceResponse]) -> None:
    """Show how far it is: on a terminal as it goes; then what became of it."""
    from mneme.cli import learning_views as views

    console = terminal(stderr=True)
    shown = console.is_terminal and not cli.out.as_json
    last = None
    try:
        with console.status("importing") if shown else nullcontext() as status:
            for message in messages:
                last = message
                if status is not None:
                    status.update(f"{message.records_read:,} of {message.records:,} records")
    except KeyboardInterrupt:
        done = last.imported if last is not None else 0
        cli.out.remark(f"stopped after {cells.plural(done, 'record')}; what was imported is kept")
        raise typer.Exit(exits.INTERRUPTED) from None
    if last is None:
        return
    if cli.out.as_json:
        cli.out.message(last)
        return
    would = "would import" if last.dry_run else "imported"
    records, steps = cells.plural(last.imported, "record"), cells.plural(last.steps, "step")
    known = f"; {last.known:,} were imported before" if last.known else ""
    cli.out.line(f"{would} {records} with {steps}{known}")
    for skipped in last.skipped:
        some = ", ".join(skipped.examples)
        left = cells.plural(skipped.count, "record")
        cli.out.remark(f"Left out {left}: {skipped.reason} ({some}).")
    rows = [
        [views.action(one.action), f"{one.count:,}", f"{one.mean_reward:.3g}"]
        for one in last.actions
    ]
    cli.out.table(_ACTIONS, rows)
