"""Answers to requests."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
import orjson
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mneme_server.edge.http import errors
from mneme_server.edge.http.request import Request

JSON = "application/json"
LINES = "application/x-ndjson"


def answer(
    request: Request,
    body: bytes,
    code: int = 200,
    kind: str = JSON,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an answer; what `headers` say replaces what is said of every answer."""
    usual = {
        "content-type": kind,
        "x-request-id": request.request_id,
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    return Response(body, code, {**usual, **(headers or {})})


async def begin(request: Request, kind: str) -> None:
    """Send the head of an answer in parts."""
    request.begun = True
    whole = answer(request, b"", kind=kind, headers={"x-accel-buffering": "no"})
    del whole.headers["content-length"]
    start = {"type": "http.response.start", "status": 200, "headers": whole.raw_headers}
    await request.send(start)


def failed(request: Request, status: Status) -> Response:
    """Return how a call failed, as REST has it."""
    body = orjson.dumps(errors.rest_body(status))
    return answer(request, body, errors.http_status(status), headers=errors.headers_of(status))


def refused(request: Request, refusal: HTTPException) -> Response:
    """Return why a request is no call at all."""
    code = refusal.status_code
    status = errors.plain_status(grpc.StatusCode.INVALID_ARGUMENT, refusal.detail)
    return answer(
        request, orjson.dumps(errors.rest_body(status, code)), code, JSON, refusal.headers
    )
