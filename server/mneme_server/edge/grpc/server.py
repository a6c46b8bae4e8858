"""The gRPC server: its layers, its address, its start and its end."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mneme_server.common.address import ListenError, is_unix, join_host_port, split_host_port
from mneme_server.common.tracing import NOTHING, Span
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.admission import Admission
from mneme_server.edge.grpc.call import Authenticator
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.grpc.health import Health
from mneme_server.edge.grpc.interceptors.access import (
    Identification,
    KeyedCalls,
    TokenBuckets,
    authentication,
    rate_limit,
)
from mneme_server.edge.grpc.interceptors.consistency import Newest, WaitUntilAsFresh, consistent
from mneme_server.edge.grpc.interceptors.errors import Diagnose, map_errors
from mneme_server.edge.grpc.interceptors.running import RunningCalls, skip_abandoned
from mneme_server.edge.grpc.interceptors.streams import StreamSlots, stopping_error
from mneme_server.edge.grpc.interceptors.telemetry import telemetry, traced
from mneme_server.edge.grpc.memory_operations import told
from mneme_server.edge.grpc.methods import StreamKind, methods_of
from mneme_server.edge.grpc.metrics import Metrics
from mneme_server.edge.grpc.open_stream import Sending
from mneme_server.edge.grpc.pipeline import Pipeline
from mneme_server.edge.grpc.readable import only_what_it_may_read, readable_types
from mneme_server.edge.grpc.reflection import add_reflection, reflection_services
from mneme_server.edge.grpc.room import Room
from mneme_server.edge.grpc.service import Service, handlers_of
from mneme_server.edge.grpc.shared_counts import SharedCounts
from mneme_server.edge.grpc.validation import check_rules
from mneme_server.edge.grpc.workers import Workers
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.engine.scheduling.steps import Steps

_log = structlog.get_logger(__name__)

_WAITING_PER_WORKER = 64
"""Calls that may wait for each worker. A tenant's beyond its share of that are refused at once."""

_ENDING = 64
"""Streams of a connection, at least, that have ended for the peer and not yet here: gRPC keeps them
until Python lets go of the call, after the answer has left. The peer, who may open another one by
then, must not be refused it."""

_UNASKED_BYTES = 64 * 1024
"""Of each stream; a message that was asked for gets all of its room at once."""

_MOST_ARRIVED = 50_000
"""Calls that have arrived and that no thread has looked at yet; a connection has some hundred."""

_GRACE_S = 2.0
"""How long calls that were cut off may take to notice it."""

_KEEPALIVE_MS = 60_000
_KEEPALIVE_TIMEOUT_MS = 20_000
_MIN_PING_INTERVAL_MS = 10_000


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. With `client_ca`, clients must show a certificate that it signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate and its private key that lie in no file."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve.

    Args:
        listen: `host:port` or `unix:path`; port 0 picks a free one.
        workers: threads; each serves one call at a time.
        max_streams: long-lived streams at once; they hold no thread, as the other streams do.
        max_tenant_streams: of these, so many at most are one tenant's, and half of them at most.
        max_uploads: client streams at once. Of the threads that are left, exports get a quarter
            and streams without a key another.
        max_message_bytes: the largest message, in and out.
        max_connection_streams: calls in flight on one connection; the client keeps the next back.
        auth_required: whether a call must carry a key.
        tls: certificates; None serves plaintext.
    """

    listen: str
    workers: int
    max_streams: int
    max_tenant_streams: int
    max_uploads: int
    max_message_bytes: int
    max_connection_streams: int
    auth_required: bool
    tls: Tls | Pem | None


class GrpcServer:
    """One server. `start` it, `serving` when it may take calls, and `stop` it once.

    Raises:
        LookupError: a method does not say which scope it needs, or its service does not serve it.
    """

    def __init__(
        self,
        options: ServerOptions,
        services: Sequence[Service],
        authenticator: Authenticator,
        metrics: Metrics,
        *,
        diagnose: Diagnose = lambda _tenant: None,
        foreground: Foreground,
        room: Room | None = None,
        sending: Sending | None = None,
        wait_until_as_fresh: WaitUntilAsFresh = lambda _tenant, _token: True,
        newest: Newest = lambda _tenant: None,
        spans: Span = NOTHING,
    ) -> None:
        self._options = options
        names = [service.descriptor.full_name for service in services]
        self._sending = sending or _sending()
        self.streams = StreamSlots(
            _seats(options), self._sending.watchdog, tenant_watches=options.max_tenant_streams
        )
        buckets = TokenBuckets()
        self.counts = SharedCounts(buckets, self.streams)
        self._running = RunningCalls()
        self.keyed = KeyedCalls()
        self._stopped = False
        self.health = Health(names, self._sending, most=options.max_streams)
        self._workers = Workers(options.workers, options.workers * _WAITING_PER_WORKER)
        admission = Admission(self._workers, authenticator, auth_required=options.auth_required)
        self._refusals = admission.refusals
        identification = Identification(authenticator, required=options.auth_required)
        own = [service for service in services if service.needs is None]
        methods = methods_of(
            [service.descriptor for service in own],
            reflection_services(),
            [(s.descriptor, s.needs) for s in services if s.needs is not None],
        )
        readable = readable_types(service.descriptor for service in own)
        self._pipeline = Pipeline(
            methods,
            layers=[
                self._running.layer,
                *([traced(spans)] if spans.is_told else []),
                telemetry(metrics),
                skip_abandoned,
                map_errors(diagnose),
                authentication(identification, is_of=self._workers.is_of),
                self.keyed.layer,
                rate_limit(buckets),
                self.streams.layer,
                consistent(wait_until_as_fresh, newest),
            ],
            checks=[check_rules],
            admission=admission,
            foreground=foreground,
            sending=self._sending,
            room=room,
            around=[only_what_it_may_read(readable), *([told] if spans.is_told else [])],
        )
        self.max_message_bytes = _largest(options, room)
        self.entrance = Entrance(
            services,
            methods,
            self._pipeline,
            self._workers,
            refusals=self._refusals,
            identification=identification,
        )
        self._server = grpc.server(
            self._workers,  # type: ignore[arg-type]  # Any executor does: gRPC only submits.
            interceptors=[self._pipeline],
            options=_channel_options(options, room),
        )
        self._server.add_generic_rpc_handlers(tuple(handlers_of(one) for one in services))
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        add_reflection([*names, health_name], self._server)
        metrics.gauge(
            "mneme_grpc_calls_in_flight", "Calls being served.", lambda: len(self._running)
        )
        metrics.gauge(
            "mneme_grpc_streams", "Streams being served, of all kinds.",
            lambda: self.streams.open_streams,
        )  # fmt: skip

    def start(self) -> str:
        """Listen and take calls; return the address with its real port.

        Raises:
            ListenError: the address cannot be had, or a certificate cannot be read.
        """
        listen = self._options.listen
        try:
            port = self._bind(listen)
        except RuntimeError as error:
            raise ListenError("MNEME_LISTEN", listen, "it is in use or not allowed") from error
        self._server.start()
        self.health.serving()
        if is_unix(listen):
            return listen
        return join_host_port(split_host_port(listen)[0], port)

    def drain(self, drain_s: float) -> None:
        """Take no more calls and let those that came before end.

        Whoever calls from now on is told to try again: gRPC's own way, to close the connections
        first, drops calls that are under way to it without saying so.

        Returns when no worker runs any more, or soon after `drain_s`: calls that are left then are
        cut off, and one that does not notice is named in the log and left behind.
        """
        until = time.monotonic() + drain_s
        self.health.shut_down()
        self._pipeline.refuse(stopping_error)
        self.streams.end_all()
        self._workers.wait_until_all_begun(drain_s)
        if self._running.wait(max(0.0, until - time.monotonic())):
            self._server.stop(None)
            if left := self._running.wait(_GRACE_S):
                _log.warning("calls still run after the drain; they are left behind", methods=left)

    def stop(self, drain_s: float) -> None:
        """Drain, then close the connections and the port. Stopping twice is fine."""
        if not self._stopped:
            self.drain(drain_s)
            self.close()

    def close(self) -> None:
        """Close the connections and the port, once nothing is served any more."""
        self._stopped = True
        closed: threading.Event = self._server.stop(_GRACE_S)
        closed.wait(_GRACE_S)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._refusals.shutdown(wait=False, cancel_futures=True)

    def _bind(self, listen: str) -> int:
        tls = self._options.tls
        if tls is None:
            return self._server.add_insecure_port(listen)
        return self._server.add_secure_port(listen, _credentials(tls))


def _sending() -> Sending:
    watchdog = Watchdog()
    return Sending(Steps(watchdog), watchdog)


def _seats(options: ServerOptions) -> dict[StreamKind, int]:
    quarter = max(1, (options.workers - options.max_uploads) // 4)
    return {
        StreamKind.WATCH: options.max_streams,
        StreamKind.UPLOAD: options.max_uploads,
        StreamKind.DOWNLOAD: quarter,
        StreamKind.PUBLIC: quarter,
    }


def _credentials(tls: Tls | Pem) -> grpc.ServerCredentials:
    if isinstance(tls, Pem):
        return grpc.ssl_server_credentials([(tls.key, tls.certificate)])
    ca = _read("MNEME_TLS_CLIENT_CA", tls.client_ca) if tls.client_ca else None
    pair = (_read("MNEME_TLS_KEY", tls.key), _read("MNEME_TLS_CERT", tls.certificate))
    _check_pair(tls)
    return grpc.ssl_server_credentials(
        [pair], root_certificates=ca, require_client_auth=ca is not None
    )


def _check_pair(tls: Tls) -> None:
    """Have OpenSSL look at the files: gRPC does not say what is wrong with them."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
    except ssl.SSLError as error:
        why = f"it and MNEME_TLS_KEY are no PEM certificate with its key ({error.reason or error})"
        raise ListenError("MNEME_TLS_CERT", str(tls.certificate), why) from error


def _read(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ListenError(setting, str(file), error.strerror or str(error)) from error


def _largest(options: ServerOptions, room: Room | None) -> int:
    """Return the size of the largest message that is taken in."""
    largest = options.max_message_bytes
    return largest if room is None else min(largest, room.max_message_bytes)


def _channel_options(options: ServerOptions, room: Room | None) -> list[tuple[str, int]]:
    return [
        # gRPC itself refuses what is larger, before it reads it.
        ("grpc.max_receive_message_length", _largest(options, room)),
        ("grpc.max_send_message_length", options.max_message_bytes),
        ("grpc.max_concurrent_streams", options.max_connection_streams),
        # gRPC refuses a stream while it has memory for more than what was announced and this: one
        # peer that opens and resets streams would fill the queue that all callers stand in.
        ("grpc.http2.max_deallocating_streams", max(_ENDING, options.max_connection_streams)),
        # What a peer may send of a message that nobody has asked for yet: before the key was looked
        # at, or while its call waits. gRPC would let that grow with the peer's speed.
        ("grpc.http2.lookahead_bytes", _UNASKED_BYTES),
        ("grpc.http2.bdp_probe", 0),
        # A call that finds this queue full ends as CANCELLED, whoever filled it.
        ("grpc.server.max_pending_requests", _MOST_ARRIVED),
        ("grpc.server.max_pending_requests_hard_limit", _MOST_ARRIVED + 1),
        # Two servers on one port would each get half of the calls.
        ("grpc.so_reuseport", 0),
        # A caller that vanished without a word is noticed, so that its streams free their seats.
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    ]
