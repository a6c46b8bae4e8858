"""Transcripts of Anthropic's Messages API: requests, with or without the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import block_events, llm_response
from mneme.importing.messages import raw, time_of
from mneme.importing.plan import Planned
from mneme.importing.readers.base import Reader
from mneme.importing.readers.chat import messages_of, plan_conversation
from mneme.importing.reading import Record
from mneme.importing.roles import role_in

_ROLES = ("user", "assistant", "system")


class Anthropic(Reader):
    """Reads messages whose content is blocks: text, thinking, tool_use, tool_result."""

    name = "anthropic"
    title = "transcripts of Anthropic's Messages API"

    @classmethod
    def detects(cls, value: Any) -> int:
        """Blocks that no other form of chat has, or a whole answer of the API."""
        messages = _conversation(value)
        return 60 if messages is not None and any(map(_is_ours, messages)) else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one record as one session."""
        yield plan_conversation(record, self.defaults, _conversation, _translate)


def _conversation(value: Any) -> list[Any] | None:
    """The messages of a record, with the system prompt before and the answer after them."""
    if isinstance(value, Mapping) and _is_answer(value):
        return [value]
    body = value
    if isinstance(value, Mapping) and isinstance(value.get("request"), Mapping):
        body = value["request"]
    messages = messages_of(body)
    if messages is None or not isinstance(body, Mapping):
        return messages
    system, answer = body.get("system"), value.get("response")
    before = [{"role": "system", "content": system}] if system else []
    after = [answer] if isinstance(answer, Mapping) and _is_answer(answer) else []
    return [*before, *messages, *after]


def _is_answer(value: Mapping[str, Any]) -> bool:
    return (
        value.get("type") == "message"
        and role_in(value) == "assistant"
        and isinstance(value.get("content"), list)
        and "usage" in value
    )


def _is_ours(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = [str(block.get("type")) for block in blocks if isinstance(block, Mapping)]
    return _is_answer(message) or any(
        kind.endswith(("tool_use", "tool_result", "thinking")) for kind in kinds
    )


def _translate(
    message: Any, call_names: dict[str, str], planned: Planned
) -> Iterator[dict[str, Any]]:
    role = role_in(message)
    if role not in _ROLES:
        named = message.get("role") if isinstance(message, Mapping) else None
        yield raw("message", message, f"role {named!r}", planned.notes, planned.kept)
        return
    common = time_of(message)
    for event in block_events(role, message.get("content"), call_names, planned):
        yield common | event
    usage = message.get("usage")
    if isinstance(usage, Mapping):
        facts = {key: message[key] for key in ("id", "stop_reason") if message.get(key)}
        event = llm_response(message.get("model"), usage, facts, planned)
        # By the answer's own id: a later request repeats the answer without its usage.
        key = {"key": f"usage-{message['id']}"} if isinstance(message.get("id"), str) else {}
        yield common | event | key
