"""A host that shares no code with the adapter: MCP's TypeScript SDK, on Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.hosts import command, http_adapter

SDK = "@modelcontextprotocol/sdk@1.32.2"
SCRIPT = Path(__file__).with_name("other_host.mjs")
CALLS = [
    ["agentlens_learn", {"action": "save", "title": "Always run tests", "content": "Before."}],
    ["agentlens_recall", {"query": "tests", "scope": "lessons"}],
    ["agentlens_reflect", {"analysis": "error_patterns"}],
    ["agentlens_recall", {"query": "tests", "limit": "many"}],
    ["wake_up", {}],
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's folder, with the SDK installed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are not installed")
    folder = tmp_path_factory.mktemp("other-host")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", SDK],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"{SDK} cannot be installed: {installed.stderr.strip()[-300:]}")
    shutil.copy(SCRIPT, folder)
    return folder


def connect(host: Path, **plan: Any) -> dict[str, Any]:
    done = subprocess.run(
        ["node", SCRIPT.name, json.dumps(plan | {"calls": CALLS})],
        cwd=host,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def check(seen: dict[str, Any]) -> None:
    assert seen["server"]["name"] == "mneme"
    assert "wake_up first" in seen["instructions"]
    assert {"agentlens_recall", "agentlens_learn", "sleep", "wake_up"} <= set(seen["tools"])
    assert "mneme://lessons" in seen["resources"]
    assert "end_of_session" in seen["prompts"]
    saved, recalled, reflected, wrong, woken = seen["results"]
    lesson = saved["structuredContent"]["lesson"]["id"]
    assert recalled["structuredContent"]["results"][0]["sourceId"] == lesson
    assert "Nothing to reflect on" in reflected["content"][0]["text"]
    assert wrong["isError"]
    assert "limit: should be a valid integer" in wrong["content"][0]["text"]
    assert "nothing to pick up" in woken["content"][0]["text"]
    assert seen["progress"][0]["message"] == "analysing error patterns"


def test_another_library_connects_over_stdio(host: Path, server: Any, new_tenant: Any) -> None:
    started = command("--toolsets", "compat", address=server.address, api_key=new_tenant().secret)
    check(connect(host, command=started.command, args=started.args, env=started.env))


def test_another_library_connects_over_http(host: Path, server: Any, new_tenant: Any) -> None:
    with http_adapter("--toolsets", "compat", address=server.address) as url:
        check(connect(host, url=url, key=new_tenant().secret))
