"""A call that failed, as text for the agent and in structured form for its host."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types import CallToolResult, TextContent

from mneme_mcp.spelling import to_camel


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failed call answers.

    Args:
        message: what went wrong and what to do about it.
        code: the name of a gRPC status code, as the server's errors have it.
        reason: finer than the code: a name of `ErrorReason`, or one of the adapter's own.
        retryable: whether the same call may succeed later.
        retry_after: seconds after which it may; None when nobody said.
        fields: the arguments at fault, each with what is wrong with it.
        error_id: under which the server's log holds a bug.
        details: further facts for a program.
        request_id: under which the server's log holds the call; empty when it did not get there.
    """

    message: str
    code: str
    reason: str
    retryable: bool = False
    retry_after: float | None = None
    fields: Sequence[tuple[str, str]] = ()
    error_id: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""

    def result(self, tool: str, *, camel: bool = True) -> CallToolResult:
        """The answer to a call of a tool, whose names are in camelCase or in snake_case."""
        text = f"{tool}: {self.message}"
        facts: dict[str, Any] = {
            "code": self.code,
            "reason": self.reason,
            "message": text,
            "retryable": self.retryable,
            "tool": tool,
            "timestamp": int(time.time()),
            "request_id": self.request_id or f"req-{secrets.token_hex(8)}",
        }
        if self.details:
            facts["details"] = dict(self.details)
        if self.retry_after is not None:
            facts["retry_after_seconds"] = self.retry_after
        if self.fields:
            facts["fields"] = [{"name": name, "problem": said} for name, said in self.fields]
        if self.error_id:
            facts["error_id"] = self.error_id
        error = {to_camel(name) if camel else name: value for name, value in facts.items()}
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content={"error": error},
            is_error=True,
        )


class Refused(Exception):
    """A tool cannot do what it is asked for.

    Args:
        message: what to do instead.
        reason: why, as a name of `ErrorReason`.
        fields: the arguments at fault, each with what is wrong with it.
    """

    def __init__(self, message: str, reason: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.failure = Failure(message, "INVALID_ARGUMENT", reason, fields=tuple(fields))


BUG = Failure("the adapter hit a bug; its stderr has the details", "INTERNAL", "INTERNAL_ERROR")
