"""What a call can fail with.

Every error of a server is a `MnemeError`; its class follows the gRPC status code, and its
`reason` says why, finer than the code does.

    try:
        client.get_lesson("01J…")
    except NotFoundError:
        ...
    except MnemeError as error:
        log.warning("%s (%s, field %s)", error, error.reason, error.field)

Arguments that do not fit their fields at all are TypeError (a number where text belongs) and
ArgumentError, a ValueError (a time without a zone), raised before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from grpc import StatusCode


class ArgumentError(ValueError):
    """An argument has a value that its field cannot hold; the message names the field."""


class ConfigurationError(ValueError):
    """The client's address, key or TLS settings cannot be used; the message says what to change."""


class ClosedError(RuntimeError):
    """The client was closed; make a new one."""

    def __init__(self) -> None:
        super().__init__("this client is closed; make a new one")


class OtherLoopError(RuntimeError):
    """An asyncio client, or a stream of it, was used in another event loop than before."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} belongs to the event loop in which it was first used, and this is another one:"
            " make a client in each loop (each asyncio.run begins one)"
        )


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that breaks a rule.

    Args:
        field: the field's path in the request, e.g. `events[3].text`.
        description: what is wrong with it.
        reason: the `ErrorReason` without its prefix, e.g. "OUT_OF_RANGE"; may be empty.
    """

    field: str
    description: str
    reason: str = ""


class MnemeError(Exception):
    """A call failed.

    Args:
        message: what is wrong, for people.
        code: the gRPC status code; by default the class's own.
        reason: the name of an `ErrorReason` without its prefix, e.g. "SESSION_NOT_FOUND"; empty
            when no Mneme server answered.
        violations: the fields that break rules.
        metadata: further facts for machines, e.g. `recorded` of a failed stream of events.
        retry_after: seconds after which a retry may succeed; None when the server did not say.
        unprocessed: whether it is certain that no server has begun the call.
    """

    default_code: ClassVar[StatusCode] = StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: StatusCode | None = None,
        reason: str = "",
        violations: Sequence[FieldViolation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        unprocessed: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.reason = reason
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.unprocessed = unprocessed

    @property
    def field(self) -> str:
        """The first field at fault, as a path; empty when no field is."""
        return self.violations[0].field if self.violations else ""

    @property
    def error_id(self) -> str:
        """The id under which the server's log holds a bug; empty for other errors."""
        return self.metadata.get("error_id", "")

    def __str__(self) -> str:
        """The message, the fields that it does not name itself, and the reason."""
        details = [
            f"{v.field}: {v.description}" if v.field else v.description
            for v in self.violations
            if v.description not in self.message
        ]
        text = "; ".join([self.message, *details])
        label = self.reason or self.code.name
        return f"{text} [{label}]"


class CancelledError(MnemeError):
    """The call was cancelled."""

    default_code = StatusCode.CANCELLED


class UnknownError(MnemeError):
    """Something that is no Mneme server answered, or it failed in a way that it did not name."""

    default_code = StatusCode.UNKNOWN


class InvalidArgumentError(MnemeError):
    """The request is wrong; `violations` lists the fields."""

    default_code = StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(MnemeError):
    """The call took longer than its timeout. A write may have happened all the same."""

    default_code = StatusCode.DEADLINE_EXCEEDED


class NotFoundError(MnemeError):
    """There is no such thing in the tenant of the API key."""

    default_code = StatusCode.NOT_FOUND


class AlreadyExistsError(MnemeError):
    """The id is taken by something with other content."""

    default_code = StatusCode.ALREADY_EXISTS


class PermissionDeniedError(MnemeError):
    """The API key lacks the scope that the call needs."""

    default_code = StatusCode.PERMISSION_DENIED


class UnauthenticatedError(MnemeError):
    """The API key is missing, unknown or revoked."""

    default_code = StatusCode.UNAUTHENTICATED


class ResourceExhaustedError(MnemeError):
    """A limit is reached; `retry_after` says when to try again."""

    default_code = StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(MnemeError):
    """The state of what the call is about does not allow it."""

    default_code = StatusCode.FAILED_PRECONDITION


class AbortedError(MnemeError):
    """What the call is about has changed since it was read: read it again before the next try."""

    default_code = StatusCode.ABORTED


class OutOfRangeError(MnemeError):
    """The call went past the end of what there is."""

    default_code = StatusCode.OUT_OF_RANGE


class UnimplementedError(MnemeError):
    """The server does not know the call: it is older than this client, or no Mneme server."""

    default_code = StatusCode.UNIMPLEMENTED


class InternalError(MnemeError):
    """A bug of the server; its log has the details under `error_id`."""

    default_code = StatusCode.INTERNAL


class UnavailableError(MnemeError):
    """No server answered, or it is not ready; `retry_after` may say when to try again."""

    default_code = StatusCode.UNAVAILABLE


class DataLossError(MnemeError):
    """Stored data is damaged."""

    default_code = StatusCode.DATA_LOSS


BY_CODE: Mapping[StatusCode, type[MnemeError]] = {
    cls.default_code: cls
    for cls in (
        AbortedError,
        AlreadyExistsError,
        CancelledError,
        DataLossError,
        DeadlineExceededError,
        FailedPreconditionError,
        InternalError,
        InvalidArgumentError,
        NotFoundError,
        OutOfRangeError,
        PermissionDeniedError,
        ResourceExhaustedError,
        UnauthenticatedError,
        UnavailableError,
        UnimplementedError,
        UnknownError,
    )
}
