"""The opener of tenants: their store, their index, and whether they fit the model that runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import structlog

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.common.identity import check_tenant_id
from mneme_server.common.private_files import FOLDER
from mneme_server.engine.corpus.cache import Steps
from mneme_server.engine.corpus.projection import Projection
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import TenantStore, TenantStores
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.store.unit import EmbeddingModel, Unit

if TYPE_CHECKING:  # It brings FAISS and tantivy, which only an open tenant needs.
    from mneme_server.engine.index.tenant_index import TenantIndex

INDEX_FOLDERS = ("index", "lexical")
"""Of a tenant's folder: what lies there is built from the database, and can be built again."""

SHOWN_FOLDER = "shown"
"""Of a tenant's folder: what is shown, where servers share the rows; see
`engine.corpus.projection`."""

COPIES = (*INDEX_FOLDERS, SHOWN_FOLDER)
"""All of a tenant's folder that is made of its rows: where servers share the rows, it goes from the
disk of those that have the tenant closed when something is erased."""

ProjectionFactory: TypeAlias = Callable[[Path, str, TenantStore[Unit]], Projection]
"""Makes what is shown of a tenant, of the folder for it, the tenant's id and its store."""

_log = structlog.get_logger(__name__)


class TenantOpener:
    """Opens tenants' memories.

    Args:
        stores: where the tenants are kept.
        root: the folder with a folder for each tenant, for its index.
        require: raises NotFound when there is no such tenant.
        model: what embeds now.
        index_settings: how indexes are tuned.
        queue_limit: how many documents of a tenant may wait for embedding.
        opened: called with the tenant before it is opened, durably noted as having work.
        wake: called with the tenant when documents wait for embedding.
        by_turns: see `LiveIndex`.
        committed: see `TenantListener`.
        before_closing: called with an open tenant before it is closed; may still write.
        followed: other servers write to the tenants, too; see `OpenTenant`.
        project: makes what is shown of a tenant; see `OpenTenant`.
    """

    def __init__(
        self,
        stores: TenantStores[Unit],
        root: Path,
        require: Callable[[str], object],
        model: EmbeddingModel,
        *,
        index_settings: IndexSettings,
        queue_limit: int,
        opened: Callable[[str], None],
        wake: Callable[[str], None],
        by_turns: Callable[[Steps], None],
        committed: Callable[[str], None],
        before_closing: Callable[[OpenTenant[Unit]], None],
        followed: bool = False,
        project: ProjectionFactory | None = None,
    ) -> None:
        self._stores = stores
        self._root = root
        self._require = require
        self._model = model
        self._index_settings = index_settings
        self._queue_limit = queue_limit
        self._opened = opened
        self._wake = wake
        self._by_turns = by_turns
        self._committed = committed
        self._before_closing = before_closing
        self._followed = followed
        self._project = project

    def open(self, tenant_id: str) -> OpenTenant[Unit]:
        """Open the tenant; its folder is made at first.

        Raises:
            NotFound: there is no such tenant.
            FailedPrecondition: its vectors are of another model, or its store is newer.
        """
        self._require(check_tenant_id(tenant_id))
        folder = self._root / tenant_id
        folder.mkdir(mode=FOLDER, parents=True, exist_ok=True)
        if self._followed:
            os.utime(folder)  # See `engine.tenants.local_disk`.
        elif (folder / SHOWN_FOLDER).exists():  # It came from PostgreSQL, and is followed no more.
            shutil.rmtree(folder / SHOWN_FOLDER)
        self._opened(tenant_id)
        store = self._stores.open(tenant_id)
        try:
            require_model(store, self._model, tenant_id)
            tenant = self._tenant_of(folder, tenant_id, store)
        except BaseException:
            store.close()
            raise
        if tenant.pending:
            self._wake(tenant_id)
        return tenant

    def _tenant_of(
        self, folder: Path, tenant_id: str, store: TenantStore[Unit]
    ) -> OpenTenant[Unit]:
        index = self._index_of(folder, store, _log.bind(tenant=tenant_id))
        projection: Projection | None = None
        try:
            if self._project is not None:
                projection = self._project(folder / SHOWN_FOLDER, tenant_id, store)
            return OpenTenant(
                tenant_id,
                store,
                index,
                queue_limit=self._queue_limit,
                wake=self._wake,
                by_turns=self._by_turns,
                committed=self._committed,
                before_closing=self._before_closing,
                followed=self._followed,
                projection=projection,
            )
        except BaseException:
            if projection is not None:
                projection.close()
            index.abandon()
            index.discard()
            raise

    def _index_of(self, folder: Path, store: TenantStore[Unit], log: IndexLog) -> TenantIndex:
        from mneme_server.engine.index.cold_search import FEW, ColdTenantIndex
        from mneme_server.engine.index.tenant_index import TenantIndex

        model, settings = self._model, self._index_settings
        scan = None if any((folder / name).exists() for name in INDEX_FOLDERS) else store.scan
        if scan is not None and scan.more_than(FEW):
            return ColdTenantIndex(
                folder, store.source, scan, model.model_id, model.dimensions,
                settings=settings, log=log,
            )  # fmt: skip
        return TenantIndex(
            folder, store.source, model.model_id, model.dimensions, settings=settings, log=log
        )


def require_model(store: TenantStore[Unit], model: EmbeddingModel, tenant_id: str) -> None:
    """Check that the tenant's vectors are of this model; a new tenant takes it.

    Raises:
        FailedPrecondition: they are of another one.
    """
    with store.read() as unit:
        stored = unit.embedding_model()
    if stored is None:
        with store.write() as unit:
            stored = unit.embedding_model()  # Another server may have been faster.
            if stored is None:
                unit.set_embedding_model(model)
                unit.feed.renew_generation()
                stored = model
    if stored != model:
        raise FailedPrecondition(
            f"the memories of tenant {tenant_id} were embedded with {stored.model_id}"
            f" ({stored.dimensions} dimensions), the server runs {model.model_id}"
            f" ({model.dimensions}): start it with the previous MNEME_EMBEDDER, or stop it and run"
            f" `mneme-server reindex --tenant {tenant_id}`",
            reason=Reason.DIMENSION_MISMATCH,
        )
