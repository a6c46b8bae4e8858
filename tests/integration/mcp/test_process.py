"""The adapter as a process: how it starts, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.hosts import environment

pytestmark = pytest.mark.slow

ADAPTER = [sys.executable, "-m", "mneme_mcp"]
HELLO = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wake_up"}},
]


def lines(*messages: Any) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ADAPTER, *arguments],
        env=os.environ | environment(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_ends_when_its_host_goes_away(server: Any, api: Any) -> None:
    process = subprocess.Popen(
        ADAPTER,
        env=os.environ | environment(address=server.address, api_key=api.secret),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(*HELLO))
    process.stdin.flush()
    replies = [json.loads(process.stdout.readline()) for _ in range(2)]
    out, errors = process.communicate(timeout=30)
    assert [reply["id"] for reply in replies] == [1, 2]
    assert "nothing to pick up" in replies[1]["result"]["content"][0]["text"]
    assert process.returncode == 0
    assert out == ""
    assert "Traceback" not in errors


def test_it_serves_files_too_which_are_no_pipes(server: Any, api: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text(lines(*HELLO[:1]))
    with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as sink:
        done = subprocess.run(
            ADAPTER,
            env=os.environ | environment(address=server.address, api_key=api.secret),
            stdin=source,
            stdout=sink,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    assert json.loads((tmp_path / "out").read_text())["result"]["serverInfo"]["name"] == "mneme"


def test_what_is_no_message_is_answered_and_does_not_end_it(server: Any, api: Any) -> None:
    done = subprocess.run(
        ADAPTER,
        env=os.environ | environment(address=server.address, api_key=api.secret),
        input="this is no JSON\n" + lines(HELLO[0]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in answers if "result" in one] == [1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--toolsets", "dreams"], "there is no toolset 'dreams'"),
        (["--http", "nowhere"], "give HOST:PORT"),
        (["--http", "0.0.0.0:0"], "--allowed-host"),
    ],
)
def test_settings_that_make_no_sense_end_it_with_what_to_do(
    arguments: list[str], words: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("mneme-mcp: ")


def test_its_help_names_the_toolsets_and_the_settings() -> None:
    done = run("--help")
    assert done.returncode == 0
    for word in ("compat", "(default)", "MNEME_API_KEY", "MNEME_MCP_TOOLSETS", "MNEME_MCP_USER"):
        assert word in done.stdout
