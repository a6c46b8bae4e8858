"""What alerts tell: webhooks and e-mail, sent until they are taken, and nowhere they may not go."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest
from integration.test_alerts import change, history, rule, triggered
from mneme.v1 import alert_service_pb2 as pb
from mneme.v1 import common_pb2
from support.api import Api, refused
from support.contexts import eventually
from support.making import event, list_events, record
from support.receiver import receiving
from support.server import LocalServer, ServerProcess, local_server

LOOPBACK = {"alert_networks": "127.0.0.0/8"}


@pytest.fixture(scope="module")
def allowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server whose operator lets webhooks call loopback."""
    with local_server(tmp_path_factory.mktemp("allowing"), **LOOPBACK) as server:
        yield server


@pytest.fixture
def api(allowing: LocalServer) -> Api:
    return allowing.keys.tenant("told")


def secret(api: Api) -> str:
    return str(api.alert.GetWebhookSecret(pb.GetWebhookSecretRequest()).secret)


def delivered(api: Api, made: pb.AlertRule) -> Sequence[pb.AlertDelivery]:
    """Wait until nothing waits of what the rule's last alert tells; return it."""
    (found, *_) = eventually(
        lambda: history(api, rule_id=made.id),
        lambda seen: seen and all(d.state != pb.DELIVERY_STATE_WAITING for d in seen[0].deliveries),
    )
    return list(found.deliveries)


def sent_test(api: Api, made: pb.AlertRule) -> pb.AlertDelivery:
    (one,) = api.alert.TestAlertRule(pb.TestAlertRuleRequest(rule_id=made.id)).deliveries
    return one


def test_a_webhook_is_signed_and_says_what_happened(api: Api) -> None:
    with receiving() as receiver:
        made = rule(
            api, "EVENT_COUNT_EXCEEDS", name="Busy", notify_channels=[receiver.url + "/x?y=1"]
        )
        record(api, event("one", "s"))
        (delivery,) = (triggered(api, made), delivered(api, made))[1]
        (got,) = receiver.got
    assert delivery.state == pb.DELIVERY_STATE_DELIVERED
    assert (delivery.id, delivery.type, delivery.attempts) == (got.id, "alert.triggered", 1)
    assert got.path == "/x?y=1"
    assert got.is_signed_with(secret(api))
    said = got.said["data"]
    assert got.said["type"] == "alert.triggered"
    assert (said["alertName"], said["tenantId"], said["currentValue"]) == ("Busy", api.tenant_id, 1)
    assert said["message"] == "Events in the last hour: 1, more than 0."


def test_what_is_triggered_and_resolved_is_recorded_once_each(api: Api) -> None:
    made = rule(api, "ERROR_RATE_EXCEEDS", name="Errors", threshold=0.4)
    record(api, event("broken", "s", "error"))
    triggered(api, made)
    record(api, event("fine", "s"), event("fine", "s"))
    session = f"alerts-{made.id}"
    found = eventually(
        lambda: [e for e in list_events(api) if e.session_id == session], lambda seen: len(seen) > 1
    )
    assert [e.event_type for e in found] == ["alert_triggered", "alert_resolved"]
    assert found[0].text.startswith("Triggered: Errors. 100 % of the calls")
    assert found[0].severity == common_pb2.SEVERITY_WARN
    # An event of an alert is no event that a rule watches.
    counted = rule(api, "EVENT_COUNT_EXCEEDS", threshold=2)
    assert triggered(api, counted).current_value == 3


def test_a_receiver_that_was_down_gets_it_under_the_same_id(api: Api) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/hook"
    made = rule(api, "EVENT_COUNT_EXCEEDS", notify_channels=[url])
    record(api, event("one", "s"))
    triggered(api, made)
    (entry,) = eventually(
        lambda: history(api, rule_id=made.id), lambda seen: seen[0].deliveries[0].attempts > 0
    )
    before = entry.deliveries[0]
    assert before.error == "the receiver refused the connection"
    assert before.HasField("next_attempt_at")
    with receiving(port, statuses=(503, 204)) as receiver:
        (after,) = delivered(api, made)
        ids = [got.id for got in receiver.got]
    assert ids == [before.id, before.id]
    assert (after.id, after.error) == (before.id, "")


def test_what_is_gone_is_not_tried_again(api: Api) -> None:
    with receiving(statuses=(410,)) as receiver:
        made = rule(api, "EVENT_COUNT_EXCEEDS", notify_channels=[receiver.url])
        record(api, event("one", "s"))
        triggered(api, made)
        (delivery,) = delivered(api, made)
    assert (delivery.state, delivery.attempts) == (pb.DELIVERY_STATE_FAILED, 1)


@pytest.mark.slow
def test_a_kill_leaves_one_entry_and_what_waited_is_sent(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ServerProcess(tmp_path / "data", **LOOPBACK)
    api = server.keys.tenant("killed")
    key = api.secret
    made = rule(api, "EVENT_COUNT_EXCEEDS", notify_channels=[f"http://127.0.0.1:{port}"])
    record(api, event("one", "s"))
    entry = triggered(api, made)
    server.kill()
    server = ServerProcess(tmp_path / "data", **LOOPBACK)
    try:
        api = server.keys.api(key, api.tenant_id)
        with receiving(port) as receiver:
            (delivery,) = delivered(api, made)
        assert [one.id for one in history(api)] == [entry.id]
        assert {got.id for got in receiver.got} == {delivery.id}
        events = [e.event_type for e in list_events(api) if e.session_id != "s"]
        assert events == ["alert_triggered"]
    finally:
        server.stop()


def test_no_tenants_alerts_wait_for_those_of_others_whose_receivers_are_slow(
    allowing: LocalServer,
) -> None:
    """More tenants, rules and channels than there were threads for all of them."""
    with holding() as (slow, asked), receiving() as receiver:
        for number in range(8):
            flooding = allowing.keys.tenant("flooding")
            for one in range(4):
                channels = [f"{slow}/{number}/{one}/{channel}" for channel in range(4)]
                rule(flooding, "EVENT_COUNT_EXCEEDS", notify_channels=channels)
            record(flooding, event("one", "s"))
        for _ in range(8):
            asked.get(timeout=60)
        api = allowing.keys.tenant("told")
        made = rule(api, "EVENT_COUNT_EXCEEDS", notify_channels=[receiver.url])
        record(api, event("one", "s"))
        (delivery,) = (triggered(api, made), delivered(api, made))[1]
        assert delivery.state == pb.DELIVERY_STATE_DELIVERED
        assert not any(
            one.state != pb.DELIVERY_STATE_WAITING or one.attempts
            for entry in history(flooding)
            for one in entry.deliveries
        ), "those of the others wait still"
        test = rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[receiver.url])
        assert sent_test(api, test).state == pb.DELIVERY_STATE_DELIVERED


@contextmanager
def holding() -> Iterator[tuple[str, queue.SimpleQueue[bytes]]]:
    """A receiver that answers nobody while the block runs; yields its URL, and what it is asked."""
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:

        def hold() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    held.append(connection)
                    asked.put(connection.recv(4096))

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(30)
            for connection in held:
                connection.close()


def test_a_test_is_sent_at_once_and_says_so(api: Api) -> None:
    with receiving() as receiver:
        made = rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[receiver.url])
        sent = sent_test(api, made)
        (got,) = receiver.got
    assert (sent.state, sent.type, sent.id) == (
        pb.DELIVERY_STATE_DELIVERED, "alert.test", got.id,
    )  # fmt: skip
    assert got.said["data"]["message"] == "This is a test: nothing was triggered."
    assert not history(api)
    with refused() as failure:
        alone = rule(api, "COST_EXCEEDS", threshold=5)
        api.alert.TestAlertRule(pb.TestAlertRuleRequest(rule_id=alone.id))
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION


def test_a_new_secret_signs_beside_the_one_before(api: Api) -> None:
    before = secret(api)
    asked = pb.RotateWebhookSecretRequest()
    after = api.alert.RotateWebhookSecret(asked).secret
    with receiving() as receiver:
        sent_test(api, rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[receiver.url]))
    (got,) = receiver.got
    assert got.is_signed_with(before)
    assert got.is_signed_with(after)
    assert secret(api) == after != before


def test_redirects_are_not_followed(api: Api) -> None:
    with receiving() as inside, receiving(statuses=(302,), location=inside.url) as receiver:
        made = rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[receiver.url])
        sent = sent_test(api, made)
    assert sent.state == pb.DELIVERY_STATE_FAILED
    assert sent.error == "the receiver answered 302: redirects are not followed"
    assert not inside.got


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
        "169.254.169.254", "10.0.0.1", "192.168.1.1", "0.0.0.0", "100.64.0.1", "[fe80::1]",
        "[fc00::1]", "224.0.0.1", "[2002:7f00:1::]",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_at_once(server: LocalServer, host: str) -> None:
    api = server.keys.tenant("forging")
    with refused() as failure:
        rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[f"http://{host}:8080/x"])
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert failure.field == "notify_channels[0]"
    assert "is not a public address" in failure.message


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f000001", "127.1", "017700000001"])
def test_a_name_of_an_address_that_is_not_public_is_not_called(
    server: LocalServer, host: str
) -> None:
    api = server.keys.tenant("forging")
    with receiving() as receiver:
        made = rule(
            api, "COST_EXCEEDS", threshold=5, notify_channels=[f"http://{host}:{receiver.port}"]
        )
        sent = sent_test(api, made)
    assert sent.state == pb.DELIVERY_STATE_FAILED
    assert sent.error.startswith(f"{host} is not a public address")
    assert not receiver.got


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ("ftp://example.com", "neither https"),
        ("https://", "names no host"),
        ("https://user:password@example.com", "no user and no password"),
        ("https://example.com:99999", "is no URL"),
        ("mailto:ops@example.com", "sends no e-mail"),
        ("mailto:nobody", "is no address"),
        ("javascript:alert(1)", "neither https"),
    ],
)
def test_what_is_no_channel_is_refused(server: LocalServer, channel: str, said: str) -> None:
    api = server.keys.tenant("channels")
    made = rule(api, "COST_EXCEEDS", threshold=5)
    for attempt in (
        lambda: rule(api, "COST_EXCEEDS", threshold=5, notify_channels=[channel]),
        lambda: change(api, made, "notify_channels", notify_channels=[channel]),
    ):
        with refused() as failure:
            attempt()
        assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
        assert said in failure.message
