"""The runtime that keeps tenants alive: embedder, open tenants, and the work behind the calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Protocol

import structlog

from mneme_server.common.clock import now_us
from mneme_server.common.consistency import ConsistencyToken
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.common.process_limits import most_files
from mneme_server.common.tracing import NOTHING, Span
from mneme_server.common.watchdog import Watchdog
from mneme_server.engine.background.jobs import Jobs
from mneme_server.engine.background.periodic import Repeating
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.cluster.cluster import Cluster, TenantDirectory
from mneme_server.engine.cluster.servers import Alone, Servers
from mneme_server.engine.corpus.nodes import Node
from mneme_server.engine.corpus.tenant import OpenTenant, TenantListener
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.embedding.batcher import MicroBatcher
from mneme_server.engine.embedding.best_effort import BestEffortEmbedder
from mneme_server.engine.embedding.cache import CachedEmbedder, VectorCache
from mneme_server.engine.embedding.factory import build_embedder
from mneme_server.engine.embedding.port import Embedder, load
from mneme_server.engine.embedding.remote import RemoteEmbedder
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.engine.scheduling.steps import Steps
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.unit import EmbeddingModel, TenantSchema, Unit
from mneme_server.engine.tenants.embedding import EmbeddingPipeline
from mneme_server.engine.tenants.feed_followers import DurableFollower, FollowerWorker
from mneme_server.engine.tenants.local_disk import LocalDisk
from mneme_server.engine.tenants.opener import ProjectionFactory, TenantOpener
from mneme_server.engine.tenants.registry import TenantRegistry

_FILES_EACH = 8
"""Files that an open tenant has: three or six were seen. All of them together get half of those
that the process may have; connections have the other half."""
_log = structlog.get_logger(__name__)

_QUERY_PATIENCE_S = 5.0
"""So long a query waits for its vector: without it the answer is worse."""
_AT_ONCE_PATIENCE_S = 0.05
"""So long does one that nobody else is beside: it would be embedded in a moment anyway."""
_WRITE_PATIENCE_S = 2.0
"""So long a write does: without its vector it is embedded a moment later."""
_SOON_US = 500_000
"""How long after a tenant was opened, or another server wrote to it, its work is looked for: the
call that opens it goes first, and the other server may write more."""
_APART_US = 20_000
"""Between the jobs' first looks at a tenant that was opened: one after the other, they share a
connection to its database."""
_TIDIED_S, _BOUNDED_S = 15.0, 60.0
"""How often it is looked whose folders are on the disk, and how much is that can be built again."""
_JOB_THREADS = 4
"""Jobs on threads at once. Most of their time they wait: for a disk, a queue, a process."""


class KnownTenants(TenantDirectory, Protocol):
    """Which tenants there are, and which have work left that nobody would think of after a crash,
    e.g. embeddings."""

    def mark_dirty(self, tenant_id: str) -> None:
        """Note, durably, that the tenant has work left; unknown tenants are ignored."""
        ...

    def mark_clean(self, tenant_id: str) -> None:
        """Note that the tenant has no work left."""
        ...

    def dirty_tenants(self) -> Sequence[str]:
        """Return the tenants with work left, by id."""
        ...


class Runtime:
    """What the server serves tenants with.

    Used by the server and by the commands that work on a stopped server's data. Only one process
    may have a data folder: whoever makes this holds it.

    Args:
        settings: the server's.
        known: the tenants.
        schema: what a tenant's database is made of.
        stores: where the tenants are kept.
        progress: told what takes long.
        node: this server among those that share the tenants; None where it is the only one.
        project: see `TenantOpener`.
        spans: what the spans of work in the background are parts of.

    Raises:
        ModelUnavailable: there is no whole embedding model; the message says what to do.
        FailedPrecondition: MNEME_EMBEDDER names none.
    """

    def __init__(
        self,
        settings: ServerSettings,
        known: KnownTenants,
        schema: TenantSchema,
        stores: TenantStores[Unit],
        *,
        progress: Callable[[str], None],
        node: Node | None = None,
        project: ProjectionFactory | None = None,
        spans: Span = NOTHING,
    ) -> None:
        self.schema = schema
        self.stores = stores
        self.foreground = Foreground()
        self.jobs = Jobs(
            self.foreground.give_way,
            threads=_JOB_THREADS,
            processes=settings.job_processes,
            memory_bytes=settings.job_memory_bytes,
            turn=partial(self.foreground.turn, large=True),
        )
        self._listeners: list[TenantListener] = []
        self._before_closing: list[Callable[[OpenTenant], object]] = []
        self._known = known
        self._workers: dict[str, TenantWorker] = {}
        with ExitStack() as opened:
            self.watchdog = Watchdog()
            opened.callback(self.watchdog.close)
            self.steps = Steps(self.watchdog)
            opened.callback(self.steps.close)
            self._embedder = _embedder(settings, progress)
            self._batcher = MicroBatcher(
                self._embedder,
                max_batch=settings.embed_batch,
                max_slow_calls=settings.max_slow_embeddings,
            )
            opened.callback(self._batcher.close)
            cache = VectorCache()
            self.embedder = CachedEmbedder(self._batcher, cache)
            self.background_embedder = CachedEmbedder(self._batcher.background, cache)
            asked = self._batcher.questions
            told = asked is not self._batcher
            self.questions = CachedEmbedder(asked, cache, asked=True) if told else self.embedder
            self.asking = BestEffortEmbedder(self.questions, patience_s=_QUERY_PATIENCE_S)
            self.comparing = self.asking
            if told:  # Whoever compares stored texts waits as long, for vectors of the other kind.
                self.comparing = BestEffortEmbedder(self.embedder, patience_s=_QUERY_PATIENCE_S)
            self.writing = BestEffortEmbedder(self.embedder, patience_s=_WRITE_PATIENCE_S)
            self.at_once = (
                BestEffortEmbedder(self.embedder, patience_s=_AT_ONCE_PATIENCE_S)
                if self._batcher.in_process
                else None
            )
            """Embeds short texts in milliseconds, in this process; None where that takes longer."""
            self.model = EmbeddingModel(self._batcher.model_id, self._batcher.dimensions)
            self.tenants: TenantRegistry[Unit] = TenantRegistry(
                TenantOpener(
                    stores,
                    settings.data_dir / "tenants",
                    known.get,
                    self.model,
                    index_settings=IndexSettings(exact_limit=settings.exact_search_limit),
                    queue_limit=settings.embed_queue_limit,
                    opened=self._opened,
                    wake=self._wake,
                    by_turns=self.foreground.finish,
                    committed=self._committed,
                    before_closing=self._closing,
                    followed=node is not None,
                    project=project,
                ).open,
                memory_bytes=settings.open_tenants_bytes,
                most=most_files() // _FILES_EACH // 2,
                idle_seconds=settings.tenant_idle_seconds,
                on_closed=self._closed,
                on_removed=self._removed,
            )
            opened.callback(self.tenants.close)
            self.servers: Servers = Alone()
            self._tidying: Sequence[Repeating] = ()
            if node is not None:
                cluster = self.servers = Cluster(
                    node,
                    self.tenants,
                    settings.data_dir / "tenants",
                    known,
                    committed_elsewhere=self._committed_elsewhere,
                    look_after=self._look_after,
                    look_again=self._look_again,
                )
                disk = LocalDisk(
                    settings.data_dir / "tenants", self.tenants, settings.local_copies_bytes
                )
                self._tidying = (
                    Repeating(cluster.tidy, _TIDIED_S, "folders-tidying"),
                    Repeating(disk.keep_within_bounds, _BOUNDED_S, "local-disk"),
                )
                for one in self._tidying:
                    opened.callback(one.stop)
                self.listen(cluster)
            self.pipeline = EmbeddingPipeline(
                self.tenants.open,
                self.background_embedder,
                batch=settings.embed_batch,
                spans=spans,
            )
            self.pipeline.give_way_to(self.foreground)
            opened.callback(self.pipeline.stop)
            self._resources = opened.pop_all()

    def add_job(self, name: str, job: TenantWorker) -> None:
        """Have a job done beside the calls, from `start` to `close`. It is woken for each tenant
        that is opened, whatever it was closed with: a backup that was put back may hold a queue.

        Raises:
            ValueError: another job has this name.
        """
        if name in self._workers:
            raise ValueError(f"two jobs are called {name}")
        self._workers[name] = job
        job.share(self.servers.leases)
        job.give_way_to(self.foreground)
        self._resources.callback(job.stop)

    def follow(self, follower: DurableFollower) -> None:
        """Run a durable follower of all tenants' feeds, as a job of its name.

        Raises:
            ValueError: another job has this name.
        """
        worker = FollowerWorker(self.tenants.open, follower)
        self.add_job(follower.name, worker)
        self.listen(worker)

    def listen(self, listener: TenantListener) -> None:
        """Have a listener told what happens to tenants. Before any is opened."""
        self._listeners.append(listener)

    def also_follow(self, watched: Callable[[], Collection[str]]) -> None:
        """Have listeners told at once of what other servers write to the tenants that this returns,
        whether they are open here or not."""
        self.servers.also_follow(watched)

    def before_closing(self, write: Callable[[OpenTenant], object]) -> None:
        """Have something written that was kept in memory, whenever a tenant is about to be closed:
        also when the server stops."""
        self._before_closing.append(write)

    def wait_until_as_fresh(self, tenant_id: str, token: ConsistencyToken) -> bool:
        """Wait until a tenant's answers are as fresh as the token says; see `OpenTenant`."""
        with self.tenants.open_at_once(tenant_id) as tenant:
            return tenant.wait_until_as_fresh(token)

    def newest(self, tenant_id: str) -> ConsistencyToken | None:
        """Return a token of what there is of a tenant now; None where only this server writes."""
        if not self.servers.shared:
            return None
        with self.tenants.open_at_once(tenant_id) as tenant:
            return tenant.newest()

    def wake(self, job: str, tenant_id: str, due_us: int = 0) -> None:
        """Tell a job that a tenant has work, due at this time; the default is now."""
        self._workers[job].wake(tenant_id, due_us)

    def start(self) -> None:
        """Start the jobs, after the cluster; they go on with what an earlier run left."""
        jobs = (self.pipeline, *self._workers.values())
        self.pipeline.share(self.servers.leases)
        for one in self._tidying:
            one.start()
        for tenant_id in self._known.dirty_tenants():
            for job in jobs:
                job.wake(tenant_id)
        for job in jobs:
            job.start(self.watchdog)

    def load(self) -> None:
        """Load what opening a tenant and embedding need; who needs it before that loads it.

        Raises:
            ModelUnavailable: the embedding model cannot be loaded; the message says what to do.
        """
        import mneme_server.engine.index.tenant_index  # noqa: F401  # With FAISS and tantivy.

        load(self._embedder)

    def close(self) -> None:
        """Stop the jobs, write what must be kept and close every file.

        Returns soon whatever hangs; a tenant that is still in use then is left open.
        """
        for job in (*self._workers.values(), self.pipeline):
            job.begin_stop()
        if isinstance(self._embedder, RemoteEmbedder):  # The steps at hand may wait for it.
            self._embedder.hang_up()
        self.jobs.close()
        self.servers.begin_stop()
        self._resources.close()

    def _wake(self, tenant_id: str) -> None:
        self.pipeline.wake(tenant_id)

    def _committed(self, tenant_id: str) -> None:
        for listener in self._listeners:
            listener.committed(tenant_id)

    def _committed_elsewhere(self, tenant_id: str) -> None:
        """Pass on that another server wrote to a tenant: to the work of this server, and to what
        each server does for itself."""
        mine = self.servers.leases.holds(tenant_id)
        for listener in self._listeners:
            if isinstance(listener, TenantWorker) and not listener.everywhere:
                continue
            if not isinstance(listener, Cluster):
                listener.committed(tenant_id)
        if mine:
            self._look_after(tenant_id, now_us() + _SOON_US)
            self._wake(tenant_id)

    def _look_after(self, tenant_id: str, due_us: int = 0) -> None:
        """Have the jobs look what there is to do."""
        for job in (self.pipeline, *self._workers.values()):
            if job.inherits or not job.everywhere:
                job.wake(tenant_id, due_us)

    def _look_again(self) -> None:
        for job in self._workers.values():
            job.look_again()

    def _closing(self, tenant: OpenTenant) -> None:
        for write in self._before_closing:
            try:
                write(tenant)
            except Exception:  # It is closed all the same.
                _log.exception("something was not written", tenant=tenant.tenant_id)

    def _removed(self, tenant_id: str, replaced: bool) -> None:
        for listener in self._listeners:
            listener.removed(tenant_id, replaced=replaced)

    def _opened(self, tenant_id: str) -> None:
        self._known.mark_dirty(tenant_id)
        due_us = now_us() + _SOON_US
        for job in self._workers.values():
            job.wake(tenant_id, due_us)
            due_us += _APART_US

    def _closed(self, tenant_id: str) -> None:
        self.servers.training.release(tenant_id)
        if any(job.is_waiting(tenant_id) for job in self._workers.values()):
            return
        if self.servers.leases.holds(tenant_id):
            self._known.mark_clean(tenant_id)
            self.servers.leases.release(tenant_id)


def _embedder(settings: ServerSettings, progress: Callable[[str], None]) -> Embedder:
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
