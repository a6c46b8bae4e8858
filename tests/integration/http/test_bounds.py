"""Peers that are slow, that are many, or that send too much: whoever else calls is served."""

from __future__ import annotations

import selectors
import socket
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
from integration.http.conftest import Connect
from integration.test_telemetry import until
from mneme.v1 import auth_pb2
from mneme_server.common.process_limits import allow_many_files
from mneme_server.edge.http import bodies, connection
from support.api import Api
from support.http import Http
from support.making import event, ids_of, lesson, recall, record
from support.server import LocalServer

LARGEST = 16 * 1024 * 1024
IDLE = 900
"""Of the thousand that come from one place."""
_PATIENCE_S = 60


def connected(server: LocalServer) -> socket.socket:
    host = urlsplit(server.http_address)
    return socket.create_connection((host.hostname or "", host.port or 0), timeout=_PATIENCE_S)


def head(server: LocalServer, verb: str, path: str, secret: str | None, *more: str) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", "host: localhost", f"authorization: Bearer {secret}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def all_of(peer: socket.socket) -> bytes:
    """What the server says until it ends the connection."""
    said = b""
    with suppress(OSError):
        while part := peer.recv(65_536):
            said += part
    return said


def first_to_speak(peers: list[socket.socket]) -> socket.socket:
    """Not by `select`, which takes no file above the 1,024th: others may have many open."""
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            selector.register(peer, selectors.EVENT_READ)
        key, _ = selector.select(_PATIENCE_S)[0]
        return next(peer for peer in peers if peer is key.fileobj)


def calls_are_served(api: Api, http: Http) -> None:
    record(api, event("the tide turns at noon", id="tide"), wait=True)
    assert ids_of(recall(api, "when does the tide turn"))[0] == "tide"
    assert http.get("/api/recall?query=when+does+the+tide+turn")["results"][0]["sourceId"] == "tide"


@pytest.fixture
def hurried(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> LocalServer:
    """The server while it waits two seconds where it waits ten and sixty."""
    monkeypatch.setattr(connection, "HEAD_S", 2.0)
    monkeypatch.setattr(bodies, "_BODY_S", 2.0)
    return server


def test_a_peer_that_says_nothing_is_cut_off(hurried: LocalServer) -> None:
    with connected(hurried) as peer:
        assert all_of(peer) == b""


def test_a_head_that_comes_byte_by_byte_is_cut_off(hurried: LocalServer) -> None:
    with connected(hurried) as peer:
        peer.settimeout(0.1)
        for one in head(hurried, "GET", "/api/health", "x", "x: " + "x" * 10_000):
            try:
                peer.sendall(bytes([one]))
                if peer.recv(1) == b"":
                    return
            except TimeoutError:
                continue  # Nothing is said yet: one more byte.
            except OSError:
                return
    pytest.fail("ten thousand bytes were waited for, one by one")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/lessons", "application/json"),
        ("/mneme.v1.LearnService/CreateLesson", "application/json"),
        ("/v1/traces", "application/x-protobuf"),
        ("/api/imports/events", "application/x-ndjson"),
    ],
)
def test_whose_key_is_none_is_told_so_before_the_body_comes(
    server: LocalServer, api: Api, path: str, kind: str
) -> None:
    reader = server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ).secret
    told = []
    for key in ("mn_nobody", reader):
        with connected(server) as peer:
            more = (f"content-type: {kind}", "content-length: 1000000")
            peer.sendall(head(server, "POST", path, key, *more) + b"{")
            told.append(peer.recv(12))
    assert told == [b"HTTP/1.1 401", b"HTTP/1.1 403"]


@pytest.mark.parametrize("path", ["/api/lessons", "/v1/traces", "/mneme.v1.RecallService/Recall"])
def test_a_body_that_does_not_come_is_not_waited_for(hurried: LocalServer, path: str) -> None:
    with connected(hurried) as peer:
        secret = hurried.keys.admin.secret
        kind = "content-type: application/json"
        peer.sendall(head(hurried, "POST", path, secret, kind, "content-length: 10") + b"{")
        assert all_of(peer).startswith(b"HTTP/1.1 408")


def test_nine_hundred_idle_connections_hold_up_nobody(
    server: LocalServer, api: Api, http: Http
) -> None:
    allow_many_files()
    asked = head(server, "GET", "/api/health", None)
    http_server = server.application._http
    assert http_server is not None
    with ExitStack() as opened:
        idle = [opened.enter_context(connected(server)) for _ in range(IDLE)]
        for peer in idle:
            peer.sendall(asked)
        for peer in idle:
            assert peer.recv(1_000).startswith(b"HTTP/1.1 200")
        assert http_server.connections >= IDLE
        calls_are_served(api, http)
    until(lambda: http_server.connections < IDLE)


def test_bodies_that_are_too_much_together_are_refused_and_leave_room_for_others(
    server: LocalServer, api: Api, http: Http
) -> None:
    """Two of the largest bodies of a tenant may wait at a time; with their last bytes missing, they
    do."""
    body = b'{"title": "' + b"x" * (LARGEST - 100)
    sent = head(
        server, "POST", "/api/lessons", api.secret,
        "content-type: application/json", f"content-length: {len(body) + 1}",
    )  # fmt: skip
    with ExitStack() as opened:
        peers = [opened.enter_context(connected(server)) for _ in range(3)]
        for peer in peers:
            with suppress(OSError):  # The last is refused before it has said all.
                peer.sendall(sent + body)
        refused = first_to_speak(peers).recv(1_000)
        assert refused.startswith(b"HTTP/1.1 429")
        assert b"retry-after" in refused
        assert recall(api, "anything").total_results == 0
        assert http.get("/api/lessons")["total"] == 0
    until(lambda: http.ask("POST", "/api/lessons", {"title": "t", "content": "c"}).is_success)
    large = {"title": "t", "content": "x" * (LARGEST // 2)}
    until(lambda: http.ask("POST", "/api/lessons", large).status_code == 400)  # Too long, and read.


def test_what_a_tenant_is_sending_takes_no_room_of_others(
    server: LocalServer, api: Api, over_http: Connect
) -> None:
    other = over_http(server.keys.tenant())
    body = b'{"title": "' + b"x" * (LARGEST - 100)
    sent = head(
        server, "POST", "/api/lessons", api.secret,
        "content-type: application/json", f"content-length: {len(body) + 1}",
    )  # fmt: skip
    with ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(connected(server)).sendall(sent + body)
        assert other("POST", "/api/lessons", {"title": "t", "content": "c"})["title"] == "t"
        large = {"title": "t", "content": "x" * (LARGEST // 2)}
        assert other.ask("POST", "/api/lessons", large).status_code == 400  # Too long, and read.


def test_answers_that_nobody_reads_hold_up_nobody(
    server: LocalServer, api: Api, http: Http, over_http: Connect
) -> None:
    for number in range(60):
        lesson(api, f"tides {number}", "x" * 60_000, lesson_id=f"lesson-{number}")
    asked = head(server, "GET", "/api/exports/lessons", api.secret)
    with ExitStack() as opened:
        for _ in range(2):  # A tenant may have three exports open; the last is read.
            peer = opened.enter_context(connected(server))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            peer.sendall(asked)
            assert peer.recv(15) == b"HTTP/1.1 200 OK"
        calls_are_served(api, http)
        assert len(over_http(api).lines("GET", "/api/exports/lessons")) == 60
