"""An HTTP request, of which the head is there, and what it came on."""

from __future__ import annotations

import re
import secrets
from typing import Protocol, cast

import starlette.requests
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from mneme_server.common.address import join_host_port
from mneme_server.common.errors import InvalidArgument, Reason

CONNECTION = "mneme.connection"
"""What an ASGI scope has its `Connection` under."""
_MAX_REQUEST_ID = 128
_GRPC_TIMEOUT = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_CONNECT_TIMEOUT = re.compile(r"\d{1,10}")


class Connection(Protocol):
    """What a request came on, and its answer leaves on."""

    def abort(self) -> None:
        """Cut it."""
        ...

    def is_of(self, tenant_id: str) -> None:
        """Say whose the request is, and its answer."""
        ...

    def has_read(self) -> bool:
        """Tell whether its tenant has room for another answer. Any thread may ask."""
        ...


class Request(starlette.requests.Request):
    """A request. One that names itself by what cannot be logged gets another name.

    Args:
        scope, receive, send: as ASGI has them.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self.send = send
        self.begun = False
        """Whether an answer in parts was begun."""
        self.raw_path: str = scope["raw_path"].decode("ascii", "replace")
        headers = MutableHeaders(scope=scope)
        *_, given = "", *headers.getlist("x-request-id")
        safe = given.isascii() and given.isprintable() and 0 < len(given) <= _MAX_REQUEST_ID
        self.request_id = given if safe else secrets.token_hex(8)
        headers["x-request-id"] = self.request_id
        self.metadata = headers.items()
        """The headers, as a call has them."""
        self._by_name = dict(self.metadata)

    def header(self, name: str) -> str:
        """Return a header, by its name in lower case; "" without it. Of several the last counts, as
        of a call's metadata."""
        return self._by_name.get(name, "")

    @property
    def connection(self) -> Connection:
        """What it came on."""
        return cast(Connection, self.scope[CONNECTION])

    @property
    def peer(self) -> str:
        """Where it came from."""
        client = self.scope.get("client")
        return "http:" + (join_host_port(*client) if client else "unknown")

    def allow(self, *methods: str) -> None:
        """Refuse it if it has another method.

        Raises:
            HTTPException: it has.
        """
        if self.method not in methods:
            why = f"{self.raw_path} has {methods[0]}"
            raise HTTPException(405, why, {"allow": ", ".join(methods)})

    @property
    def content_type(self) -> str:
        """The type of the body, without its parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def is_packed(self) -> bool:
        """Whether the body is packed by gzip.

        Raises:
            HTTPException: it is packed by something else.
        """
        encoding = self.header("content-encoding").strip().lower()
        if encoding not in ("", "identity", "gzip"):
            raise HTTPException(
                415,
                "a body may be packed by gzip, or not at all",
                {"accept-encoding": "gzip", "connection": "close"},
            )
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
