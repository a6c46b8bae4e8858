"""Sending alerts by e-mail."""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Literal

import structlog

from mneme_server.features.alerts.attempt import CalledOff, SendAttempt, SendOutcome
from mneme_server.features.alerts.model import Delivery
from mneme_server.features.alerts.notice import letter, title

_TIMEOUT_S = 15.0
"""How long an attempt may take, all of it."""
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SHOWN = 200
_PERMANENT = 500

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mailer:
    """Sends e-mail through the operator's server.

    Args:
        host: the server; "": none is sent.
        port: 0: the usual one.
        security: how the connection is encrypted.
        username: "": nobody signs in.
        password: theirs.
        sender: the address it comes from.
    """

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    username: str
    password: str
    sender: str

    def send(self, recipient: str, delivery: Delivery, off: CalledOff | None = None) -> SendOutcome:
        """Send a message, once. One that is sent again has the same Message-ID. `off` may end it
        before its time."""
        message = self._written(recipient, delivery)
        with SendAttempt(_TIMEOUT_S, off) as attempt:
            try:
                with self._connected(attempt) as server:
                    if self.username:
                        server.login(self.username, self.password)
                    server.send_message(message, self.sender, [recipient])
            except smtplib.SMTPRecipientsRefused as error:
                code, said = next(iter(error.recipients.values()))
                _log.warning("the mail server refused a recipient", code=code, said=_text(said))
                return SendOutcome(
                    f"the mail server refused the recipient: {code}", code >= _PERMANENT
                )
            except smtplib.SMTPResponseException as error:
                _log.warning("the mail server refused a message", code=error.smtp_code,
                             said=_text(error.smtp_error))  # fmt: skip
                return SendOutcome(f"the mail server answered {error.smtp_code}")
            except (OSError, smtplib.SMTPException) as error:
                _log.warning("the mail server cannot be used", error=repr(error)[:_SHOWN])
                late = f": no answer within {_TIMEOUT_S:g} seconds" if attempt.is_up else ""
                return SendOutcome(f"the mail server cannot be used{late}")
        return SendOutcome()

    def _written(self, recipient: str, delivery: Delivery) -> EmailMessage:
        body = json.loads(delivery.body_json)
        message = EmailMessage()
        message["Subject"] = title(delivery.kind, str(body["data"]["alertName"]))
        message["From"] = self.sender
        message["To"] = recipient
        message["Date"] = formatdate(delivery.created_us / 1e6)
        message["Message-ID"] = f"<{delivery.id}@{self.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter(body))
        return message

    def _connected(self, attempt: SendAttempt) -> smtplib.SMTP:
        port = self.port or _PORTS[self.security]
        server = _MailServer() if self.security != "tls" else _TlsServer(context=_context())
        server.attempt = attempt
        server._host = self.host  # Whose certificate is asked for.
        try:
            server.connect(self.host, port)
            if self.security == "starttls":
                server.starttls(context=_context())
        except BaseException:
            server.close()
            raise
        return server


class _MailServer(smtplib.SMTP):
    """A mail server, for the time of an attempt."""

    attempt: SendAttempt
    _host: str

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self.attempt.connected(self.attempt.addresses(host, port), port)


class _TlsServer(smtplib.SMTP_SSL, _MailServer):
    """One that speaks TLS from the first byte: `SMTP_SSL` wraps what `_MailServer` opens."""


def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _text(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:_SHOWN]
