"""The HTTP edge under peers that are slow, leave, or come from elsewhere."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import structlog
import trustme
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme_server.common.address import ListenError
from mneme_server.common.errors import NotFound
from mneme_server.common.process_limits import allow_many_files
from mneme_server.edge.grpc import open_stream
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.http import bodies, connection
from unit.edge.http.conftest import Serve, Served

PATIENCE_S = 30.0


def peer_of(served: Served) -> socket.socket:
    address = urlsplit(served.address)
    return socket.create_connection((address.hostname or "", address.port or 0), PATIENCE_S)


class Held:
    """A behaviour that says when it is reached, and goes on when it is told to."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.cancelled: bool | None = None

    def __call__(self, _request: Any, call: Call) -> learn_pb.ListLessonsResponse:
        call.on_end(self.go_on.set)
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)
        self.cancelled = call.cancelled
        return learn_pb.ListLessonsResponse()


def test_a_call_whose_caller_left_is_told_so(serve: Serve) -> None:
    served, held = serve(auth_required=False), Held()
    served.edge.on("LearnService/ListLessons", held)
    with peer_of(served) as peer:
        peer.sendall(b"GET /api/lessons HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert held.reached.wait(PATIENCE_S)
    assert held.go_on.wait(PATIENCE_S)
    served.close()
    assert held.cancelled is True


def test_a_call_that_is_late_is_answered_at_once_whatever_the_worker_does(serve: Serve) -> None:
    served, held = serve(auth_required=False), Held()
    served.edge.on("LearnService/ListLessons", held)
    error = served.http().error("GET", "/api/lessons", headers={"grpc-timeout": "50m"})
    assert error.http_status == 504


def test_a_bug_is_told_by_an_id_alone(serve: Serve) -> None:
    served = serve(auth_required=False)
    served.edge.raises("LearnService/ListLessons", RuntimeError("secret"))
    with structlog.testing.capture_logs() as logs:
        error = served.http().error("GET", "/api/lessons")
    assert error.metadata["error_id"] in {one.get("error_id") for one in logs}
    assert (error.http_status, error.reason) == (500, "INTERNAL_ERROR")
    assert "secret" not in error.answer.text
    assert error.metadata["error_id"] in error.message


def test_a_stream_that_fails_in_the_middle_ends_with_the_error(serve: Serve) -> None:
    def export(_request: Any, _call: Call) -> Iterator[learn_pb.ExportLessonsResponse]:
        yield learn_pb.ExportLessonsResponse(lesson=learn_pb.Lesson(id="one"))
        raise NotFound("it is gone")

    served = serve(auth_required=False)
    served.edge.on("LearnService/ExportLessons", export)
    first, last = served.http().lines("GET", "/api/exports/lessons")
    assert first["id"] == "one"
    assert last["error"]["status"] == "NOT_FOUND"


class Endless:
    """A source that always has something to say."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def on_ready(self, wake: Any) -> None:
        wake()

    def take(self) -> Sequence[events_pb.WatchEventsResponse]:
        return [events_pb.WatchEventsResponse(event=events_pb.Event(text="x" * 100_000))]

    def close(self) -> None:
        self.closed.set()


def test_a_watch_whose_peer_does_not_read_is_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_stream, "SEND_S", 0.2)
    served, source = serve(auth_required=False), Endless()
    served.edge.on("EventService/WatchEvents", lambda _request, _call: source)
    with peer_of(served) as peer:
        peer.sendall(b"GET /api/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert source.closed.wait(PATIENCE_S)
    assert served.http().get("/api/health")


def test_a_peer_that_says_nothing_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    served = serve(auth_required=False)
    for said in (b"", b"GET /api/health HTTP/1.1\r\nhost: "):
        with peer_of(served) as peer:
            peer.sendall(said)
            assert ended(peer)


def ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_body_that_does_not_come_is_not_waited_for(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_BODY_S", 0.1)
    served = serve(auth_required=False)
    with peer_of(served) as peer:
        peer.sendall(
            b"POST /api/lessons HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 5\r\n\r\n{"
        )
        assert peer.recv(100).startswith(b"HTTP/1.1 408")


def test_the_body_of_a_call_without_a_key_is_not_waited_for(serve: Serve) -> None:
    served = serve()
    with peer_of(served) as peer:
        peer.sendall(
            b"POST /api/lessons HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 1000000\r\n\r\n{"
        )
        assert peer.recv(100).startswith(b"HTTP/1.1 401")


def test_nine_hundred_idle_connections_hold_nobody_up(serve: Serve) -> None:
    allow_many_files()
    served = serve(auth_required=False)
    with ThreadPoolExecutor(8) as pool:
        peers = list(pool.map(lambda _: peer_of(served), range(900)))
    try:
        assert served.http().get("/api/lessons")["lessons"] == []
        assert served.server.connections >= 1
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.parametrize(
    ("host", "more", "status"),
    [
        ("localhost:8080", {}, 200),
        ("127.0.0.1", {}, 200),
        ("[::1]:1", {}, 200),
        ("localhost:8080", {"origin": "http://localhost:8080"}, 200),
        (
            "localhost:8080",
            {"origin": "http://localhost:8080", "sec-fetch-site": "same-origin"},
            200,
        ),
        ("attacker.example", {}, 403),
        ("localhost.attacker.example", {}, 403),
        ("", {}, 403),
        ("localhost:8080", {"origin": "https://attacker.example"}, 403),
        ("localhost:8080", {"origin": "null"}, 403),
        ("localhost:8080", {"origin": "http://["}, 403),
        ("localhost:8080", {"sec-fetch-site": "cross-site"}, 403),
        ("localhost:8080", {"origin": "https://named.example"}, 200),
    ],
)
def test_without_keys_only_this_machines_own_pages_may_call(
    serve: Serve, host: str, more: dict[str, str], status: int
) -> None:
    served = serve(auth_required=False, origins=("https://named.example",))
    answer = served.http().ask("GET", "/api/lessons", headers={"host": host, **more})
    assert answer.status_code == status


def test_with_keys_any_page_that_has_one_may_call(serve: Serve) -> None:
    served = serve()
    http = served.http(served.edge.key().secret)
    headers = {"host": "memory.example", "origin": "https://app.example"}
    answer = http.ask("GET", "/api/lessons", headers=headers)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_origins_that_are_named_may_read_answers(serve: Serve) -> None:
    served = serve(origins=("https://app.example",))
    http = served.http()
    ask = {
        "access-control-request-method": "PUT",
        "access-control-request-headers": "authorization,content-type",
    }
    allowed = http.ask("OPTIONS", "/api/lessons/1", headers={"origin": "https://app.example"} | ask)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://app.example"
    other = http.ask("OPTIONS", "/api/lessons/1", headers={"origin": "https://other.example"} | ask)
    assert "access-control-allow-origin" not in other.headers
    told = http.ask("GET", "/api/health", headers={"origin": "https://app.example"})
    assert "x-request-id" in told.headers["access-control-expose-headers"]


def test_a_usual_port_that_is_taken_is_left_alone(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with structlog.testing.capture_logs() as logs:
            served = serve(listen=listen, by_default=True)
        assert served.address == ""
        assert [one["listen"] for one in logs if "HTTP does not" in one["event"]] == [listen]
        assert served.edge.client(served.edge.key().secret).call("LearnService/ListLessons")
        with pytest.raises(ListenError, match=f"MNEME_HTTP_LISTEN={listen} cannot be used"):
            serve(listen=listen, by_default=False)


def test_answers_are_not_held_back_for_more_to_send(serve: Serve) -> None:
    """Else each takes 40 ms on a connection that is kept: Nagle waits for a delayed ACK."""
    served = serve(auth_required=False)
    served.http().get("/api/health")
    (connection,) = served.server._server.server_state.connections
    accepted = connection.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_came_before_the_end_is_answered_and_what_comes_then_told_to_try_again(
    serve: Serve,
) -> None:
    served, held = serve(auth_required=False), Held()
    served.edge.on("LearnService/ListLessons", held)
    with ThreadPoolExecutor(2) as pool:
        begun = pool.submit(served.http().get, "/api/lessons")
        assert held.reached.wait(PATIENCE_S)
        draining = pool.submit(served.grpc.drain, PATIENCE_S)
        while served.grpc.health.is_serving:
            assert not begun.done()
        while (late := served.http().ask("GET", "/api/skills")).status_code == 200:
            assert not draining.done()
        assert late.status_code == 503
        assert int(late.headers["retry-after"]) >= 1
        assert served.http().ask("GET", "/api/health").status_code == 503
        held.go_on.set()
        assert begun.result(PATIENCE_S)["lessons"] == []
        draining.result(PATIENCE_S)


def test_tls_asks_for_the_certificates_that_grpc_asks_for(serve: Serve, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued, client = authority.issue_cert("localhost"), authority.issue_cert("client.example")
    files = {name: tmp_path / name for name in ("cert", "key", "ca", "client")}
    issued.cert_chain_pems[0].write_to_path(files["cert"])
    issued.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(files["ca"])
    client.private_key_and_cert_chain_pem.write_to_path(files["client"])
    served = serve(
        listen="localhost:0",
        certificate=files["cert"],
        key=files["key"],
        client_ca=files["ca"],
    )
    assert served.address.startswith("https://localhost:")
    trusting = ssl.create_default_context(cafile=str(files["ca"]))
    with (
        httpx2.Client(base_url=served.address, verify=trusting) as without,
        pytest.raises(httpx2.TransportError),
    ):
        without.get("/api/health")
    trusting.load_cert_chain(files["client"])
    with httpx2.Client(base_url=served.address, verify=trusting) as known:
        assert known.get("/api/health").json() == {"status": "serving"}
