"""Sending alerts by e-mail."""

from __future__ import annotations

import json
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Literal

from mneme_server.alerts.model import Delivery
from mneme_server.alerts.outcome import Outcome
from mneme_server.alerts.wording import letter, title

_TIMEOUT_S = 15.0
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SHOWN = 200
_PERMANENT = 500


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

    def send(self, recipient: str, delivery: Delivery) -> Outcome:
        """Send a message, once. One that is sent again has the same Message-ID."""
        message = self._written(recipient, delivery)
        try:
            with self._connected() as server:
                if self.username:
                    server.login(self.username, self.password)
                server.send_message(message, self.sender, [recipient])
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()))
            final = code >= _PERMANENT
            return Outcome(f"the mail server refused the recipient: {code} {_text(said)}", final)
        except smtplib.SMTPResponseException as error:
            answer = f"{error.smtp_code} {_text(error.smtp_error)}"
            return Outcome(f"the mail server answered {answer}"[:_SHOWN])
        except (OSError, smtplib.SMTPException) as error:
            return Outcome(
                f"the mail server cannot be used: {error or type(error).__name__}"[:_SHOWN]
            )
        return Outcome()

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

    def _connected(self) -> smtplib.SMTP:
        port = self.port or _PORTS[self.security]
        if self.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, port, timeout=_TIMEOUT_S, context=context)
        server = smtplib.SMTP(self.host, port, timeout=_TIMEOUT_S)
        if self.security == "starttls":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


def _text(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:_SHOWN]
