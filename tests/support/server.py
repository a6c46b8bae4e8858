"""Real servers: in this process for most tests, in one of their own where they are killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme_server.app import Application
from mneme_server.settings import Settings

from support import postgres
from support.api import Api

ADMIN_KEY = "mn_the-key-of-the-tests-administrator"
REPOSITORY = Path(__file__).parents[2]
_TESTS = REPOSITORY / "tests"
_START_S = 120.0
_MOVE = "move/"


def model_dir() -> Path:
    """Where the exported embedding model lies: `make model` writes it there."""
    return Path(os.environ.get("MNEME_MODEL_DIR") or REPOSITORY / "model" / "mneme_minilm")


def settings_of(data_dir: Path, **changed: Any) -> Settings:
    """Return settings for a server of tests: a free port, no metrics, a key that tests know."""
    values: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "http_listen": "",
        "metrics_listen": "",
        "data_dir": data_dir,
        "model_dir": model_dir(),
        "admin_key": ADMIN_KEY,
        "log_level": "warning",
        "drain_seconds": 2.0,
        "disk_reserve_bytes": 0,
    }
    if os.environ.get("MNEME_TEST_POSTGRES"):
        values["database_url"] = postgres.url_for(data_dir)
        values["database_kept_days"] = 30
    values |= changed
    if values.get("database_url") and "key_file" not in values:
        values.setdefault("plain_keys", True)
    return Settings(**values)


class Keys:
    """Makes tenants and keys on a server, and closes their connections at the end."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.admin = Api(address, ADMIN_KEY, "default")
        self._opened = [self.admin]
        self._made = 0
        self._lock = threading.Lock()

    def tenant(self, prefix: str = "t", *scopes: int) -> Api:
        """Create a tenant and a key that reads and writes, or has these scopes."""
        with self._lock:
            self._made += 1
            tenant_id = f"{prefix}-{self._made}"
        self.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=tenant_id))
        return self.key(tenant_id, *scopes)

    def key(self, tenant_id: str, *scopes: int, rate_limit: int = 0) -> Api:
        """Create another key of a tenant."""
        created = self.admin.admin.CreateApiKey(
            admin_pb.CreateApiKeyRequest(
                tenant_id=tenant_id,
                name="test",
                scopes=scopes or (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE),
                rate_limit=rate_limit,
            )
        )
        return self.api(created.secret, tenant_id)

    def api(self, secret: str | None, tenant_id: str = "") -> Api:
        """Connect with a secret that is known already, or without one."""
        api = Api(self.address, secret, tenant_id)
        self._opened.append(api)
        return api

    def close(self) -> None:
        """Close every connection that was made here."""
        for api in self._opened:
            api.close()


class LocalServer:
    """A server in this process."""

    def __init__(self, data_dir: Path, **changed: Any) -> None:
        self.data_dir = data_dir
        self.settings = settings_of(data_dir, **changed)
        self.application = Application(self.settings)
        try:
            self.address, self.made_key = self.application.start()
        except BaseException:
            self.application.abandon()
            raise
        self.http_address = self.application.http_address
        self.keys = Keys(self.address)

    def close_tenant(self, tenant_id: str) -> None:
        """Let go of a tenant's files, as happens when it is idle; the next call opens it again."""
        with self.closed(tenant_id):
            pass

    @contextmanager
    def closed(self, tenant_id: str) -> Iterator[None]:
        """Keep a tenant closed, so that no work of the server's has its files open meanwhile."""
        with self.application.runtime.tenants.removing(tenant_id):
            yield

    @contextmanager
    def database(self, tenant_id: str) -> Iterator[sqlite3.Connection]:
        """Lend the database of a tenant, which is kept closed, and commit what is changed there."""
        file = self.data_dir / "tenants" / tenant_id / "mneme.db"
        with self.closed(tenant_id), closing(sqlite3.connect(file)) as database, database:
            yield database

    def stop(self) -> None:
        """Stop as a server does that is told to."""
        self.application.stop()
        self.keys.close()


@contextmanager
def local_server(data_dir: Path, **changed: Any) -> Iterator[LocalServer]:
    """Run a server in this process for the block."""
    server = LocalServer(data_dir, **changed)
    try:
        yield server
    finally:
        server.stop()


class ServerProcess:
    """A server in a process of its own, as `mneme-server serve` runs it; `address_space` limits
    what it may map, in bytes; `cut_at` has it kill itself at a point of an operation
    (`support.cutting`; behind "move/" of a move, `support.cutting_a_served_move`); `program` is
    what Python runs instead.

    Raises:
        AssertionError: it did not come up; the message holds what it printed.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        log_path: Path | None = None,
        address_space: int | None = None,
        cut_at: str = "",
        program: Sequence[str] = (),
        **changed: Any,
    ) -> None:
        self.data_dir = data_dir
        log_name = f"{data_dir.name}-{os.urandom(4).hex()}.log"
        self._log_path = log_path or data_dir.parent / log_name
        self.printed: list[str] = []
        with self._log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *(program or _program(address_space, cut_at)), "serve"],
                env=environment(data_dir, **changed) | {"PYTHONPATH": str(_TESTS)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address = self._wait()
        self.keys = Keys(self.address)

    @property
    def http_address(self) -> str:
        """Where it serves HTTP, as a URL; empty where it does not."""
        said = "serving HTTP on "
        return next((one.removeprefix(said) for one in self.printed if one.startswith(said)), "")

    @property
    def log(self) -> str:
        """What it wrote to its log so far."""
        return self._log_path.read_text(errors="replace")

    def kill(self) -> None:
        """End it as a crash does: nothing is flushed, closed or told."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)
        self._release()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self._release()
        return code

    def _release(self) -> None:
        self.keys.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _wait(self) -> str:
        assert self.process.stdout is not None
        watchdog = threading.Timer(_START_S, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                self.printed.append(line.rstrip("\n"))
                if line.startswith("serving on "):
                    return line.removeprefix("serving on ").strip()
        finally:
            watchdog.cancel()
        code = self.process.wait()
        raise AssertionError(f"the server ended with {code} instead of serving:\n{self.log}")


def _program(address_space: int | None, cut_at: str) -> list[str]:
    if cut_at.startswith(_MOVE):
        return ["-m", "support.cutting_a_served_move", cut_at.removeprefix(_MOVE)]
    if cut_at:
        return ["-m", "support.cutting", cut_at]
    if address_space is None:
        return ["-m", "mneme_server"]
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({address_space}, {address_space}))"
    run = "runpy.run_module('mneme_server', run_name='__main__')"
    return ["-c", f"import resource, runpy; {limit}; {run}"]


@contextmanager
def server_process(
    data_dir: Path, *, log_path: Path | None = None, **changed: Any
) -> Iterator[ServerProcess]:
    """Run a server in a process of its own for the block."""
    server = ServerProcess(data_dir, log_path=log_path, **changed)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def environment(data_dir: Path, **changed: Any) -> dict[str, str]:
    """Return the environment for a command on a data folder: the machine's, and these settings."""
    settings: Mapping[str, Any] = {
        "listen": "127.0.0.1:0",
        "http_listen": "",
        "metrics_listen": "",
        "data_dir": data_dir,
        "model_dir": model_dir(),
        "admin_key": ADMIN_KEY,
        "log_level": "warning",
    } | changed
    if "database_url" in settings and "key_file" not in settings:
        settings = {"plain_keys": "true"} | settings
    given = {f"MNEME_{name.upper()}": str(value) for name, value in settings.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MNEME_")}
    return kept | given


def run_command(
    command: str, data_dir: Path, *arguments: str, **changed: Any
) -> subprocess.CompletedProcess[str]:
    """Run `mneme-server COMMAND` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "mneme_server", command, *arguments],
        env=environment(data_dir, **changed),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
