"""The errors of the domain.

Capabilities and adapters raise these; the transport maps each class to a gRPC status and each
reason to the wire's `ErrorReason` in one table (`edge/grpc/errors.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any


class Reason(Enum):
    """Why a call failed; the names are those of `mneme.v1.ErrorReason` without its prefix."""

    INVALID_PARAMETER = auto()
    MISSING_REQUIRED_FIELD = auto()
    INVALID_TYPE = auto()
    OUT_OF_RANGE = auto()
    INVALID_FILTER = auto()
    API_KEY_MISSING = auto()
    API_KEY_INVALID = auto()
    SCOPE_MISSING = auto()
    NOT_FOUND = auto()
    ALREADY_EXISTS = auto()
    SESSION_NOT_FOUND = auto()
    CONSTRAINT_VIOLATION = auto()
    ETAG_MISMATCH = auto()
    RATE_LIMITED = auto()
    QUEUE_FULL = auto()
    TOO_MANY_STREAMS = auto()
    TOO_MANY_CALLS = auto()
    QUOTA_EXCEEDED = auto()
    DATABASE_ERROR = auto()
    SCHEMA_ERROR = auto()
    TRANSACTION_FAILED = auto()
    DATA_DAMAGED = auto()
    LOG_CHANGED = auto()
    EMBEDDING_FAILED = auto()
    MODEL_NOT_LOADED = auto()
    DIMENSION_MISMATCH = auto()
    ALGORITHM_NOT_SUPPORTED = auto()
    MODEL_NOT_TRAINED = auto()
    CONVERGENCE_FAILED = auto()
    INITIALIZATION_FAILED = auto()
    WORK_FAILED = auto()
    WORK_INTERRUPTED = auto()


class MnemeError(Exception):
    """An error with a reason that a caller can act on.

    Args:
        message: what is wrong and what to do, for the caller's eyes.
        reason: the machine-readable reason; each class has its usual one.
        field: what the caller gave that is at fault, if one thing is. A use case names it in its
            own words ("id"), a service by the path in its request ("events[3].id").
        item: which of several things given, from 0, where `field` is one of each.
        metadata: further facts for machines, e.g. how much of a stream was recorded.
        retry_after_s: when a retry may succeed, in seconds; None when it will not help.
    """

    default_reason: Reason

    def __init__(
        self,
        message: str,
        *,
        reason: Reason | None = None,
        field: str | None = None,
        item: int | None = None,
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.field = field
        self.item = item
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s


class InvalidArgument(MnemeError):
    """The request is wrong whatever the state of the server."""

    default_reason = Reason.INVALID_PARAMETER


class Unauthenticated(MnemeError):
    """Nobody knows who is calling."""

    default_reason = Reason.API_KEY_INVALID


class PermissionDenied(MnemeError):
    """The caller may not do this."""

    default_reason = Reason.SCOPE_MISSING


class NotFound(MnemeError):
    """No such resource in the caller's tenant (another tenant's looks the same)."""

    default_reason = Reason.NOT_FOUND


class AlreadyExists(MnemeError):
    """The id is taken by a resource with other content."""

    default_reason = Reason.ALREADY_EXISTS


class FailedPrecondition(MnemeError):
    """The state does not allow it; retrying will not help until someone changes the state."""

    default_reason = Reason.CONSTRAINT_VIOLATION


class Aborted(MnemeError):
    """What the caller read has changed since; it must read again before it decides."""

    default_reason = Reason.ETAG_MISMATCH


class ResourceExhausted(MnemeError):
    """A quota is used up; `retry_after_s` says when to try again."""

    default_reason = Reason.QUOTA_EXCEEDED


class Unavailable(MnemeError):
    """It may succeed when tried again after `retry_after_s`."""

    default_reason = Reason.TRANSACTION_FAILED


class DataLoss(MnemeError):
    """What is stored cannot be read back as it was written; only a backup helps.

    `metadata` names what is damaged, as far as it is known: "kind" and "id".
    """

    default_reason = Reason.DATA_DAMAGED


class WorkFailed(MnemeError):
    """Work beside the calls ended without a result, and it is not the caller's fault: its process
    was killed, or it met a bug, which the log has."""

    default_reason = Reason.WORK_FAILED


def is_panic(error: BaseException) -> bool:
    """Tell whether a library written in Rust panicked.

    Such a panic arrives as an exception that is no `Exception` and has no importable class, so that
    it passes whatever catches errors.
    """
    return type(error).__name__ == "PanicException"


def is_failure(error: BaseException) -> bool:
    """Tell whether something failed, rather than that the interpreter is told to stop."""
    return isinstance(error, Exception) or is_panic(error)


def facts_of(error: MnemeError) -> dict[str, Any]:
    """Return, as JSON, what `error_of` makes the error of again: in another process, or later."""
    kind = next(c for c in type(error).__mro__ if c.__module__ == __name__)
    return {
        "kind": kind.__name__,
        "message": error.message,
        "reason": error.reason.name,
        "field": error.field,
        "metadata": error.metadata,
        "retry_after_s": error.retry_after_s,
    }


def error_of(facts: Mapping[str, Any]) -> MnemeError:
    """Return the error that `facts_of` described."""
    kind: type[MnemeError] = globals()[facts["kind"]]
    return kind(
        facts["message"],
        reason=Reason[facts["reason"]],
        field=facts["field"],
        metadata=facts["metadata"],
        retry_after_s=facts["retry_after_s"],
    )
