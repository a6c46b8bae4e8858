"""A server of its own: started, asked, measured and stopped."""

from __future__ import annotations

import os
import queue
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from mneme import MnemeClient
from mneme.types import KeyScopeChoice

ROOT = Path(__file__).resolve().parent.parent
_SERVING = "serving on "
_SERVING_HTTP = "serving HTTP on "
_START_LIMIT_S = 180.0
_STOP_LIMIT_S = 180.0
_LOG_TAIL = 2_000


class ServerFailed(Exception):
    """The server did not start; the message has the end of its log."""


class Server:
    """A server process on a free port of 127.0.0.1. A context manager.

    It runs with the defaults, but for what `settings` says ("embedder": "local:fp32"); variables
    MNEME_* of the environment are not passed on, other than MNEME_MODEL_DIR.

    Args:
        data_dir: its data folder; may hold data of an earlier run.
        settings: settings by name.
        module: what is run; it serves as `mneme_server serve` does.
        variables: of the environment, for the module.
    """

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str] | None = None,
        *,
        module: str = "mneme_server",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._module = module
        self._admin_key = "mn_" + secrets.token_urlsafe(32)
        self._environment = {
            **_environment(data_dir, self._admin_key, settings or {}),
            **(variables or {}),
        }
        self._process: subprocess.Popen[str] | None = None
        self._clients: list[MnemeClient] = []
        self.address = ""
        self.http_address = ""

    def start(self) -> float:
        """Start and return the seconds until it said that it serves.

        Raises:
            ServerFailed: it ended or said nothing for three minutes.
        """
        self._data_dir.mkdir(parents=True, exist_ok=True)
        log = self._data_dir.parent / f"{self._data_dir.name}.log"
        started = time.perf_counter()
        with log.open("a") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, "serve"],
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.address = self._wait_until_serving(log)
        return time.perf_counter() - started

    def stop(self) -> None:
        """Close the clients and let the server shut down."""
        for client in self._clients:
            client.close()
        self._clients = []
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def admin(self) -> MnemeClient:
        """Return a client that may administer."""
        return self.client(self._admin_key)

    def client(self, api_key: str) -> MnemeClient:
        """Return a client with this key; it is closed with the server."""
        client = MnemeClient(self.address, api_key=api_key, timeout=600.0)
        self._clients.append(client)
        return client

    def tenant(
        self, tenant_id: str, *, create: bool = True, scopes: Sequence[KeyScopeChoice] = ()
    ) -> MnemeClient:
        """Create a tenant, or take one that exists, and return a client for it, which reads and
        writes or has these scopes."""
        admin = self.admin()
        if create:
            admin.create_tenant(tenant_id)
        return self.client(admin.create_api_key(tenant_id, "benchmark", scopes=scopes).secret)

    def memory(self) -> dict[str, int]:
        """Return the process's resident memory in bytes: all of it (rss), and without mapped files
        (anonymous).
        """
        if self._process is None:
            raise ServerFailed("the server is not running")
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        names = {"rss": "VmRSS", "anonymous": "RssAnon"}
        return {name: int(fields[key].split()[0]) * 1024 for name, key in names.items()}

    def cpu_s(self) -> float:
        """Return the processor time that the process has used, in seconds."""
        if self._process is None:
            raise ServerFailed("the server is not running")
        # The name, which may hold spaces, ends at the last parenthesis.
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def thread_s(self, name: str) -> float:
        """Return the processor time that threads of this name have used, in seconds. For servers
        that name them in /proc; of threads that ended it is not known."""
        if self._process is None:
            raise ServerFailed("the server is not running")
        spent = 0
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(FileNotFoundError):
                before, _, stat = (thread / "stat").read_text().rpartition(")")
                if before.partition("(")[2] == name[:15]:
                    spent += sum(map(int, stat.split()[11:13]))
        return spent / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _wait_until_serving(self, log: Path) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        stdout = process.stdout

        def read() -> None:
            for line in stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        until = time.monotonic() + _START_LIMIT_S
        while True:
            try:
                line = lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                line = ""
            if not line:
                self.stop()
                raise ServerFailed(
                    "the server did not start:\n" + log.read_text(errors="replace")[-_LOG_TAIL:]
                )
            if line.startswith(_SERVING_HTTP):
                self.http_address = line.removeprefix(_SERVING_HTTP).strip()
            if line.startswith(_SERVING):
                return line.removeprefix(_SERVING).strip()


def _environment(data_dir: Path, admin_key: str, settings: Mapping[str, str]) -> dict[str, str]:
    mine = {
        k: v for k, v in os.environ.items() if k == "MNEME_MODEL_DIR" or not k.startswith("MNEME_")
    }
    return {
        **mine,
        "MNEME_DATA_DIR": str(data_dir),
        "MNEME_LISTEN": "127.0.0.1:0",
        "MNEME_HTTP_LISTEN": "",
        "MNEME_METRICS_LISTEN": "127.0.0.1:0",
        "MNEME_ADMIN_KEY": admin_key,
        **{f"MNEME_{name.upper()}": value for name, value in settings.items()},
    }
