"""What every command shares: how to reach the server, and how to answer.

A command is a function whose first parameter is a `Cli`. Registering it with `App.command` adds
the options below to it, so that they work before and after the command's name. A parameter that is
annotated with `Fields` stands for one of each field, and is what the line gave of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from mneme._version import __version__
from mneme.cli.exits import InputError
from mneme.cli.output import Output

if TYPE_CHECKING:
    from mneme.client import MnemeClient

_PANEL = "Connection and output"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that every command has; None where nothing was said."""

    address: Annotated[
        str | None,
        typer.Option(
            help="The server, HOST:PORT; default MNEME_ADDRESS, else 127.0.0.1:50051.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    local: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Use the memory in this folder; its server starts and stops by itself.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    api_key: Annotated[
        str | None,
        typer.Option(help="The API key; better set MNEME_API_KEY.", rich_help_panel=_PANEL),
    ] = None
    tls: Annotated[
        bool | None,
        typer.Option("--tls/--no-tls", help="Encrypt; default MNEME_TLS.", rich_help_panel=_PANEL),
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(
            help="Encrypt, and trust the certificates in this file.", rich_help_panel=_PANEL
        ),
    ] = None
    insecure: Annotated[
        bool | None,
        typer.Option(
            "--insecure",
            help="Send the API key unencrypted to another machine.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Timeout of a call, in seconds; default 30.", min=0.001, rich_help_panel=_PANEL
        ),
    ] = None
    as_json: Annotated[
        bool | None,
        typer.Option("--json", help="Print JSON, one document per line.", rich_help_panel=_PANEL),
    ] = None

    def overridden_by(self, later: Settings) -> Settings:
        """These settings, with those that were given later on the line."""
        given = {f.name: getattr(later, f.name) for f in fields(later)}
        return replace(self, **{name: v for name, v in given.items() if v is not None})


class Cli:
    """What a command works with.

    Args:
        settings: the options of the line.
        help_text: makes the command's help; what is not returned was printed.
    """

    def __init__(self, settings: Settings, help_text: Callable[[], str] = str) -> None:
        self.settings = settings
        self._help_text = help_text
        self.out = Output(as_json=bool(settings.as_json))

    def connect(self, *, retries: int = 1) -> MnemeClient:
        """A client for the server that the options name. Whoever waits wants to know soon."""
        settings = self.settings
        if settings.local is not None:
            return self._join(settings.local, retries)
        from mneme.client import MnemeClient

        tls: bool | Path | None = settings.tls
        if settings.ca is not None and tls is not False:
            tls = settings.ca
        return MnemeClient(
            settings.address,
            api_key=settings.api_key,
            tls=tls,
            insecure=settings.insecure,
            timeout=settings.timeout or 30.0,
            retries=retries,
        )

    def show_help(self) -> None:
        """Show the help of the command, for one that has a `--help` of its own."""
        typer.echo(self._help_text())

    def _join(self, folder: Path, retries: int) -> MnemeClient:
        from mneme.folder import local

        settings = self.settings
        if settings.address is not None or settings.api_key is not None:
            raise InputError("--local FOLDER goes without --address and --api-key")
        return local(folder, timeout=settings.timeout or 30.0, retries=retries)


class App(typer.Typer):
    """A group of commands that share the options of `Settings`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode="rich", **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[..., Any]:
        """Register a function that takes a `Cli` first."""
        register = super().command(name, **options)

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            register(_with_settings(function))
            return function

        return decorate


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mneme {__version__}")
        raise typer.Exit


def settings_callback(ctx: typer.Context, *, version: bool = False, **given: Any) -> None:
    """The root's callback: keeps the options that stand before the command."""
    ctx.obj = Settings(**given)


def _with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """A function as typer wants it: without the `Cli`, with the shared options."""
    from mneme.cli.fields import Fields  # The root, which only lists, has no tables.

    hints = get_type_hints(function, include_extras=True)
    own: list[inspect.Parameter] = []
    tables: dict[str, Fields] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        annotation = hints[parameter.name]
        table = annotation.__metadata__[0] if get_origin(annotation) is Annotated else None
        if isinstance(table, Fields):
            tables[parameter.name] = table
            own += table.parameters()
        else:
            own.append(parameter.replace(annotation=annotation))

    @functools.wraps(function)
    def command(ctx: typer.Context, **arguments: Any) -> None:
        later = Settings(**{f.name: arguments.pop(f.name) for f in fields(Settings)})
        earlier = ctx.find_root().obj or Settings()
        taken = {name: table.take(arguments) for name, table in tables.items()}
        function(Cli(earlier.overridden_by(later), ctx.get_help), **arguments, **taken)

    _present(command, [_CONTEXT, *own, *_SHARED])
    return command


def _present(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    function.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    # `functools.wraps` would lead typer back to the wrapped function.
    vars(function).pop("__wrapped__", None)


def _shared_parameters() -> list[inspect.Parameter]:
    hints = get_type_hints(Settings, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(f.name, kind, default=None, annotation=hints[f.name])
        for f in fields(Settings)
    ]


_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_SHARED = _shared_parameters()
_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ],
)
_present(settings_callback, [_CONTEXT, _VERSION, *_SHARED])
