"""Start, address, TLS, health, reflection, sizes and the end of a server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import h2.config
import h2.connection
import h2.settings
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.address import ListenError
from mneme_server.edge.grpc import open_stream
from mneme_server.edge.grpc.server import Tls
from support.folders import wait_until
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Client, Edge

GET = "EventService/GetSession"
REQUEST = pb.GetSessionRequest(session_id="s")
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def test_port_zero_picks_a_port_and_says_which(edge: Edge) -> None:
    host, _, port = edge.address.rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0


def test_a_port_that_is_taken_is_an_error_that_names_the_setting(
    make_edge: MakeEdge, edge: Edge
) -> None:
    with pytest.raises(ListenError, match=f"MNEME_LISTEN={edge.address}"):
        make_edge(listen=edge.address)


def test_a_unix_socket_serves_too(make_edge: MakeEdge, tmp_path: Path) -> None:
    edge = make_edge(listen=f"unix:{tmp_path}/mneme.sock")
    assert edge.address == f"unix:{tmp_path}/mneme.sock"
    edge.client(edge.key().secret).call(GET, REQUEST)


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_ipv6_is_written_in_brackets(make_edge: MakeEdge) -> None:
    try:
        edge = make_edge(listen="[::1]:0")
    except ListenError:
        pytest.skip("this machine has no IPv6 loopback")
    assert edge.address.startswith("[::1]:")
    edge.client(edge.key().secret).call(GET, REQUEST)


def test_a_message_beyond_the_limit_is_refused_and_the_server_goes_on(client: Client) -> None:
    huge = pb.GetSessionRequest(session_id="x" * 2_000_000)
    assert client.code(GET, huge) is grpc.StatusCode.RESOURCE_EXHAUSTED
    client.call(GET, REQUEST)


def test_an_unknown_method_is_unimplemented(edge: Edge) -> None:
    call: Any = edge.channel().unary_unary("/mneme.v1.EventService/NoSuchThing")
    with pytest.raises(grpc.RpcError) as refused:
        call(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


# Health.


def test_health_needs_no_key_and_knows_the_server_and_each_service(edge: Edge) -> None:
    health = health_pb2_grpc.HealthStub(edge.channel())
    for service in ("", "mneme.v1.EventService", "mneme.v1.AdminService"):
        assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == SERVING
    with pytest.raises(grpc.RpcError) as refused:
        health.Check(health_pb2.HealthCheckRequest(service="nobody"))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_watchers_of_health_hear_of_the_shutdown_and_do_not_delay_it(edge: Edge) -> None:
    health = health_pb2_grpc.HealthStub(edge.channel())
    known = health.Watch(health_pb2.HealthCheckRequest(service=""))
    unknown = health.Watch(health_pb2.HealthCheckRequest(service="nobody"))
    assert next(known).status == SERVING
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert edge.server is not None
    stopping = threading.Thread(target=edge.server.stop, args=(3600,))
    stopping.start()
    assert [answer.status for answer in known] == [NOT_SERVING]
    assert list(unknown) == []
    stopping.join(10)
    assert not stopping.is_alive()


def test_health_watches_hold_no_worker(make_edge: Callable[..., Edge]) -> None:
    edge = make_edge(max_streams=20)
    client = edge.client(edge.key().secret)
    health = health_pb2_grpc.HealthStub(edge.channel())
    watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(20)]
    for watch in watches:
        assert next(watch).status == SERVING
    client.call(GET, REQUEST)
    for watch in watches:
        watch.cancel()


def test_health_watchers_that_take_nothing_hold_no_worker_and_free_their_places_when_they_leave(
    make_edge: Callable[..., Edge], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_stream, "SEND_S", 60.0)  # None is cut off before it leaves.
    edge = make_edge(max_streams=20)
    client = edge.client(edge.key().secret)
    health = health_pb2_grpc.HealthStub(edge.channel())

    def watch() -> grpc.StatusCode | None:
        try:
            next(health.Watch(health_pb2.HealthCheckRequest(), timeout=20))
        except grpc.RpcError as error:
            return error.code()
        return None

    with NoWindow(edge.address, "grpc.health.v1.Health/Watch", 20) as peer:

        def all_taken() -> bool:
            if watch() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                return True
            # This look held a place for a moment and may have taken it from the peer.
            peer.open(1)
            return False

        wait_until(all_taken, "all places are taken")
        for _ in range(20):
            client.call(GET, REQUEST)
    wait_until(lambda: watch() is None, "their places are free")


class NoWindow:
    """A peer that opens streams over plain HTTP/2 and never lets a byte of an answer in."""

    def __init__(self, address: str, rpc: str, streams: int) -> None:
        host, _, port = address.rpartition(":")
        self._peer = socket.create_connection((host, int(port)), timeout=20)
        config = h2.config.H2Configuration(client_side=True)
        self._connection = h2.connection.H2Connection(config)
        self._connection.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0}
        )
        self._connection.initiate_connection()
        self._headers = [
            (":method", "POST"), (":scheme", "http"), (":path", f"/{rpc}"),
            (":authority", address), ("te", "trailers"), ("content-type", "application/grpc"),
        ]  # fmt: skip
        self.open(streams)

    def open(self, streams: int) -> None:
        """Open more streams."""
        for _ in range(streams):
            stream = self._connection.get_next_available_stream_id()
            self._connection.send_headers(stream, self._headers)
            self._connection.send_data(stream, bytes(5), end_stream=True)
        self._peer.sendall(self._connection.data_to_send())

    def __enter__(self) -> NoWindow:
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.close()


# Reflection.


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_lists_and_describes_every_service_without_a_key(
    edge: Edge, version: str
) -> None:
    reflect = edge.channel().stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )

    def ask(**request: Any) -> Any:
        requests = iter([reflection_pb2.ServerReflectionRequest(**request)])
        (answer,) = reflect(requests, timeout=10)
        return answer

    names = [s.name for s in ask(list_services="").list_services_response.service]
    assert {
        "mneme.v1.EventService",
        "mneme.v1.AdminService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    } <= set(names)
    for name in names:
        described = ask(file_containing_symbol=name)
        assert described.file_descriptor_response.file_descriptor_proto, name


# TLS.


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> Tls:
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return Tls(certificate, key)


def _secure(edge: Edge, authority: trustme.CA, **identity: bytes) -> Client:
    credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes(), **identity)
    return Client(grpc.secure_channel(edge.address, credentials), edge.key().secret)


def test_with_a_certificate_the_server_speaks_tls(
    make_edge: MakeEdge, authority: trustme.CA, tls: Tls
) -> None:
    edge = make_edge(tls=tls)
    _secure(edge, authority).call(GET, REQUEST)
    stranger = trustme.CA()
    assert _secure(edge, stranger).code(GET, REQUEST) is grpc.StatusCode.UNAVAILABLE
    plaintext = edge.client(edge.key().secret)
    assert plaintext.code(GET, REQUEST) is grpc.StatusCode.UNAVAILABLE


def test_with_a_client_authority_only_its_certificates_are_let_in(
    make_edge: MakeEdge, authority: trustme.CA, tls: Tls, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    edge = make_edge(tls=replace(tls, client_ca=ca_file))
    assert _secure(edge, authority).code(GET, REQUEST) is grpc.StatusCode.UNAVAILABLE
    issued = authority.issue_cert("client@example.org")
    known = _secure(
        edge,
        authority,
        private_key=issued.private_key_pem.bytes(),
        certificate_chain=issued.cert_chain_pems[0].bytes(),
    )
    known.call(GET, REQUEST)


def test_a_certificate_that_cannot_be_read_is_an_error_that_names_the_setting(
    make_edge: MakeEdge, tls: Tls, tmp_path: Path
) -> None:
    with pytest.raises(ListenError, match=r"MNEME_TLS_CERT=.*No such file"):
        make_edge(tls=replace(tls, certificate=tmp_path / "missing.pem"))
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(ListenError, match="MNEME_TLS_CERT"):
        make_edge(tls=replace(tls, certificate=broken))
