"""Every request over standard input is answered, also one that cannot be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hosts import environment

CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"agentlens_recall",'
ASK = CALL + '"arguments":{"query":"%s"}}}'
ADAPTER = [sys.executable, "-m", "mneme_mcp"]
PING = b'{"jsonrpc":"2.0","id":"after","method":"ping"}\n'

CANNOT_BE_READ = {
    "the first half of a character": (ASK % (7, "deploy \\ud83d"), 7, "half of a character"),
    "the second half of a character": (ASK % (7, "\\ude00 done"), 7, "half of a character"),
    "300 levels": (
        ASK % (7, 'x","more":%s,"y":"' % ("[" * 300 + "]" * 300)),
        7,
        "nested this deep",
    ),
    "100,000 levels": (ASK % (7, 'x","m":%s,"y":"' % ("[" * 100_000 + "]" * 100_000)), 7, "deep"),
    "levels that are not closed": ('{"jsonrpc":"2.0","id":7,"m":' + '{"a":' * 300, 7, "deep"),
    "the id after what is broken": ('{"params":{"id":3,"a":"\\ud83d"},"id":7}', 7, "half of"),
    "an id that is a text": (ASK % ('"a\\"b"', "\\ud83d"), 'a"b', "half of a character"),
    "an id that cannot be sent back": (ASK % ('"\\ud83d"', "x"), None, "half of a character"),
    "a message that was cut": ((ASK % (7, "x"))[:-3], 7, "EOF"),
    "a control character": (ASK % (7, "\x01"), 7, "control character"),
    "a number of 5,000 digits": (ASK % (7, 'x","limit":%s,"y":"' % ("9" * 5000)), 7, "number"),
    "no JSON": ("this is no JSON", None, "no JSON"),
    "an id that is a fraction": (ASK % (1.5, "x"), None, "must be a text or a whole number"),
    "an id that is null": (ASK % ("null", "x"), None, "must be a text or a whole number"),
    "an id that is an object": (ASK % ('{"a":1}', "x"), None, "JSON-RPC|must be a text"),
    "parameters in a list": ('{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', 7, "JSON-RPC"),
    "another version": ('{"jsonrpc":"1.0","id":7,"method":"ping"}', 7, "JSON-RPC 2.0"),
    "a batch": ('[{"jsonrpc":"2.0","id":7,"method":"ping"}]', 7, "JSON-RPC 2.0"),
}


@pytest.fixture(scope="module")
def adapter(server: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ADAPTER,
        env=os.environ
        | environment(address=server.address, api_key=server.keys.tenant("mcp").secret),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with process:
        assert [one["id"] for one in answers(process, json.dumps(begin).encode())] == [1]
        yield process
        assert process.stdin is not None
        process.stdin.close()


def answers(process: subprocess.Popen[bytes], line: bytes) -> list[dict[str, Any]]:
    """What comes before the answer to a ping that follows."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + b"\n" + PING)
    process.stdin.flush()
    found: list[dict[str, Any]] = []
    while not found or found[-1]["id"] != "after":
        found.append(json.loads(process.stdout.readline()))
    return found[:-1]


@pytest.mark.parametrize("what", CANNOT_BE_READ)
def test_a_request_that_cannot_be_read_is_answered_with_the_reason(
    adapter: subprocess.Popen[bytes], what: str
) -> None:
    line, asker, reason = CANNOT_BE_READ[what]
    [answer] = answers(adapter, line.encode())
    assert answer["id"] == asker
    assert any(words in answer["error"]["message"] for words in reason.split("|"))


def test_a_line_longer_than_what_is_read_is_answered_and_the_next_is_served(
    adapter: subprocess.Popen[bytes],
) -> None:
    [answer] = answers(adapter, (ASK % (7, "x" * (65 * 1024**2))).encode())
    assert answer["id"] == 7
    assert "longer than 64 MB" in answer["error"]["message"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        '{"jsonrpc":"2.0","id":7,"result":{"a":"\\ud83d"}}',
        '{"jsonrpc":"2.0","id":7,"result":1}',
    ],
)
def test_what_asks_for_nothing_is_not_answered(adapter: subprocess.Popen[bytes], line: str) -> None:
    assert answers(adapter, line.encode()) == []


def test_bytes_that_are_no_utf_8_cost_their_characters_and_not_the_call(
    adapter: subprocess.Popen[bytes],
) -> None:
    assert adapter.stdin is not None
    assert adapter.stdout is not None
    adapter.stdin.write((ASK % (7, "caf\xe9")).encode("latin-1") + b"\n")
    adapter.stdin.flush()
    answer = json.loads(adapter.stdout.readline())
    assert answer["id"] == 7
    assert not answer["result"]["isError"]


def test_files_and_terminals_are_answered_as_pipes_are(server: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((ASK % (7, "\\ud83d")).encode() + b"\n" + PING)
    with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as sink:
        subprocess.run(
            ADAPTER,
            env=os.environ | environment(address=server.address),
            stdin=source,
            stdout=sink,
            timeout=60,
            check=True,
        )
    told = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert {one["id"] for one in told} == {7, "after"}
