"""The content blocks of Anthropic's messages as events; Claude Code's files hold the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.messages import raw, text_of, tool_answer, tool_call
from mneme.importing.plan import Planned, clean, clip, label, tidy

_PICTURES = ("image", "document", "file", "container_upload")
_THINKING = ("thinking", "redacted_thinking")


def block_events(
    role: str, content: Any, call_names: dict[str, str], planned: Planned
) -> Iterator[dict[str, Any]]:
    """One event for each block, in their order; a plain text is one block.

    Args:
        role: whose message it is.
        content: the message's content.
        call_names: tools by the id of their call; it grows as calls are met.
        planned: where to note what was changed, and what is unknown.
    """
    blocks = content if isinstance(content, list) else [content]
    for block in blocks:
        if block is None or block == "":
            continue
        yield _event(role, block, call_names, planned)


def llm_response(
    model: Any, usage: Mapping[str, Any], payload: Mapping[str, Any], planned: Planned
) -> dict[str, Any]:
    """What an answer of a model cost; tokens read from and written to a cache were read, too."""
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {
        "event_type": "llm_response",
        "model": label(model or "", planned.notes),
        "input_tokens": sum(count_of(usage, key) for key in read),
        "output_tokens": count_of(usage, "output_tokens"),
        "payload": {"usage": tidy(usage, planned.notes), **payload},
    }


def count_of(usage: Mapping[str, Any], key: str) -> int:
    """A count of tokens; 0 when there is none."""
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def message_event(role: str, text: str, planned: Planned, **more: Any) -> dict[str, Any]:
    """A text of a conversation; what is longer than an event's text stands in the payload."""
    whole = clean(text, planned.notes)
    shown = clip(whole, planned.notes)
    payload = {"role": role, **({"content": whole} if shown != whole else {}), **more}
    return {
        "event_type": "message",
        "text": shown,
        "payload": payload,
        # The server keeps out system prompts by itself; a developer's are the same.
        "searchable": False if role == "developer" else None,
    }


def thought(text: str, planned: Planned, more: Mapping[str, Any]) -> dict[str, Any]:
    """What a model thought before it spoke; recalled by its text where it is not encrypted."""
    whole = clean(text, planned.notes)
    shown = clip(whole, planned.notes)
    payload = {**({"content": whole} if shown != whole else {}), **tidy(dict(more), planned.notes)}
    return {"event_type": "custom", "name": "thinking", "text": shown, "payload": payload}


def _event(role: str, block: Any, call_names: dict[str, str], planned: Planned) -> dict[str, Any]:
    if isinstance(block, str):
        return message_event(role, block, planned)
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind in _PICTURES:
        return message_event(role, f"[{kind}]", planned, block=tidy(block, planned.notes))
    if kind == "text" and isinstance(block.get("text"), str):
        return _text(role, block, planned)
    if kind in _THINKING:
        more = {key: value for key, value in block.items() if key not in ("type", "thinking")}
        return thought(str(block.get("thinking") or ""), planned, more)
    return _of_a_tool(str(kind), block, call_names, planned) or raw(
        str(kind or "block"), block, f"block {kind!r}", planned.notes, planned.kept
    )


def _of_a_tool(
    kind: str, block: Any, call_names: dict[str, str], planned: Planned
) -> dict[str, Any] | None:
    if kind.endswith("tool_use") and isinstance(block.get("name"), str):
        return _use(block, call_names, planned)
    return _result(block, call_names, planned) if kind.endswith("tool_result") else None


def _text(role: str, block: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    more = {k: v for k, v in block.items() if k not in ("type", "text", "cache_control") and v}
    return message_event(role, block["text"], planned, **tidy(more, planned.notes))


def _use(block: Mapping[str, Any], call_names: dict[str, str], planned: Planned) -> dict[str, Any]:
    name, call_id = label(block["name"], planned.notes), label(block.get("id") or "", planned.notes)
    if call_id:
        call_names[call_id] = name
    return tool_call(name, call_id, block.get("input"), planned.notes)


def _result(
    block: Mapping[str, Any], call_names: Mapping[str, str], planned: Planned
) -> dict[str, Any]:
    call_id = label(block.get("tool_use_id") or "", planned.notes)
    kind = str(block["type"]).removesuffix("_tool_result").removesuffix("tool_result")
    name = call_names.get(call_id, kind)
    content = block.get("content")
    more: dict[str, Any] = {}
    if isinstance(content, Mapping):
        text, failed = json.dumps(content, ensure_ascii=False), "error_code" in content
    else:
        text, failed = text_of(content), False
        if isinstance(content, list) and not all(map(_is_text, content)):
            more["content"] = tidy(content, planned.notes)  # Pictures and the like.
    failed = failed or block.get("is_error") is True
    error = (text or "the tool failed without a word") if failed else None
    return tool_answer(name, call_id, text, error, notes=planned.notes, more=more)


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"
