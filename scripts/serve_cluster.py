"""A cluster to try, by `make serve-cluster`: two nodes, the PostgreSQL that they share, and nginx
before them, all on this machine.

It needs neither root nor Docker. All is in one folder, and there again at the next start. What is
started here ends with this process, when it is told to stop (Ctrl-C, SIGTERM, SIGHUP). A node that
ends before, as it was killed to see what happens, is started again.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.programs import (  # noqa: E402
    NGINX_MISSING,
    POSTGRES_MISSING,
    Node,
    free_port,
    nginx_before,
    nginx_program,
    postgres_programs,
    somebody,
)

NODES = (1, 2)
STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_STARTS_WITHIN_S = 120.0
_STOPS_WITHIN_S = 60.0
_LOOKED_EVERY_S = 0.2
_DATABASE = (
    "CREATE ROLE mneme_tenant NOLOGIN NOBYPASSRLS",
    "CREATE USER mneme",
    "GRANT mneme_tenant TO mneme",
    "CREATE DATABASE mneme OWNER mneme ENCODING 'UTF8' TEMPLATE template0",
)


class Stopped(Exception):
    """This process was told to stop while it started something."""


class NotServing(Exception):
    """Something did not start, or has ended; the message says what."""


class Started:
    """A program that was started, in a group of its own: a terminal's Ctrl-C is not for it.

    Args:
        name: what it is called, its log, too.
        command: the program with its arguments.
        log: where its output goes.
        stop: the signal that ends it in order.
        environment: its variables; None: those of this process.
        as_somebody: whether it may not run as root.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        stop: signal.Signals = signal.SIGTERM,
        environment: Mapping[str, str] | None = None,
        as_somebody: bool = False,
    ) -> None:
        self.name, self._command, self._log = name, command, log
        self._stop, self._environment = stop, environment
        self._who = somebody() if as_somebody else {}
        self.begin()

    def begin(self) -> None:
        """Start it, perhaps once more. `served` tells whether it was seen to serve since."""
        self.served = False
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self._environment, cwd="/", start_new_session=True, **self._who,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The code that it ended with; None while it runs."""
        return self._process.poll()

    def failure(self, what: str) -> NotServing:
        """Return the error that says this of it, with the end of its log."""
        last = self._log.read_text(errors="replace").splitlines()[-12:]
        return NotServing("\n  ".join([f"{self.name} {what}; {self._log} ends:", *last]))

    def end(self) -> None:
        """Stop it, and wait until it is gone."""
        if self.ended is None:
            self._process.send_signal(self._stop)
            try:
                self._process.wait(_STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Cluster:
    """What runs, in one folder.

    Args:
        folder: where all of it is kept; made when missing.
        grpc: where the balancer listens for gRPC; port 0: a free one.
        http: where it listens for HTTP.
    """

    def __init__(self, folder: Path, grpc: str, http: str) -> None:
        self._folder = folder
        self._grpc, self._http = _picked(grpc), _picked(http)
        self._logs = folder / "logs"
        self._opened = ExitStack()
        self._nodes: list[tuple[Started, Node]] = []
        self._others: list[Started] = []

    def start(self) -> None:
        """Start everything, and wait until it serves.

        Raises:
            NotServing: it does not.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700 if os.geteuid() else 0o755)
        self._logs.mkdir(exist_ok=True)
        url = self._start_postgres()
        key = self._secret("admin-key", "mn_")
        self._secret("key-of-keys")
        places = [Node(*(f"127.0.0.1:{free_port()}" for _ in range(2))) for _ in NODES]
        for number, place in zip(NODES, places, strict=True):
            self._start_node(number, place, url, key)
        for node, place in self._nodes:
            _wait_for(node, place.grpc)
            print(f"{node.name}: {place.grpc}, http://{place.http}, process {node.pid}")
        grpc, http = self._start_balancer(places)
        print(f"dashboard: http://{http}/")
        print("for clients (the key is the administrator's):")
        print(f"export MNEME_ADDRESS={grpc}")
        print(f"export MNEME_API_KEY={key}")
        print(
            f"serving on {grpc}; data and logs are in {self._folder}; Ctrl-C stops all", flush=True
        )

    def look(self) -> None:
        """Start nodes again that have ended.

        Raises:
            NotServing: something cannot be gone on with.
        """
        for other in self._others:
            if other.ended is not None:
                raise other.failure(f"has ended with {other.ended}")
        for node, place in self._nodes:
            code = node.ended
            if code is None:
                node.served = node.served or _listens(place.grpc)
            elif node.served:
                node.begin()
                print(f"{node.name} has ended with {code}; started again as process {node.pid}",
                      flush=True)  # fmt: skip
            else:
                raise node.failure(f"has ended with {code} instead of serving")

    def stop(self) -> None:
        """Stop everything: the balancer, then the nodes, which still need the database."""
        self._opened.close()

    def _start_postgres(self) -> str:
        programs = postgres_programs()
        if programs is None:
            raise NotServing(POSTGRES_MISSING)
        data = self._folder / "postgres"
        new = not data.exists()
        if new:
            self._make_database(programs, data)
        # The path of a socket is short, and a folder of its own lets nobody else in.
        sockets = Path(tempfile.mkdtemp(prefix="mneme-cluster-", dir="/tmp"))
        self._opened.callback(shutil.rmtree, sockets, ignore_errors=True)
        _give(sockets)
        server = Started(
            "PostgreSQL",
            [programs / "postgres", "-D", data, "-k", sockets, "-c", "listen_addresses="],
            self._logs / "postgres.log", stop=signal.SIGINT, as_somebody=True,
        )  # fmt: skip
        self._keep(server)
        self._others.append(server)
        _wait_for_database(server, f"postgresql://postgres@/postgres?host={sockets}")
        return f"postgresql://mneme@/mneme?host={sockets}"

    def _make_database(self, programs: Path, data: Path) -> None:
        """Make what PostgreSQL keeps its databases in; cut short, there is none."""
        making = data.with_name("postgres.new")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        _give(making)
        given = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"]
        made = subprocess.run(
            [str(programs / "initdb"), "-D", str(making), *given],
            capture_output=True, text=True, check=False, cwd="/", **somebody(),
        )  # fmt: skip
        if made.returncode:
            hint = ""
            if os.geteuid() == 0:
                hint = f"\nAs root runs it, it is run as nobody, who must get to {self._folder}."
            raise NotServing(f"PostgreSQL cannot be set up: {made.stderr.strip()}{hint}")
        making.rename(data)

    def _start_node(self, number: int, place: Node, url: str, key: str) -> None:
        given = {
            "MNEME_LISTEN": place.grpc,
            "MNEME_HTTP_LISTEN": place.http,
            "MNEME_METRICS_LISTEN": "",
            "MNEME_PROXIES": "127.0.0.0/8",  # nginx is on this machine, too.
            "MNEME_DATA_DIR": str(self._folder / f"node{number}"),
            "MNEME_DATABASE_URL": url,
            "MNEME_DATABASE_KEPT_DAYS": "1",  # There are no backups of it.
            "MNEME_KEY_FILE": str(self._folder / "key-of-keys"),
            "MNEME_ADMIN_KEY": key,
        }
        node = Started(
            f"node {number}",
            [sys.executable, "-m", "mneme_server", "serve"],
            self._logs / f"node{number}.log", environment={**os.environ, **given},
        )  # fmt: skip
        self._keep(node)
        self._nodes.append((node, place))

    def _start_balancer(self, places: Sequence[Node]) -> tuple[str, str]:
        """Return where clients are to call, over gRPC and over HTTP."""
        program = nginx_program()
        if program is None:
            print(f"{NGINX_MISSING}: the nodes go without it, and clients call one of them")
            return places[0].grpc, places[0].http
        folder = self._folder / "nginx"
        arguments = nginx_before(places, folder, self._grpc, self._http)
        balancer = Started("nginx", [program, *arguments], self._logs / "nginx.log")
        self._keep(balancer)
        self._others.append(balancer)
        for address in (self._grpc, self._http):
            _wait_for(balancer, address)
        return self._grpc, self._http

    def _secret(self, name: str, prefix: str = "") -> str:
        """Return what a file holds that others may not read; made once."""
        file = self._folder / name
        if not file.exists():
            new = file.with_suffix(".new")
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as made:
                made.write(prefix + secrets.token_urlsafe(32))
            new.rename(file)
        return file.read_text()

    def _keep(self, started: Started) -> None:
        self._opened.callback(started.end)


def _picked(address: str) -> str:
    """Return an address with a port."""
    host, _, port = address.rpartition(":")
    return f"{host}:{free_port()}" if port == "0" else address


def _give(folder: Path) -> None:
    """Give a folder to whom PostgreSQL runs as."""
    if who := somebody():
        os.chown(folder, who["user"], who["group"])


def _wait_for(started: Started, address: str) -> None:
    """Wait until it listens."""
    until = time.monotonic() + _STARTS_WITHIN_S
    while not _listens(address):
        _require_waiting()
        if started.ended is not None:
            raise started.failure(f"has ended with {started.ended} instead of serving on {address}")
        if time.monotonic() > until:
            raise started.failure(f"does not serve on {address}")
        time.sleep(_LOOKED_EVERY_S)
    started.served = True


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


def _require_waiting() -> None:
    """See that nobody has told this process to stop, which is noticed once all is started."""
    if STOPPING & signal.sigpending():
        raise Stopped


def _wait_for_database(server: Started, url: str) -> None:
    """Wait until PostgreSQL answers, and see that it has the nodes' database."""
    import psycopg

    until = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                known = "SELECT 1 FROM pg_database WHERE datname = 'mneme'"
                if connection.execute(known).fetchone() is None:
                    for statement in ("DROP USER IF EXISTS mneme",
                                      "DROP ROLE IF EXISTS mneme_tenant", *_DATABASE):  # fmt: skip
                        connection.execute(statement)
                return
        except psycopg.OperationalError:
            _require_waiting()
            if server.ended is not None or time.monotonic() > until:
                raise server.failure("does not serve") from None
            time.sleep(_LOOKED_EVERY_S)


def main() -> int:
    """Serve until told to stop; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / ".cluster", metavar="FOLDER")
    parser.add_argument("--listen", default="127.0.0.1:50051", metavar="HOST:PORT")
    parser.add_argument("--http-listen", default="127.0.0.1:8080", metavar="HOST:PORT")
    given = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    cluster = Cluster(given.folder.absolute(), given.listen, given.http_listen)
    try:
        cluster.start()
        while signal.sigtimedwait(STOPPING, _LOOKED_EVERY_S) is None:
            cluster.look()
        print("stopping", flush=True)
    except Stopped:
        return 0
    except NotServing as error:
        print(f"serve-cluster: {error}", file=sys.stderr)
        return 1
    finally:
        cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
