"""The composition root: the only place that builds the concrete objects and joins them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

import structlog
from mneme import __version__

from mneme_server.capabilities import capabilities, catalog_migrations, tenant_schema
from mneme_server.capability import Host, Parts
from mneme_server.common.address import is_loopback, networks_in
from mneme_server.common.clock import now_us
from mneme_server.common.process_limits import allow_many_files, find_limit, spare_the_collector
from mneme_server.common.shutdown import Stopping
from mneme_server.edge.grpc.logging import configure_logging
from mneme_server.edge.grpc.metrics import Metrics, MetricsEndpoint
from mneme_server.edge.grpc.open_stream import Sending
from mneme_server.edge.grpc.room import Room
from mneme_server.edge.grpc.server import GrpcServer, Pem, ServerOptions, Tls
from mneme_server.edge.grpc.service import joined
from mneme_server.edge.grpc.validation import rules
from mneme_server.edge.http.options import HttpOptions
from mneme_server.edge.http.serving import HttpServer
from mneme_server.edge.local.folder import only_process_in
from mneme_server.engine.background.periodic import Repeating
from mneme_server.engine.reindexing import Reindexer
from mneme_server.engine.runtime import Runtime
from mneme_server.engine.settings import ServerSettings, split_origins
from mneme_server.engine.tenants.backends import open_backend
from mneme_server.engine.tenants.reserve import Reserve
from mneme_server.engine.tracing import Spans, spans_of_process
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.keys import ApiKeys, KeyWatch
from mneme_server.features.admin.ports import ServerInfo
from mneme_server.features.admin.store.catalog import MIGRATIONS, Catalog
from mneme_server.features.admin.store.tenant_files import BackupFiles, NoBackups, TenantFiles
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.operations import Operations
from mneme_server.gauges import gauges_of
from mneme_server.placing import moving, placed

if TYPE_CHECKING:  # It brings what makes certificates, which only a folder's own server does.
    from mneme_server.edge.local.serving import LocalServing

_log = structlog.get_logger(__name__)
_FLUSH_S = 60.0
_KEYS_KNOWN_S = 0.5
"""How long a key is let in without another look, where another server may have revoked it."""
_SWEEP_S = 3600.0
_RESERVE_S = 10.0
_TAKE_OVER_S = 2.0


class Opened:
    """The data folder, held for this process: its catalog, and what serves its tenants.

    Args:
        settings: the server's.
        progress: told what takes long.
        hold: holds the data folder for this process; None: it is taken here.
        spans: where spans go; closed with the rest.

    Raises:
        FailedPrecondition: another process has the data folder, or a newer version wrote it.
        ModelUnavailable: there is no whole embedding model; the message says what to do.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        progress: Callable[[str], None],
        hold: AbstractContextManager[None] | None = None,
        spans: Spans | None = None,
    ) -> None:
        spans = spans or Spans()
        with ExitStack() as opened:
            opened.callback(spans.close)
            opened.enter_context(hold or only_process_in(settings.data_dir))
            schema, branches = tenant_schema(), catalog_migrations()
            folders = (MIGRATIONS, *branches)
            backend = open_backend(settings, schema, folders)
            opened.callback(backend.close)
            self.shared = backend.shared
            self.lending = backend.lending
            self.catalog = Catalog(backend.catalog, *branches)
            opened.callback(self.catalog.close)
            places = placed(backend, self.catalog.database, settings, schema, folders)
            self.places = opened.enter_context(places)
            self.runtime = Runtime(
                settings, self.catalog.tenants, schema,
                backend.stores if backend.shared else self.places,
                progress=progress, node=backend.node, project=backend.project, spans=spans.root,
            )  # fmt: skip
            opened.callback(self.runtime.close)
            self._resources = opened.pop_all()

    def close(self) -> None:
        """Close everything; soon, whatever hangs."""
        self._resources.close()


class Application:
    """One server, ready to `start` and to `stop` once.

    Args:
        settings: the server's.
        local: what makes it a folder's own; its settings are used.
        progress: told what takes long.

    Raises:
        As `Runtime` does; ListenError from `start`.
    """

    def __init__(
        self,
        settings: ServerSettings,
        local: LocalServing | None = None,
        *,
        progress: Callable[[str], None] = lambda _line: None,
    ) -> None:
        if local is not None:
            settings = local.settings
        self._settings = settings
        self._local = local
        spans = _spans(settings, local)
        hold = nullcontext() if local else None
        self._opened = Opened(settings, progress=progress, hold=hold, spans=spans)
        self._closing = ExitStack()  # Each of these, whatever the one before it meets; last first.
        self._closing.callback(self._opened.close)
        self.runtime = runtime = self._opened.runtime
        catalog = self._opened.catalog
        self.key_watch = KeyWatch(catalog.keys)
        self._authenticator = KeyAuthenticator(
            catalog.keys,
            known_for_s=_KEYS_KNOWN_S if self._opened.shared else None,
            forgotten=self.key_watch.soon,
        )
        self._moving = moving(self._opened.places, runtime.tenants, catalog)
        files = TenantFiles(settings.data_dir / "tenants", runtime.tenants, runtime.stores)
        self._tenants = Tenants(
            catalog.tenants,
            files,
            self._authenticator,
            runtime.servers.erasures,
            runtime.servers.leases,
        )
        self._keys = ApiKeys(catalog.keys, catalog.tenants, self._authenticator)
        self._reserve = Reserve(settings.data_dir / "reserve", settings.disk_reserve_bytes)
        self._metrics = Metrics()
        try:
            room = self._room()
            parts = self._build(files)
        except BaseException:
            self._closing.close()
            raise
        for part in parts:
            if part.close is not None:
                self._closing.callback(part.close)
        self._resuming = [part.resume for part in parts if part.resume is not None]
        self._closing.callback(self._authenticator.flush)
        self._flusher = self._repeated(self._authenticator.flush, _FLUSH_S, "key-usage")
        self._closing.callback(self._reserve.close)
        self._reserving = self._repeated(self._reserve.make, _RESERVE_S, "reserve")
        self._sweeper = self._repeated(self._operations.forget_expired, _SWEEP_S, "expiry")
        self._closing.callback(self.key_watch.stop)
        self._taking_over = self._repeated(self._take_over, _TAKE_OVER_S, "take-over")
        self._server = GrpcServer(
            _server_options(settings, local),
            joined(service for part in parts for service in (*part.services, *part.calls)),
            self._authenticator,
            self._metrics,
            diagnose=files.damage,
            foreground=runtime.foreground,
            room=room,
            sending=Sending(runtime.steps, runtime.watchdog),
            wait_until_as_fresh=runtime.wait_until_as_fresh,
            newest=runtime.newest,
            spans=spans.root,
        )
        runtime.servers.count_with(self._server.counts)
        self._http = _http_server(settings, self._server)
        if self._http is not None:
            self._closing.callback(self._http.stop)
        for gauge in (
            *gauges_of(runtime, self._opened.lending),
            *(gauge for part in parts for gauge in part.gauges),
        ):
            self._metrics.gauge(gauge.name, gauge.meaning, gauge.value)
        self._endpoint: MetricsEndpoint | None = None
        self.http_address = ""
        """Where HTTP is served, as a URL; empty where it is not."""

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
        self._moving.settle()
        self.runtime.servers.start()  # Before anything takes a lease, which it renews.
        self._tenants.resume_deletions()
        self._operations.recover()
        self.runtime.start()
        self._operations.resume()
        for resume in self._resuming:
            resume()
        self._flusher.start()
        self._sweeper.start()
        self._reserve.make()
        self._reserving.start()
        self.key_watch.add(self._server.keyed, self._operations)
        self.key_watch.start()
        if self._opened.shared:
            self._taking_over.start()
        if self._settings.metrics_listen:
            self._endpoint = MetricsEndpoint(
                self._metrics,
                self._settings.metrics_listen,
                by_default="metrics_listen" not in self._settings.model_fields_set,
            )
            self._closing.callback(self._endpoint.close)
        if self._http is not None:
            self.http_address = self._http.bind()
        address = self._server.start()
        if self._http is not None:
            self._http.start()  # After gRPC, which should not wait for what HTTP imports.
        if self._local is not None:
            self._local.serving(address, self._server.health)
        return address, made

    def _room(self) -> Room | None:
        """Return what shares out the memory, where it is limited.

        All is loaded by then: what is free is what requests may have.
        """
        limit = find_limit()
        if limit is None:
            return None
        self._load()
        return Room(limit, self._settings.workers)

    def _load(self) -> None:
        rules()
        self.runtime.load()

    def load(self) -> None:
        """Load what no start waits for and nearly every call needs, once the server is there.

        A call that comes meanwhile waits for what it needs of it, no longer than if the start had
        waited.

        Raises:
            ModelUnavailable: the embedding model cannot be loaded; the message says what to do.
        """
        self._load()
        spare_the_collector()  # Once more: it came after what the server is made of.

    def drain(self) -> None:
        """Let calls in flight end, then close everything but the connections.

        Whoever calls meanwhile is told to try again; when the process ends, so do they.
        """
        if self._local is not None:
            self._local.ending()
        with self._closing:
            self._server.drain(self._settings.drain_seconds)

    def stop(self) -> None:
        """Drain, and close the connections too."""
        try:
            self.drain()
        finally:
            self._server.close()

    def abandon(self) -> None:
        """Close what was opened when the start failed."""
        self._closing.close()

    def _repeated(self, work: Callable[[], object], every_s: float, name: str) -> Repeating:
        """Return what does some work again and again, once it is started, until all is closed."""
        repeated = Repeating(work, every_s, name)
        self._closing.callback(repeated.stop)
        return repeated

    def _take_over(self) -> None:
        """Go on with what servers left that are gone."""
        self._operations.look_again()
        self._tenants.resume_deletions()

    def _build(self, files: TenantFiles) -> Sequence[Parts]:
        """Have each capability make its parts, in the order in which they build on each other."""
        info = ServerInfo(
            version=__version__,
            embedding_model=self.runtime.model.model_id,
            embedding_dimensions=self.runtime.model.dimensions,
            started_at_us=now_us(),
            http_address=lambda: self.http_address,
        )
        database = self._opened.catalog.database
        folders = (self._settings.data_dir / "tenants", self._settings.data_dir / "backups")
        backups = (NoBackups if self._opened.shared else BackupFiles)(
            *folders,
            self.runtime,
            require_tenant=self._tenants.get,
            replaced=files.forget_damage,
            place_of=self._moving.place_of,
        )
        reindexer = Reindexer(folders[0], self.runtime)
        offers = [self._tenants, self._keys, files, backups, reindexer, info, database]
        offers += [self._reserve, self.key_watch]
        host = Host(self._settings, self.runtime, [*offers, self._moving])
        built: list[Parts] = []
        for capability in capabilities():
            parts = capability.start(host)
            host.dependents += parts.dependents
            host.figures += parts.figures
            host.services += [s.descriptor.name for s in parts.services if s.needs is None]
            host.take(parts)
            for name, job in parts.jobs.items():
                self.runtime.add_job(name, job)
            for follower in parts.followers:
                self.runtime.follow(follower)
            built.append(parts)
        self._operations = host.get(Operations)
        host.get(OperationKinds).require_all(
            service.descriptor for parts in built for service in parts.services
        )
        return built


def serve(settings: ServerSettings, local: LocalServing | None = None) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the exit code.

    Args:
        settings: the server's.
        local: what makes it a folder's own; its settings are used.
    """
    settings = local.settings if local else settings
    configure_logging(settings.log_level, settings.log_format)
    stopping = Stopping(settings.drain_seconds)
    allow_many_files()
    application = Application(settings, local, progress=lambda line: print(line, file=sys.stderr))
    try:
        spare_the_collector()
        address, admin_key = application.start()
    except BaseException:
        application.abandon()
        raise
    _warn_of_plaintext(settings)
    if admin_key is not None:
        print(f"admin key, shown only this once: {admin_key}", flush=True)
    if application.http_address:
        print(f"dashboard: {application.http_address}/", flush=True)
        print(f"serving HTTP on {application.http_address}", flush=True)
    print(f"serving on {address}", flush=True)
    try:
        application.load()
    except BaseException:  # Nothing is served without a model.
        application.stop()
        raise
    stopping.wait()
    application.drain()
    return 0


def _warn_of_plaintext(settings: ServerSettings) -> None:
    """Say where keys and memories cross a network as they are, unless a proxy encrypts them."""
    if settings.tls_cert is not None:
        return
    for listen in (settings.listen, settings.http_listen):
        if listen and not is_loopback(listen):
            _log.warning(
                "keys and memories are sent unencrypted: set MNEME_TLS_CERT and MNEME_TLS_KEY,"
                " or let only a proxy that has TLS reach this address",
                address=listen,
            )


def _spans(settings: ServerSettings, local: LocalServing | None) -> Spans:
    """Return where spans go. A folder's server has the variables of whoever was first to use the
    folder: they say where that one's spans go."""
    if local is not None:
        return Spans()
    return spans_of_process((settings.listen, settings.http_listen), __version__)


def _http_server(settings: ServerSettings, server: GrpcServer) -> HttpServer | None:
    if not settings.http_listen:
        return None
    options = HttpOptions(
        listen=settings.http_listen,
        by_default="http_listen" not in settings.model_fields_set,
        max_message_bytes=server.max_message_bytes,
        auth_required=settings.auth == "required",
        origins=split_origins(settings.http_origins),
        proxies=networks_in(settings.proxies),
        certificate=settings.tls_cert,
        key=settings.tls_key,
        client_ca=settings.tls_client_ca,
    )
    return HttpServer(options, server.entrance, lambda: server.health.is_serving)


def _server_options(settings: ServerSettings, local: LocalServing | None) -> ServerOptions:
    tls: Tls | Pem | None = None
    if local is not None:
        tls = Pem(local.identity.certificate, local.identity.key)
    elif settings.tls_cert is not None and settings.tls_key is not None:
        tls = Tls(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    return ServerOptions(
        listen=settings.listen,
        workers=settings.workers,
        max_streams=settings.max_streams,
        max_tenant_streams=settings.max_tenant_streams,
        max_uploads=settings.max_uploads,
        max_message_bytes=settings.max_message_bytes,
        max_connection_streams=settings.max_connection_streams,
        auth_required=settings.auth == "required",
        tls=tls,
    )
