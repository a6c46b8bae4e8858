"""Sends answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import grpc
import orjson
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.edge.http import errors
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.errors import Headers
from mneme_server.edge.http.exchange import Receive, Send
from mneme_server.edge.http.request import Request

JSON = "application/json"
LINES = "application/x-ndjson"
CONNECTION = "mneme.connection"
"""What an ASGI scope has its `Connection` under."""


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


class Answer:
    """Sends the answer to a request."""

    def __init__(self, request: Request, send: Send) -> None:
        self._request = request
        self.raw_send = send
        self.begun = False

    async def begin(
        self, code: int, kind: str, headers: Headers | None = None, length: int | None = None
    ) -> None:
        """Send the head; what `headers` say replaces what is said of every answer."""
        self.begun = True
        own = {name for name, _ in headers or []}
        usual = [
            ("content-type", kind),
            ("x-request-id", self._request.request_id),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
        ]
        head = [*(one for one in usual if one[0] not in own), *(headers or [])]
        if length is not None:
            head.append(("content-length", str(length)))
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head]
        await self.raw_send({"type": "http.response.start", "status": code, "headers": encoded})

    async def send(
        self, code: int, body: bytes, kind: str = JSON, headers: Headers | None = None
    ) -> None:
        """Send all of it."""
        await self.begin(code, kind, headers, len(body))
        await self.raw_send({"type": "http.response.body", "body": body})

    async def failed(self, status: Status) -> None:
        """Send how a call failed, as REST has it."""
        body = orjson.dumps(errors.rest_body(status))
        await self.send(errors.http_status(status), body, headers=errors.headers_of(status))

    async def refused(
        self, code: int, message: str, *, close: bool = False, headers: Headers | None = None
    ) -> None:
        """Send why a request is no call at all."""
        status = errors.plain_status(grpc.StatusCode.INVALID_ARGUMENT, message)
        more = [*(headers or []), *([("connection", "close")] if close else [])]
        await self.send(code, orjson.dumps(errors.rest_body(status, code)), headers=more)


def ended_with(call: HttpCall) -> Status:
    """Return the status of a call that failed."""
    return call.status() or errors.plain_status(grpc.StatusCode.INTERNAL, "internal error")


def late(call: HttpCall) -> Status | None:
    """Return the status of a call that was not answered in time; None when its caller left."""
    remaining = call.time_remaining()
    if remaining is None or remaining > 0:
        return None
    return errors.plain_status(
        grpc.StatusCode.DEADLINE_EXCEEDED, "the call was not answered in the time that it was given"
    )


@dataclass(frozen=True, slots=True)
class Peer:
    """A request, and how to answer it."""

    request: Request
    receive: Receive
    answer: Answer
    connection: Connection
