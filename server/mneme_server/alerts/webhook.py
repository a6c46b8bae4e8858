"""Sending webhooks: to the address that was checked, signed, without following redirects."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Sequence

from mneme_server.alerts.channels import Allowed, Webhook, not_public
from mneme_server.alerts.outcome import Outcome
from mneme_server.alerts.secrets import key_of

TIMEOUT_S = 10.0
"""How long an attempt may take, all of it."""
_MOST_BYTES = 16_384
"""How much of an answer is read: its status is all that counts."""
_GONE = 410
_SHOWN = 200


def signatures(delivery_id: str, timestamp_s: int, body: bytes, secrets: Sequence[str]) -> str:
    """Return the header `webhook-signature`: a signature for each secret, as Standard Webhooks
    says."""
    signed = f"{delivery_id}.{timestamp_s}.".encode() + body
    digests = (hmac.digest(key_of(secret), signed, hashlib.sha256) for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def post(
    webhook: Webhook,
    allowed: Allowed,
    body: bytes,
    headers: dict[str, str],
    timeout_s: float = TIMEOUT_S,
) -> Outcome:
    """Send a message to a webhook, once.

    The name is looked up once, every address that it has must be allowed, and the connection is
    made to one of those: a name that resolves otherwise a moment later reaches nothing else. What
    comes back is told by its status alone, so that nobody reads through it what is behind.

    Args:
        webhook: where it goes.
        allowed: what the operator allows.
        body: the message.
        headers: beside those of HTTP itself.
        timeout_s: for all of it, in seconds.
    """
    connection = _Connection(webhook, allowed, timeout_s)
    timer = threading.Timer(timeout_s, connection.cut)
    timer.daemon = True
    timer.start()
    try:
        connection.request("POST", webhook.path, body, headers | {"Host": webhook.authority})
        answer = connection.getresponse()
        status = answer.status
        answer.read(_MOST_BYTES)
    except _Refused as error:
        return Outcome(str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Outcome(
            f"no answer within {timeout_s:g} seconds"
            if connection.was_cut
            else _said(webhook, error)
        )
    finally:
        timer.cancel()
        connection.close()
    return _outcome(status)


def _outcome(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome()
    if 300 <= status < 400:
        return Outcome(f"the receiver answered {status}: redirects are not followed")
    return Outcome(f"the receiver answered {status}", final=status == _GONE)


def _said(webhook: Webhook, error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name {webhook.host} cannot be resolved"
    if isinstance(error, TimeoutError):
        return "the receiver did not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "the receiver refused the connection"
    if isinstance(error, ssl.SSLError):
        return f"no encrypted connection: {error.reason or error}"[:_SHOWN]
    return f"the connection failed: {error or type(error).__name__}"[:_SHOWN]


class _Refused(Exception):
    """An address may not be called."""


class _Connection(http.client.HTTPConnection):
    """A connection to an address that the operator allows."""

    def __init__(self, webhook: Webhook, allowed: Allowed, timeout_s: float) -> None:
        super().__init__(webhook.host, webhook.port, timeout=timeout_s)
        self._webhook = webhook
        self._allowed = allowed
        self.was_cut = False

    def connect(self) -> None:
        """Connect to the first address that takes it.

        Raises:
            _Refused: one of the name's addresses may not be called.
            OSError: none takes it, or not in time.
        """
        webhook = self._webhook
        found = socket.getaddrinfo(webhook.host, webhook.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        for address in addresses:
            if not self._allowed.address(ipaddress.ip_address(address)):
                raise _Refused(not_public(webhook.host))
        self.sock = _connected(addresses, webhook.port, self.timeout or TIMEOUT_S)
        self._require_time()
        if webhook.secure:
            self.sock = _context().wrap_socket(self.sock, server_hostname=webhook.host)
            # Whoever cut it meanwhile had the socket that is wrapped, which leads nowhere any more.
            self._require_time()

    def _require_time(self) -> None:
        if self.was_cut:
            raise TimeoutError("no time is left")

    def cut(self) -> None:
        """Break the connection off, from another thread."""
        self.was_cut = True
        sock = self.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # It is closed already.


def _connected(addresses: Sequence[str], port: int, timeout_s: float) -> socket.socket:
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), timeout_s / len(addresses))
        except OSError:
            continue
    return socket.create_connection((addresses[-1], port), timeout_s / len(addresses))


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
