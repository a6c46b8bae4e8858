"""Errors of the domain as JSON: told by another process, or kept until somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mneme_server.common import errors
from mneme_server.common.errors import MnemeError, Reason


def facts_of(error: MnemeError) -> dict[str, Any]:
    """Return what `error_of` makes the error of again."""
    kind = next(c for c in type(error).__mro__ if c.__module__ == errors.__name__)
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
    kind: type[MnemeError] = getattr(errors, facts["kind"])
    return kind(
        facts["message"],
        reason=Reason[facts["reason"]],
        field=facts["field"],
        metadata=facts["metadata"],
        retry_after_s=facts["retry_after_s"],
    )
