"""The items of OpenAI's Responses API as events; Codex's files hold the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import message_event, thought
from mneme.importing.messages import raw, text_of, tool_answer, tool_call
from mneme.importing.outcomes import tool_error
from mneme.importing.plan import Planned, label, tidy
from mneme.importing.roles import role_in

_ROLES = ("user", "assistant", "system", "developer")
_CALL = "_call"
_OUTPUT = "_call_output"
_LIST_TOOLS = "mcp_list_tools"
# Where the items that are calls say what they were called with, the first that is there.
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries", "execution")
# Where the calls of built-in tools say what came of them.
_RESULTS = ("output", "outputs", "results", "result", "tools")
_FAILED = ("failed", "incomplete")
_APPROVALS = {True: "approval_granted", False: "approval_denied"}
# How Codex ends a command's output, in the forms that it has had.
_EXIT_CODE = re.compile(r"(?m)^(?:Exit code: |Process exited with code )(-?\d+)$")
_HEAD = 600


def item_events(
    item: Any,
    call_names: dict[str, str],
    planned: Planned,
    failed: Mapping[str, bool] | None = None,
) -> Iterator[dict[str, Any]]:
    """The events of an item, as fields of `NewEvent` without ids.

    Args:
        item: the item.
        call_names: tools by the id of their call; it grows as calls are met.
        planned: where to note what was changed, and what is unknown.
        failed: what is known from elsewhere of calls by their id: whether they failed. Without
            it the words of an answer decide, see `tool_error`.
    """
    kind = _kind(item)
    if kind == "message" and role_in(item) in _ROLES:
        yield _message(item, planned)
    elif kind == "reasoning":
        yield _reasoning(item, planned)
    elif kind.endswith(_OUTPUT):
        yield _output(item, kind, call_names, planned, failed)
    elif kind.endswith(_CALL):
        yield from _call(item, kind, call_names, planned)
    elif kind == "mcp_approval_request":
        event = raw(str(item.get("name") or kind), item, None, planned.notes, planned.kept)
        yield event | {"event_type": "approval_requested", "searchable": None}
    elif kind == "mcp_approval_response" and isinstance(item.get("approve"), bool):
        event = raw(kind, item, None, planned.notes, planned.kept)
        yield event | {"event_type": _APPROVALS[item["approve"]], "searchable": None}
    else:
        what = f"role {item.get('role')!r}" if kind == "message" else f"item {kind!r}"
        yield raw(kind or "item", item, what, planned.notes, planned.kept)


def exit_code(text: str) -> int | None:
    """The exit code that the output of a command says, in the forms that Codex writes."""
    if text.lstrip().startswith("{"):
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return None
        metadata = body.get("metadata") if isinstance(body, dict) else None
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        return code if isinstance(code, int) else None
    found = _EXIT_CODE.search(text[:_HEAD].partition("\nOutput:")[0])
    return int(found[1]) if found else None


def text_of_parts(parts: Any) -> str:
    """The texts of a content's parts, or of a summary's, joined."""
    return text_of(parts)


def _kind(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def _message(item: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    # Pictures, annotations: what a text alone does not say.
    more = [p for p in parts if not _is_plain(p)]
    kept = {"parts": tidy(more, planned.notes)} if more else {}
    kept |= {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    return message_event(role_in(item), text_of(content), planned, **kept)


def _is_plain(part: Any) -> bool:
    return isinstance(part, str) or (
        isinstance(part, Mapping)
        and isinstance(part.get("text"), str)
        and not part.get("annotations")
        and not part.get("logprobs")
    )


def _reasoning(item: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    texts = [text_of(item.get("summary")), text_of(item.get("content"))]
    more = {"encrypted_content": item.get("encrypted_content")}
    kept = {key: value for key, value in more.items() if value}
    return thought("\n".join(filter(None, texts)), planned, kept)


def _call(
    item: Mapping[str, Any], kind: str, call_names: dict[str, str], planned: Planned
) -> Iterator[dict[str, Any]]:
    built_in = kind.removesuffix(_CALL)
    name = label(item.get("name") or built_in, planned.notes)
    if isinstance(item.get("namespace"), str) or isinstance(item.get("server_label"), str):
        name = label(f"{item.get('namespace') or item.get('server_label')}.{name}", planned.notes)
    call_id = label(item.get("call_id") or item.get("id") or "", planned.notes)
    if call_id:
        call_names[call_id] = name
    given = next((item[key] for key in _ARGUMENTS if item.get(key) is not None), None)
    yield tool_call(name, call_id, given, planned.notes)
    found = next((item[key] for key in _RESULTS if item.get(key) not in (None, [])), None)
    problem = item.get("error")
    if found is None and not problem and item.get("status") not in _FAILED:
        return
    text = text_of(found)
    error = None
    if problem or item.get("status") in _FAILED:
        words = problem if isinstance(problem, str) else json.dumps(problem) if problem else ""
        error = words or text or f"its status is {item.get('status')}"
    yield {"key": "answer"} | tool_answer(name, call_id, text, error, notes=planned.notes)


def _output(
    item: Mapping[str, Any],
    kind: str,
    call_names: Mapping[str, str],
    planned: Planned,
    failed: Mapping[str, bool] | None,
) -> dict[str, Any]:
    call_id = label(item.get("call_id") or item.get("id") or "", planned.notes)
    known = kind.removesuffix(_OUTPUT)
    name = call_names.get(call_id, "" if known in ("function", "custom_tool") else known)
    output = item.get("output")
    said = output.get("success") if isinstance(output, Mapping) else None
    body = output.get("content", output) if isinstance(output, Mapping) else output
    text = text_of(body)
    if isinstance(body, list) and not any(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in body
    ):
        text = json.dumps(body, ensure_ascii=False)  # Results of a shell, pictures.
    if failed is None:
        wrong = tool_error(item, text) is not None or _shell_failed(body)
        error = (tool_error(item, text) or text) if wrong else None
    else:
        code = exit_code(text)
        wrong = failed.get(call_id, said is False or (code is not None and code != 0))
        error = (text or "it failed without a word") if wrong else None
    return tool_answer(name, call_id, text, error, notes=planned.notes)


def _shell_failed(body: Any) -> bool:
    """Whether a command of the hosted shell failed or ran out of time."""
    outcomes = [
        part["outcome"]
        for part in (body if isinstance(body, list) else ())
        if isinstance(part, Mapping) and isinstance(part.get("outcome"), Mapping)
    ]
    return any(
        outcome.get("type") == "timeout" or outcome.get("exit_code") not in (None, 0)
        for outcome in outcomes
    )
