"""Whom a rule may tell: what its channels are, as URLs, and which the operator allows."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from mneme_server.common.errors import InvalidArgument
from mneme_server.features.alerts.public import Address, Network, is_public

_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where a webhook goes. `path` has the query, too."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host as the header `Host` has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Mail:
    """Whom an e-mail goes to."""

    recipient: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator allows.

    Args:
        networks: that are not public, and may be called all the same.
        recipients: addresses, or domains that begin with "@", in lower case.
        sends_mail: whether e-mail can be sent.
    """

    networks: tuple[Network, ...] = ()
    recipients: frozenset[str] = frozenset()
    sends_mail: bool = False

    def address(self, address: Address) -> bool:
        """Tell whether webhooks may call an address."""
        if any(address in network for network in self.networks):
            return True
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            return self.address(address.ipv4_mapped)
        return is_public(address)

    def recipient(self, recipient: str) -> bool:
        """Tell whether alerts may be sent to an address of e-mail."""
        address = recipient.lower()
        return address in self.recipients or "@" + address.rpartition("@")[2] in self.recipients

    def require(self, channels: Iterable[str]) -> None:
        """Check that a rule may tell these.

        Raises:
            InvalidArgument: one is no channel, or the operator does not allow it; `item` says
                which.
        """
        for at, channel in enumerate(channels):
            try:
                self.parse(channel)
            except ValueError as error:
                raise InvalidArgument(str(error), field="channels", item=at) from error

    def parse(self, channel: str) -> Webhook | Mail:
        """Return what a channel is. A name is looked up only when something is sent to it.

        Raises:
            ValueError: it is no channel, or the operator does not allow it; the message says why.
        """
        if channel.startswith("mailto:"):
            return self._mail(unquote(channel.removeprefix("mailto:")))
        webhook = _webhook(channel)
        try:
            address = ipaddress.ip_address(webhook.host)
        except ValueError:
            return webhook
        if not self.address(address):
            raise ValueError(not_public(webhook.host))
        return webhook

    def _mail(self, recipient: str) -> Mail:
        if not _MAIL.fullmatch(recipient):
            raise ValueError(f"{recipient!r} is no address of e-mail")
        if not self.sends_mail:
            raise ValueError("this server sends no e-mail: its operator has to set MNEME_SMTP_HOST")
        if not self.recipient(recipient):
            raise ValueError(
                f"alerts may not be sent to {recipient}: the operator has to add it to"
                " MNEME_ALERT_RECIPIENTS"
            )
        return Mail(recipient)


def not_public(host: str) -> str:
    """Return why an address is not called."""
    return (
        f"{host} is not a public address: the operator has to add its network to"
        " MNEME_ALERT_NETWORKS"
    )


def _webhook(channel: str) -> Webhook:
    try:
        parts = urlsplit(channel)
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise ValueError(f"{channel!r} is no URL: {error}") from error
    if parts.scheme not in ("https", "http"):
        raise ValueError(f"{channel!r} is neither https://…, http://… nor mailto:…")
    if not host:
        raise ValueError(f"{channel!r} names no host")
    if "@" in parts.netloc:
        raise ValueError("a webhook's URL may hold no user and no password: it is shown in lists")
    if port == 0:
        raise ValueError("0 is no port")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
        host.encode("ascii")
    except UnicodeError as error:
        raise ValueError(f"{host!r} is no name of a host") from error
    if "%" in host or any(len(label) > 63 for label in host.split(".")) or len(host) > 253:
        raise ValueError(f"{host!r} is no name of a host")
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise ValueError("the path must be written in ASCII, other characters as %XX")
    return Webhook(secure, host, port or (443 if secure else 80), path)


def recipients_of(text: str) -> frozenset[str]:
    """Return the addresses and domains that a setting lists.

    Raises:
        ValueError: one is neither; the message says which.
    """
    asked = [one.lower() for one in _listed(text)]
    for one in asked:
        if not _MAIL.fullmatch(f"x{one}" if one.startswith("@") else one):
            raise ValueError(f"{one!r} is neither an address nor a domain like @example.com")
    return frozenset(asked)


def networks_of(text: str) -> tuple[Network, ...]:
    """Return the networks that a setting lists.

    Raises:
        ValueError: one is none; the message says which.
    """
    return tuple(map(ipaddress.ip_network, _listed(text)))


def _listed(text: str) -> list[str]:
    return [one for one in (part.strip() for part in text.split(",")) if one]
