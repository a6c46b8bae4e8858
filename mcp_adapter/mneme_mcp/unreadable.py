"""What is answered to a line of standard input that the library would drop.

The library passes over a line that it cannot read, and takes a request whose id is none for a
notification. Its sender would wait until its own time is up, without being told why. So each line
is looked at first, and one that cannot be served is answered here.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

_LOG = logging.getLogger("mneme_mcp")

# A text, or brackets in a row; also where the whole is no JSON, or is nested too deeply to be read.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{\[]+|[}\]]+')
_ID = re.compile(r'\s*:\s*(?:(-?\d{1,400})(?=\s*[,}\s]|$)|("(?:[^"\\]|\\.)*+"))')
_KEY = re.compile(r"\s*:")


@dataclass(slots=True)
class _Outline:
    """What a line says of itself at its outermost level.

    Args:
        keys: the names there.
        id: the request's id; None when there is none that could be sent back.
    """

    keys: set[str] = field(default_factory=set)
    id: RequestId | None = None


def answers_of(line: str) -> list[JSONRPCError] | None:
    """The errors to answer a line with, which may be none; None: the line can be served."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        told = _problem_of(error)
        outlines = list(_outlines(line))
    else:
        # The library reads a request with an id of another kind as if it had none.
        if not isinstance(message, JSONRPCNotification) or '"id"' not in line:
            return None
        outlines = [_outline(line)]
        if "id" not in outlines[0].keys:
            return None
        told = ErrorData(
            code=INVALID_REQUEST, message="the request's id must be a text or a whole number"
        )
    _LOG.warning("a message could not be served: %s", told.message)
    return [
        JSONRPCError(jsonrpc="2.0", id=outline.id, error=told)
        for outline in outlines
        if not outline.keys & {"result", "error"} or "method" in outline.keys
    ]


def too_long(beginning: str, limit: int) -> list[JSONRPCError]:
    """The answer to a line of more bytes than are read, of which this is the beginning."""
    told = ErrorData(
        code=INVALID_REQUEST,
        message=f"the message is longer than {limit // 1024**2} MB: give less at once",
    )
    return [JSONRPCError(jsonrpc="2.0", id=_outline(beginning).id, error=told)]


def _problem_of(error: ValidationError) -> ErrorData:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] != "json_invalid":
        return ErrorData(
            code=INVALID_REQUEST,
            message='the message is no request of JSON-RPC 2.0: it needs "jsonrpc": "2.0", "id" '
            '(a text or a whole number), "method" and, if any, "params" (an object)',
        )
    reason = str(first.get("ctx", {}).get("error", first["msg"]))
    if "surrogate" in reason or "hex escape" in reason:
        reason += (
            '; a text holds half of a character, such as "\\ud83d" alone: cut texts between '
            "characters, or put U+FFFD in its place"
        )
    elif "recursion" in reason:
        reason += "; JSON that is nested this deep is not read: give it as a text, or flatten it"
    return ErrorData(code=PARSE_ERROR, message=f"the message is no JSON that can be read: {reason}")


def _outlines(line: str) -> Iterator[_Outline]:
    """The outline of each message of a line; of a batch, which is not served, each has one."""
    if line.lstrip().startswith("["):
        try:
            batch: Any = json.loads(line)
        except (ValueError, RecursionError):
            batch = None
        if batch and all(isinstance(item, dict) for item in batch):
            yield from (_outline(json.dumps(item)) for item in batch)
            return
    yield _outline(line)


def _outline(line: str) -> _Outline:
    found = _Outline()
    depth = 0
    for token in _TOKEN.finditer(line):
        text = token.group()
        if text[0] in "{[":
            depth += len(text)
        elif text[0] in "}]":
            depth -= len(text)
        elif depth == 1 and _KEY.match(line, token.end()):
            found.keys.add(text[1:-1])
            if text == '"id"' and (given := _ID.match(line, token.end())):
                found.id = _sendable(given.group(1) or given.group(2))
    return found


def _sendable(written: str) -> RequestId | None:
    try:
        value: RequestId = json.loads(written)
        str(value).encode()
    except ValueError:
        return None
    return value
