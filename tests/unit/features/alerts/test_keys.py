"""What is being sent on behalf of a key is broken off when the key is good no longer."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest
from mneme_server.common.identity import ALL_SCOPES, Caller, KeyScope
from mneme_server.features.alerts import webhook
from mneme_server.features.alerts.attempt import CalledOff, SendOutcome
from mneme_server.features.alerts.channels import AllowedChannels, Webhook, networks_of
from mneme_server.features.alerts.model import Delivered, Delivery, Secret
from mneme_server.features.alerts.sender import KeyedSender, SenderThreads

PATIENCE_S = 30.0
LOOPBACK = AllowedChannels(networks_of("127.0.0.0/8"))
GOOD = Caller("t", "k", ALL_SCOPES, 0)
SECRET = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0)


def message(number: int = 0) -> Delivery:
    return Delivery(f"d{number}", "e", 1, "https://a.example", "alert.triggered", "{}", 0)


def test_a_webhook_that_is_called_off_ends_before_its_time_and_says_nothing_more() -> None:
    """Over TLS nothing is said before the receiver has answered: this one never does."""
    off = CalledOff()
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = Webhook(True, "127.0.0.1", server.getsockname()[1], "/")
        outcomes: list[SendOutcome] = []
        sending = threading.Thread(
            target=lambda: outcomes.append(webhook.post(target, LOOPBACK, b"{}", {}, 600, off=off))
        )
        sending.start()
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            off.say("it is over")
            sending.join(PATIENCE_S)
            assert not sending.is_alive()
    assert outcomes[0].error


def test_a_webhook_that_was_called_off_before_is_not_called() -> None:
    off = CalledOff()
    off.say("it is over")
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = Webhook(False, "127.0.0.1", server.getsockname()[1], "/")
        assert webhook.post(target, LOOPBACK, b"{}", {}, off=off).error
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


class Holding:
    """A sender that holds what it is given until it is told what becomes of it."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.sent: list[str] = []
        self.state = Delivered.WAITING

    def send(self, delivery: Delivery, secret: Secret, off: CalledOff) -> Delivery:
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)
        self.sent.append(delivery.id)
        return replace(delivery, state=self.state)


@pytest.mark.parametrize(
    ("caller", "said"),
    [
        (None, "was revoked"),
        (Caller("other", "k", ALL_SCOPES, 0), "is another tenant's"),
        (Caller("t", "k", frozenset({KeyScope.READ}), 0), "may not write any more"),
    ],
)
def test_what_waits_for_a_key_that_is_good_no_longer_is_not_sent(
    caller: Caller | None, said: str
) -> None:
    """One is being sent, and ends as it ends; the other waits for its turn, and never has it."""
    send = Holding()
    sending = KeyedSender(send, SenderThreads(per_tenant=1))  # type: ignore[arg-type]
    first, second = (sending.submit("t", message(one), SECRET, "k") for one in range(2))
    assert send.begun.wait(PATIENCE_S)
    assert sending.keys_in_use() == {"k"}
    sending.judge({"k": GOOD})
    sending.judge({"k": caller, "another": None})
    send.go_on.set()
    for future in (first, second):
        ended = future.result(PATIENCE_S)
        assert (ended.state, ended.next_us) == (Delivered.FAILED, None)
        assert said in ended.error
    assert send.sent == ["d0"]
    assert not sending.keys_in_use()


def test_what_was_taken_by_then_stays_taken() -> None:
    send = Holding()
    send.state = Delivered.DELIVERED
    sending = KeyedSender(send, SenderThreads())  # type: ignore[arg-type]
    future = sending.submit("t", message(), SECRET, "k")
    assert send.begun.wait(PATIENCE_S)
    sending.judge({"k": None})
    send.go_on.set()
    assert future.result(PATIENCE_S).state is Delivered.DELIVERED


def test_nobodys_messages_are_judged_by_no_key() -> None:
    send = Holding()
    for key_id, asked in (("", True), ("k", False)):
        sending = KeyedSender(send, SenderThreads(), asked=asked)  # type: ignore[arg-type]
        future = sending.submit("t", message(), SECRET, key_id)
        assert not sending.keys_in_use()
        send.go_on.set()
        assert not future.result(PATIENCE_S).error
