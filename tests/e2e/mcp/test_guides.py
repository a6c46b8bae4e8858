"""What the guides show of MCP and of TypeScript works as shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mneme_mcp.toolsets import DEFAULT, TOOLSETS, parse, tools_of
from support.hosts import environment, stdio_host, text_of
from support.server import model_dir

ROOT = Path(__file__).parents[3]
MCP = ROOT / "docs/guides/mcp.md"
COMPAT = ROOT / "docs/guides/mcp-compat.md"
MEMORY = ROOT / "docs/guides/agent-memory.md"
TYPESCRIPT = ROOT / "clients/typescript"

_CALL = re.compile(r"^\*\*`(\w+)`\*\*\n\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPESCRIPT = re.compile(r"^```ts\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("page", [MCP, COMPAT, MEMORY], ids=lambda page: page.name)
async def test_every_call_of_a_guide_succeeds(page: Path, server: Any, api: Any) -> None:
    calls = _CALL.findall(page.read_text())
    assert calls
    async with stdio_host("--toolsets", "all", address=server.address, api_key=api.secret) as host:
        for tool, arguments in calls:
            result = await host.call_tool(tool, json.loads(arguments))
            assert not result.is_error, text_of(result)


@pytest.mark.anyio
async def test_the_configuration_for_hosts_starts_an_adapter(server: Any, api: Any) -> None:
    shown = re.search(r"^```json\n(\{\s+\"mcpServers\".*?)^```$", MCP.read_text(), re.M | re.S)
    assert shown
    entry = json.loads(shown[1])["mcpServers"]["mneme"]
    assert entry["command"] == "mneme-mcp"
    assert entry["env"].keys() == {"MNEME_ADDRESS", "MNEME_API_KEY"}
    given = environment() | entry["env"]
    given |= {"MNEME_ADDRESS": server.address, "MNEME_API_KEY": api.secret}
    # The command is what the package's entry point runs.
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "mneme_mcp", *entry["args"]], env=given
    )
    async with Client(started) as host:
        listed = [tool.name for tool in (await host.list_tools()).tools]
    assert entry["args"][0] == "--toolsets"
    assert listed == [spec.name for spec in tools_of(parse(entry["args"][1]))]


def test_the_guide_lists_every_toolset_with_its_tools() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`( \(default\))? \| ", MCP.read_text(), re.MULTILINE))
    assert rows.keys() >= TOOLSETS.keys()
    for name, toolset in TOOLSETS.items():
        row = re.search(rf"^\| `{name}`.*$", MCP.read_text(), re.MULTILINE)
        assert row
        if name != "compat":  # Its tools have a page of their own.
            assert re.findall(r"`(\w+)`", row[0])[1:] == [spec.name for spec in toolset.tools()]
        assert (rows[name] == " (default)") == (name in DEFAULT)


def test_the_guides_typescript_runs(server: Any, api: Any, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if not (TYPESCRIPT / "dist/index.js").exists():
        pytest.skip("the TypeScript client is not built")
    (tmp_path / "node_modules/@mneme").mkdir(parents=True)
    (tmp_path / "node_modules/@mneme/client").symlink_to(TYPESCRIPT)
    blocks = _TYPESCRIPT.findall(MEMORY.read_text())
    assert blocks
    for number, block in enumerate(blocks):
        script = tmp_path / f"block{number}.mjs"
        script.write_text(block)
        done = subprocess.run(
            ["node", script],
            env=os.environ | {"MNEME_ADDRESS": server.address, "MNEME_API_KEY": api.secret},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


LOCAL = ROOT / "docs/guides/local.md"


@pytest.mark.anyio
async def test_the_entries_for_hosts_with_a_folder_start_an_adapter(tmp_path: Path) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", LOCAL.read_text(), re.M | re.S)
    entries = [next(iter(json.loads(block).values()))["mneme"] for block in blocks]
    assert len(entries) == 2
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    given = environment(model_dir=str(model_dir()), linger_seconds="1") | home
    for entry in entries:
        assert Path(entry["command"]).name == "mneme-mcp"
        assert Path(entry["command"]).is_absolute()
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "mneme_mcp", *entry["args"]], env=given
        )
        async with Client(started) as host:
            known = await host.call_tool("mneme_context", {"query": "what is known"})
            assert not known.is_error, text_of(known)
        assert (tmp_path / ".mneme" / "local.json").exists()
