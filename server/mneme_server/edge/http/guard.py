"""The guard of a server without keys: of browsers it takes the requests of its own pages alone.

Any web page may send requests to a server on the same machine, and a name that is made to point to
127.0.0.1 makes such a page's origin look like the server's (DNS rebinding). Where a key is asked
for, such a page has none.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from mneme._core.named import short

from mneme_server.common.address import is_loopback, join_host_port
from mneme_server.common.errors import PermissionDenied, Reason
from mneme_server.edge.http.request import Request

_SAME = ("", "same-origin", "none")


def check_host(request: Request) -> None:
    """Refuse a request that came under a name which is not this machine's own.

    Raises:
        PermissionDenied: it did.
    """
    host = request.header("host")
    if not _names_this_machine(host):
        raise PermissionDenied(
            f"the server takes calls without a key only as localhost or 127.0.0.1, not as"
            f" {short(host)!r}",
            reason=Reason.API_KEY_MISSING,
        )


def check_origin(request: Request, origins: Collection[str]) -> None:
    """Refuse a request that a page of another origin may have sent, unless the origin is named.

    Raises:
        PermissionDenied: it may.
    """
    check_host(request)
    host = request.header("host")
    origin = request.header("origin")
    if origin in origins and origin:
        return
    own = not origin or _netloc(origin) == host.lower()
    if not own or request.header("sec-fetch-site") not in _SAME:
        raise PermissionDenied(
            "without keys, the server takes no calls from pages of other origins; name the origin"
            " in MNEME_HTTP_ORIGINS, or ask for keys",
            reason=Reason.API_KEY_MISSING,
        )


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _names_this_machine(host: str) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname is not None and is_loopback(join_host_port(parts.hostname, 1))
    except ValueError:
        return False
