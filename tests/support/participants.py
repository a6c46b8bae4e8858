"""Processes that use one folder's memory: Python, TypeScript and MCP, driven by lines."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.server import REPOSITORY

TYPESCRIPT = REPOSITORY / "clients/typescript/dist/index.js"

_PYTHON = """
import sys, threading, time, mneme
folder, name = sys.argv[1:]
mneme.MnemeClient, mneme.local
print("ready", flush=True)
sys.stdin.readline()
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
memory, number = None, 0
while not ended.is_set():
    number += 1
    try:
        memory = memory or mneme.local(folder)
        text = f"{name}-{number}"
        memory.record_events([{"session_id": name, "event_type": "message", "text": text}])
        print("ack", text, flush=True)
    except Exception as error:
        print("error", type(error).__name__, str(error).replace("\\n", " "), flush=True)
    time.sleep(0.02)
if memory:
    memory.close()
"""

_TYPESCRIPT = """
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
const [module, folder, name] = process.argv.slice(1);
const { createMneme } = await import(module);
const input = createInterface({ input: process.stdin });
let ended = false;
input.on("close", () => { ended = true; });
console.log("ready");
await new Promise((go) => input.once("line", go));
const memory = createMneme({ local: folder });
for (let number = 1; !ended; number += 1) {
  const text = `${name}-${number}`;
  try {
    await memory.recordEvents({ events: [{ sessionId: name, eventType: "message", text }] });
    console.log("ack", text);
  } catch (error) {
    console.log("error", error.code ?? error.name, String(error.message).replaceAll("\\n", " "));
  }
  await sleep(20);
}
memory.close();
"""


class Participant:
    """A process that writes for as long as it is let, and says what was acknowledged.

    Args:
        kind: python, typescript or mcp.
        folder: the folder.
        name: begins the texts that it writes.
    """

    def __init__(self, kind: str, folder: Path, name: str) -> None:
        self.kind = kind
        self.name = name
        self.acknowledged: list[str] = []
        self.failures: list[str] = []
        self.is_ready = threading.Event()
        self._go = threading.Event()
        self._end = threading.Event()
        self.process = subprocess.Popen(
            _command(kind, folder, name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"MNEME_SERVER": str(Path(sys.executable).with_name("mneme-server"))},
        )
        talk = self._as_host if kind == "mcp" else self._listen
        self._thread = threading.Thread(target=talk, daemon=True)
        self._thread.start()

    def go(self) -> None:
        """Have it begin."""
        self._go.set()
        if self.kind != "mcp":
            self._say("go")

    def end(self) -> None:
        """Let it end in its own time."""
        self._end.set()
        if self.kind != "mcp":
            self._close()

    def wait(self) -> None:
        """Wait until it has gone."""
        self._end.set()
        self.process.wait(timeout=120)
        self._thread.join(timeout=30)
        self._close()

    def _close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def _say(self, line: str) -> bool:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return False
        return True

    def _lines(self) -> Iterator[str]:
        """Yield what it says; a line that its end has torn says nothing."""
        assert self.process.stdout is not None
        return (line for line in self.process.stdout if line.endswith("\n"))

    def _listen(self) -> None:
        for line in self._lines():
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                self.is_ready.set()
            elif word == "ack":
                self.acknowledged.append(rest)
            elif word == "error":
                self.failures.append(rest)

    def _as_host(self) -> None:
        """Speak MCP: one call after the other."""
        info = {"name": "test", "version": "1"}
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        lines = self._lines()
        if self._asked(lines, 0, "initialize", begin) is None:
            return
        self._say(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self.is_ready.set()
        self._go.wait()
        number = 0
        while not self._end.is_set():
            number += 1
            text = f"{self.name}-{number}"
            event = {"sessionId": self.name, "eventType": "message", "text": text}
            call = {"name": "agentlens_log_event", "arguments": event}
            answer = self._asked(lines, number, "tools/call", call)
            if answer is None:
                return
            if answer.get("isError"):
                self.failures.append(answer["content"][0]["text"])
            else:
                self.acknowledged.append(text)
        self._close()

    def _asked(
        self, lines: Iterator[str], number: int, method: str, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if not self._say(json.dumps(request)):
            return None
        for line in lines:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                result: dict[str, Any] = message.get("result") or {
                    "isError": True, "content": [{"text": json.dumps(message)}],
                }  # fmt: skip
                return result
        return None


def _command(kind: str, folder: Path, name: str) -> list[str]:
    if kind == "python":
        return [sys.executable, "-c", _PYTHON, str(folder), name]
    if kind == "mcp":
        return [sys.executable, "-m", "mneme_mcp", "--local", str(folder), "--toolsets", "events"]
    module = TYPESCRIPT.as_uri()
    return ["node", "--input-type=module", "-e", _TYPESCRIPT, module, str(folder), name]
