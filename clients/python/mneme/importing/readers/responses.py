"""Transcripts of OpenAI's Responses API: responses, requests with them, or lists of items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import count_of, message_event
from mneme.importing.items import item_events
from mneme.importing.messages import parse_time, raw
from mneme.importing.plan import Defaults, Planned, UnusableError, digest, label, mapping_at, tidy
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record
from mneme.importing.source import Source

_ITEM = re.compile(r"_call$|_call_output$|^(reasoning|mcp_|item_reference|compaction)")


class Responses(Reader):
    """Reads items; responses that name the one before them are one session."""

    name = "responses"
    title = "transcripts of OpenAI's Responses API"

    def __init__(self, source: Source, defaults: Defaults) -> None:
        super().__init__(source, defaults)
        # The session of each response of this file, and what was said in it without an id.
        self._sessions: dict[str, str] = {}
        self._said: dict[str, Counter[str]] = {}

    @classmethod
    def detects(cls, value: Any) -> int:
        """A response says so; a list has items that no other form of chat has."""
        if isinstance(value, Mapping):
            if isinstance(_response(value), Mapping):
                return 70
            value = value.get("input", value.get("items", value.get("data")))
        return 60 if isinstance(value, list) and any(map(_is_item, value)) else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one record: what went in, then what came out, each item once."""
        value = record.value
        given, response = _given(value), _response(value)
        if given is None and response is None:
            raise UnusableError("holds neither items nor a response")
        response = response or {}
        planned = Planned(record.place)
        again = str(response.get("id")) in self._sessions
        session_id = self._session(record.unmasked, response)
        made = parse_time(response.get("created_at"))
        common: dict[str, Any] = {"timestamp": made} if made else {}
        self._start(planned, session_id, value, common)
        calls: dict[str, str] = {}
        seen = Counter[str]() if again else self._seen(session_id, response)
        prompt = response.get("instructions")
        if isinstance(prompt, str) and prompt:
            event = message_event("system", prompt, planned)
            planned.add(session_id, f"{session_id}:system:{digest(prompt)[:12]}", event)
        output = response.get("output")
        output = output if isinstance(output, list) else []
        # What went in has no time of its own; only the answer is from when it was made.
        items: list[tuple[Any, dict[str, Any]]] = [(item, {}) for item in given or []]
        items += [(item, common) for item in output]
        for item, time in items:
            for fields in item_events(item, calls, planned):
                part = fields.pop("key", None)
                key = _key(item, seen) if part is None else f"{_key(item, None)}:{part}"
                planned.add(session_id, f"{session_id}:{key}", time | fields)
        self._outcome(planned, session_id, response, common)
        if not planned.events:
            raise UnusableError("holds no items")
        yield planned

    def _session(self, unmasked: Any, response: Mapping[str, Any]) -> str:
        """The conversation's id, the first response's, or one made of what went in first."""
        conversation = response.get("conversation")
        if isinstance(conversation, Mapping) and isinstance(conversation.get("id"), str):
            return str(conversation["id"])
        own, before = response.get("id"), response.get("previous_response_id")
        given = _given(unmasked)
        if isinstance(before, str) and before:
            session_id = self._sessions.get(before, before)
        elif given:
            opening = next((n for n, i in enumerate(given) if not _is_prompt(i)), len(given)) + 1
            session_id = f"responses-{digest(given[:opening])[:20]}"
        else:
            session_id = str(own or f"responses-{digest(unmasked)[:20]}")
        if isinstance(own, str):
            self._sessions[own] = session_id
        return session_id

    def _seen(self, session_id: str, response: Mapping[str, Any]) -> Counter[str]:
        """What was said before of what a record may say again.

        One that goes on from a response, or in a conversation, does not repeat what went in there:
        the same words are new ones. Any other one says everything again.
        """
        goes_on = response.get("previous_response_id") or response.get("conversation")
        if not goes_on:
            self._said[session_id] = Counter()
        return self._said.setdefault(session_id, Counter())

    def _start(
        self, planned: Planned, session_id: str, value: Any, common: Mapping[str, Any]
    ) -> None:
        facts = value if isinstance(value, Mapping) else {}
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or _label(facts, "agent_id", planned),
            "user_id": self.defaults.user_id or _label(facts, "user", planned),
            "project": self.defaults.project or _label(facts, "project", planned),
            "tags": list(self.defaults.tags),
            "started_at": common.get("timestamp"),
        }
        planned.end = {"session_id": session_id, "ended_at": common.get("timestamp")}

    def _outcome(
        self,
        planned: Planned,
        session_id: str,
        response: Mapping[str, Any],
        common: Mapping[str, Any],
    ) -> None:
        """What the answer cost, and whether it failed."""
        key = response.get("id") or digest(response)[:16]
        usage, error = response.get("usage"), response.get("error")
        if isinstance(usage, Mapping):
            event = {
                "event_type": "llm_response",
                "model": label(response.get("model") or "", planned.notes),
                "input_tokens": count_of(usage, "input_tokens"),
                "output_tokens": count_of(usage, "output_tokens"),
                "payload": {"usage": tidy(dict(usage), planned.notes), "response_id": str(key)},
            }
            planned.add(session_id, f"{session_id}:usage:{key}", {**common, **event})
        if isinstance(error, Mapping) and error:
            event = raw("response", error, None, planned.notes, planned.kept)
            words = str(error.get("message") or error.get("code") or "the response failed")
            more = {"event_type": "error", "error": words[:1000], "searchable": None}
            planned.add(session_id, f"{session_id}:error:{key}", {**common, **event, **more})
            assert planned.end is not None
            planned.end["status"] = "error"


def _response(value: Any) -> Mapping[str, Any] | None:
    """The response in a record: itself, or what a request or an event of a stream has with it."""
    if not isinstance(value, Mapping):
        return None
    for found in (value, value.get("response")):
        if isinstance(found, Mapping) and isinstance(found.get("output"), list):
            items = found["output"]
            if found.get("object") == "response" or any(map(_is_item, items)):
                return found
    return None


def _given(value: Any) -> list[Any] | None:
    """The items that went in."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return None
    request = mapping_at(value, "request") or value
    for key in ("input", "items", "data"):
        found = request.get(key)
        if isinstance(found, list):
            return found
        if key == "input" and isinstance(found, str) and found:
            return [{"role": "user", "content": found}]
    return None


def _is_item(item: Any) -> bool:
    if not isinstance(item, Mapping) or "payload" in item:
        return False
    return bool(_ITEM.search(str(item.get("type", "")))) or (
        item.get("type") == "message" and "role" in item and "usage" not in item
    )


def _is_prompt(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") in ("system", "developer")


def _key(item: Any, seen: Counter[str] | None) -> str:
    """What tells an item from the others of its session, the same when it is sent again."""
    if not isinstance(item, Mapping):
        return digest(item)[:16]
    call_id = item.get("call_id")
    if isinstance(call_id, str) and call_id:
        return f"{item.get('type')}:{call_id}"
    if isinstance(item.get("id"), str) and item["id"]:
        return str(item["id"])
    content = digest([item.get("type", "message"), item.get("role"), item.get("content")])[:16]
    if seen is None:
        return content
    seen[content] += 1
    return f"{content}:{seen[content]}"


def _label(facts: Mapping[str, Any], key: str, planned: Planned) -> str | None:
    value = facts.get(key)
    return label(value, planned.notes) if isinstance(value, str) and value else None
