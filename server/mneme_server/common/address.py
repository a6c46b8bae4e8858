"""Network addresses as settings write them: `host:port`, `[v6]:port`, `unix:path`."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network


def split_host_port(address: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[v6]:port`.

    Raises:
        ValueError: it is neither.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not host:port with a port of 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if not host or ":" in host:
        raise ValueError(f"{address!r} is not host:port; IPv6 goes in brackets, as [::1]:50051")
    return host, int(port)


def join_host_port(host: str, port: int) -> str:
    """Return `host:port`, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def networks_in(text: str) -> tuple[Network, ...]:
    """Return the addresses and networks of a list with commas, as `10.0.0.7, 10.1.0.0/16`.

    Raises:
        ValueError: one is neither.
    """
    return tuple(ip_network(one.strip(), strict=False) for one in text.split(",") if one.strip())


def is_unix(address: str) -> bool:
    """Tell whether the address is a Unix socket's."""
    return address.startswith("unix:")


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach the address.

    Names other than localhost are not resolved: what they mean may change.
    """
    if is_unix(address):
        return True
    host, _ = split_host_port(address)
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class ListenError(Exception):
    """The server cannot listen as it is set up. The message names the setting and says why."""

    def __init__(self, setting: str, value: str, why: str) -> None:
        super().__init__(f"{setting}={value} cannot be used: {why}")
