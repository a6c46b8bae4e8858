"""An MCP host with one entry and nothing else, and the command line on a folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import mneme
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from support.folders import is_free, record_of, servers_of, wait_until
from support.hosts import text_of
from support.server import model_dir

pytestmark = pytest.mark.slow

SCRIPTS = Path(sysconfig.get_path("scripts"))


def _host(folder: Path) -> StdioServerParameters:
    """As a desktop application starts the adapter: by its full path, with little environment."""
    return StdioServerParameters(
        command=str(SCRIPTS / "mneme-mcp"),
        args=["--local", str(folder), "--toolsets", "all"],
        cwd="/",
        env={
            "PATH": "/usr/bin:/bin",
            "MNEME_MODEL_DIR": str(model_dir()),
            "MNEME_LINGER_SECONDS": "1",
        },
    )


def test_two_hosts_and_a_program_share_the_memory_and_nothing_is_left_running(
    folder: Path,
) -> None:
    async def scenario() -> None:
        async with (
            Client(stdio_client(_host(folder))) as one,
            Client(stdio_client(_host(folder))) as other,
        ):
            learned = await one.call_tool(
                "agentlens_learn",
                {"action": "save", "title": "Ports", "content": "The registry is on port 5000."},
            )
            assert not learned.is_error, text_of(learned)
            found = await other.call_tool(
                "agentlens_recall", {"query": "where is the registry", "scope": "lessons"}
            )
            assert "port 5000" in text_of(found)
            assert servers_of(folder) == [record_of(folder)["pid"]]
            async with mneme.local_async(folder) as memory:
                assert [lesson.title async for lesson in memory.iter_lessons()] == ["Ports"]

    asyncio.run(scenario())
    wait_until(lambda: is_free(folder), "the server ends by itself")


def test_initialize_is_answered_though_no_server_can_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def scenario() -> None:
        async with Client(stdio_client(_host(tmp_path / "file" / "memory"))) as host:
            assert (await host.list_tools()).tools
            failed = await host.call_tool("wake_up", {})
            assert failed.is_error
            assert "did not start" in text_of(failed)
            assert "Not a directory" in text_of(failed)

    asyncio.run(scenario())


def test_an_adapter_whose_host_leaves_while_the_server_starts_ends_at_once(folder: Path) -> None:
    adapter = [sys.executable, "-m", "mneme_mcp", "--local", folder]
    script = folder.parent / "slow-server"
    script.write_text(f"#!/bin/sh\necho $$ > {folder.parent}/pid\nexec sleep 600\n")
    script.chmod(0o700)
    process = subprocess.Popen(
        adapter,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"MNEME_SERVER": str(script)},
    )
    wait_until((folder.parent / "pid").exists, "the start has begun")
    process.communicate(timeout=60)
    assert process.returncode == 0
    os.kill(int((folder.parent / "pid").read_text()), 9)


def test_the_command_line_works_on_a_folder(folder: Path) -> None:
    made = _mneme(
        "lessons", "create", "--local", folder, "--title", "Ports", "--content", "It is 5000."
    )
    assert made.returncode == 0, made.stderr
    found = _mneme("--local", folder, "--json", "lessons", "list")
    assert found.returncode == 0, found.stderr
    assert "Ports" in found.stdout
    refused = _mneme("--local", folder, "--address", "127.0.0.1:1", "status")
    assert refused.returncode == 2
    assert "--local" in refused.stderr


def test_an_audit_compares_a_folder_with_what_it_was_before_its_server_ended(
    folder: Path, tmp_path: Path
) -> None:
    audit = ("--local", os.path.relpath(folder), "audit", "--heads", tmp_path / "heads.json")
    for said in ("its head is kept", "begins with all that it had before"):
        result = _mneme(*audit)
        assert (result.returncode, said in result.stdout) == (0, True), result
        wait_until(lambda: is_free(folder), "the server ends by itself")


def _mneme(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPTS / "mneme"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
