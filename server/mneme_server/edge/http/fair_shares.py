"""Shares of what tenants, or peers, hold together, so that none can take all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import structlog

from mneme_server.common.address import Network

_V6_BITS = 64
"""Of an IPv6 address: the rest a peer chooses as it likes."""
_log = structlog.get_logger(__name__)


class Shares:
    """Counts who holds how much of something that there is so much of.

    Nobody gets more than is left then: half of it while alone, a third beside another that takes as
    much, and so on. So there is always room for one more, whoever came before. Changed by one
    thread; others may look.

    Args:
        total: of whatever is counted.
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._held: Counter[str] = Counter()

    def held(self, who: str) -> int:
        """Return how much one holds."""
        return self._held[who]

    def has_room(self, who: str, more: int = 0) -> bool:
        """Tell whether one may hold so much more."""
        return self._held[who] + more <= self.left - more

    def change(self, who: str, by: int) -> None:
        """Count more for one, or less."""
        self.left -= by
        self._held[who] += by
        if not self._held[who]:
            del self._held[who]

    def take(self, who: str, more: int) -> bool:
        """Count more for one where it may hold that; tell whether it may."""
        if not self.has_room(who, more):
            return False
        self.change(who, more)
        return True


class OpenConnections:
    """Counts the connections that are open, by where they come from.

    From no place come more than are left then, so that a stranger who opens all that it can leaves
    half of them to others; but a proxy's are all its callers' and may be as many as there are.

    Args:
        most: connections at once.
        proxies: the networks of proxies.
    """

    def __init__(self, most: int, proxies: Sequence[Network] = ()) -> None:
        self._shares = Shares(most)
        self._proxies = tuple(proxies)
        self._told: set[str] = set()

    def enter(self, host: str | None) -> bool:
        """Count one more; tell whether it may stay. One that may not is not counted."""
        place, is_proxy = self._place(host)
        if not is_proxy and self._shares.take(place, 1):
            self._told.discard(place)
            return True
        if is_proxy and self._shares.left > 0:
            self._shares.change(place, 1)
            return True
        if place not in self._told:  # Once, not for each: they may be very many.
            self._told.add(place)
            _log.warning(
                "too many connections over HTTP from one place; its next ones are refused. If it is"
                " a proxy, name it in MNEME_PROXIES",
                place=place, connections=self._shares.held(place),
            )  # fmt: skip
        return False

    def leave(self, host: str | None) -> None:
        """Count one less."""
        place, _ = self._place(host)
        self._shares.change(place, -1)
        if not self._shares.held(place):
            self._told.discard(place)

    def _place(self, host: str | None) -> tuple[str, bool]:
        """Return whose the address is, as far as can be told, and whether that is a proxy."""
        try:
            address = ip_address((host or "").partition("%")[0])
        except ValueError:  # A socket without an address has but one machine behind it.
            return "", True
        address = _plain(address)
        if any(address in network for network in self._proxies):
            return str(address), True
        if isinstance(address, IPv6Address):
            return str(IPv6Network((address, _V6_BITS), strict=False)), False
        return str(address), False


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return an IPv4 address as such, also where a socket for both writes it as an IPv6 one."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
