"""Between `google.protobuf.Timestamp` and microseconds since 1970."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import InvalidArgument, Reason

_LIMIT_US = 2**62
"""Bounds of a filter's times: beyond every time that can be stored, and within 64 bits."""

_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z, the last one that a Timestamp may hold.
_NANOS = 1_000_000_000


def to_timestamp(microseconds: int) -> Timestamp:
    """Return the Timestamp of microseconds since 1970."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)


def stored_time(message: Message, field: str, prefix: str = "") -> int | None:
    """Return the time in a field that is to be kept, in microseconds since 1970; None if unset.

    What is finer than a microsecond is cut off. `prefix` is the path of the message in its request.

    Raises:
        InvalidArgument: OUT_OF_RANGE, it is not between 1970 and 9999, or no time at all.
    """
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    if not (0 <= timestamp.seconds <= _LAST_SECOND and 0 <= timestamp.nanos < _NANOS):
        path = f"{prefix}.{field}" if prefix else field
        raise InvalidArgument(
            f"{path}: must be a time from 1970 to 9999, with nanos from 0 to 999,999,999",
            reason=Reason.OUT_OF_RANGE,
            field=path,
        )
    return timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000


def stored_duration(message: Message, field: str, prefix: str = "") -> int | None:
    """Return the duration in a field, in microseconds; None when it is unset.

    Raises:
        InvalidArgument: OUT_OF_RANGE, its seconds and nanoseconds do not make a duration.
    """
    if not message.HasField(field):
        return None
    duration: Duration = getattr(message, field)
    if not (duration.seconds >= 0 and 0 <= duration.nanos < _NANOS):
        path = f"{prefix}.{field}" if prefix else field
        raise InvalidArgument(
            f"{path}: must be at least 0, with nanos from 0 to 999,999,999",
            reason=Reason.OUT_OF_RANGE,
            field=path,
        )
    return duration.seconds * MICROSECONDS + duration.nanos // 1_000


def time_range(message: Message) -> tuple[int | None, int | None]:
    """Return `start_time` (inclusive) and `end_time` (exclusive) of a request.

    Raises:
        InvalidArgument: the range ends before it starts.
    """
    start, end = _bound(message, "start_time"), _bound(message, "end_time")
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            "end_time is before start_time", reason=Reason.INVALID_FILTER, field="end_time"
        )
    return start, end


def _bound(message: Message, field: str) -> int | None:
    """Return the time of a filter; those that nothing can have are as good as the nearest one."""
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    microseconds = timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000
    return max(-_LIMIT_US, min(_LIMIT_US, microseconds))
