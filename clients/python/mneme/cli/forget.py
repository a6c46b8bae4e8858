"""`mneme forget`: erase what is kept of somebody, for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.admin import OwnOr
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.operations import Wait, follow
from mneme.cli.options import Agent, Project, Session, Tags, Yes
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import ForgetReceipt


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("forget")(forget)


def forget(
    cli: Cli,
    *,
    things: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND:ID]...", help="Single things: memory:m-1 event:e-42."),
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Of this user.")] = None,
    agent: Agent = None,
    session: Session = None,
    project: Project = None,
    tag: Tags = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Of this kind: memory, lesson; repeatable."),
    ] = None,
    start: From = None,
    end: To = None,
    tenant: OwnOr = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be forgotten.")
    ] = False,
    yes: Yes = False,
    wait: Wait = True,
) -> None:
    """Erase what is kept of a user, agent or session, or single things, and what follows from it.

    With --project, --tag, --kind or times, what matches all options is forgotten. Nothing brings it
    back: not even a backup.
    """
    what = _named(
        things, user, agent, session,
        {"project": project, "tags": tag, "kinds": kind, "start_time": start, "end_time": end},
    )  # fmt: skip
    with cli.connect() as client:
        if dry_run or not yes:
            told = client.forget(tenant_id=tenant, dry_run=True, **what).result()
        if dry_run:
            cli.out.done(f"would forget {_counted(told)}{_policies(told)}", told)
            return
        if not yes and not told.counts:
            cli.out.done("there is nothing to forget", told)
            return
        if not yes:
            said = f"Forget {_counted(told)}{_policies(told)}? This cannot be undone."
            typer.confirm(said, abort=True, err=True)
        running = client.forget(tenant_id=tenant, **what)
        receipt = follow(cli, running, wait=wait)
    if receipt is not None:
        cli.out.done(_told(receipt), receipt)


def _named(
    things: list[str] | None,
    user: str | None,
    agent: str | None,
    session: str | None,
    filtered: dict[str, Any],
) -> dict[str, Any]:
    """Return what the request says to forget."""
    people = {"user_id": user, "agent_id": agent, "session_id": session}
    given = {name: value for name, value in people.items() if value is not None}
    narrowed = {name: value for name, value in filtered.items() if value is not None}
    if things and (given or narrowed):
        raise InputError("name single things, or say by options what to forget, not both")
    if things:
        return {"items": [_thing(one) for one in things]}
    if narrowed:
        return {"filter": given | narrowed}
    if len(given) > 1:
        raise InputError(
            "say one of --user, --agent and --session: nobody could tell whether all or any is"
            " meant. With --kind, --project, --tag or times, what matches all options is forgotten"
        )
    if not given:
        raise InputError("say what to forget: --user, --agent, --session or KIND:ID")
    return given


def _thing(text: str) -> dict[str, str]:
    kind, colon, one = text.partition(":")
    if not (kind and colon and one):
        raise InputError(f"{text!r} is not KIND:ID, for instance memory:m-1")
    return {"kind": kind, "id": one}


def _counted(receipt: ForgetReceipt) -> str:
    words = [
        cells.plural(one.count, one.kind.replace("_", " "), _MANY.get(one.kind))
        for one in receipt.counts
    ]
    if not words:
        return "nothing"
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _policies(receipt: ForgetReceipt) -> str:
    if not receipt.policies:
        return ""
    return f" (learning anew: {', '.join(receipt.policies)})"


def _told(receipt: ForgetReceipt) -> str:
    said = f"forgot {_counted(receipt)}{_policies(receipt)}; receipt {receipt.id}"
    if not receipt.backups:
        return said
    held = cells.plural(len(receipt.backups), "backup")
    hold = "holds" if len(receipt.backups) == 1 else "hold"
    return f"{said}\n{held} still {hold} it: {', '.join(receipt.backups)}"


_MANY = {
    "memory": "memories",
    "summary": "summaries",
    "policy": "policies",
    "knowledge": "knowledge entries",
}
