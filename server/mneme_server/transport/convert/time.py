"""Between `google.protobuf.Timestamp` and microseconds since 1970."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import InvalidArgument, Reason

_LIMIT_US = 2**62
"""Bounds of a filter's times: beyond every time that can be stored, and within 64 bits."""


def from_timestamp(timestamp: Timestamp) -> int:
    """Return microseconds since 1970; what is finer is cut off."""
    microseconds = timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000
    return max(-_LIMIT_US, min(_LIMIT_US, microseconds))


def to_timestamp(microseconds: int) -> Timestamp:
    """Return the Timestamp of microseconds since 1970."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)


def optional_time(message: Message, field: str) -> int | None:
    """Return the time in a field, in microseconds since 1970; None when it is unset."""
    return from_timestamp(getattr(message, field)) if message.HasField(field) else None


def time_range(message: Message) -> tuple[int | None, int | None]:
    """Return `start_time` (inclusive) and `end_time` (exclusive) of a request.

    Raises:
        InvalidArgument: the range ends before it starts.
    """
    start, end = optional_time(message, "start_time"), optional_time(message, "end_time")
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            "end_time is before start_time", reason=Reason.INVALID_FILTER, field="end_time"
        )
    return start, end
