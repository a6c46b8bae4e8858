"""What a peer does not send, or does not read, is not waited for without an end."""

from __future__ import annotations

import gc
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from grpc._server import _RPCState
from mneme.v1 import event_service_pb2 as pb
from mneme_server.edge.grpc import peers
from support.folders import wait_until
from unit.edge.grpc.edge import Edge

GET, WATCH = "EventService/GetSession", "EventService/WatchEvents"
REQUEST = pb.GetSessionRequest(session_id="s").SerializeToString()
CANCELLED, INVALID_ARGUMENT, UNAUTHENTICATED = "1", "3", "16"


class Peer:
    """One connection over plain HTTP/2, with which a test does as it likes."""

    def __init__(self, address: str, window: int) -> None:
        host, _, port = address.rpartition(":")
        self._address = address
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self._talk = h2.connection.H2Connection(config)
        self._talk.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self._talk.initiate_connection()

    def open(self, path: str, secret: str | None) -> int:
        """Begin a call that carries no message yet."""
        full = path if path.startswith("/") else f"/mneme.v1.{path}"
        headers = [
            (":method", "POST"), (":scheme", "http"), (":path", full),
            (":authority", self._address), ("te", "trailers"), ("content-type", "application/grpc"),
        ]  # fmt: skip
        if secret is not None:
            headers.append(("authorization", f"Bearer {secret}"))
        stream = self._talk.get_next_available_stream_id()
        self._talk.send_headers(stream, headers)
        self._flush()
        return stream

    def send(self, stream: int, message: bytes) -> None:
        """Send a call's only message."""
        body = struct.pack(">BI", 0, len(message)) + message
        self._talk.send_data(stream, body, end_stream=True)
        self._flush()

    def end_of(self, stream: int) -> str:
        """Wait for a call's end: the status, or "reset"."""
        while True:
            for event in self._talk.receive_data(self._socket.recv(65_536)):
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.StreamReset):
                    return "reset"
                if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                    for name, value in event.headers or ():
                        if name == "grpc-status":
                            return str(value)
            self._flush()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _flush(self) -> None:
        self._socket.sendall(self._talk.data_to_send())


@contextmanager
def _peer(edge: Edge, window: int = 65_535) -> Iterator[Peer]:
    peer = Peer(edge.address, window)
    try:
        yield peer
    finally:
        peer.close()


@pytest.mark.parametrize("path", [GET, WATCH])
@pytest.mark.parametrize("secret", [None, "mn_wrong"])
def test_the_key_is_looked_at_before_a_message_is_asked_for(
    edge: Edge, path: str, secret: str | None
) -> None:
    with _peer(edge) as peer:
        assert peer.end_of(peer.open(path, secret)) == UNAUTHENTICATED


@pytest.mark.parametrize("path", [GET, WATCH])
def test_a_message_that_does_not_arrive_is_not_waited_for(
    edge: Edge, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "RECEIVE_S", 0.1)
    with _peer(edge) as peer:
        assert peer.end_of(peer.open(path, edge.key().secret)) == CANCELLED


def test_a_call_whose_message_never_came_is_freed_at_once(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the garbage is collected next: what has arrived of it lives as long."""
    monkeypatch.setattr(peers, "RECEIVE_UNKNOWN_S", 0.1)
    before = _states()
    gc.disable()
    try:
        with _peer(edge) as peer:
            for _ in range(20):
                path = "/grpc.health.v1.Health/Check"
                assert peer.end_of(peer.open(path, None)) == CANCELLED
        wait_until(lambda: _states() <= before, "the calls are freed")
    finally:
        gc.enable()


def _states() -> int:
    return sum(type(one) is _RPCState for one in gc.get_objects())


def test_an_answer_that_nobody_reads_is_let_go_of(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "TAKE_S", 0.1)
    edge.on(GET, lambda *_: _session(100_000))
    with _peer(edge, window=0) as peer:
        stream = peer.open(GET, edge.key().secret)
        peer.send(stream, REQUEST)
        assert peer.end_of(stream) == CANCELLED


def test_unread_answers_of_one_tenant_make_room_for_its_next_and_take_none_of_others(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_FRESH_S", 0.1)
    assert edge.server is not None
    waiting = edge.server._pipeline._peers._unread
    edge.server._pipeline._peers._most = 800_000
    edge.on(GET, lambda *_: _session(300_000))
    mine, other = edge.key("mine").secret, edge.key("other").secret
    with _peer(edge, window=0) as hostile:
        first = _asked(hostile, mine)
        wait_until(lambda: bool(waiting), "the first answer waits")
        _asked(hostile, mine)
        assert hostile.end_of(first) == CANCELLED
        client = edge.client(other)
        assert client.call(GET, pb.GetSessionRequest(session_id="s")) == _session(300_000)


def test_what_follows_a_call_without_a_message_says_what_is_missing(edge: Edge) -> None:
    with _peer(edge) as peer:
        stream = peer.open(GET, edge.key().secret)
        peer._talk.end_stream(stream)
        peer._flush()
        assert peer.end_of(stream) == INVALID_ARGUMENT


def _asked(peer: Peer, secret: str) -> int:
    stream = peer.open(GET, secret)
    peer.send(stream, REQUEST)
    return stream


def _session(size: int) -> pb.GetSessionResponse:
    answer = pb.GetSessionResponse()
    answer.session.id = "x" * size
    return answer
