"""Addresses to listen on."""

from __future__ import annotations


class ListenError(Exception):
    """An address cannot be listened on. The message names the setting and says why."""

    def __init__(self, setting: str, address: str, why: str) -> None:
        super().__init__(f"cannot listen on {address}: {why}; choose another {setting}")


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


def is_unix(address: str) -> bool:
    """Tell whether the address is a Unix socket's."""
    return address.startswith("unix:")
