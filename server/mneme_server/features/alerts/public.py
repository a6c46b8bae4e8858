"""Which addresses are public: what IANA's tables of special-purpose addresses say, and no more.

https://www.iana.org/assignments/iana-ipv4-special-registry
https://www.iana.org/assignments/iana-ipv6-special-registry

Python's own `is_global` knows the tables of the day when it was released.
"""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

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
