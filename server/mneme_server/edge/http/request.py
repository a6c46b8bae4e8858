"""An HTTP request as it is read before anybody is asked to serve it."""

from __future__ import annotations

import re
import secrets
from collections.abc import MutableMapping
from typing import Any

from mneme_server.common.address import join_host_port
from mneme_server.common.errors import InvalidArgument, Reason

_MAX_REQUEST_ID = 128
_GRPC_TIMEOUT = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_CONNECT_TIMEOUT = re.compile(r"\d{1,10}")


class UnknownEncoding(Exception):
    """A body is packed by something else than gzip."""


class Request:
    """The head of a request.

    Args:
        scope: as ASGI has it.
    """

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        self.verb: str = scope["method"]
        self.raw_path = scope["raw_path"].decode("ascii", "replace")
        self.query: bytes = scope["query_string"]
        self.headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        self._by_name: dict[str, str] = dict(self.headers)
        client = scope.get("client")
        self.peer = "http:" + (join_host_port(client[0], client[1]) if client else "unknown")
        given = self.header("x-request-id")
        safe = given.isascii() and given.isprintable() and 0 < len(given) <= _MAX_REQUEST_ID
        self.request_id = given if safe else secrets.token_hex(8)
        if not safe:
            self.headers = [one for one in self.headers if one[0] != "x-request-id"]
            self.headers.append(("x-request-id", self.request_id))

    def header(self, name: str) -> str:
        """Return a header, by its name in lower case; "" without it."""
        return self._by_name.get(name, "")

    @property
    def content_type(self) -> str:
        """The type of the body, without its parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def is_packed(self) -> bool:
        """Whether the body is packed by gzip.

        Raises:
            UnknownEncoding: it is packed by something else.
        """
        encoding = self.header("content-encoding").strip().lower()
        if encoding not in ("", "identity", "gzip"):
            raise UnknownEncoding
        return encoding == "gzip"

    @property
    def accepts(self) -> str:
        """What the peer would like to get."""
        return self.header("accept").lower()

    @property
    def body_bytes(self) -> int | None:
        """How long the body is, as its head says; None where it does not."""
        length = self.header("content-length")
        if length.isascii() and length.isdigit():
            return int(length[:18])
        return None if self.header("transfer-encoding") else 0

    def timeout_s(self) -> float | None:
        """Return how long the peer waits, from `Grpc-Timeout`; None when it does not say.

        Raises:
            InvalidArgument: it says what is no time.
        """
        given = self.header("grpc-timeout")
        if not given:
            return None
        found = _GRPC_TIMEOUT.fullmatch(given)
        if found is None:
            raise _no_time("Grpc-Timeout", given, "a number and H, M, S, m, u or n, as in 500m")
        return int(found[1]) * _UNITS[found[2]]

    def connect_timeout_s(self) -> float | None:
        """Return how long the peer waits, from `Connect-Timeout-Ms`; None when it does not say.

        Raises:
            InvalidArgument: it says what is no time.
        """
        given = self.header("connect-timeout-ms")
        if not given:
            return None
        if not _CONNECT_TIMEOUT.fullmatch(given):
            raise _no_time("Connect-Timeout-Ms", given, "a number of milliseconds")
        return int(given) / 1000


def _no_time(header: str, given: str, wanted: str) -> InvalidArgument:
    return InvalidArgument(
        f"{header}: {given[:40]!r} is not {wanted}", reason=Reason.INVALID_PARAMETER, field=header
    )
