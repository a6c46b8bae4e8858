"""What a connection bears of its peer, and when it is cut."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme_server.common.address import networks_in
from mneme_server.edge.http import connection, uvicorn_server
from unit.edge.http.conftest import Serve, Served

PATIENCE_S = 30.0
HEAD = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n"
POST = (
    b"POST /api/lessons HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def peer_of(served: Served, source: str = "127.0.0.1") -> socket.socket:
    address = urlsplit(served.address)
    where = (address.hostname or "", address.port or 0)
    return socket.create_connection(where, PATIENCE_S, source_address=(source, 0))


def sent(peer: socket.socket, part: bytes, times: int) -> int:
    """How many bytes a peer gets rid of until it is cut off."""
    told = 0
    try:
        for _ in range(times):
            peer.sendall(part)
            told += len(part)
    except OSError:
        pass
    return told


def said(peer: socket.socket) -> bytes:
    """What the server says until it ends the connection."""
    answer = b""
    try:
        while part := peer.recv(65_536):
            answer += part
    except ConnectionError:
        pass
    return answer


@pytest.mark.parametrize(
    "endless",
    [
        b"x-trailer: of no use at all\r\n" * 1_000,
        b"y" * 30_000,  # One that does not end.
    ],
    ids=["many", "long"],
)
def test_trailers_have_an_end(serve: Serve, endless: bytes) -> None:
    served = serve(auth_required=False)
    with peer_of(served) as peer:
        peer.sendall(POST + b"2\r\n{}\r\n0\r\nx: ")
        assert sent(peer, endless, 2_000) < 20_000_000
        assert said(peer)[:12] in (b"", b"HTTP/1.1 431")
    assert served.http().get("/api/health")


def test_what_stands_around_chunks_has_an_end(serve: Serve) -> None:
    served = serve(auth_required=False)
    with peer_of(served) as peer:
        peer.sendall(POST + b"2;name=")
        assert sent(peer, b"x" * 30_000, 2_000) < 20_000_000


def test_a_head_has_not_very_many_headers(serve: Serve) -> None:
    served = serve(auth_required=False)
    for count, status in ((100, b"HTTP/1.1 200"), (1_000, b"HTTP/1.1 431")):
        with peer_of(served) as peer:
            peer.sendall(HEAD + b"a: b\r\n" * count + b"connection: close\r\n\r\n")
            assert said(peer).startswith(status)


def test_an_address_has_not_any_length(serve: Serve) -> None:
    served = serve(auth_required=False)
    with peer_of(served) as peer:
        peer.sendall(b"GET /api/" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert said(peer)[:12] in (b"", b"HTTP/1.1 431")


def test_what_is_said_between_requests_is_no_reason_to_wait(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.5)
    served = serve(auth_required=False)
    with peer_of(served) as peer:
        peer.sendall(HEAD + b"\r\n")
        answer = b""
        while b"serving" not in answer:
            answer += peer.recv(1_000)
        peer.sendall(b"\r\n")
        assert said(peer)[-2:] in (b"", b'"}')


def test_requests_wait_for_one_another_but_not_any_number(serve: Serve) -> None:
    served = serve(auth_required=False)
    for count, answered in ((10, True), (10_000, False)):
        with peer_of(served) as peer:
            sent(peer, (HEAD + b"\r\n") * count + HEAD + b"connection: close\r\n\r\n", 1)
            assert (said(peer).count(b'"serving"') == count + 1) is answered


def test_the_rest_of_a_body_that_was_answered_is_not_taken_for_ever(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_REST_S", 0.5)
    served = serve()
    with peer_of(served) as peer:
        peer.sendall(POST + b"5\r\n12345\r\n")
        assert peer.recv(1_000).startswith(b"HTTP/1.1 401")
        assert said(peer).endswith(b"}") or said(peer) == b""
    assert served.server.connections == 0


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has twenty connections."""
    monkeypatch.setattr(uvicorn_server, "_CONNECTIONS", 20)


@pytest.mark.usefixtures("few")
def test_connections_from_one_place_leave_some_to_others(serve: Serve) -> None:
    served = serve(auth_required=False)
    with ExitStack() as opened:
        peers = [opened.enter_context(peer_of(served, "127.0.0.2")) for _ in range(30)]
        refused = [said(peer) for peer in peers[10:]]
        assert all(one.startswith(b"HTTP/1.1 503") for one in refused)
        assert served.http().get("/api/health") == {"status": "serving"}
        with peer_of(served, "127.0.0.3") as other:
            other.sendall(HEAD + b"\r\n")
            assert other.recv(1_000).startswith(b"HTTP/1.1 200")


@pytest.mark.usefixtures("few")
def test_those_of_a_proxy_that_is_named_may_be_all(serve: Serve) -> None:
    served = serve(auth_required=False, proxies=networks_in("127.0.0.2"))
    with ExitStack() as opened:
        peers = [opened.enter_context(peer_of(served, "127.0.0.2")) for _ in range(18)]
        for peer in peers:
            peer.sendall(HEAD + b"\r\n")
            assert peer.recv(1_000).startswith(b"HTTP/1.1 200")


def large(_request: Any, _call: Any) -> learn_pb.ListLessonsResponse:
    return learn_pb.ListLessonsResponse(lessons=[learn_pb.Lesson(content="x" * 1_000_000)] * 16)


def test_a_peer_that_does_not_read_its_answer_is_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_READ_S", 1)
    served = serve(auth_required=False)
    served.edge.on("LearnService/ListLessons", large)
    with peer_of(served) as peer:
        peer.sendall(b"GET /api/lessons HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert peer.recv(100)
        while served.server.connections:
            assert peer.fileno() >= 0
        assert len(said(peer)) < 16_000_000


def test_a_tenant_that_does_not_read_is_answered_no_more_and_others_are(serve: Serve) -> None:
    served = serve(max_message_bytes=1_000_000)  # Sixteen of them may be unread.
    served.edge.on("LearnService/ListLessons", large)
    acme, other = (served.edge.key(tenant).secret for tenant in ("acme", "umbrella"))
    with ExitStack() as opened:
        for _ in range(2):
            peer = opened.enter_context(peer_of(served))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            peer.sendall(
                b"GET /api/lessons HTTP/1.1\r\nhost: localhost\r\n"
                b"authorization: Bearer " + acme.encode() + b"\r\n\r\n"
            )
            assert peer.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 429")
        error = served.http(acme).error("GET", "/api/lessons")
        assert (error.http_status, error.status) == (429, "RESOURCE_EXHAUSTED")
        assert len(served.http(other).get("/api/lessons")["lessons"]) == 16
