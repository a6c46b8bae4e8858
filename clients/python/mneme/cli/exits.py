"""What the command line's exit codes mean, and how an error becomes one."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.errors import MnemeError

OK = 0
FAILED = 1
USAGE = 2
NO_SERVER = 3
NOT_ALLOWED = 4
NOT_FOUND = 5
INTERRUPTED = 130

HELP = (
    "Exit codes: 0 done; 1 the server refused, or a part failed; 2 wrong usage; "
    "3 no server, or none that is ready; 4 the key is missing or does not allow it; 5 not found."
)


class InputError(ValueError):
    """What the user gave cannot be used; the message says why."""


def code_of(error: Exception) -> int | None:
    """The exit code for an error; None for a bug."""
    if isinstance(error, InputError):
        return USAGE
    if "mneme.errors" not in sys.modules:
        return None
    from mneme import errors

    if isinstance(error, errors.ArgumentError | errors.ConfigurationError):
        return USAGE
    if not isinstance(error, errors.MnemeError):
        return None
    codes: dict[type[errors.MnemeError], int] = {
        errors.UnavailableError: NO_SERVER,
        errors.DeadlineExceededError: NO_SERVER,
        errors.UnauthenticatedError: NOT_ALLOWED,
        errors.PermissionDeniedError: NOT_ALLOWED,
        errors.NotFoundError: NOT_FOUND,
        errors.InvalidArgumentError: USAGE,
    }
    return codes.get(type(error), FAILED)


def explain(error: Exception) -> str:
    """An error in words, with what helps."""
    if isinstance(error, ValueError):
        return str(error)
    from mneme import errors

    if isinstance(error, errors.UnavailableError) and not error.reason:
        return (
            f"{error.message}\n"
            "Start a server with `make serve` or `mneme-server serve`, or say where one is "
            "with --address or MNEME_ADDRESS."
        )
    if isinstance(error, errors.UnauthenticatedError):
        return f"{error}\nGive an API key with --api-key or MNEME_API_KEY."
    if isinstance(error, errors.UnimplementedError):
        return f"{error}\nThe server does not know this call: it is older than this client."
    return str(error)


def as_json(error: Exception, code: int) -> str:
    """An error for machines, on one line."""
    document: dict[str, Any] = {"message": str(error), "exit_code": code}
    if not isinstance(error, ValueError):
        document |= _facts(error)
    return json.dumps({"error": document}, ensure_ascii=False)


def _facts(error: Exception) -> dict[str, Any]:
    from mneme.errors import MnemeError

    assert isinstance(error, MnemeError)
    known: MnemeError = error
    return {
        "message": known.message,
        "code": known.code.name,
        "reason": known.reason,
        "violations": [
            {"field": v.field, "description": v.description, "reason": v.reason}
            for v in known.violations
        ],
        "metadata": known.metadata,
        "retry_after": known.retry_after,
    }
