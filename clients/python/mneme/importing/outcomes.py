"""What counts as a failure in a transcript: of a tool, and of a whole run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# "Error: no seats", "Error executing tool", "Traceback (most recent call last)", "KeyError: 'x'".
_ERROR_START = re.compile(
    r"\s*(?:(?:Error|Exception|Traceback)\b|[A-Za-z_][\w.]*(?:Error|Exception):)"
)


def tool_error(message: Mapping[str, Any], text: str) -> str | None:
    """The error that a tool's answer reports; None when it reports none.

    An answer is an error when
    - the message says so: `is_error` or `isError` is true, or `status` is "error";
    - its text begins with "Error", "Exception" or "Traceback" as a word, or with the name of an
      exception and a colon ("ValueError: …");
    - it is a JSON object with `isError` or `is_error` true, or with something in `error`.

    Args:
        message: the tool's message.
        text: its content as text.
    """
    body = _object(text)
    says_so = _flagged(message) or message.get("status") == "error"
    if body is not None:
        if body.get("error"):
            return _words(body["error"])
        return text if says_so or _flagged(body) else None
    return text if says_so or _ERROR_START.match(text) else None


def run_failed(record: Mapping[str, Any]) -> bool:
    """Whether a run missed its goal, as its record judges it.

    `success`, `resolved` or `passed` decide when they are there; else a `reward` of 0 or less is
    a failure. A run that nobody judged is none.
    """
    for key in ("success", "resolved", "passed"):
        if isinstance(record.get(key), bool):
            return not record[key]
    reward = record.get("reward")
    return isinstance(reward, int | float) and not isinstance(reward, bool) and reward <= 0


def verdict_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says of how its run turned out, as a session's metadata says it: nothing where
    nobody judged it. That it ended says nothing."""
    if isinstance(record.get("reward"), int | float):
        return {}  # It is said as it is.
    for key in ("success", "resolved", "passed"):
        if isinstance(record.get(key), bool):
            return {"success": record[key]}
    return {}


def _flagged(source: Mapping[str, Any]) -> bool:
    return source.get("is_error") is True or source.get("isError") is True


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _words(error: Any) -> str:
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        return str(error["message"])
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
