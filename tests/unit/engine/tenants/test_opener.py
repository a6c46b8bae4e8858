"""Opening a tenant: what fails half-way leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.engine.corpus.cache import do_at_once
from mneme_server.engine.index import scratch
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.store.sqlite_store import SqliteStores, SqliteTenantStore
from mneme_server.engine.store.unit import EmbeddingModel, Unit
from mneme_server.engine.tenants.opener import ProjectionFactory, TenantOpener

MODEL = EmbeddingModel("m", 2)


class Interrupted:
    """Stores of which one cannot be read any more after so many reads."""

    def __init__(self, root: Path, reads: int) -> None:
        self._stores = SqliteStores(root, tenant_schema())
        self._left = reads

    def open(self, tenant_id: str) -> SqliteTenantStore:
        store = self._stores.open(tenant_id)
        read = store.read

        @contextmanager
        def interrupted() -> Iterator[Unit]:
            self._left -= 1
            if self._left < 0:
                raise Unavailable("it cannot be reached", reason=Reason.DATABASE_ERROR)
            with read() as unit:
                yield unit

        def reading() -> AbstractContextManager[Unit]:
            return interrupted()

        store.read = reading  # type: ignore[method-assign]
        return store

    def holds(self, tenant_id: str) -> bool:
        return self._stores.holds(tenant_id)

    def shared_bytes(self, tenant_id: str) -> int:
        return 0

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        self._stores.remove(tenant_id, require)


def opener(root: Path, reads: int, project: ProjectionFactory | None = None) -> TenantOpener:
    return TenantOpener(
        Interrupted(root, reads),
        root,
        lambda _tenant: None,
        MODEL,
        index_settings=IndexSettings(),
        queue_limit=10,
        opened=lambda _tenant: None,
        wake=lambda _tenant: None,
        by_turns=do_at_once,
        committed=lambda _tenant: None,
        before_closing=lambda _tenant: None,
        project=project,
    )


def at_work() -> set[Path]:
    """Return the folders of this process's indexes."""
    return {folder for root, _ in scratch._roots.values() for folder in root.iterdir()}


def unable(_folder: Path, _tenant_id: str, _store: object) -> None:
    raise OSError("the disk is full")


def test_a_tenant_that_cannot_be_opened_leaves_no_files_and_no_threads(tmp_path: Path) -> None:
    opener(tmp_path, 1_000).open("acme").close()
    folders, threads = at_work(), set(threading.enumerate())
    for reads in range(100):
        try:
            opened = opener(tmp_path, reads).open("acme")
        except Unavailable:
            assert at_work() == folders, f"after {reads} reads"
            continue
        opened.close()
        break
    else:
        pytest.fail("it could never be opened")
    assert reads > 2
    with pytest.raises(OSError, match="full"):
        opener(tmp_path, 1_000, unable).open("acme")  # type: ignore[arg-type]
    assert at_work() == folders
    left = set(threading.enumerate()) - threads
    assert not [thread.name for thread in left if thread.name != "index-worker"]
