"""`mneme call`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli.app import App, Cli

if TYPE_CHECKING:
    from mneme._core.rpc import Rpc


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("call", add_help_option=False)(call)


def _complete_rpc(incomplete: str) -> list[str]:
    from mneme._generated.services import RPCS
    from mneme.cli.call.rpcs import title

    names = [name for rpc in RPCS for name in (title(rpc), rpc.method)]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def _complete_field(ctx: typer.Context, incomplete: str) -> list[str]:
    from mneme.cli.call.rpcs import find
    from mneme.cli.exits import InputError

    try:
        request = find(ctx.params.get("rpc") or "").request
    except InputError:
        return []
    return [f"{f.name}=" for f in request.DESCRIPTOR.fields if f.name.startswith(incomplete)]


def call(
    cli: Cli,
    *,
    rpc: Annotated[
        str | None,
        typer.Argument(
            metavar="[SERVICE.]RPC",
            help="What to call; without it, all RPCs are listed.",
            autocompletion=_complete_rpc,
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE …",
            help="The request: KEY=VALUE, KEY.KEY=VALUE, KEY:=JSON; @FILE or - for all of it.",
            autocompletion=_complete_field,
        ),
    ] = None,
    show_help: Annotated[
        bool, typer.Option("--help", help="Show this message, or what the RPC takes.")
    ] = False,
) -> None:
    """Call any RPC of the API; it answers in JSON.

    mneme call Recall query="why did the tests fail" scopes=event limit=3

    Enums are names, times are as with --from, and a repeated key makes a list. RPCs that take a
    stream read one request a line; answers that are a stream are written as they come.
    """
    from mneme._generated.services import RPCS
    from mneme.cli.call import rpcs

    if rpc is None:
        if show_help:
            cli.show_help()
        else:
            _list(cli, RPCS)
        return
    if not fields and (of_service := rpcs.of_service(rpc)):
        _list(cli, of_service)
        return
    found = rpcs.find(rpc)
    if show_help:
        from mneme.cli.call.explain import explain

        for line in explain(found):
            cli.out.line(line)
        return
    for answer in _answers(cli, found, fields or []):
        cli.out.message(answer)
        cli.out.flush()


def _answers(cli: Cli, rpc: Rpc[Any, Any], fields: list[str]) -> Iterator[Any]:
    from mneme._core.invoking import invoke
    from mneme.cli.call.request import request_of, requests_of

    if rpc.descriptor.client_streaming:
        requests: Iterable[Any] = requests_of(rpc, fields)
        if sys.stdin.isatty() and not any(field.startswith("@") for field in fields):
            cli.out.remark("Type a request in JSON on each line; Ctrl-D ends them.")
    else:
        requests = [request_of(rpc, fields)]
    with cli.connect() as client:
        yield from invoke(client, rpc, requests, cli.settings.timeout)


def _list(cli: Cli, shown: Iterable[Rpc[Any, Any]]) -> None:
    from mneme.cli.call.rpcs import service, summary, title

    chosen = list(shown)
    width = max(len(rpc.method) for rpc in chosen)
    before = ""
    for rpc in chosen:
        told = summary(f"{rpc.service}.{rpc.method}")
        if cli.out.as_json:
            cli.out.line_of({"rpc": title(rpc), "summary": told})
            continue
        if rpc.service != before:
            cli.out.line(f"{chr(10) if before else ''}{service(rpc)}: {summary(rpc.service)}")
            before = rpc.service
        cli.out.line(f"  {rpc.method:<{width}}  {told}")
    if not cli.out.as_json:
        cli.out.remark("`mneme call RPC --help` shows what one takes.")
