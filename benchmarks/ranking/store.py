"""A server in this process with the sets in it: recorded and embedded once, then kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mneme import MnemeClient
from mneme_server.app import Application
from mneme_server.edge.grpc.logging import configure_logging
from mneme_server.features.recall.search import Recall
from mneme_server.settings import Settings
from pydantic import SecretStr

from benchmarks.ranking.sets import Said, Talk
from benchmarks.server import ROOT, ServerFailed

_ADMIN_KEY = "mn_the-key-of-the-benchmark-of-ranking"
_BATCH = 200
_VERSION = 1  # Raise it when what is recorded, or how, changes here.
# A database of before is migrated; what is embedded differently must be embedded again.
_SOURCES = (
    "server/mneme_server/engine/embedding/{embedder}.py",
    "clients/python/mneme/importing/**/*.py",
)

Say = Callable[[str], None]


class Store:
    """The server, by its API and by its use cases."""

    def __init__(self, application: Application, address: str) -> None:
        runtime = application.runtime
        self.recall = Recall(
            runtime.tenants,
            runtime.questions,
            runtime.asking,
            model_id=runtime.model.model_id,
        )
        self.address = address
        self._clients: dict[str, MnemeClient] = {}
        self._admin = MnemeClient(address, api_key=_ADMIN_KEY, timeout=600.0)

    def client(self, tenant: str) -> MnemeClient:
        """Return a client for a tenant that exists."""
        if tenant not in self._clients:
            self._clients[tenant] = MnemeClient(
                self.address, api_key=self.secret(tenant), timeout=600.0
            )
        return self._clients[tenant]

    def secret(self, tenant: str) -> str:
        """Make a key for a tenant that exists."""
        return self._admin.create_api_key(tenant, "benchmark").secret

    def create(self, tenant: str) -> MnemeClient:
        """Create a tenant."""
        self._admin.create_tenant(tenant)
        return self.client(tenant)

    def close(self) -> None:
        """Close the clients."""
        for client in (*self._clients.values(), self._admin):
            client.close()


@contextmanager
def stored(
    cache: Path, name: str, file: Path, embedder: str, fill: Callable[[Store], None], say: Say
) -> Iterator[Store]:
    """Serve the set of a file from a copy in `cache`, which `fill` makes when it is missing.

    `embedder` is what MNEME_EMBEDDER says; each has a copy of its own.
    """
    kept = f"ranking-{name}@{re.sub('[^a-z0-9]+', '_', embedder.lower())}"
    folder = cache / f"{kept}-{_digest(file, embedder)}"
    done = folder / "done"
    if not done.exists():
        for old in cache.glob(f"{kept}-*"):
            shutil.rmtree(old)
        say(f"{name}: recording and embedding, once")
        with _serving(folder / "data", embedder) as store:
            fill(store)
        done.touch()
    with _serving(folder / "data", embedder) as store:
        yield store


def tenant_of(talk: Talk) -> str:
    """Return the tenant that holds a conversation."""
    return f"talk-{talk.id}".lower()


def record(store: Store, talks: Sequence[Talk]) -> None:
    """Record conversations and memories, a tenant each, and wait until they are embedded."""
    for talk in talks:
        client = store.create(tenant_of(talk))
        spoken = [said for said in talk.events if said.session]
        for start in range(0, len(spoken), _BATCH):
            batch = [_event(said) for said in spoken[start : start + _BATCH]]
            client.record_events(batch, wait_indexed=True)
        for said in talk.events:
            if not said.session:
                client.create_memory(said.text, memory_id=said.id, since=said.at, wait_indexed=True)


def import_runs(store: Store, file: Path, tenant: str, runs: int) -> None:
    """Import transcripts as `mneme import` does, and wait for all sessions' summaries."""
    client = store.create(tenant)
    program = [sys.executable, "-c", "from mneme.cli.main import run; run()"]
    given = ["--agent", "agent", "--address", store.address, "--api-key", store.secret(tenant)]
    done = subprocess.run(
        [*program, "import", str(file), *given], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("MNEME_")},
    )  # fmt: skip
    if done.returncode:
        raise ServerFailed(f"mneme import: {done.stderr}")
    while client.search_sessions("anything", limit=1).searched_count < runs:
        time.sleep(1)
    while client.recall("anything", limit=1).pending_count:
        time.sleep(1)


def _event(said: Said) -> dict[str, object]:
    event: dict[str, object] = {
        "id": said.id,
        "session_id": said.session,
        "event_type": "message",
        "timestamp": said.at,
        "text": said.text,
    }
    return event | {"payload": {"role": said.role}} if said.role else event


@contextmanager
def _serving(data: Path, embedder: str) -> Iterator[Store]:
    configure_logging("error", "console")  # Not a line for each call.
    application = Application(
        Settings(
            listen="127.0.0.1:0",
            http_listen="",
            metrics_listen="",
            data_dir=data,
            embedder=embedder,
            admin_key=SecretStr(_ADMIN_KEY),
            model_dir=Path(os.environ.get("MNEME_MODEL_DIR") or ROOT / "model" / "mneme_minilm"),
            log_level="error",
        )
    )
    try:
        address, _ = application.start()
        store = Store(application, address)
        try:
            yield store
        finally:
            store.close()
    finally:
        application.stop()


def _digest(file: Path, embedder: str) -> str:
    digest = hashlib.sha256(str(_VERSION).encode())
    for given in sorted(file.glob("*.json")) if file.is_dir() else [file]:
        digest.update(given.read_bytes())
    for pattern in _SOURCES:
        code = "minilm" if embedder.startswith("local") else embedder.partition(":")[0]
        for path in sorted(ROOT.glob(pattern.format(embedder=code.replace("-", "_")))):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
