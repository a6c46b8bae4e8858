"""Webhooks: sent to the address that was checked, signed with the secret of the tenant, without
following redirects."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import secrets
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from mneme_server.common.clock import DAY_US, now_us
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.alerts.attempt import CalledOff, SendAttempt, SendOutcome
from mneme_server.features.alerts.channels import AllowedChannels, Webhook, not_public
from mneme_server.features.alerts.model import Secret
from mneme_server.features.alerts.store.rules import SqlAlertSecrets

TIMEOUT_S = 10.0
"""How long an attempt may take, all of it."""
_GONE = 410
_LOGGED = 200
_SAID: tuple[tuple[type[Exception], str], ...] = (
    (socket.gaierror, "the name {host} cannot be resolved"),
    (ConnectionRefusedError, "the receiver refused the connection"),
    (ssl.SSLCertVerificationError, "no encrypted connection: the certificate is not valid"),
    (ssl.SSLError, "no encrypted connection: the receiver speaks no TLS that is taken here"),
    (ConnectionError, "the receiver closed the connection without an answer"),
    (http.client.HTTPException, "what the receiver answered is no HTTP"),
    (Exception, "the receiver cannot be reached"),
)
"""Why there is no answer, in words of our own: what came back is nobody's to read."""
_PREFIX = "whsec_"
_BYTES = 32
OVERLAP_US = DAY_US
"""How long webhooks are signed with the secret before, too."""

_log = structlog.get_logger(__name__)


def signatures(delivery_id: str, timestamp_s: int, body: bytes, secrets: Sequence[str]) -> str:
    """Return the header `webhook-signature`: a signature for each secret, as Standard Webhooks
    says."""
    signed = f"{delivery_id}.{timestamp_s}.".encode() + body
    digests = (hmac.digest(key_of(secret), signed, hashlib.sha256) for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def post(
    webhook: Webhook,
    allowed: AllowedChannels,
    body: bytes,
    headers: dict[str, str],
    timeout_s: float = TIMEOUT_S,
    *,
    off: CalledOff | None = None,
) -> SendOutcome:
    """Send a message to a webhook, once.

    The name is looked up once, every address that it has must be allowed, and the connection is
    made to one of those: a name that resolves otherwise a moment later reaches nothing else. What
    comes back is told by its status alone, and nothing else of it is read, so that nobody reads
    through it what is behind.

    Args:
        webhook: where it goes.
        allowed: what the operator allows.
        body: the message.
        headers: beside those of HTTP itself.
        timeout_s: for all of it, in seconds.
        off: may end it before.
    """
    with SendAttempt(timeout_s, off) as attempt:
        connection = _WebhookConnection(webhook, allowed, attempt)
        try:
            connection.request("POST", webhook.path, body, headers | {"Host": webhook.authority})
            status = connection.getresponse().status
            attempt.left()  # A head that was cut off counts as one that has ended.
            return _outcome(status)
        except _AddressRefused as error:
            return SendOutcome(str(error))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return SendOutcome(_said(webhook, error, attempt))
        finally:
            connection.close()


def _outcome(status: int) -> SendOutcome:
    if 200 <= status < 300:
        return SendOutcome()
    if 300 <= status < 400:
        return SendOutcome(f"the receiver answered {status}: redirects are not followed")
    return SendOutcome(f"the receiver answered {status}", final=status == _GONE)


def _said(webhook: Webhook, error: Exception, attempt: SendAttempt) -> str:
    _log.info("a webhook was not answered", host=webhook.host, error=repr(error)[:_LOGGED])
    if attempt.is_up or isinstance(error, TimeoutError):
        return f"no answer within {attempt.seconds:g} seconds"
    return next(said for kind, said in _SAID if isinstance(error, kind)).format(host=webhook.host)


class _AddressRefused(Exception):
    """An address may not be called."""


class _WebhookConnection(http.client.HTTPConnection):
    """A connection to an address that the operator allows, for the time of an attempt."""

    def __init__(self, webhook: Webhook, allowed: AllowedChannels, attempt: SendAttempt) -> None:
        super().__init__(webhook.host, webhook.port)
        self._webhook = webhook
        self._allowed = allowed
        self._attempt = attempt

    def connect(self) -> None:
        """Connect to the first address that takes it.

        Raises:
            _Refused: one of the name's addresses may not be called.
            OSError: none takes it, or not in time.
        """
        webhook = self._webhook
        addresses = self._attempt.addresses(webhook.host, webhook.port)
        for address in addresses:
            if not self._allowed.address(ipaddress.ip_address(address)):
                raise _AddressRefused(not_public(webhook.host))
        self.sock = self._attempt.connected(addresses, webhook.port)
        if webhook.secure:
            self.sock = _context().wrap_socket(self.sock, server_hostname=webhook.host)


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The use cases of secrets. One is made when it is first asked for."""

    tenants: OpenTenants
    now: Callable[[], int] = now_us

    def get(self, tenant_id: str) -> Secret:
        """Return the tenant's secret."""
        with self.tenants.open(tenant_id) as tenant:
            return self.of(tenant)

    def of(self, tenant: OpenTenant) -> Secret:
        """Return the secret of a tenant that is open."""
        with tenant.read() as unit:
            known = unit.get(SqlAlertSecrets).get()
        if known is not None:
            return known
        with tenant.write() as unit:
            known = unit.get(SqlAlertSecrets).get()  # Somebody else may have made it meanwhile.
            if known is None:
                known = Secret(_made(), self.now())
                unit.get(SqlAlertSecrets).set(known)
            return known

    def rotate(self, tenant_id: str) -> Secret:
        """Make a new secret, and return it."""
        now = self.now()
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            before = unit.get(SqlAlertSecrets).get()
            made = Secret(_made(), now)
            if before is not None:
                made = Secret(made.text, now, before.text, now + OVERLAP_US)
            unit.get(SqlAlertSecrets).set(made)
        return made


def key_of(text: str) -> bytes:
    """Return the key that a secret's text stands for."""
    return base64.b64decode(text.removeprefix(_PREFIX))


def _made() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()
