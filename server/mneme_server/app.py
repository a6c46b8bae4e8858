"""The composition root: the only place that builds the concrete objects and joins them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext

from mneme import __version__
from mneme.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    context_service_pb2,
    context_service_pb2_grpc,
    event_service_pb2,
    event_service_pb2_grpc,
    learn_service_pb2,
    learn_service_pb2_grpc,
    recall_service_pb2,
    recall_service_pb2_grpc,
    reflect_service_pb2,
    reflect_service_pb2_grpc,
)

from mneme_server.admin.authentication import Authenticator
from mneme_server.admin.keys import ApiKeys
from mneme_server.admin.ports import ServerInfo
from mneme_server.admin.tenants import Tenants
from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition
from mneme_server.common.memory import find_limit
from mneme_server.common.repeating import Repeating
from mneme_server.context.learned import Learned
from mneme_server.context.retrieval import GetContext, SearchSessions
from mneme_server.context.sleeping import Sleep
from mneme_server.context.timeline import GetTimeline
from mneme_server.context.waking import WakeUp
from mneme_server.embedding.soon import SoonEmbedder
from mneme_server.events.reading import ReadEvents, WatchEvents
from mneme_server.events.recording import RecordEvents
from mneme_server.events.sessions import EndSession, StartSession
from mneme_server.events.verifying import VerifyEvents
from mneme_server.learn.knowledge import Knowledge
from mneme_server.learn.lessons import Lessons
from mneme_server.learn.reflection_model import ReflectionLimits
from mneme_server.learn.reflections import Reflections
from mneme_server.learn.tally import Tally
from mneme_server.local.serving import LocalServing
from mneme_server.memories import Memories
from mneme_server.recall.search import Recall
from mneme_server.reflect.prices import read_prices
from mneme_server.reflect.reflecting import Reflect
from mneme_server.settings import Settings
from mneme_server.stopping import Stopping
from mneme_server.storage.catalog import Catalog
from mneme_server.tenancy import TenantFiles
from mneme_server.transport.logging import configure_logging
from mneme_server.transport.metrics import Metrics, MetricsEndpoint
from mneme_server.transport.room import Room
from mneme_server.transport.server import GrpcServer, Pem, ServerOptions, Service, Tls
from mneme_server.transport.servicers.admin import AdminServicer
from mneme_server.transport.servicers.context import ContextServicer
from mneme_server.transport.servicers.event import EventServicer
from mneme_server.transport.servicers.learn import LearnServicer
from mneme_server.transport.servicers.recall import RecallServicer
from mneme_server.transport.servicers.reflect import ReflectServicer

_FLUSH_S = 60.0
_QUERY_PATIENCE_S = 5.0
"""So long a query waits for its vector: without it the answer is worse."""
_WRITE_PATIENCE_S = 2.0
"""So long a write does: without its vector it is embedded a moment later."""


class Application:
    """One server, ready to `start` and to `stop` once.

    Args:
        settings: the server's.
        local: what makes it a folder's own; its settings are used.
        progress: told what takes long.

    Raises:
        As `Memories` does; ListenError from `start`.
    """

    def __init__(
        self,
        settings: Settings,
        local: LocalServing | None = None,
        *,
        progress: Callable[[str], None] = lambda _line: None,
    ) -> None:
        if local is not None:
            settings = local.settings
        self._settings = settings
        self._local = local
        self.memories = Memories(settings, progress=progress, hold=nullcontext() if local else None)
        memories = self.memories
        keys = memories.catalog.keys
        self._authenticator = Authenticator(keys)
        self._flusher = Repeating(self._authenticator.flush, _FLUSH_S, "key-usage")
        files = TenantFiles(
            settings.data_dir / "tenants",
            settings.data_dir / "backups",
            memories.registry,
            memories.model,
        )
        self._tenants = Tenants(memories.catalog.tenants, files, self._authenticator)
        self._keys = ApiKeys(keys, memories.catalog.tenants, self._authenticator)
        self._metrics = Metrics()
        self._tally = Tally()
        limit = find_limit()
        try:
            room = None if limit is None else Room(limit, settings.workers)
        except FailedPrecondition:
            memories.close()
            raise
        self._server = GrpcServer(
            _server_options(settings, local),
            self._services(files),
            self._authenticator,
            self._metrics,
            diagnose=files.damage,
            foreground=self.memories.foreground,
            room=room,
        )
        self._show_gauges()
        self._endpoint: MetricsEndpoint | None = None

    @property
    def metrics_address(self) -> str:
        """Where metrics are served; empty when they are off."""
        return self._endpoint.address if self._endpoint else ""

    def start(self) -> tuple[str, str | None]:
        """Start serving; return the address, and the bootstrap admin key if one was made."""
        self._tenants.ensure_default()
        chosen, made = self._settings.admin_key, None
        if chosen is not None or self._settings.auth == "required":
            made = self._keys.ensure_admin(chosen.get_secret_value() if chosen else None)
        self._tenants.resume_deletions()
        self.memories.start()
        self._flusher.start()
        if self._settings.metrics_listen:
            self._endpoint = MetricsEndpoint(self._metrics, self._settings.metrics_listen)
        address = self._server.start()
        if self._local is not None:
            self._local.serving(address, self._server.health)
        return address, made

    def drain(self) -> None:
        """Let calls in flight end, then close everything but the connections.

        Whoever calls meanwhile is told to try again; when the process ends, so do they.
        """
        if self._local is not None:
            self._local.ending()
        with ExitStack() as last:  # Each of these, whatever the one before it meets.
            last.callback(self.memories.close)
            last.callback(self._authenticator.flush)
            last.callback(self._flusher.stop)
            if self._endpoint is not None:
                last.callback(self._endpoint.close)
            self._server.drain(self._settings.drain_seconds)

    def stop(self) -> None:
        """Drain, and close the connections too."""
        try:
            self.drain()
        finally:
            self._server.close()

    def abandon(self) -> None:
        """Close what was opened when the start failed."""
        self._flusher.stop()
        if self._endpoint is not None:
            self._endpoint.close()
        self.memories.close()

    def _services(self, files: TenantFiles) -> Sequence[Service]:
        registry, embedder = self.memories.registry, self.memories.embedder
        schedule = self.memories.schedule
        foreground = self.memories.foreground
        asking = SoonEmbedder(embedder, patience_s=_QUERY_PATIENCE_S)
        writing = SoonEmbedder(embedder, patience_s=_WRITE_PATIENCE_S)
        recall = Recall(registry, embedder, foreground, asking)
        reflections = Reflections(registry, writing, recall, self._reflection_limits(), self._tally)
        learned = Learned(registry, recall, reflections)
        info = ServerInfo(
            version=__version__,
            embedding_model=self.memories.model.model_id,
            embedding_dimensions=self.memories.model.dimensions,
            started_at_us=now_us(),
        )
        return [
            Service(
                event_service_pb2.DESCRIPTOR.services_by_name["EventService"],
                event_service_pb2_grpc.add_EventServiceServicer_to_server,
                EventServicer(
                    start_session=StartSession(registry, schedule),
                    end_session=EndSession(registry, schedule),
                    record_events=RecordEvents(registry, schedule, foreground),
                    read=ReadEvents(registry),
                    watch_events=WatchEvents(registry),
                    verify_events=VerifyEvents(registry),
                    foreground=foreground,
                ),
            ),
            Service(
                recall_service_pb2.DESCRIPTOR.services_by_name["RecallService"],
                recall_service_pb2_grpc.add_RecallServiceServicer_to_server,
                RecallServicer(recall),
            ),
            Service(
                learn_service_pb2.DESCRIPTOR.services_by_name["LearnService"],
                learn_service_pb2_grpc.add_LearnServiceServicer_to_server,
                LearnServicer(
                    Lessons(registry, writing, recall),
                    reflections,
                    Knowledge(registry, writing, recall),
                ),
            ),
            Service(
                context_service_pb2.DESCRIPTOR.services_by_name["ContextService"],
                context_service_pb2_grpc.add_ContextServiceServicer_to_server,
                ContextServicer(
                    get_context=GetContext(registry, asking, recall, learned),
                    sleep=Sleep(registry, writing, schedule),
                    wake_up=WakeUp(registry, asking, learned),
                    search_sessions=SearchSessions(registry, recall),
                    get_timeline=GetTimeline(registry, asking),
                ),
            ),
            Service(
                reflect_service_pb2.DESCRIPTOR.services_by_name["ReflectService"],
                reflect_service_pb2_grpc.add_ReflectServiceServicer_to_server,
                ReflectServicer(
                    Reflect(
                        registry,
                        read_prices(self._settings.model_prices),
                        foreground=foreground,
                    )
                ),
            ),
            Service(
                admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
                admin_service_pb2_grpc.add_AdminServiceServicer_to_server,
                AdminServicer(
                    self._tenants, self._keys, statistics=files, backups=files, server=info
                ),
            ),
        ]

    def _reflection_limits(self) -> ReflectionLimits:
        return ReflectionLimits(
            per_session=self._settings.reflections_per_session,
            per_project=self._settings.reflections_per_project,
        )

    def _show_gauges(self) -> None:
        open_tenants = self.memories.registry.open_tenants
        self._metrics.gauge(
            "mneme_open_tenants", "Tenants whose files are open.", lambda: len(open_tenants())
        )
        self._metrics.gauge(
            "mneme_embedding_queue_depth",
            "Texts that wait for their embedding, over the open tenants.",
            lambda: sum(memory.pending for memory in open_tenants()),
        )
        self._metrics.gauge(
            "mneme_index_vectors",
            "Vectors that are searched, over the open tenants.",
            lambda: sum(memory.vector_count for memory in open_tenants()),
        )
        self._metrics.gauge(
            "mneme_index_documents",
            "Documents that can be recalled, over the open tenants.",
            lambda: sum(memory.index.columns.size for memory in open_tenants()),
        )
        cache = self.memories.embedder.cache
        self._metrics.gauge(
            "mneme_embedding_cache_hits",
            "Texts whose embedding was in the cache since the start.",
            lambda: cache.stats().hits,
        )
        self._metrics.gauge(
            "mneme_embedding_cache_misses",
            "Texts whose embedding was not in the cache since the start.",
            lambda: cache.stats().misses,
        )
        for name, meaning, value in self._tally.gauges():
            self._metrics.gauge(f"mneme_{name}", meaning, value)


def serve(settings: Settings, local: LocalServing | None = None) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the exit code.

    Args:
        settings: the server's.
        local: what makes it a folder's own; its settings are used.
    """
    settings = local.settings if local else settings
    configure_logging(settings.log_level, settings.log_format)
    stopping = Stopping(settings.drain_seconds)
    application = Application(settings, local, progress=lambda line: print(line, file=sys.stderr))
    try:
        address, admin_key = application.start()
    except BaseException:
        application.abandon()
        raise
    if admin_key is not None:
        print(f"admin key, shown only this once: {admin_key}", flush=True)
    print(f"serving on {address}", flush=True)
    stopping.wait()
    application.drain()
    return 0


def reindex(settings: Settings, tenant_id: str | None, progress: Callable[[str], None]) -> int:
    """Embed every memory again with the configured model; return the exit code.

    The queue is durable, so what was interrupted goes on when it is run again, or when the
    server starts.

    Raises:
        FailedPrecondition: a server is running on the data folder.
        NotFound: there is no such tenant.
    """
    from mneme_server.reindexing import reindex_tenant

    configure_logging("warning", settings.log_format)
    memories = Memories(settings, progress=progress)
    try:
        tenants = [tenant_id] if tenant_id else _all_tenants(memories.catalog)
        for name in tenants:
            memories.catalog.tenants.get(name)
            reindex_tenant(
                name,
                folder=settings.data_dir / "tenants" / name,
                model=memories.model,
                registry=memories.registry,
                pipeline=memories.pipeline,
                progress=progress,
            )
    except KeyboardInterrupt:
        progress("interrupted; run it again to go on")
        return 130
    finally:
        memories.close()
    return 0


def _all_tenants(catalog: Catalog) -> list[str]:
    found: list[str] = []
    while page := catalog.tenants.list(found[-1] if found else "", 1000):
        found += [tenant.id for tenant in page]
    return found


def _server_options(settings: Settings, local: LocalServing | None) -> ServerOptions:
    tls: Tls | Pem | None = None
    if local is not None:
        tls = Pem(local.identity.certificate, local.identity.key)
    elif settings.tls_cert is not None and settings.tls_key is not None:
        tls = Tls(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    return ServerOptions(
        listen=settings.listen,
        workers=settings.workers,
        max_streams=settings.max_streams,
        max_uploads=settings.max_uploads,
        max_message_bytes=settings.max_message_bytes,
        max_connection_streams=settings.max_connection_streams,
        auth_required=settings.auth == "required",
        tls=tls,
    )
