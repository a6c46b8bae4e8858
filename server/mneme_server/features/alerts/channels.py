"""Channels of rules, as URLs: those that the operator allows, and which addresses are public.

Public is what the tables of special-purpose addresses of IANA say, and no more:
https://www.iana.org/assignments/iana-ipv4-special-registry
https://www.iana.org/assignments/iana-ipv6-special-registry
The standard library has `is_global`, which knows the tables of the day when it was released.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from mneme_server.common.errors import InvalidArgument

_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_NOT_PUBLIC: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",  # With the anycast addresses in it, which lead to one's own network.
            "192.0.2.0/24",
            "192.88.99.0/24",  # Of 6to4's relays, which lead anywhere.
            "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "224.0.0.0/4",  # Multicast.
            "240.0.0.0/4",
            "2001::/23",  # With Teredo, behind whose addresses others of IPv4 stand.
            "2001:db8::/32",
            "2002::/16",  # 6to4: likewise.
            "3fff::/20",
        ),
    )
)  # fmt: skip
_PUBLIC_ALL_THE_SAME: tuple[Network, ...] = tuple(
    map(ipaddress.ip_network, ("2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28"))
)
"""In networks that are not public, those that the tables call globally reachable."""
_UNICAST = ipaddress.ip_network("2000::/3")
"""The part of IPv6 that addresses are given from. Outside of it are loopback, what embeds addresses
of IPv4, what is of a site or a link, multicast, and what is nobody's yet."""


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
class AllowedChannels:
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


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the public internet, and leads to nothing else.

    One that embeds another address (NAT64, 6to4, Teredo, IPv4-compatible) is not: where it leads is
    up to whoever translates it. Whether an address of IPv4 is written as one of IPv6
    (`::ffff:a.b.c.d`) makes no difference.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.scope_id is not None or address not in _UNICAST:
            return False
    if any(address in network for network in _PUBLIC_ALL_THE_SAME):
        return True
    return not any(address in network for network in _NOT_PUBLIC)
