"""`mneme hooks`: have a coding agent remember by itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli, Settings
from mneme.cli.exits import InputError
from mneme.hooks.hosts import HOSTS, Host, Moment

app = App(help="Let a coding agent remember by itself: at a session's start, end and compaction.")

_DEFAULT_FOLDER = Path("~/.mneme")


def _host(name: str) -> Host:
    if name not in HOSTS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(HOSTS)}")
    return HOSTS[name]


HostName = Annotated[
    Any,
    typer.Argument(parser=_host, metavar="HOST", help=f"{' or '.join(HOSTS)}."),
]
Project = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="FOLDER",
        help="Use this project's settings instead of your user settings.",
    ),
]


@app.command()
def install(cli: Cli, *, host: HostName, project: Project = None) -> None:
    """Add the hooks to a host's settings.

    With --local FOLDER (default ~/.mneme) they use the memory in that folder, whose server starts
    by itself. With --address they use a running server; put its key in MNEME_API_KEY in the
    host's environment.
    """
    from mneme.hooks.installing import install as add

    file = host.settings(project)
    # -P: the host runs it where the agent works, whose files must not take our modules' places.
    changed = add(host, file, [sys.executable, "-P", "-m", "mneme", *_where(cli.settings)])
    if cli.out.as_json:
        cli.out.line_of({"host": host.name, "file": str(file), "changed": changed})
        return
    cli.out.line(f"{'installed' if changed else 'already installed'} in {file}")
    if changed:
        cli.out.remark(host.after)


@app.command()
def uninstall(cli: Cli, *, host: HostName, project: Project = None) -> None:
    """Remove the hooks from a host's settings; what was remembered stays."""
    from mneme.hooks.installing import uninstall as remove

    file = host.settings(project)
    changed = remove(file)
    if cli.out.as_json:
        cli.out.line_of({"host": host.name, "file": str(file), "changed": changed})
    else:
        cli.out.line(f"{'removed from' if changed else 'there were none in'} {file}")


@app.command("list")
def list_(cli: Cli, *, project: Project = None) -> None:
    """Show which hosts have the hooks, and what they run."""
    from mneme.hooks.installing import installed

    for host in HOSTS.values():
        file = host.settings(project)
        commands = installed(file)
        if cli.out.as_json:
            cli.out.line_of({"host": host.name, "file": str(file), "commands": dict(commands)})
            continue
        cli.out.line(f"{host.name}: {file if commands else 'none'}")
        for event, command in commands.items():
            cli.out.line(f"  {event}: {cells.preview(command)}")


@app.command()
def run(
    cli: Cli,
    *,
    moment: Annotated[Moment, typer.Argument(metavar="MOMENT", help="wake-up, remember or end.")],
    host: Annotated[str, typer.Option(metavar="HOST", help="The host that calls.")] = "",
) -> None:
    """What a host runs: reads its message from the standard input. It is not meant for people."""
    from mneme.hooks.running import Occasion, remember, wake_up

    occasion = Occasion.parse(sys.stdin.read())
    with cli.connect(retries=2) as client:
        if moment == "wake-up":
            cli.out.line(wake_up(client, occasion))
            return
        totals = remember(client, occasion, ended=moment == "end")
    if totals is not None and totals.broken:
        cli.out.remark(f"{cells.plural(len(totals.broken), 'record')} of {host} could not be read")


def _where(settings: Settings) -> list[str]:
    """The options by which the hooks find the memory: absolute, since a host runs them anywhere."""
    if settings.api_key is not None:
        raise InputError("a key does not belong into settings: put it into MNEME_API_KEY")
    address = settings.address or (None if settings.local else os.environ.get("MNEME_ADDRESS"))
    if address is None:
        folder = settings.local or _DEFAULT_FOLDER
        return ["--local", str(folder.expanduser().absolute())]
    secure = ["--ca", str(settings.ca.absolute())] if settings.ca else []
    return ["--address", address, *secure, *(["--tls"] if settings.tls else [])]
