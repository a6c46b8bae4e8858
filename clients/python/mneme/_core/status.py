"""Turns gRPC's errors into Mneme's, for both clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc import ChannelConnectivity, RpcError, StatusCode

from mneme._core.cancelling import CLOSED
from mneme._core.unreachable import why
from mneme.errors import BY_CODE, FieldViolation, MnemeError, UnknownError

DETAILS_KEY = "grpc-status-details-bin"
# The states of a channel without a connection that it is trying to make.
DOWN = frozenset({
    ChannelConnectivity.IDLE, ChannelConnectivity.CONNECTING, ChannelConnectivity.TRANSIENT_FAILURE
})  # fmt: skip
"""States of a channel when a call's time is up and no server is there; it is idle when the time was
too short to begin connecting."""
_NO_SERVER = "no Mneme server answers at {address}"
_NO_ROOM = "the server at {address} had no room for the call on this connection"
# REFUSED_STREAM, RFC 9113, sections 7 and 8.7.
_REFUSED = re.compile(r"RST_STREAM with error code 7\b")
_TOO_LARGE = re.compile(
    r"(?P<at>CLIENT|SERVER): (?P<did>Sent|Received) message larger than max "
    r"\((?P<size>\d+) vs\. (?P<most>\d+)\)"
)


def error_of(failure: RpcError, address: str, is_down: Callable[[], bool]) -> MnemeError:
    """The typed error behind a failed call.

    Args:
        failure: what grpc or grpc.aio raised.
        address: the server's address, for the message when nothing answered.
        is_down: whether the channel has no connection; asked when the time was up, since a
            server that is not there is the reason then, however short the time was.
    """
    call: Any = failure
    code = call.code() if hasattr(call, "code") else StatusCode.UNKNOWN
    message = (call.details() if hasattr(call, "details") else str(failure)) or code.name
    details = _details(call)
    info = details.get(error_details_pb2.ErrorInfo)
    if info is None and code is StatusCode.DEADLINE_EXCEEDED and is_down():
        code, message = StatusCode.UNAVAILABLE, "timeout"
    unprocessed = info is None and _REFUSED.search(message) is not None
    if unprocessed:
        code, message = StatusCode.UNAVAILABLE, _NO_ROOM.format(address=address)
    elif info is None and code is StatusCode.UNAVAILABLE:
        message = f"{_NO_SERVER.format(address=address)}: {why(message)}"
    elif info is None:
        message = _in_words(code, message)
    return _error(code, message, details, unprocessed)


def _in_words(code: StatusCode, message: str) -> str:
    """What gRPC itself says of a call that it ended; other messages as they are."""
    if code is StatusCode.DEADLINE_EXCEEDED:
        return "the time for the call is over"
    if code is StatusCode.CANCELLED:
        return CLOSED if "Channel closed" in message else "the call was cancelled"
    found = _TOO_LARGE.search(message)
    if found is None:
        return message
    is_answer = (found["at"] == "CLIENT") == (found["did"] == "Received")
    what = "answer" if is_answer else "request"
    return f"the {what} takes {found['size']} bytes, at most {found['most']} are allowed"


def error_in(status: status_pb2.Status) -> MnemeError:
    """The typed error that an answer holds, e.g. of an operation that failed."""
    return _error(_CODES.get(status.code, StatusCode.UNKNOWN), status.message, _unpacked(status))


_CODES = {code.value[0]: code for code in StatusCode}


def _error(
    code: StatusCode, message: str, details: dict[type, Any], unprocessed: bool = False
) -> MnemeError:
    info = details.get(error_details_pb2.ErrorInfo)
    request = details.get(error_details_pb2.BadRequest)
    retry = details.get(error_details_pb2.RetryInfo)
    return BY_CODE.get(code, UnknownError)(
        message,
        code=code,
        reason=info.reason if info else "",
        violations=[
            FieldViolation(v.field, v.description, v.reason)
            for v in (request.field_violations if request else ())
        ],
        metadata=dict(info.metadata) if info else {},
        retry_after=retry.retry_delay.ToTimedelta().total_seconds() if retry else None,
        unprocessed=unprocessed,
    )


def _details(call: Any) -> dict[type, Any]:
    """The status's details by their class; what is not understood is left out."""
    metadata = call.trailing_metadata() if hasattr(call, "trailing_metadata") else None
    found: dict[type, Any] = {}
    for key, value in metadata or ():
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        try:
            status = status_pb2.Status.FromString(value)
        except DecodeError:
            continue
        found |= _unpacked(status)
    return found


def _unpacked(status: status_pb2.Status) -> dict[type, Any]:
    found: dict[type, Any] = {}
    for packed in status.details:
        for kind in (
            error_details_pb2.ErrorInfo,
            error_details_pb2.BadRequest,
            error_details_pb2.RetryInfo,
        ):
            detail = kind()
            if packed.Unpack(detail):
                found[kind] = detail
    return found
