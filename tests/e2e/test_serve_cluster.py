"""`make serve-cluster`: a cluster to try on one machine, of which nothing is left when it stops."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import serve_cluster
from mneme import MnemeClient
from support.programs import NGINX_MISSING, POSTGRES_MISSING, nginx_program, postgres_programs
from support.server import REPOSITORY, model_dir

SCRIPT = REPOSITORY / "scripts" / "serve_cluster.py"
STARTS_WITHIN_S = 300.0

pytestmark = pytest.mark.skipif(postgres_programs() is None, reason=POSTGRES_MISSING)


class Running:
    """A cluster that serves: what it printed, and its process."""

    def __init__(self, folder: Path) -> None:
        kept = {name: one for name, one in os.environ.items() if not name.startswith("MNEME_")}
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT, "--folder", folder, "--listen", "127.0.0.1:0",
             "--http-listen", "127.0.0.1:0"],
            env=kept | {"MNEME_MODEL_DIR": str(model_dir())},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.printed: list[str] = []
        self.export: dict[str, str] = {}

    def read_until(self, beginning: str) -> str:
        """Return the next line that begins so."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(STARTS_WITHIN_S, self.process.terminate)
        watchdog.start()
        try:
            for line in self.process.stdout:
                self.printed.append(line.rstrip("\n"))
                if line.startswith("export "):
                    name, _, value = line.removeprefix("export ").strip().partition("=")
                    self.export[name] = value
                if line.startswith(beginning):
                    return line.rstrip("\n")
        finally:
            watchdog.cancel()
        raise AssertionError(f"it ended without {beginning!r}: {self.printed}")

    def client(self) -> MnemeClient:
        """Return a client as what was printed says."""
        return MnemeClient(self.export["MNEME_ADDRESS"], api_key=self.export["MNEME_API_KEY"])

    def nodes(self) -> dict[str, int]:
        """Return the processes of the nodes, by the address of each."""
        said = [line.split() for line in self.printed if line.startswith("node ")]
        return {one[2].rstrip(","): int(one[-1]) for one in said}

    def stop(self) -> int:
        """Tell it to stop; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=STARTS_WITHIN_S)
        return self.process.returncode


@contextmanager
def cluster(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    try:
        running.read_until("serving on ")
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()


def processes_of(folder: Path) -> list[str]:
    """Return the commands of the processes that name the folder: in their arguments, in their
    variables, or as where they work."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            said = command + (process / "environ").read_bytes()
        except OSError:  # It is somebody else's, or gone.
            continue
        if str(folder).encode() in said:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    # PostgreSQL runs as nobody where the tests run as root. Pytest's folders are root's alone, and
    # each of its runs sees to that.
    with tempfile.TemporaryDirectory(prefix="mneme-cluster-") as parent:
        Path(parent).chmod(0o755)
        yield Path(parent) / "cluster"


@pytest.mark.skipif(nginx_program() is None, reason=NGINX_MISSING)
def test_a_cluster_serves_through_its_balancer_stops_whole_and_keeps_what_it_has(
    folder: Path,
) -> None:
    event = {"id": "e1", "session_id": "s1", "event_type": "message", "text": "the heron fishes"}
    with cluster(folder) as running:
        assert len(running.nodes()) == 2
        assert running.export["MNEME_ADDRESS"] not in running.nodes()
        with running.client() as client:
            client.record_events([event], wait_indexed=True)
            assert client.recall("heron").results[0].text == event["text"]
        assert processes_of(folder)
        assert running.stop() == 0
    assert processes_of(folder) == []
    with cluster(folder) as running, running.client() as client:
        assert client.recall("heron").results[0].text == event["text"]


def test_a_node_that_is_killed_is_started_again(folder: Path) -> None:
    with cluster(folder) as running:
        os.kill(running.nodes()[min(running.nodes())], signal.SIGKILL)
        assert "started again as process" in running.read_until("node ")


def test_without_nginx_it_says_how_to_get_it_and_serves(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve_cluster, "nginx_program", lambda: None)
    monkeypatch.setenv("MNEME_MODEL_DIR", str(model_dir()))
    running = serve_cluster.Cluster(folder, "127.0.0.1:0", "127.0.0.1:0")
    try:
        running.start()
        said = capsys.readouterr().out
        assert NGINX_MISSING in said
        given = dict(re.findall("export (.*)=(.*)", said))
        with MnemeClient(given["MNEME_ADDRESS"], api_key=given["MNEME_API_KEY"]) as client:
            assert client.get_stats().server.version
    finally:
        running.stop()
    assert processes_of(folder) == []
