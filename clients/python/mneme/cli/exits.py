"""What the command line's exit codes mean, and how an error becomes one."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import typer

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
    "Exit codes: 0 done; 1 the server refused, or part of it failed; 2 wrong usage; "
    "3 no server, or not ready; 4 key missing or not allowed to do this; 5 not found."
)


# How pydantic says through typer what a value must be, and how we say it.
_WORDS = (
    (r"^Value error, ", ""),
    (r"Input should be (?:less|greater) than or equal to (\S+)", r"must be at {bound} \1"),
    (r"Input should be (?:less|greater) than (\S+)", r"must be {side} \1"),
    (r"Input should be a valid integer\b.*", "is not a whole number"),
    (r"Input should be a valid number\b.*", "is not a number"),
    (r"Input should be a valid boolean\b.*", "is neither true nor false"),
)


class InputError(ValueError):
    """What the user gave cannot be used; the message says why."""


def code_of(error: Exception) -> int | None:
    """The exit code for an error; None for a bug."""
    if isinstance(error, InputError | typer.TyperException):
        return USAGE
    if isinstance(error, OSError):
        return FAILED
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
    if isinstance(error, typer.TyperException):
        return usage(error)
    if isinstance(error, OSError):
        return _system(error)
    return str(error) if isinstance(error, ValueError) else _refusal(error)


def _refusal(error: Exception) -> str:
    from mneme import errors

    if isinstance(error, errors.UnavailableError) and not error.reason and _is_not_there(error):
        return (
            f"{error.message}\n"
            "Start a server with `make serve` or `mneme-server serve`, or say where one is "
            "with --address or MNEME_ADDRESS."
        )
    if isinstance(error, errors.UnauthenticatedError):
        return f"{error}\nGive an API key with --api-key or MNEME_API_KEY."
    if isinstance(error, errors.UnimplementedError):
        return f"{error}\nThe server does not know this call; it is older than this client."
    return str(error)


def _is_not_there(error: MnemeError) -> bool:
    """Whether to start a server would help: one that is there may only be spoken to wrongly."""
    return not any(word in error.message for word in ("TLS", "certificate"))


def usage(error: typer.TyperException) -> str:
    """What is wrong with the line, and where its options are explained."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    text = plain(error.format_message())
    if parameter is not None:
        name = max(parameter.opts, key=len)
        name = name if name.startswith("-") else name.upper()
        said = "" if "Missing" in text else plain(str(getattr(error, "message", "")))
        text = f"{name}: {said or 'is required'}"
    elif isinstance(error, typer.BadParameter):  # Of several options, or of how they go together.
        text = plain(error.message)
    if context is None:
        return text
    return f"{text}\n`{context.command_path} --help` lists what it takes."


def plain(text: str) -> str:
    """A message of the option parser's in our own words."""
    bound = "least" if "greater" in text else "most"
    side = "more than" if "greater" in text else "less than"
    for pattern, words in _WORDS:
        text = re.sub(pattern, words.format(bound=bound, side=side), text)
    return text


def _system(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{(error.strerror or str(error)).lower()}"


def as_json(error: Exception, code: int) -> str:
    """An error for machines, on one line."""
    document: dict[str, Any] = {"message": explain(error), "exit_code": code}
    if code_of(error) is not None and not isinstance(
        error, ValueError | OSError | typer.TyperException
    ):
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
