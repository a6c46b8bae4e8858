"""Every RPC is reached by every client, or the table says why not; and the table is true."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from commands import client_methods as called_on_clients
from commands import commands_by_method
from parity import TYPESCRIPT, Row, faults, rows

ROOT = Path(__file__).parents[2]
ROWS = list(rows())


def client_methods(source: str) -> set[str]:
    """The methods that a module calls on something named a client."""
    return called_on_clients(ast.walk(ast.parse(source)))


def called_in(*folders: str) -> set[str]:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return set().union(*(client_methods(file.read_text()) for file in files))


def methods_of(chosen: Iterable[Row]) -> set[str]:
    return {name for row in chosen for name in row.python}


def identifier(row: Row) -> str:
    return f"{row.service}.{row.method}"


def test_the_source_of_the_table_names_rpcs_that_exist_each_with_tools_or_a_reason() -> None:
    assert faults() == []


@pytest.mark.parametrize("row", ROWS, ids=identifier)
def test_the_python_clients_have_the_methods_that_the_table_names(row: Row) -> None:
    from mneme import AsyncMnemeClient, MnemeClient

    assert len(set(row.python)) == len(row.python)
    for name in row.python:
        assert callable(getattr(MnemeClient, name))
        assert callable(getattr(AsyncMnemeClient, name))


def test_every_rpc_is_reached_from_the_shell_and_by_its_own_command_where_there_is_one() -> None:
    reached_by = {identifier(row): row.cli for row in ROWS}
    assert all(reached_by.values())
    assert reached_by["RecallService.Recall"] == ("mneme recall",)
    assert reached_by["AdminService.Backup"] == ("mneme admin backup",)
    assert reached_by["AdminService.CreateApiKey"] == ("mneme admin keys create",)
    assert reached_by["EventService.StreamEvents"] == ("mneme call EventService.StreamEvents",)
    # Through the importer, which knows the client as what it sends to.
    assert {"mneme events record", "mneme import"} <= set(reached_by["EventService.RecordEvents"])
    # Through another module's function.
    assert reached_by["EventService.WatchEvents"] == ("mneme events watch",)
    # What calls the client nowhere reaches nothing.
    assert not any("mneme log" in commands for commands in reached_by.values())


def test_the_methods_that_commands_call_are_those_of_rpcs() -> None:
    assert set(commands_by_method()) <= methods_of(ROWS) | {"close", "operation"}


def test_the_tools_that_the_table_names_call_the_rpc_and_where_it_names_none_none_does() -> None:
    from mneme_mcp.toolsets import TOOLSETS, tools_of

    specs = {spec.name: spec for spec in tools_of(TOOLSETS)}
    named = {name for row in ROWS if not isinstance(row.mcp, str) for name in row.mcp}
    tools = {name for name in named if "://" not in name}
    assert tools == set(specs), "a tool that reaches no RPC, or a name that is no tool"
    called = {name: client_methods(_source_of(spec.handler)) for name, spec in specs.items()}
    for row in ROWS:
        called_by = {name for name, methods in called.items() if set(row.python) & methods}
        if isinstance(row.mcp, str):
            assert not called_by, f"{identifier(row)}: no tool, says the table, but {called_by}"
            continue
        for name in row.mcp:
            if "://" not in name:
                assert name in called_by, f"{identifier(row)}: {name} does not call it"


def test_the_adapter_reaches_exactly_the_rpcs_that_the_table_says() -> None:
    reached = methods_of(row for row in ROWS if not isinstance(row.mcp, str))
    called = called_in("mcp_adapter/mneme_mcp") & methods_of(ROWS)
    assert called <= reached
    for row in ROWS:
        assert bool(set(row.python) & called) == (not isinstance(row.mcp, str)), identifier(row)


def test_the_resources_that_the_table_names_are_served() -> None:
    source = (ROOT / "mcp_adapter/mneme_mcp/resources.py").read_text()
    named = {name for row in ROWS if not isinstance(row.mcp, str) for name in row.mcp}
    for uri in (name for name in named if "://" in name):
        assert f'"{uri}"' in source


@pytest.mark.skipif(not TYPESCRIPT.exists(), reason="there is no TypeScript client here")
def test_the_typescript_client_has_the_methods_that_the_table_names() -> None:
    generated = "".join(file.read_text() for file in TYPESCRIPT.glob("*.ts"))
    methods = set(re.findall(r"^    (\w+): \{", generated, re.MULTILINE))
    assert methods == {name for row in ROWS for name in row.typescript}


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/parity.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _source_of(function: object) -> str:
    module = inspect.getmodule(function)
    assert module is not None
    return inspect.getsource(module)
