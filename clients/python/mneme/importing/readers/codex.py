"""Codex's rollouts, `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, also packed (`.zst`).

A line is `{timestamp, type, payload}`. What was said and done are `response_item`s, items of the
Responses API; `event_msg`s tell the user interface the same once more, and some things besides:
exit codes, tokens, errors. A forked session repeats the lines of the one that it comes from, with
new times.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from mneme.importing.blocks import count_of, message_event, thought
from mneme.importing.items import item_events
from mneme.importing.messages import parse_time, raw, text_of, tool_answer
from mneme.importing.plan import (
    REPEATED,
    Defaults,
    Planned,
    UnusableError,
    clip,
    digest,
    label,
    tidy,
)
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Place, Record
from mneme.importing.source import Source

_AGENT = "codex"
_LINES = frozenset(
    [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "ghost_snapshot",
        "inter_agent_communication",
    ]
)
_SPOKEN = {"user_message": "user", "agent_message": "assistant"}
_THOUGHT = ("agent_reasoning", "agent_reasoning_raw_content")
# They end a call whose answer is a response_item; they say whether it failed.
_ENDS = ("exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response")
# What only shows the user that something is under way.
_SHOWN = re.compile(r"_begin$|_delta$|^(web_search_end|raw_response_item|turn_diff|item_started)$")
_ERRORS = ("error", "stream_error")
# Kept as they are, and not counted as unknown.
_NOTES = frozenset(
    [
        "task_started",
        "task_complete",
        "turn_started",
        "turn_complete",
        "turn_aborted",
        "context_compacted",
        "entered_review_mode",
        "exited_review_mode",
        "thread_rolled_back",
        "undo_completed",
        "undo_started",
        "warning",
        "background_event",
        "plan_update",
        "view_image_tool_call",
        "session_configured",
        "thread_name_updated",
        "deprecation_notice",
        "mcp_startup_complete",
        "item_completed",
        "shutdown_complete",
        "guardian_assessment",
        "model_reroute",
        "collab_tool_call",
    ]
)
# How many lines the two forms of what was said lie apart at most.
_APART = 200
_REPLAY = timedelta(seconds=2.5)
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)


class Codex(Reader):
    """Reads one rollout."""

    name = "codex"
    title = "session files of Codex"
    by_line = True

    def __init__(self, source: Source, defaults: Defaults) -> None:
        super().__init__(source, defaults)
        self._session = ""
        self._born: datetime | None = None
        self._fork = False
        self._spawned = False
        self._replaying = False
        self._latest: datetime | None = None
        self._number = 0
        self._model = ""
        self._tokens: Any = None
        self._calls: dict[str, str] = {}
        self._failed: dict[str, bool] = {}
        self._answered: set[str] = set()
        # What was said in one of the two forms and not yet seen in the other, with its role.
        self._items: Counter[str] = Counter()
        self._shown: dict[str, deque[Planned]] = defaultdict(deque)
        self._in_order: deque[tuple[str, Planned]] = deque()
        self._ends: dict[str, Planned] = {}

    @classmethod
    def detects(cls, value: Any) -> int:
        """Lines of a kind that Codex writes; in old files the first says id and instructions."""
        if not isinstance(value, Mapping):
            return 0
        kind = value.get("type")
        if isinstance(kind, str) and kind in _LINES and isinstance(value.get("payload"), Mapping):
            return 90
        old = {"id", "timestamp", "instructions"} <= value.keys() and "messages" not in value
        return 80 if old or value.get("record_type") == "state" else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one line."""
        line = record.value
        if not isinstance(line, Mapping):
            raise UnusableError("a line of a rollout is a JSON object")
        self._number = record.place.record
        self._latest = parse_time(line.get("timestamp")) or self._latest
        kind, payload = self._parts(line)
        planned = Planned(record.place)
        if kind == "session_meta":
            self._meta(payload, planned)
        elif self._repeats_its_origin(kind, payload):
            planned.notes[REPEATED] += 1
        else:
            if not self._session:
                self._session = f"{_AGENT}-{digest(record.unmasked)[:20]}"
            if not self._deferred(kind, payload, planned):
                self._plan(planned, self._events(kind, payload, planned))
        yield planned
        yield from self._release(before=self._number - _APART)

    def finish(self) -> Iterator[Planned]:
        """Plan what stands in one form only, and the end of the session."""
        planned = Planned(Place(self.source.name, 0, 0))
        # What was only just shown may still be written in the other form.
        settled = self.source.settled_since(self._latest)
        end = self._number + settled
        yield from self._release(before=end)
        yield from (one for one in self._ends.values() if one.place.record < end)
        if self._session and settled:
            planned.end = {
                "session_id": self._session,
                "status": "completed",
                "ended_at": self._latest,
            }
            yield planned

    def _parts(self, line: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """A line's kind and content; in old files a line is the item itself."""
        payload = line.get("payload")
        if isinstance(payload, Mapping) and isinstance(line.get("type"), str):
            return str(line["type"]), payload
        if not self._session and "id" in line and "type" not in line:
            return "session_meta", line
        if "record_type" in line:
            return str(line["record_type"]), line
        return ("response_item" if "type" in line else "line"), line

    def _meta(self, meta: Mapping[str, Any], planned: Planned) -> None:
        if self._session:  # That of the session whose history follows.
            # A subagent's file names its parent, too, but need not repeat what that did.
            self._replaying = self._replaying or (self._fork and not self._spawned)
            planned.notes[REPEATED] += 1
            return
        self._session = str(meta.get("id") or meta.get("session_id") or digest(meta)[:32])
        self._fork = bool(meta.get("forked_from_id"))
        source = meta.get("source")
        self._spawned = isinstance(source, Mapping) and "subagent" in source
        self._born = _minted(self._session) or parse_time(meta.get("timestamp")) or self._latest
        cwd = meta.get("cwd") if isinstance(meta.get("cwd"), str) else ""
        long = ("instructions", "base_instructions", "dynamic_tools")
        facts = {k: v for k, v in meta.items() if k not in long and v not in (None, "", {})}
        folder = PurePosixPath(str(cwd).replace("\\", "/")).name
        planned.start = {
            "session_id": self._session,
            "agent_id": self.defaults.agent_id or _AGENT,
            "user_id": self.defaults.user_id,
            "project": self.defaults.project or label(folder, planned.notes) or None,
            "tags": list(self.defaults.tags),
            "metadata": tidy(facts, planned.notes) or None,
            "started_at": parse_time(meta.get("timestamp")) or self._latest,
        }
        prompt = meta.get("base_instructions") or meta.get("instructions")
        text = prompt.get("text") if isinstance(prompt, Mapping) else prompt
        if isinstance(text, str) and text:
            self._plan(planned, iter([message_event("system", text, planned)]))

    def _repeats_its_origin(self, kind: str, payload: Mapping[str, Any]) -> bool:
        """Whether a line belongs to the history with which a forked session begins."""
        if not (self._fork or self._spawned) or self._born is None:
            return False
        turn = _minted(str(payload.get("turn_id") or ""))
        if turn is not None:  # Ids of turns tell when the turn began.
            self._replaying = turn < self._born
        elif not self._spawned and self._latest is not None and self._latest - self._born > _REPLAY:
            self._replaying = False  # The history is written at once, at the fork.
        return self._replaying

    def _deferred(self, kind: str, payload: Mapping[str, Any], planned: Planned) -> bool:
        """Whether a line only tells what another line tells, or may tell, as well."""
        shape = str(payload.get("type")) if kind == "event_msg" else None
        if kind == "response_item":
            self._match(payload)
            return False
        if shape in _SPOKEN or shape in _THOUGHT:
            role = _SPOKEN.get(shape, "thinking")
            text = str(payload.get("message") or payload.get("text") or "")
            self._show(role, text.strip(), payload, planned)
            return True
        if shape in _ENDS:
            call_id = str(payload.get("call_id") or payload.get("callId") or "")
            self._failed[call_id] = _has_failed(payload)
            if call_id not in self._answered:
                self._plan(planned, iter([self._end_of(payload, call_id, planned)]))
                self._ends[call_id] = _moved(planned)
            planned.notes[REPEATED] += 1
            return True
        if shape is not None and _SHOWN.search(shape):
            planned.notes[REPEATED] += 1
            return True
        return False

    def _release(self, *, before: int) -> Iterator[Planned]:
        """What was shown before that line, and was not written in the other form since."""
        while self._in_order and self._in_order[0][1].place.record < before:
            said, planned = self._in_order.popleft()
            if self._shown[said] and self._shown[said][0] is planned:
                self._shown[said].popleft()
                yield planned

    def _show(self, role: str, text: str, payload: Mapping[str, Any], planned: Planned) -> None:
        said = digest([role, text])
        if self._items[said]:
            self._items[said] -= 1
            planned.notes[REPEATED] += 1
            return
        if role == "thinking":
            event = thought(text, planned, {})
        else:
            pictures = {"images": payload["images"]} if payload.get("images") else {}
            event = message_event(role, text, planned, **tidy(pictures, planned.notes))
        self._plan(planned, iter([event]))
        waiting = _moved(planned)
        self._shown[said].append(waiting)
        self._in_order.append((said, waiting))

    def _match(self, item: Mapping[str, Any]) -> None:
        """Take note of what an item says, so that it does not count again when it is shown."""
        if item.get("type") == "message" and item.get("role") in _SPOKEN.values():
            said = [(str(item["role"]), text_of(item.get("content")).strip())]
        elif item.get("type") == "reasoning":
            parts = [*_list(item.get("summary")), *_list(item.get("content"))]
            said = [("thinking", text_of([part]).strip()) for part in parts]
        else:
            if str(item.get("type")).endswith("_call_output"):
                call_id = str(item.get("call_id") or "")
                self._answered.add(call_id)
                self._ends.pop(call_id, None)
            return
        for role, text in said:
            key = digest([role, text])
            if self._shown[key]:
                self._shown[key].popleft()
            else:
                del self._shown[key]
                self._items[key] += 1

    def _plan(self, planned: Planned, events: Iterator[dict[str, Any]]) -> None:
        """Add events of this line; their ids come from its number, for a rollout only grows."""
        for place, fields in enumerate(events):
            fields.pop("key", None)
            common = {"timestamp": self._latest}
            planned.add(self._session, f"{self._session}:{self._number}:{place}", common | fields)

    def _events(
        self, kind: str, payload: Mapping[str, Any], planned: Planned
    ) -> Iterator[dict[str, Any]]:
        shape = str(payload.get("type"))
        if kind == "response_item":
            yield from item_events(payload, self._calls, planned, self._failed)
        elif kind == "turn_context":
            self._model = str(payload.get("model") or self._model)
            yield raw(kind, payload, None, planned.notes, planned.kept)
        elif kind == "compacted":
            text = str(payload.get("message") or "")
            if payload.get("replacement_history"):
                planned.notes[REPEATED] += 1
            event = thought(text, planned, {})
            yield event | {"name": "compacted"}
        elif kind == "event_msg" and shape == "token_count":
            yield from self._usage(payload, planned)
        elif kind == "event_msg" and shape in _ERRORS:
            event = raw(shape, payload, None, planned.notes, planned.kept)
            words = payload.get("message")
            error = words if isinstance(words, str) else json.dumps(payload, ensure_ascii=False)
            error = clip(error, planned.notes)
            yield event | {"event_type": "error", "error": error, "searchable": None}
        else:
            known = (kind in _LINES and kind != "event_msg") or shape in _NOTES or kind == "state"
            name = shape if kind == "event_msg" else kind
            what = None if known else f"line {name!r}"
            yield raw(name, payload, what, planned.notes, planned.kept)

    def _usage(self, payload: Mapping[str, Any], planned: Planned) -> Iterator[dict[str, Any]]:
        """What an answer cost; a count that did not change is a repeat."""
        info = payload.get("info")
        last = info.get("last_token_usage") if isinstance(info, Mapping) else None
        total = info.get("total_token_usage") if isinstance(info, Mapping) else None
        if not isinstance(last, Mapping) or (total is not None and total == self._tokens):
            planned.notes[REPEATED] += 1
            return
        self._tokens = total
        yield {
            "event_type": "llm_response",
            "model": label(self._model, planned.notes),
            "input_tokens": count_of(last, "input_tokens"),
            "output_tokens": count_of(last, "output_tokens"),
            "payload": {"usage": tidy(last, planned.notes)},
        }

    def _end_of(self, end: Mapping[str, Any], call_id: str, planned: Planned) -> dict[str, Any]:
        """The answer of a call that ended, should no item say it."""
        text = next(
            (
                text_of(end[key])
                for key in ("aggregated_output", "result", "stdout")
                if end.get(key)
            ),
            "",
        )
        error = (text or str(end.get("stderr") or "it failed")) if self._failed[call_id] else None
        return tool_answer(self._calls.get(call_id, ""), call_id, text, error, notes=planned.notes)


def _moved(planned: Planned) -> Planned:
    """What was planned so far, apart, to be sent later or never."""
    apart = Planned(planned.place, events=planned.events, kept=planned.kept)
    planned.events, planned.kept = [], Counter()
    return apart


def _has_failed(end: Mapping[str, Any]) -> bool:
    result = end.get("result")
    if isinstance(result, Mapping) and ("Err" in result or "Ok" in result):
        inner = result.get("Ok")
        return "Err" in result or (isinstance(inner, Mapping) and inner.get("isError") is True)
    return end.get("success") is False or end.get("exit_code", 0) not in (0, None)


def _minted(uuid: str) -> datetime | None:
    """When a UUID of version 7 was made; None for others."""
    found = _UUID7.fullmatch(uuid)
    if found is None:
        return None
    return datetime.fromtimestamp(int(found[1] + found[2], 16) / 1000, UTC)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
