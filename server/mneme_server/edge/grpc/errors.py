"""The one table from the domain's errors to statuses on the wire, and the fields that they name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import (  # type: ignore[import-untyped]
    BadRequest,
    ErrorInfo,
    RetryInfo,
)
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme._core.named import short
from mneme.v1 import errors_pb2

from mneme_server.common.errors import (
    Aborted,
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    MnemeError,
    NotFound,
    PermissionDenied,
    Reason,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    WorkFailed,
)
from mneme_server.edge.grpc.room import short_of_memory
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable

DOMAIN = "mneme.v1"
DETAILS_KEY = "grpc-status-details-bin"
_PREFIX = "ERROR_REASON_"
INTERNAL_REASON = "INTERNAL_ERROR"
_DEFAULT_RETRY_S = 1.0
_PATH = 500
"""Characters of a field's path, and of a fact beside an error: keys in it may be a caller's."""
_MESSAGE_BYTES = 1_600
"""A status's message at most, as it travels. All trailers together may take 8 KiB: beyond that
clients drop the status (`grpc.max_metadata_size`), and the message travels three times: by itself,
and in Base64 in the details, whole and as descriptions of violations."""
_VIOLATION_BYTES = 40
"""What a violation takes in the details beside its field and its text."""
_UNQUOTED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")

CODES: Mapping[type[MnemeError], grpc.StatusCode] = {
    InvalidArgument: grpc.StatusCode.INVALID_ARGUMENT,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
    NotFound: grpc.StatusCode.NOT_FOUND,
    AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    FailedPrecondition: grpc.StatusCode.FAILED_PRECONDITION,
    Aborted: grpc.StatusCode.ABORTED,
    ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    DataLoss: grpc.StatusCode.DATA_LOSS,
    WorkFailed: grpc.StatusCode.INTERNAL,
}

_RETRYABLE = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class Violation:
    """A field that breaks a rule: its path, what is wrong, and why in machine-readable form."""

    field: str
    message: str
    reason: Reason


class InvalidRequest(InvalidArgument):
    """Fields of a request break their rules; as many are named as an answer can carry.

    Args:
        violations: at least one. The first one's reason is the error's.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        named = _first_few(
            [f"{v.field}: {v.message}" if v.field else v.message for v in violations]
        )
        left = len(violations) - len(named)
        super().__init__(
            "; ".join(named) + (f"; and {left} more" if left else ""),
            reason=violations[0].reason,
            field=violations[0].field,
        )
        self.violations = tuple(violations[: len(named)])


def _first_few(texts: Sequence[str]) -> list[str]:
    """Return the first texts that fit into a status's message, at least one."""
    taken: list[str] = []
    room = _MESSAGE_BYTES
    for text in texts:
        room -= _travels_as(text) + _VIOLATION_BYTES
        if taken and room < 0:
            break
        taken.append(text)
    return taken


def _travels_as(text: str) -> int:
    """Return a text's bytes as a status's message: what is not printable ASCII takes three each."""
    return len(quote(text, safe=_UNQUOTED))


def _cut(message: str) -> str:
    """Return a message, cut off where an answer cannot carry all of it."""
    message = message[: _MESSAGE_BYTES + 1]  # A character takes a byte at least.
    if _travels_as(message) <= _MESSAGE_BYTES:
        return message
    places = range(len(message))
    keep = bisect_right(places, _MESSAGE_BYTES - 3, key=lambda n: _travels_as(message[:n])) - 1
    return message[:keep] + "..."


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed: `status` travels; `code` and `reason` are also for logs and metrics."""

    status: Status
    code: grpc.StatusCode
    reason: str


def failure_of(error: BaseException, request_id: str) -> Failure | None:
    """Return what to tell the caller; None for errors that are bugs."""
    mapped = _from_embedding(error) if isinstance(error, EmbeddingError) else error
    if isinstance(error, MemoryError):
        mapped = short_of_memory()
    if not isinstance(mapped, MnemeError):
        return None
    code = _code(mapped)
    details: list[Message] = [_info(mapped.reason.name, mapped.metadata, request_id)]
    violations = _violations(mapped)
    if violations:
        details.append(BadRequest(field_violations=violations))
    if code in _RETRYABLE or mapped.retry_after_s is not None:
        details.append(_retry(mapped.retry_after_s))
    return _failure(code, mapped.reason.name, mapped.message, details)


def internal_failure(error_id: str, request_id: str) -> Failure:
    """Return what a caller learns of a bug: an id that the log carries too, and nothing else."""
    return _failure(
        grpc.StatusCode.INTERNAL,
        INTERNAL_REASON,
        f"internal error {error_id}; the server's log has the details under this id",
        [_info(INTERNAL_REASON, {"error_id": error_id}, request_id)],
    )


def _code(error: MnemeError) -> grpc.StatusCode:
    if isinstance(error, _BackendError):
        return grpc.StatusCode.INTERNAL
    return next(CODES[c] for c in type(error).__mro__ if c in CODES)


class _BackendError(MnemeError):
    """The embedding backend failed for good; not the caller's fault, and no bug either."""

    default_reason = Reason.EMBEDDING_FAILED


def _from_embedding(error: EmbeddingError) -> MnemeError:
    if isinstance(error, ModelUnavailable):
        return FailedPrecondition(error.message, reason=Reason.MODEL_NOT_LOADED)
    if error.retryable:
        return Unavailable(
            error.message, reason=Reason.EMBEDDING_FAILED, retry_after_s=error.retry_after_s
        )
    return _BackendError(error.message)


def _violations(error: MnemeError) -> list[BadRequest.FieldViolation]:
    if isinstance(error, InvalidRequest):
        found = error.violations
    elif error.field is not None:
        found = (Violation(error.field, error.message, error.reason),)
    else:
        return []
    return [
        BadRequest.FieldViolation(
            field=short(v.field, _PATH), description=_cut(v.message), reason=v.reason.name
        )
        for v in found
    ]


def _info(reason: str, metadata: Mapping[str, str], request_id: str) -> ErrorInfo:
    errors_pb2.ErrorReason.Value(_PREFIX + reason)  # A reason that the API does not list is a bug.
    told = {key: short(value, _PATH) for key, value in metadata.items()}
    return ErrorInfo(reason=reason, domain=DOMAIN, metadata=told | {"request_id": request_id})


def _retry(retry_after_s: float | None) -> RetryInfo:
    info = RetryInfo()
    delay = _DEFAULT_RETRY_S if retry_after_s is None else max(0.0, retry_after_s)
    info.retry_delay.FromMilliseconds(round(delay * 1000))
    return info


def _failure(
    code: grpc.StatusCode, reason: str, message: str, details: Sequence[Message]
) -> Failure:
    status = Status(code=code.value[0], message=_cut(message))
    for detail in details:
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return Failure(status, code, reason)


@contextmanager
def fields(**paths: str) -> Iterator[None]:
    """Name the request's fields in errors of the use case that is called inside.

        with fields(id="lessons[{item}].id"):
            self._lessons.import_(…)

    Args:
        paths: by the use case's word for it, the path in the request; `{item}` is the error's.
    """
    try:
        yield
    except MnemeError as error:
        if error.field in paths:
            error.field = paths[error.field].format(item=error.item)
        raise
