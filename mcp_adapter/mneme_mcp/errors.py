"""What failed, in words that tell an agent, or whoever set it up, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mneme import ConfigurationError, MnemeError
from mneme.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FieldViolation,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)

from mneme_mcp.failures import Failure

FAILURES = (MnemeError, ConfigurationError, TypeError, ValueError)
"""What a call of the client can raise that its caller caused or must know of."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call was made, for the words of its failure.

    Args:
        address: the server.
        over_http: whether the caller sent its own key.
        spelled: a field's path in the request as the caller spelled it.
        if_missing: what to do when the thing does not exist.
        local: whether the address is a folder, whose server starts by itself.
    """

    address: str
    over_http: bool = False
    spelled: Callable[[str], str] = lambda field: field
    if_missing: str = ""
    local: bool = False


_RETRYABLE = (CancelledError, DeadlineExceededError, ResourceExhaustedError, UnavailableError)
# Where no Mneme server gave a reason: what the adapter met instead.
_OWN_REASONS: dict[type[MnemeError], str] = {
    UnavailableError: "SERVER_UNREACHABLE",
    UnimplementedError: "CALL_UNKNOWN",
}


def failure_of(error: Exception, place: Place) -> Failure:
    """How a call is answered that met this error."""
    said = explain(error, place)
    if isinstance(error, ConfigurationError):
        return Failure(said, "FAILED_PRECONDITION", "SETTINGS_INVALID")
    if not isinstance(error, MnemeError):
        error = refusal_of(error)
    return Failure(
        said,
        error.code.name,
        error.reason or _OWN_REASONS.get(type(error), error.code.name),
        retryable=isinstance(error, _RETRYABLE) and not _is_too_large(error),
        retry_after=error.retry_after,
        fields=[(place.spelled(v.field), _problem(v, place)) for v in error.violations if v.field],
        error_id=error.error_id,
        details=_details(error, place),
        request_id=error.metadata.get("request_id", ""),
    )


def refusal_of(error: Exception) -> InvalidArgumentError:
    """What the client does not send, as if the server had refused it."""
    field, separator, problem = str(error).partition(": ")
    at_fault = [FieldViolation(field, problem)] if separator else []
    return InvalidArgumentError(str(error), reason="INVALID_PARAMETER", violations=at_fault)


def _details(error: MnemeError, place: Place) -> dict[str, Any]:
    """What a program can go by: the argument at fault, and the server's own facts."""
    told = {name: value for name, value in error.metadata.items() if name != "request_id"}
    at_fault = [place.spelled(one.field) for one in error.violations if one.field]
    return {**told, "parameter": at_fault[0]} if at_fault else told


def _problem(violation: FieldViolation, place: Place) -> str:
    """What is wrong with a field, without its name, or with the caller's where it names it."""
    field = violation.field
    said = violation.description.removeprefix(field).lstrip(": ")
    could_be_a_word = field.isalpha()
    return said if could_be_a_word else said.replace(field, place.spelled(field))


def explain(error: Exception, place: Place) -> str:
    """What went wrong, and what to do about it; one paragraph."""
    if isinstance(error, ConfigurationError):
        return f"The adapter's settings cannot be used: {error}."
    if not isinstance(error, MnemeError):
        error = refusal_of(error)
    for kind, words in _WORDS.items():
        if isinstance(error, kind):
            return f"{words(error, place)}{_stored(error)}"
    return f"{_sentence(error.message)} [{error.reason or error.code.name}]"


def _stored(error: MnemeError) -> str:
    """How many of those that a call sent one by one were stored; empty for other calls."""
    recorded = error.metadata.get("recorded")
    if recorded is None:
        return ""
    return f" Stored before it failed: {'none' if recorded == '0' else f'the first {recorded}'}."


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."


def _again(error: MnemeError) -> str:
    if error.retry_after is None:
        return "Try again in a moment."
    return f"Try again in {max(round(error.retry_after), 1)} s."


def _key(place: Place) -> str:
    if place.over_http:
        return "send the key with each request as the header `Authorization: Bearer mn_…`"
    return (
        "set MNEME_API_KEY in the environment of `mneme-mcp` (the `env` of this server in the MCP "
        "host's configuration), then restart it"
    )


def _unauthenticated(error: MnemeError, place: Place) -> str:
    what = (
        "The server needs an API key"
        if error.reason == "API_KEY_MISSING"
        else "The API key is unknown or was revoked"
    )
    return (
        f"{what}: {_key(place)}. Whoever runs the server makes keys with "
        "`mneme admin keys create`. Retrying without one will not help."
    )


def _denied(error: MnemeError, place: Place) -> str:
    return (
        f"{_sentence(error.message)} The API key may not do this. Ask whoever runs the server for "
        f"a key with that scope (`mneme admin keys create`), and {_key(place)}."
    )


def _unavailable(error: MnemeError, place: Place) -> str:
    if error.reason:  # A server answered; it is not ready for this.
        return f"{_sentence(error.message)} {_again(error)}"
    if place.local:
        return f"{_sentence(error.message)} {_again(error)}"
    return (
        f"No Mneme server answers at {place.address}. Start it with `mneme-server serve`, or set "
        "MNEME_ADDRESS to where it runs. This adapter reconnects by itself: call the tool again "
        "once the server is up."
    )


def _invalid(error: MnemeError, place: Place) -> str:
    if not error.violations:
        return _sentence(error.message)
    said = "; ".join(
        f"{place.spelled(v.field)}: {_problem(v, place)}" if v.field else v.description
        for v in error.violations
    )
    return _sentence(said)


def _missing(error: MnemeError, place: Place) -> str:
    return " ".join(filter(None, [_sentence(error.message), place.if_missing]))


def _exhausted(error: MnemeError, _: Place) -> str:
    if _is_too_large(error):
        return f"{_sentence(error.message)} Send or ask for less at a time."
    return f"{_sentence(error.message)} {_again(error)}"


def _is_too_large(error: MnemeError) -> bool:
    # The server gives a reason for each of its own limits; a message's size is gRPC's.
    return isinstance(error, ResourceExhaustedError) and not error.reason


def _changed(error: MnemeError, _: Place) -> str:
    return _sentence(error.message)


def _late(_: MnemeError, place: Place) -> str:
    return (
        f"The server at {place.address} did not answer in time. Try again, with a narrower time "
        "range or a smaller limit where the tool has them. A write may have taken effect all the "
        "same."
    )


def _bug(error: MnemeError, _: Place) -> str:
    known = f" under the id {error.error_id}" if error.error_id else ""
    return f"The server hit a bug; its log has the details{known}. Your call is not at fault."


def _unknown_call(_: MnemeError, place: Place) -> str:
    return (
        f"The server at {place.address} does not know this call: it is older than this adapter, "
        "or is not a Mneme server. Update it, or check MNEME_ADDRESS."
    )


_WORDS: dict[type[MnemeError], Callable[[MnemeError, Place], str]] = {
    UnauthenticatedError: _unauthenticated,
    PermissionDeniedError: _denied,
    UnavailableError: _unavailable,
    InvalidArgumentError: _invalid,
    NotFoundError: _missing,
    AlreadyExistsError: _missing,
    ResourceExhaustedError: _exhausted,
    AbortedError: _changed,
    DeadlineExceededError: _late,
    CancelledError: _exhausted,
    InternalError: _bug,
    UnimplementedError: _unknown_call,
}
