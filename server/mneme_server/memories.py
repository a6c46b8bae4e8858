"""Everything below the wire, joined: the catalog, the embedder and the tenants' memories."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.common.foreground import Foreground
from mneme_server.context.summaries import SummaryWorker
from mneme_server.corpus.pipeline import EmbeddingPipeline
from mneme_server.corpus.registry import TenantRegistry
from mneme_server.embedding.batcher import MicroBatcher
from mneme_server.embedding.cache import CachedEmbedder, VectorCache
from mneme_server.embedding.factory import build_embedder
from mneme_server.embedding.port import Embedder
from mneme_server.embedding.remote import RemoteEmbedder
from mneme_server.events.summaries import SummarySchedule
from mneme_server.index.settings import IndexSettings
from mneme_server.local.folder import only_process_in
from mneme_server.settings import Settings
from mneme_server.storage.catalog import Catalog
from mneme_server.storage.tenant_database import EmbeddingModel, Unit
from mneme_server.tenancy import TenantOpener


class Memories:
    """What the server serves.

    Used by the server and by the commands that work on a stopped server's data. Only one process
    may have a data folder.

    Args:
        settings: the server's.
        progress: told what takes long.
        hold: holds the data folder for this process; None: it is taken here.

    Raises:
        FailedPrecondition: another process has the data folder, or a newer version wrote it.
        ModelUnavailable: the embedding model cannot be loaded; the message says what to do.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        progress: Callable[[str], None],
        hold: AbstractContextManager[None] | None = None,
    ) -> None:
        with ExitStack() as opened:
            opened.enter_context(hold or only_process_in(settings.data_dir))
            self.catalog = Catalog(settings.data_dir / "catalog.db")
            opened.callback(self.catalog.close)
            self._embedder = _embedder(settings, progress)
            self._batcher = MicroBatcher(
                self._embedder,
                max_batch=settings.embed_batch,
                max_slow_calls=settings.max_slow_embeddings,
            )
            opened.callback(self._batcher.close)
            cache = VectorCache()
            self.embedder = CachedEmbedder(self._batcher, cache)
            self.foreground = Foreground()
            self.model = EmbeddingModel(self._batcher.model_id, self._batcher.dimensions)
            self.registry: TenantRegistry[Unit] = TenantRegistry(
                TenantOpener(
                    settings.data_dir / "tenants",
                    self.catalog.tenants,
                    self.model,
                    index_settings=IndexSettings(exact_limit=settings.exact_search_limit),
                    queue_limit=settings.embed_queue_limit,
                    opened=self._opened,
                    wake=self._wake,
                ),
                max_open=settings.max_open_tenants,
                idle_seconds=settings.tenant_idle_seconds,
                on_closed=self._closed,
            )
            opened.callback(self.registry.close)
            self.pipeline = EmbeddingPipeline(
                self.registry.open,
                CachedEmbedder(self._batcher.background, cache),
                foreground=self.foreground,
                batch=settings.embed_batch,
            )
            opened.callback(self.pipeline.stop)
            idle_us = int(settings.session_idle_seconds * MICROSECONDS)
            self.summaries = SummaryWorker(
                self.registry.open,
                CachedEmbedder(self._batcher.background, cache),
                foreground=self.foreground,
                idle_us=idle_us,
            )
            opened.callback(self.summaries.stop)
            self.schedule = SummarySchedule(idle_us=idle_us, wake=self.summaries.wake)
            self._resources = opened.pop_all()

    def _wake(self, tenant_id: str) -> None:
        self.pipeline.wake(tenant_id)

    def _opened(self, tenant_id: str) -> None:
        self.catalog.tenants.mark_dirty(tenant_id)
        # Whatever it was closed with: a backup that was put back may hold a queue.
        self.summaries.wake(tenant_id)

    def _closed(self, tenant_id: str) -> None:
        if not self.summaries.is_waiting(tenant_id):
            self.catalog.tenants.mark_clean(tenant_id)

    def start(self) -> None:
        """Go on with the work that an earlier run left: tenants with queued embeddings or
        summaries."""
        for tenant_id in self.catalog.tenants.dirty_tenants():
            self.pipeline.wake(tenant_id)
            self.summaries.wake(tenant_id)
        self.pipeline.start()
        self.summaries.start()

    def close(self) -> None:
        """Stop the work, write what must be kept and close every file.

        Returns soon whatever hangs; a tenant that is still in use then is left open.
        """
        self.summaries.begin_stop()
        self.pipeline.begin_stop()
        if isinstance(self._embedder, RemoteEmbedder):  # The steps at hand may wait for it.
            self._embedder.hang_up()
        self._resources.close()


def _embedder(settings: Settings, progress: Callable[[str], None]) -> Embedder:
    key = settings.openai_api_key
    try:
        return build_embedder(
            settings.embedder,
            settings.model_dir,
            openai_api_key=key.get_secret_value() if key else None,
            openai_base_url=settings.openai_base_url,
            ollama_base_url=settings.ollama_base_url,
            threads=settings.embed_threads,
            progress=progress,
        )
    except ValueError as error:
        raise FailedPrecondition(
            f"MNEME_EMBEDDER: {error}", reason=Reason.MODEL_NOT_LOADED
        ) from error
