"""Embedding a tenant's memories again, with another model."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.runtime import Runtime
from mneme_server.engine.store.unit import EmbeddingModel, Unit
from mneme_server.engine.tenants.embedding import EmbeddingPipeline
from mneme_server.engine.tenants.opener import INDEX_FOLDERS
from mneme_server.engine.tenants.registry import TenantRegistry

_REPORT_S = 1.0
_LOOK_S = 0.1


def reindex_tenant(
    tenant_id: str,
    *,
    folder: Path,
    stores: TenantStores[Unit],
    model: EmbeddingModel,
    registry: TenantRegistry[Unit],
    pipeline: EmbeddingPipeline,
    progress: Callable[[str], None],
) -> None:
    """Make the tenant's vectors with `model`, and its indexes anew.

    What is queued already for this model, by a run that was interrupted, is not queued again.
    """
    if not stores.holds(tenant_id):
        progress(f"{tenant_id}: nothing stored")
        return
    _queue_everything(folder, tenant_id, stores, model)
    with registry.open(tenant_id) as tenant:
        started, total = time.monotonic(), tenant.pending
        while tenant.pending:
            seen = tenant.commits
            pipeline.step(tenant_id)
            if tenant.commits == seen:  # The backend failed; the pipeline has logged why.
                time.sleep(_REPORT_S)
            _report(progress, tenant_id, total, tenant.pending, started)
    progress(f"{tenant_id}: {total} memories embedded with {model.model_id}")


class Reindexer:
    """Embeds tenants' memories again while they are in use; the pipeline does it.

    Args:
        root: the folder of the tenants' folders.
        runtime: the open tenants, what they are made of, and what embeds them.
    """

    def __init__(self, root: Path, runtime: Runtime) -> None:
        self._root = root
        self._stores = runtime.stores
        self._model = runtime.model
        self._registry = runtime.tenants

    def begin(self, tenant_id: str, commit: Callable[[], None]) -> None:
        """Queue all memories for the model that runs, and drop the indexes of the former one.
        `commit` is called before anything is changed, and may raise to stop it.

        Raises:
            Unavailable: calls of the tenant went on for too long; nothing was changed.
        """
        folder = self._root / tenant_id
        with self._registry.removing(tenant_id, replaced=True):
            commit()
            if self._stores.holds(tenant_id):
                _queue_everything(folder, tenant_id, self._stores, self._model, again=True)

    def left(self, tenant_id: str) -> int:
        """Return how many memories wait to be embedded, after a moment in which some are."""
        with self._registry.open(tenant_id) as tenant:
            if tenant.pending:
                time.sleep(_LOOK_S)
            return tenant.pending

    def count(self, tenant_id: str) -> tuple[int, str]:
        """Return how many memories the tenant has, and the model that embeds them."""
        with self._registry.open(tenant_id) as tenant:
            return tenant.document_count, self._model.model_id


def _queue_everything(
    folder: Path,
    tenant_id: str,
    stores: TenantStores[Unit],
    model: EmbeddingModel,
    *,
    again: bool = False,
) -> None:
    # First, so that no crash leaves the indexes of the former model beside the new one's queue:
    # they can be built again from the database at any time.
    for name in INDEX_FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    database = stores.open(tenant_id)
    try:
        with database.write() as unit:
            if not again and unit.embedding_model() == model and unit.queue.depth():
                return
            unit.embed_everything_again()
            unit.set_embedding_model(model)
    finally:
        database.close()


def _report(
    progress: Callable[[str], None], tenant_id: str, total: int, left: int, started: float
) -> None:
    done = total - left
    rate = done / max(1e-9, time.monotonic() - started)
    remaining = f", {left / rate:.0f} s left" if rate else ""
    progress(f"{tenant_id}: {done}/{total} ({100 * done / max(1, total):.0f} %){remaining}")
