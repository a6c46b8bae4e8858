"""The command line of the server: reads the settings and calls `app`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from mneme import __version__
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from mneme_server.common.errors import MnemeError
from mneme_server.common.private_files import make_new_ones_private
from mneme_server.common.process_limits import spare_memory
from mneme_server.common.shutdown import leave
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.settings import Settings, SettingsError, flag_of, load_settings, variable_of

_OK, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130
_CONFIG_VARIABLE = "MNEME_CONFIG"
_DESCRIPTION = "The memory of AI agents, served over gRPC."
_SOURCES = (
    "A flag wins over the environment, the environment over the file, the file over the default."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 1 failed, 2 wrong usage or settings."""
    arguments = vars(_parser().parse_args(argv))
    command: Callable[[Settings, Mapping[str, Any]], int] = arguments.pop("run")
    config = arguments.pop("config", None) or os.environ.get(_CONFIG_VARIABLE)
    flags = {k: v for k, v in arguments.items() if k in Settings.model_fields}
    try:
        settings = load_settings(flags, Path(config) if config else None)
    except SettingsError as error:
        return _complain(str(error), _USAGE)
    make_new_ones_private()
    try:
        return command(settings, arguments)
    except (MnemeError, EmbeddingError) as error:
        return _complain(str(error), _FAILED)


def _serve(settings: Settings, arguments: Mapping[str, str]) -> int:
    folder = arguments.get("local")
    if folder is not None:
        from mneme_server.commands.local_command import serve_folder

        leave(serve_folder(settings, Path(folder), _complain, detach=bool(arguments.get("detach"))))
    if arguments.get("detach"):
        return _complain("--detach goes with --local FOLDER", _USAGE)
    spare_memory(settings.workers)  # Before what follows starts threads.
    from mneme_server.app import serve
    from mneme_server.common.address import ListenError

    try:
        code = serve(settings)
    except ListenError as error:
        return _complain(str(error), _FAILED)
    leave(code)  # A call may have outlasted the shutdown; the interpreter would wait for it.


def _reindex(settings: Settings, arguments: Mapping[str, str]) -> int:
    from mneme_server.commands.reindexing import reindex

    return reindex(settings, arguments.get("tenant"), lambda line: print(line, flush=True))


def _migrate(settings: Settings, arguments: Mapping[str, Any]) -> int:
    from mneme_server.commands.migrating import migrate

    try:
        return migrate(
            settings,
            arguments["to"],
            arguments.get("tenant") or (),
            dry_run=arguments["dry_run"],
            remove=arguments["remove"],
            as_json=arguments["json"],
            say=lambda line: print(line, flush=True),
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt:
        return _complain("interrupted; run it again to go on", _INTERRUPTED)


def _nodes(settings: Settings, arguments: Mapping[str, Any]) -> int:
    from mneme_server.engine.tenants.backends import reaching, require_driver

    if settings.database_url is None:
        return _complain("without MNEME_DATABASE_URL there is one server only", _USAGE)
    require_driver()
    from mneme_server.engine.store.postgres.node_schema import forget_place, places_of

    url, gone = settings.database_url.get_secret_value(), arguments["gone"]
    with reaching("MNEME_DATABASE_URL"):
        if gone is not None and not forget_place(url, gone):
            return _complain(f"no server is known as {gone}, or it runs: stop it first", _FAILED)
        known = places_of(url)
    for place, name, lives, owes in known:
        print(f"{place}  {name}  {'runs' if lives else 'away'}  {owes} to erase")
    return _OK


def _config(settings: Settings, arguments: Mapping[str, str]) -> int:
    for name in Settings.model_fields:
        print(_as_toml(name, getattr(settings, name)))
    return _OK


def _complain(message: str, code: int) -> int:
    for line in message.splitlines():
        print(f"mneme-server: {line}", file=sys.stderr)
    return code


def _as_toml(name: str, value: object) -> str:
    """Return the line that sets this in a configuration file; a comment if it cannot."""
    if value is None:
        return f"# {name} is not set"
    if isinstance(value, SecretStr):
        return f"# {name} is set and not shown"
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, int | float):
        return f"{name} = {value}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'{name} = "{escaped}"'


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mneme-server",
        description=_DESCRIPTION,
        epilog=_settings_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mneme-server {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    serve = _command(commands, "serve", "serve until told to stop (SIGTERM, Ctrl-C)", _serve)
    serve.add_argument(
        "--local",
        metavar="FOLDER",
        help="serve this folder to its owner's processes on this machine, as `mneme.local` does,"
        " and end when the last of them has gone; it chooses address, key and TLS itself",
    )
    serve.add_argument(
        "--detach",
        action="store_true",
        help="with --local: serve in the background, and return as soon as it serves",
    )
    reindex = _command(
        commands,
        "reindex",
        "embed every memory again with the configured model; the server must be stopped; can be"
        " interrupted, and goes on when run again",
        _reindex,
    )
    reindex.add_argument("--tenant", help="only this tenant; default: all")
    _migrate_command(commands)
    nodes = _command(
        commands,
        "nodes",
        "with PostgreSQL, list the servers that are known to have data folders: id, name, whether"
        " they run, and how much of what was forgotten or deleted they have yet to erase from their"
        " disks",
        _nodes,
    )
    nodes.add_argument(
        "--gone",
        metavar="ID",
        help="first declare that the disk of this one is gone for good: receipts no longer name it",
    )
    _command(commands, "config", "print the settings that would be used, as TOML", _config)
    return parser


def _migrate_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    migrate = _command(
        commands,
        "migrate",
        "move tenants from where they are kept to PostgreSQL, to another PostgreSQL, or back to"
        " SQLite; the servers of both must be stopped; can be interrupted, and goes on when run"
        " again",
        _migrate,
    )
    migrate.add_argument(
        "--to",
        metavar="URL",
        required=True,
        help="postgresql://user@host/database, sqlite:FOLDER, or sqlite: for the data folder",
    )
    migrate.add_argument(
        "--tenant", action="append", help="only this tenant; may be repeated; default: all"
    )
    migrate.add_argument("--dry-run", action="store_true", help="only say what would be moved")
    migrate.add_argument(
        "--remove",
        action="store_true",
        help="remove what is left where they were; default: it stays, but is no longer used",
    )
    migrate.add_argument("--json", action="store_true", help="print what was done as JSON")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help_: str,
    run: Callable[[Settings, Mapping[str, Any]], int],
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help_, description=help_ + ".", allow_abbrev=False)
    command.set_defaults(run=run)
    command.add_argument(
        "--config", metavar="FILE", help=f"configuration file, TOML ({_CONFIG_VARIABLE})"
    )
    settings = command.add_argument_group("settings", _SOURCES)
    for setting, field in Settings.model_fields.items():
        settings.add_argument(
            flag_of(setting),
            dest=setting,
            default=argparse.SUPPRESS,
            metavar=_metavar(field),
            help=_help(setting, field).replace("%", "%%"),
        )
    return command


def _settings_text() -> str:
    lines = [f"settings of every command: in a TOML file, --config FILE ({_CONFIG_VARIABLE}),"]
    lines += ["or as flags and variables:", ""]
    for name, field in Settings.model_fields.items():
        lines += [f"  {flag_of(name)} {_metavar(field)}", f"      {_help(name, field)}"]
    return "\n".join([*lines, "", _SOURCES])


def _help(name: str, field: FieldInfo) -> str:
    default = ""
    if field.default_factory is None:
        shown = "none" if field.default is None else field.default
        default = f", default: {'empty' if shown == '' else shown}"
    return f"{field.description} ({variable_of(name)}{default})"


def _metavar(field: FieldInfo) -> str:
    choices = [value for value in get_args(field.annotation) if isinstance(value, str)]
    if choices:
        return "{" + ",".join(choices) + "}"
    kinds: dict[object, str] = {bool: "BOOL", int: "N", float: "SECONDS", Path: "PATH"}
    return kinds.get(field.annotation, "PATH" if "Path" in str(field.annotation) else "TEXT")
