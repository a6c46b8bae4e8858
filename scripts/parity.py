"""Write docs/parity.md: for every RPC, how each client reaches it.

The methods follow from the schemas and the commands from their code; tests/contract/parity.toml
names what reaches an RPC over MCP; one that it does not name has no tool. Tests hold all of it
against the clients.

Usage: python scripts/parity.py [--check]
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from commands import ANY, commands_by_method
from mneme._generated.services import RPCS
from mneme.client import MnemeClient
from pages import ROOT, write_or_check

SOURCE = ROOT / "tests/contract/parity.toml"
PAGE = ROOT / "docs/parity.md"
OUTPUTS = (PAGE,)
TYPESCRIPT = ROOT / "clients/typescript/src/gen/services"

NO_TOOL = "no tool calls it"

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HEAD = """\
# Every RPC, and how to reach it

Written by `scripts/parity.py` from the schemas, from the code of the command line and from
`tests/contract/parity.toml`; tests check each name against the clients. Python's methods are those
of `MnemeClient`, and the same on `AsyncMnemeClient`; TypeScript's are those of what `createMneme()`
returns. `mneme call` reaches every RPC from the shell; where a command does that, too, the table
names the command. MCP names are tools, or resources (`mneme://…`); see the
[MCP guide](guides/mcp.md).
"""


@dataclass(frozen=True, slots=True)
class Row:
    """How one RPC is reached.

    Args:
        service: the service's name.
        method: the RPC's name.
        python: methods of the Python client.
        typescript: methods of the TypeScript client.
        cli: commands made for it, else the one that reaches any RPC.
        mcp: tools and resources, or the reason why there is none.
    """

    service: str
    method: str
    python: tuple[str, ...]
    typescript: tuple[str, ...]
    cli: tuple[str, ...]
    mcp: tuple[str, ...] | str


def rows() -> Iterator[Row]:
    """The table: every RPC, in the order of the schemas."""
    told = _told()
    for service, method in _known():
        yield _row(service, method, told.get(service, {}).get(method, {}))


def faults() -> list[str]:
    """What is wrong in the source: RPCs that do not exist, tools and a reason for having none."""
    known = set(_known())
    found = []
    for service, methods in _told().items():
        for method, said in methods.items():
            if (service, method) not in known:
                found.append(f"{service}.{method}: there is no such RPC")
            elif bool(said.get("mcp")) == bool(said.get("no_mcp")):
                found.append(f"{service}.{method}: give either mcp or no_mcp")
    return [f"{SOURCE.relative_to(ROOT)}: {fault}" for fault in found]


def _told() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return tomllib.loads(SOURCE.read_text())


def _known() -> list[tuple[str, str]]:
    return [(rpc.service.rpartition(".")[2], rpc.method) for rpc in RPCS]


def _row(service: str, method: str, said: Mapping[str, Any]) -> Row:
    snake = _HUMP.sub("_", method).lower()
    walks = [f"iter_{snake.removeprefix('list_')}", f"iter_{snake}"]
    named = [snake, *_others(snake), *(name for name in walks if hasattr(MnemeClient, name))]
    python = tuple(dict.fromkeys(named))
    return Row(
        service,
        method,
        python,
        tuple(map(camel_case, python)),
        _commands(service, method, python),
        _mcp(said),
    )


def _others(method: str) -> Iterator[str]:
    """The other names of a method."""
    called = inspect.unwrap(getattr(MnemeClient, method, None))  # type: ignore[arg-type]
    return (
        name
        for name in dir(MnemeClient)
        if name != method
        and called is not None
        and inspect.unwrap(getattr(MnemeClient, name)) is called
    )


def camel_case(name: str) -> str:
    """The method of the TypeScript client: the Python client's, in camel case."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _commands(service: str, method: str, python: tuple[str, ...]) -> tuple[str, ...]:
    made = commands_by_method()
    own = dict.fromkeys(command for name in python for command in made.get(name, ()))
    return tuple(own) or (f"{ANY} {service}.{method}",)


def _mcp(said: Mapping[str, Any]) -> tuple[str, ...] | str:
    return tuple(said.get("mcp", ())) or str(said.get("no_mcp", NO_TOOL))


def page() -> str:
    """The page."""
    parts = [_HEAD]
    service = ""
    columns = ["RPC", "Python", "TypeScript", "CLI", "MCP"]
    for row in rows():
        if row.service != service:
            service = row.service
            parts.append(f"\n## {service}\n")
            parts.append(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        cells = [f"`{row.method}`", _code(row.python), _code(row.typescript)]
        cells += [_code(row.cli), _code(row.mcp)]
        parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def _code(names: tuple[str, ...] | str) -> str:
    return f"— {names}" if isinstance(names, str) else ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.exit("\n".join(faults()) or write_or_check({PAGE: page()}))
