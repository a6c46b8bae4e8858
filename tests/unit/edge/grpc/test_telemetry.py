"""What is logged and counted of every call."""

from __future__ import annotations

import io
import json
import logging
import socket
import urllib.request
from collections.abc import Iterator

import pytest
import structlog
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.address import ListenError
from mneme_server.common.errors import NotFound
from mneme_server.edge.grpc.logging import LogFormat, configure_logging
from mneme_server.edge.grpc.metrics import MetricsEndpoint
from structlog.testing import capture_logs
from support.sources import Given
from unit.edge.grpc.edge import Client, Edge

GET = "EventService/GetSession"
WATCH = "EventService/WatchEvents"
REQUEST = pb.GetSessionRequest(session_id="s")


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, logs = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**logs)


def _settled(edge: Edge) -> None:
    """Wait until the calls made so far have been logged: that happens after their answers."""
    assert edge.server is not None
    edge.server.stop(10)


def test_every_call_is_logged_once_with_what_is_needed_to_find_it(edge: Edge) -> None:
    edge.on(GET, lambda request, context: pb.GetSessionResponse())
    client = edge.client(edge.key("acme").secret, x_request_id="trace-1")
    with capture_logs() as logs:
        client.call(GET, REQUEST)
        client.call(WATCH)
        edge.raises(GET, NotFound("nothing"))
        client.refusal(GET, REQUEST)
        _settled(edge)
    calls = [entry for entry in logs if entry["event"] == "call"]
    assert [(c["method"], c["code"]) for c in calls] == [
        ("/mneme.v1.EventService/GetSession", "OK"),
        ("/mneme.v1.EventService/WatchEvents", "OK"),
        ("/mneme.v1.EventService/GetSession", "NOT_FOUND"),
    ]
    for call in calls:
        assert (call["tenant"], call["request_id"]) == ("acme", "trace-1")
        assert call["peer"].startswith("ipv4:127.0.0.1:")
        assert call["ms"] >= 0
    assert calls[2]["reason"] == "NOT_FOUND"


def test_a_call_without_an_id_gets_one_of_its_own(edge: Edge, client: Client) -> None:
    with capture_logs() as logs:
        client.call(GET, REQUEST)
        client.call(GET, REQUEST)
        _settled(edge)
    ids = {entry["request_id"] for entry in logs}
    assert len(ids) == 2
    assert all(len(request_id) == 16 for request_id in ids)


@pytest.mark.parametrize(
    ("said", "trace"),
    [(f"00-{'ab' * 16}-{'cd' * 8}-01", "ab" * 16), ("nonsense", None), ("00-ab-cd-01", None)],
)
def test_a_call_is_logged_with_the_trace_that_it_belongs_to(
    edge: Edge, said: str, trace: str | None
) -> None:
    client = edge.client(edge.key("acme").secret, traceparent=said)
    with capture_logs() as logs:
        client.call(GET, REQUEST)
        _settled(edge)
    (call,) = [entry for entry in logs if entry["event"] == "call"]
    assert call.get("trace_id") == trace


def test_a_key_never_reaches_the_log(edge: Edge) -> None:
    secret = edge.key().secret
    with capture_logs() as logs:
        edge.client(secret).call(GET, REQUEST)
        edge.client("mn_wrong_but_secret").refusal(GET, REQUEST)
        edge.raises(GET, KeyError("bug"))
        edge.client(secret).refusal(GET, REQUEST)
        _settled(edge)
    assert len(logs) == 4
    assert secret not in str(logs)
    assert "mn_wrong_but_secret" not in str(logs)


def _value(edge: Edge, name: str, **labels: str) -> float | None:
    return edge.metrics.registry.get_sample_value(name, labels)


def test_calls_are_counted_and_timed_by_method_and_code(edge: Edge, client: Client) -> None:
    for _ in range(3):
        client.call(GET, REQUEST)
    client.refusal(GET, pb.GetSessionRequest())
    edge.client().refusal(GET, REQUEST)
    _settled(edge)
    labels = {"service": "EventService", "method": "GetSession"}
    assert _value(edge, "mneme_grpc_calls_total", code="OK", **labels) == 3
    assert _value(edge, "mneme_grpc_calls_total", code="INVALID_ARGUMENT", **labels) == 1
    assert _value(edge, "mneme_grpc_calls_total", code="UNAUTHENTICATED", **labels) == 1
    assert _value(edge, "mneme_grpc_call_seconds_count", **labels) == 5
    assert _value(edge, "mneme_grpc_calls_in_flight") == 0


def test_streams_being_served_are_shown(edge: Edge, client: Client) -> None:
    seen: list[float | None] = []

    def watch(request: object, context: object) -> Given:
        seen.append(_value(edge, "mneme_grpc_streams"))
        return Given(pb.WatchEventsResponse(), ends=True)

    edge.on(WATCH, watch)
    client.call(WATCH)
    _settled(edge)
    assert [*seen, _value(edge, "mneme_grpc_streams")] == [1, 0]


def test_the_endpoint_shows_counters_and_gauges_asked_for_at_each_scrape(
    edge: Edge, client: Client
) -> None:
    depth = [5.0]
    edge.metrics.gauge("mneme_queue_depth", "Texts waiting.", lambda: depth[0])
    client.call(GET, REQUEST)
    endpoint = MetricsEndpoint(edge.metrics, "127.0.0.1:0")

    def scrape() -> str:
        with urllib.request.urlopen(f"http://{endpoint.address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    assert "mneme_queue_depth 5.0" in scrape()
    depth[0] = 7.0
    assert "mneme_queue_depth 7.0" in scrape()
    assert "mneme_grpc_call_seconds_bucket" in scrape()
    endpoint.close()


@pytest.mark.usefixtures("restored_logging")
def test_metrics_on_a_port_that_is_taken_are_an_error_that_names_the_setting(edge: Edge) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ListenError, match=f"MNEME_METRICS_LISTEN={address}"):
            MetricsEndpoint(edge.metrics, address)


@pytest.mark.usefixtures("restored_logging")
def test_a_second_server_has_its_metrics_at_another_port_where_nobody_chose_one(edge: Edge) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        endpoint = MetricsEndpoint(edge.metrics, address, by_default=True)
        try:
            assert endpoint.address != address
            with urllib.request.urlopen(f"http://{endpoint.address}/metrics", timeout=10) as answer:
                assert answer.status == 200
        finally:
            endpoint.close()


@pytest.mark.usefixtures("restored_logging")
def test_json_logs_are_one_object_a_line_with_tracebacks() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    log = structlog.get_logger()
    log.debug("hidden")
    log.info("hello", tenant="acme")
    try:
        raise KeyError("bug")
    except KeyError:
        log.exception("failed")
    logging.getLogger("grpc").warning("of a %s", "library")
    first, second, third = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (first["event"], first["tenant"], first["level"]) == ("hello", "acme", "info")
    assert "bug" in str(second["exception"])
    assert (third["event"], third["logger"]) == ("of a library", "grpc")


@pytest.mark.usefixtures("restored_logging")
@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_traceback_does_not_show_what_variables_hold(format_: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging("info", format_, stream)
    memory = "what somebody " + "confided"
    try:
        raise KeyError("bug")
    except KeyError:
        structlog.get_logger().exception("failed")
    assert "bug" in stream.getvalue()
    assert memory not in stream.getvalue()


@pytest.mark.usefixtures("restored_logging")
@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_level_hides_what_is_below_it(format_: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging("warning", format_, stream)
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()
