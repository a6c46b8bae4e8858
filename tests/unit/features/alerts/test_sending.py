"""Sending: where it may go, and what becomes of what was not taken."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from mneme_server.edge.local.certificate import new_identity
from mneme_server.features.alerts import mail, webhook
from mneme_server.features.alerts.attempt import SendOutcome
from mneme_server.features.alerts.channels import (
    AllowedChannels,
    Mail,
    Webhook,
    networks_of,
    recipients_of,
)
from mneme_server.features.alerts.mail import Mailer
from mneme_server.features.alerts.model import Delivered, Delivery
from mneme_server.features.alerts.sender import GIVE_UP_US, after
from support.receiver import receiving

LOOPBACK = AllowedChannels(networks_of("127.0.0.0/8"))
BODY = (
    '{"data":{"alertName":"Busy","message":"It is busy.","tenantId":"t","triggeredAt":"now",'
    '"resolvedAt":null}}'
)


def delivery(**fields: Any) -> Delivery:
    known = {
        "id": "01D", "entry_id": "01E", "position": 1, "channel": "https://a.example",
        "kind": "alert.triggered", "body_json": BODY, "created_us": 1_000_000,
    }  # fmt: skip
    return Delivery(**(known | fields))


class Names:
    """Names that resolve as a test says, each time to the next of these."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int, **_: object) -> list[Any]:
        self.asked += 1
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]


def test_a_name_that_resolves_otherwise_a_moment_later_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first answer is checked, and called; the second one, of the attack, nobody asks for."""
    with receiving() as allowed_one:
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        monkeypatch.setattr(socket, "getaddrinfo", names)
        only = AllowedChannels(networks_of("127.0.0.1/32"))
        target = Webhook(secure=False, host="rebinding.example", port=allowed_one.port, path="/")
        called: list[Any] = []
        create = socket.create_connection

        def noted(address: Any, *rest: Any) -> socket.socket:
            called.append(address)
            monkeypatch.undo()
            return create(address, *rest)

        monkeypatch.setattr(socket, "create_connection", noted)
        assert webhook.post(target, only, b"{}", {}) == SendOutcome()
    assert names.asked == 1
    assert called == [("127.0.0.1", allowed_one.port)]


def test_a_name_with_one_address_that_is_not_public_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names(["93.184.216.34", "10.0.0.1"]))
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it was called"))
    target = Webhook(secure=False, host="mixed.example", port=80, path="/")
    said = webhook.post(target, AllowedChannels(), b"{}", {}).error
    assert said.startswith("mixed.example is not a public address")


def test_a_receiver_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = Webhook(secure=False, host="127.0.0.1", port=silent.getsockname()[1], path="/")
        assert webhook.post(target, LOOPBACK, b"{}", {}, timeout_s=0.2).error


def test_one_that_answers_a_byte_at_a_time_is_left_when_the_time_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not ended.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        target = Webhook(secure=False, host="127.0.0.1", port=server.getsockname()[1], path="/")
        try:
            assert webhook.post(target, LOOPBACK, b"{}", {}, timeout_s=0.3).error
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", b"x"),
        (b"HTTP/1.0 200 OK\r\n", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"H"),
    ],
    ids=["closes", "an older one", "goes on", "says nothing"],
)
def test_one_whose_head_never_ends_is_left_when_the_time_is_up(head: bytes, drop: bytes) -> None:
    with dripping(head, drop) as target:
        outcome = webhook.post(target, LOOPBACK, b"{}", {}, timeout_s=0.4)
    assert outcome.error == "no answer within 0.4 seconds"


def test_the_body_of_an_answer_is_not_waited_for() -> None:
    """Its status is all that counts: a body that drips for ever holds nobody up."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    with dripping(head, b"y") as target:
        assert webhook.post(target, LOOPBACK, b"{}", {}, timeout_s=30.0) == SendOutcome()


def test_a_name_that_is_looked_up_for_ever_is_left_when_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def hangs(*_: object, **__: object) -> Any:
        answered.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    target = Webhook(secure=False, host="slow.example", port=80, path="/")
    outcome = webhook.post(target, AllowedChannels(), b"{}", {}, timeout_s=0.2)
    answered.set()
    assert outcome.error == "no answer within 0.2 seconds"


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-Secret_9 of the inside\r\n",
        b"HTTP/1.1 999999 Secret\r\n\r\n",
        b"HTTP/1.1 500 Secret\r\n\r\nSecret",
        b"HTTP/1.1 302 Secret\r\nLocation: http://secret/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSecret" + 70_000 * b"x",
        b"\x00\xffSecret",
    ],
)
def test_what_a_receiver_says_is_not_told(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with suppress(OSError), connection:
                connection.recv(65536)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        target = Webhook(secure=False, host="127.0.0.1", port=server.getsockname()[1], path="/")
        outcome = webhook.post(target, LOOPBACK, b"{}", {})
        thread.join()
    assert outcome.error
    assert "secret" not in outcome.error.lower()


@contextmanager
def dripping(head: bytes, drop: bytes) -> Iterator[Webhook]:
    """A receiver that begins to answer, and goes on a drop at a time for as long as it is read."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with suppress(OSError), connection:
                connection.sendall(head)
                while not ended.wait(0.02):
                    connection.sendall(drop)

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield Webhook(secure=False, host="127.0.0.1", port=server.getsockname()[1], path="/")
        finally:
            ended.set()
            thread.join()


def test_one_whose_handshake_ends_when_the_time_is_up_is_left_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = new_identity("127.0.0.1")
    pem = tmp_path / "server.pem"
    pem.write_bytes(identity.certificate + identity.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    trusting = ssl.create_default_context(cadata=identity.certificate.decode())
    monkeypatch.setattr(webhook, "_context", lambda: trusting)
    resolve = socket.getaddrinfo

    def slowly(*asked: Any, **how: Any) -> Any:
        time.sleep(0.2)  # And once more, where it connects.
        return resolve(*asked, **how)

    with socket.create_server(("127.0.0.1", 0)) as server:
        dripped: list[bytes] = []

        def drip() -> None:
            plain, _ = server.accept()
            time.sleep(0.4)  # The time is up, the handshake's own is not.
            with suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
                while len(dripped) < 40:
                    connection.sendall(b"H")
                    dripped.append(b"H")
                    time.sleep(0.05)

        thread = threading.Thread(target=drip)
        thread.start()
        target = Webhook(secure=True, host="127.0.0.1", port=server.getsockname()[1], path="/")
        monkeypatch.setattr(socket, "getaddrinfo", slowly)
        outcome = webhook.post(target, LOOPBACK, b"{}", {}, timeout_s=0.6)
        thread.join()
    assert outcome.error == "no answer within 0.6 seconds"
    assert len(dripped) < 40


def test_a_network_that_is_allowed_is_also_when_it_is_mapped() -> None:
    allowed = AllowedChannels(networks_of("10.1.0.0/16, fd00::/8"))
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        assert allowed.address(ipaddress.ip_address(address))
    assert not allowed.address(ipaddress.ip_address("10.2.0.1"))


def test_recipients_are_those_of_the_operator() -> None:
    allowed = AllowedChannels(
        recipients=recipients_of("ops@example.com, @oncall.org"), sends_mail=True
    )
    assert allowed.parse("mailto:Ops@Example.com") == Mail("Ops@Example.com")
    assert allowed.parse("mailto:anyone@oncall.org") == Mail("anyone@oncall.org")
    for other in ("ops@example.org", "x@sub.oncall.org", "x@evil-oncall.org"):
        with pytest.raises(ValueError, match="may not be sent to"):
            allowed.parse(f"mailto:{other}")
    for forged in ("a@oncall.org%0ABcc:x@y.z", "a@oncall.org,b@y.z", "a@oncall.org?cc=b@y.z"):
        with pytest.raises(ValueError, match="no address"):
            allowed.parse(f"mailto:{forged}")


@pytest.mark.parametrize("text", ["nobody", "@", "a@b", "ops@example.com;x"])
def test_a_recipient_that_is_none_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="neither an address nor a domain"):
        recipients_of(text)


def test_what_fails_is_tried_again_later_and_later_and_then_given_up() -> None:
    tried = after(delivery(), SendOutcome("down"), 2_000_000)
    assert (tried.attempts, tried.error, tried.next_us) == (1, "down", 4_000_000)
    again = after(tried, SendOutcome("down"), 4_000_000)
    assert again.next_us == 8_000_000
    much_later = after(delivery(attempts=40), SendOutcome("down"), 5_000_000)
    assert much_later.next_us == 5_000_000 + 3600 * 1_000_000
    last = after(delivery(attempts=40), SendOutcome("down"), GIVE_UP_US)
    assert (last.state, last.next_us) == (Delivered.FAILED, None)
    done = after(again, SendOutcome(), 9_000_000)
    assert (done.state, done.delivered_us, done.error) == (Delivered.DELIVERED, 9_000_000, "")


@contextmanager
def mail_server(refuses: bytes = b"") -> Iterator[tuple[int, list[bytes]]]:
    """A server that takes one e-mail; yields its port, and what it took."""
    took: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as lines:
                connection.sendall(b"220 here\r\n")
                for line in lines:
                    word = line[:4].upper()
                    if word == b"DATA":
                        connection.sendall(b"354 go on\r\n")
                        took.append(b"".join(iter(lines.readline, b".\r\n")))
                        connection.sendall(b"250 taken\r\n")
                    elif word == b"RCPT" and refuses:
                        connection.sendall(refuses)
                    else:
                        connection.sendall(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                        if word == b"QUIT":
                            return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], took
        finally:
            thread.join(timeout=30)


def mailer(port: int) -> Mailer:
    return Mailer("127.0.0.1", port, "none", "", "", "mneme@example.com")


def test_an_e_mail_says_what_happened_under_the_id_of_its_delivery() -> None:
    with mail_server() as (port, took):
        assert mailer(port).send("ops@example.com", delivery()) == SendOutcome()
    message = message_from_bytes(took[0], policy=policy.default)
    assert message["Subject"] == "[Mneme] Triggered: Busy"
    assert (message["From"], message["To"]) == ("mneme@example.com", "ops@example.com")
    assert message["Message-ID"] == "<01D@example.com>"
    text = message.get_content().replace("\r\n", "\n")
    assert text.startswith("It is busy.\n")
    assert "Rule: Busy" in text


@pytest.mark.parametrize("name", ["two\u2028lines", "two\x85lines", "=?utf-8?q?two=0ABcc:_lines?="])
def test_a_rule_whose_name_has_line_breaks_in_it_is_told_of_in_one_line(name: str) -> None:
    body = json.dumps(json.loads(BODY) | {"data": json.loads(BODY)["data"] | {"alertName": name}})
    with mail_server() as (port, took):
        assert mailer(port).send("ops@example.com", delivery(body_json=body)) == SendOutcome()
    message = message_from_bytes(took[0], policy=policy.default)
    assert message["Subject"].startswith("[Mneme] Triggered: ")
    assert "Bcc" not in message
    assert message["To"] == "ops@example.com"


def test_a_recipient_that_is_refused_for_good_is_not_tried_again() -> None:
    with mail_server(b"550 no such person\r\n") as (port, _):
        outcome = mailer(port).send("ops@example.com", delivery())
    assert outcome == SendOutcome("the mail server refused the recipient: 550", True)
    with mail_server(b"450 later\r\n") as (port, _):
        assert not mailer(port).send("ops@example.com", delivery()).final


def test_a_mail_server_that_is_down_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = mailer(port).send("ops@example.com", delivery())
    assert outcome.error.startswith("the mail server cannot be used")
    assert not outcome.final


@pytest.mark.parametrize("greeting", [b"2", b"220-still here\r\n"])
def test_a_mail_server_that_never_comes_to_an_end_is_left(
    greeting: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "_TIMEOUT_S", 0.4)
    with dripping(b"", greeting) as target:
        outcome = mailer(target.port).send("ops@example.com", delivery())
    assert outcome == SendOutcome("the mail server cannot be used: no answer within 0.4 seconds")
