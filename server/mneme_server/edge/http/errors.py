"""Errors over HTTP: the statuses, and the bodies of REST and Connect."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.common.errors import MnemeError
from mneme_server.edge.grpc.errors import failure_of, internal_failure
from mneme_server.edge.http.writing import writer_of

HTTP_STATUS: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNKNOWN: 500,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
"""As `google.rpc.Code` and Connect's protocol have them."""

CODES = {code.value[0]: code for code in grpc.StatusCode}


def status_of(error: MnemeError, request_id: str) -> Status:
    """Return the status of an error that no call was needed for."""
    failure = failure_of(error, request_id)
    return (failure or internal_failure("", request_id)).status


def plain_status(code: grpc.StatusCode, message: str) -> Status:
    """Return a status without details."""
    return Status(code=code.value[0], message=message)


def http_status(status: Status) -> int:
    """Return the HTTP status."""
    return HTTP_STATUS[CODES[status.code]]


def headers_of(status: Status) -> Mapping[str, str]:
    """Return the headers that go with an error."""
    headers: dict[str, str] = {}
    for detail in status.details:
        if detail.Is(RetryInfo.DESCRIPTOR):
            retry = RetryInfo()
            detail.Unpack(retry)
            seconds = math.ceil(retry.retry_delay.ToTimedelta().total_seconds())
            headers["retry-after"] = str(seconds)
    if CODES[status.code] is grpc.StatusCode.UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    return headers


def rest_body(status: Status, code: int | None = None) -> dict[str, Any]:
    """Return REST's body, which is that of Google's APIs: code, status, message and details."""
    return {
        "error": {
            "code": code or http_status(status),
            "status": CODES[status.code].name,
            "message": status.message,
            "details": _details(status),
        }
    }


def status_body(status: Status) -> dict[str, Any]:
    """Return a status as a body of its own."""
    return {"code": status.code, "message": status.message, "details": _details(status)}


def connect_body(status: Status) -> dict[str, Any]:
    """Return the body of Connect's protocol."""
    code = CODES[status.code].name.lower().replace("cancelled", "canceled")
    body: dict[str, Any] = {"code": code, "message": status.message}
    if status.details:
        body["details"] = [
            {
                "type": packed.TypeName(),
                "value": base64.b64encode(packed.value).decode().rstrip("="),
                "debug": debug,
            }
            for packed, debug in zip(status.details, _details(status), strict=True)
        ]
    return body


def _details(status: Status) -> Sequence[dict[str, Any]]:
    write = writer_of(status.DESCRIPTOR)
    details: Sequence[dict[str, Any]] = _without_null(write(status)["details"])
    return details


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value
