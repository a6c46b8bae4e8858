"""A server says that nothing is left of what was erased once that is so, and not before."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from mneme_server.common.errors import NotFound
from mneme_server.engine.cluster.erasure_propagation import ErasureWorker
from mneme_server.engine.corpus.nodes import WHOLE, Erasure, Erasures
from mneme_server.engine.tenants.registry import TenantRegistry

PATIENCE_S = 60.0
GONE = "gone"


class Owed:
    """What is owed, as a store that others share has it."""

    def __init__(self) -> None:
        self.settled: list[Erasure] = []
        self.finished: list[Erasure] = []

    def settle(self, owed: Erasure) -> None:
        self.settled.append(owed)

    def done(self, owed: Erasure) -> None:
        self.finished.append(owed)


def require(tenant_id: str) -> None:
    if tenant_id == GONE:
        raise NotFound("there is no such tenant")


def _never(tenant_id: str) -> Any:
    raise AssertionError(f"{tenant_id} is closed")


def _refused(path: object, **_of: object) -> None:
    raise OSError(errno.EIO, "the disk is broken", path)


@pytest.fixture
def tenants() -> Iterator[TenantRegistry[Any]]:
    registry: TenantRegistry[Any] = TenantRegistry(_never, memory_bytes=1, idle_seconds=60.0)
    yield registry
    registry.close()


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(("tenant_id", "erasure"), [("acme", "f1"), ("acme", WHOLE), (GONE, WHOLE)])
def test_what_cannot_be_removed_is_owed_until_it_is(
    tmp_path: Path,
    tenants: TenantRegistry[Any],
    monkeypatch: pytest.MonkeyPatch,
    tenant_id: str,
    erasure: str,
) -> None:
    store, owed = Owed(), Erasure(tenant_id, erasure, settled=False, number=7)
    index = tmp_path / tenant_id / "index"
    index.mkdir(parents=True)
    (index / "vectors").write_text("what was erased")
    worker = ErasureWorker(cast(Erasures, store), tenants, tmp_path, require)
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", _refused)
        worker.start([owed])
        assert store.settled == [owed]
        assert not store.finished
    worker.note([owed])
    eventually(lambda: store.finished == [owed])
    worker.begin_stop()
    assert not index.exists()
