"""The settings that HTTP is served by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mneme_server.common.address import Network


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to serve.

    Args:
        listen: `host:port`; port 0 picks a free one.
        by_default: whether nobody chose the address; then a port that is taken is left to whoever
            has it.
        max_message_bytes: the largest body.
        auth_required: whether a call must carry a key.
        origins: of pages that may read answers.
        proxies: networks from which any number of connections may come.
        certificate, key: PEM files; None serves plaintext.
        client_ca: clients must show a certificate that it signed.
    """

    listen: str
    by_default: bool
    max_message_bytes: int
    auth_required: bool
    origins: tuple[str, ...] = ()
    proxies: tuple[Network, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
