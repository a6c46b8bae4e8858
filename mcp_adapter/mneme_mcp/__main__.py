"""`mneme-mcp`: the memory of a Mneme server for an MCP host."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
from mneme import __version__

from mneme_mcp import toolsets
from mneme_mcp.access import Access
from mneme_mcp.http import CannotListen, parse_address, serve
from mneme_mcp.own import Own
from mneme_mcp.server import MnemeServer

_ENVIRONMENT = """\
environment:
  MNEME_ADDRESS       the Mneme server, default 127.0.0.1:50051
  MNEME_API_KEY       the key, over stdio; over HTTP each caller sends its own
  MNEME_TLS           1 or a file of certificates: encrypt the connection to the server
  MNEME_MCP_TOOLSETS  as --toolsets
  MNEME_MCP_USER, MNEME_MCP_AGENT, MNEME_MCP_PROJECT  as --user, --agent, --project
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve over stdio, or over HTTP where told to; return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.local is not None and given.http:
        parser.error("--local does not go with --http: over HTTP, callers bring keys of their own")
    try:
        chosen = toolsets.parse(given.toolsets or os.environ.get("MNEME_MCP_TOOLSETS", ""))
        address = parse_address(given.http) if given.http else None
        access = Access(
            given.address, over_http=address is not None, local=given.local, own=_own(given)
        )
        server = MnemeServer(access, chosen)
        if address is None:
            anyio.run(server.run_stdio_async)
        else:
            anyio.run(serve, server, address, given.allowed_host, given.allowed_origin)
    except (toolsets.UnknownToolset, CannotListen) as error:
        print(f"mneme-mcp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("give a folder")
    return Path(text).expanduser().absolute()


def _own(given: argparse.Namespace) -> Own:
    """Whom calls are about that name nobody."""
    said = {
        "user_id": given.user or os.environ.get("MNEME_MCP_USER", ""),
        "agent_id": given.agent or os.environ.get("MNEME_MCP_AGENT", ""),
        "project": given.project or os.environ.get("MNEME_MCP_PROJECT", ""),
    }
    return {name: value.strip() for name, value in said.items() if value.strip()}


def _parser() -> argparse.ArgumentParser:
    groups = "\n".join(
        f"  {name:<12} {one.about}{' (default)' if one.default else ''}"
        for name, one in toolsets.TOOLSETS.items()
    )
    parser = argparse.ArgumentParser(
        prog="mneme-mcp",
        description="The memory of a Mneme server as MCP tools, over stdio or HTTP.",
        epilog=f"toolsets:\n{groups}\n\n{_ENVIRONMENT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mneme-mcp {__version__}")
    parser.add_argument(
        "--toolsets", metavar="NAMES", help="groups of tools, separated by commas; also: all"
    )
    for name in ("user", "agent", "project"):
        parser.add_argument(
            f"--{name}", metavar="ID", help=f"the {name} of a call that leaves it out or empty"
        )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--address", metavar="HOST:PORT", help="the Mneme server")
    where.add_argument(
        "--local",
        metavar="FOLDER",
        type=_folder,
        help="the memory in this folder, over stdio; its server is started and ends by itself, and "
        "is shared with all that use the folder",
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve streamable HTTP here, at /mcp; each request carries its API key as "
        "`Authorization: Bearer mn_…`",
    )
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which callers may address the adapter (Host header); repeatable",
    )
    parser.add_argument(
        "--allowed-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="a web page's origin that may call the adapter; repeatable",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
