"""Claude Code's session files, `~/.claude/projects/PROJECT/SESSION.jsonl`.

One line is a message, or a part of one: an answer spans the lines that share `message.id`, each of
which repeats its usage. A resumed session repeats the lines of the one before it, under its own
`sessionId` and their old `uuid`. A subagent's lines carry the session of its parent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from mneme.importing.blocks import block_events, llm_response
from mneme.importing.messages import parse_time, raw, text_of
from mneme.importing.plan import (
    REPEATED,
    Defaults,
    Planned,
    UnusableError,
    clean,
    clip,
    digest,
    label,
    tidy,
)
from mneme.importing.readers.base import Reader, attempted
from mneme.importing.reading import Broken, Place, Record
from mneme.importing.source import Source

_AGENT = "claude-code"
_FILES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
# Kept as they are, and not counted as unknown: what the tool notes for itself.
_NOTES = frozenset(
    [
        "summary",
        "system",
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "attachment",
        "progress",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-color",
        "agent-setting",
        "last-prompt",
        "permission-mode",
        "mode",
        "tag",
        "pr-link",
        "worktree-state",
        "content-replacement",
        "saved_hook_context",
        "task-summary",
        "marble-origami-commit",
    ]
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SAVED = re.compile(r"<persisted-output>.*?saved to:? +(?P<path>[^\n]+)", re.DOTALL)
# What such a note says of itself.
_WORDS = ("summary", "customTitle", "aiTitle")
_HELD = 1_000
WAITING = "answers whose usage is not known yet: the file ends in them"
GONE = "results of which only the beginning is left: their file in tool-results is gone"


@dataclass(slots=True)
class _Answer:
    """An answer of the model as far as its lines were read."""

    key: str
    session_id: str
    place: Place
    fields: dict[str, Any]
    ended: bool = False


class ClaudeCode(Reader):
    """Reads one session file, or that of a subagent."""

    name = "claude-code"
    title = "session files of Claude Code"
    by_line = True

    def __init__(self, source: Source, defaults: Defaults) -> None:
        super().__init__(source, defaults)
        named = source.path.name.partition(".")[0] if source.path is not None else ""
        self._own = named if _UUID.fullmatch(named) else ""
        self._started = False
        self._of_an_agent = True
        self._first: datetime | None = None
        self._latest: datetime | None = None
        self._held: list[tuple[Record, dict[str, Any]]] = []
        self._lines: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        # The answer under way, of the agent and of each subagent.
        self._answers: dict[str, _Answer] = {}

    @classmethod
    def detects(cls, value: Any) -> int:
        """Lines carry their session, or are notes that no other tool writes."""
        if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
            return 0
        if isinstance(value.get("sessionId"), str) and "eventType" not in value:
            return 90 if "uuid" in value or value["type"] in _NOTES else 40
        return 80 if "leafUuid" in value or value["type"] == "file-history-snapshot" else 0

    def read(self, record: Record) -> Iterator[Planned | Broken]:
        """Plan one line; lines without session and time wait until these are known."""
        line = record.value
        if not isinstance(line, Mapping):
            raise UnusableError("a line of a session is a JSON object")
        if not self._own and isinstance(line.get("sessionId"), str):
            self._own = line["sessionId"]
        self._latest = _time(line) or self._latest
        self._first = self._first or self._latest
        if (not self._own or self._latest is None) and len(self._held) < _HELD:
            self._held.append((record, dict(line)))
            return
        yield from self._release()
        yield from self._line(record, line)

    def finish(self) -> Iterator[Planned | Broken]:
        """Plan what waited, the usage of the last answers, and the end of the session."""
        settled = self.source.settled_since(self._latest)
        if settled:  # Else their session and time may still be written.
            if self._held and not self._own:
                self._own = f"{_AGENT}-{digest(self._held[0][0].unmasked)[:20]}"
            yield from self._release()
        for answer in self._answers.values():
            if answer.ended or settled:
                yield from self._usage(answer)
            else:
                planned = Planned(answer.place)
                planned.notes[WAITING] += 1
                yield planned
        # A file of a subagent neither starts nor ends the session of its parent.
        if settled and not self._of_an_agent:
            planned = Planned(Place(self.source.name, 0, 0))
            planned.start = None if self._started else self._start({}, planned)
            planned.end = {
                "session_id": self._own,
                "status": "completed",
                "ended_at": self._latest,
            }
            yield planned

    def companions(self) -> Iterable[Path]:
        """The files of the session's subagents."""
        path, folder = self.source.path, self._folder()
        if path is None or folder is None or folder in path.parents:
            return ()
        found = folder.glob("subagents/**/*.jsonl*")
        return sorted(path for path in found if path.name.endswith(_FILES))

    def _folder(self) -> Path | None:
        """Where what belongs to the session lies, beside its file or around a subagent's."""
        path = self.source.path
        if path is None:
            return None
        around = next((p for p in path.parents if p.name == "subagents"), None)
        return around.parent if around is not None else path.parent / self._own

    def _release(self) -> Iterator[Planned | Broken]:
        held, self._held = self._held, []
        for record, line in held:
            yield from attempted(record.place, self._line(record, line))

    def _line(self, record: Record, line: Mapping[str, Any]) -> Iterator[Planned | Broken]:
        planned = Planned(record.place, shared=True)
        session_id = line.get("sessionId")
        session_id = session_id if isinstance(session_id, str) and session_id else self._own
        self._of_an_agent = self._of_an_agent and bool(line.get("isSidechain"))
        # Notes before the first message do not say where the session is at work.
        if not self._started and session_id == self._own and _says_where(line):
            planned.start = self._start(line, planned)
        key = self._key(record, line)
        if key is None:
            planned.notes[REPEATED] += 1
        else:
            yield from self._before(line)
            common: dict[str, Any] = {"timestamp": _time(line) or self._latest}
            if line.get("isSidechain") or line.get("agentId"):
                about = {k: line[k] for k in ("agentId", "isSidechain") if line.get(k)}
                common["metadata"] = tidy(about, planned.notes)
            for number, fields in enumerate(self._events(line, planned)):
                planned.add(session_id, f"{key}:{number}", common | fields)
            self._note_usage(line, session_id, planned, common)
        yield planned

    def _start(self, line: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
        self._started = True
        facts = {k: line[k] for k in ("cwd", "gitBranch", "version") if line.get(k)}
        folder = PurePosixPath(str(line.get("cwd", "")).replace("\\", "/")).name
        return {
            "session_id": self._own,
            "agent_id": self.defaults.agent_id or _AGENT,
            "user_id": self.defaults.user_id,
            "project": self.defaults.project or label(folder, planned.notes) or None,
            "tags": list(self.defaults.tags),
            "metadata": tidy(facts, planned.notes) or None,
            "started_at": self._first,
        }

    def _key(self, record: Record, line: Mapping[str, Any]) -> str | None:
        """What the ids of a line's events begin with; None when the line was read before."""
        value = record.unmasked
        said = value.get("message", value) if isinstance(value, Mapping) else value
        content = digest(said)[:16]
        uuid = line.get("uuid")
        key = f"cc:{uuid}" if isinstance(uuid, str) and uuid else f"cc:{self._own}:{content}"
        if key in self._lines:
            if self._lines[key] == content:
                return None
            key = f"{key}:{content}"
            if key in self._lines:
                return None
        self._lines[key] = content
        return key

    def _events(self, line: Mapping[str, Any], planned: Planned) -> Iterator[dict[str, Any]]:
        kind, message = str(line.get("type", "line")), line.get("message")
        if kind in ("user", "assistant") and isinstance(message, Mapping):
            yield from self._message(line, message, planned)
            return
        name = f"{kind}:{line['subtype']}" if isinstance(line.get("subtype"), str) else kind
        unknown = None if kind in _NOTES else f"line {kind!r}"
        event = raw(name, line, unknown, planned.notes, planned.kept)
        words = next((line[key] for key in _WORDS if isinstance(line.get(key), str)), "")
        if words:
            event |= {"text": clip(clean(words, planned.notes), planned.notes), "searchable": None}
        if line.get("subtype") == "api_error":
            error = json.dumps(line.get("error", line.get("content")), ensure_ascii=False)
            event |= {"event_type": "error", "error": clip(error, planned.notes)}
        yield event

    def _message(
        self, line: Mapping[str, Any], message: Mapping[str, Any], planned: Planned
    ) -> Iterator[dict[str, Any]]:
        content = self._with_saved_results(message.get("content"), planned)
        details = line.get("toolUseResult")
        results = sum(
            isinstance(block, Mapping) and block.get("type") == "tool_result"
            for block in (content if isinstance(content, list) else ())
        )
        flags = {k: True for k in ("isMeta", "isCompactSummary") if line.get(k)}
        for event in block_events(str(line["type"]), content, self._calls, planned):
            if event["event_type"] in ("tool_response", "tool_error") and results == 1:
                event["payload"] |= _details(details, event, planned)
            if line.get("isApiErrorMessage") and event["event_type"] == "message":
                event |= {"event_type": "error", "name": "api_error", "error": event["text"]}
            event["payload"] |= flags
            if "isMeta" in flags:
                event["searchable"] = False
            yield event

    def _with_saved_results(self, content: Any, planned: Planned) -> Any:
        """The content with results that were too long for the line, from `tool-results`."""
        if not isinstance(content, list):
            return content
        return [self._whole(block, planned) for block in content]

    def _whole(self, block: Any, planned: Planned) -> Any:
        if not isinstance(block, Mapping) or block.get("type") != "tool_result":
            return block
        text = text_of(block.get("content"))
        saved = _SAVED.match(text.lstrip())
        folder = self._folder()
        if saved is None or folder is None:
            return block
        # Only the name counts: the path may be of another machine, and must not lead elsewhere.
        name = re.split(r"[/\\]", saved["path"].strip())[-1]
        try:
            whole = (folder / "tool-results" / name).read_text("utf-8", "replace")
        except OSError:
            planned.notes[GONE] += 1
            return block
        return {**block, "content": self.source.masked(whole)}

    def _before(self, line: Mapping[str, Any]) -> Iterator[Planned | Broken]:
        """Plan the usage of the answer that this line shows to be over."""
        chain = str(line.get("agentId") or line.get("isSidechain") or "")
        answer = self._answers.get(chain)
        if answer is not None and _ends(line, answer.key):
            del self._answers[chain]
            yield from self._usage(answer)

    def _note_usage(
        self,
        line: Mapping[str, Any],
        session_id: str,
        planned: Planned,
        common: dict[str, Any],
    ) -> None:
        message = line.get("message")
        usage = message.get("usage") if isinstance(message, Mapping) else None
        if line.get("type") != "assistant" or not isinstance(usage, Mapping):
            return
        assert isinstance(message, Mapping)
        if message.get("model") == "<synthetic>":
            return  # Words of the tool itself, which no model wrote.
        chain = str(line.get("agentId") or line.get("isSidechain") or "")
        facts = {
            "message_id": message.get("id"),
            "request_id": line.get("requestId"),
            "stop_reason": message.get("stop_reason"),
        }
        facts = {key: value for key, value in facts.items() if value is not None}
        event = llm_response(message.get("model"), usage, facts, planned)
        ended = message.get("stop_reason") is not None
        key = _answer_key(line, message)
        self._answers[chain] = _Answer(key, session_id, planned.place, common | event, ended)

    def _usage(self, answer: _Answer) -> Iterator[Planned | Broken]:
        """Plan what an answer cost; where that cannot be, what follows it is no worse for it."""

        def plan() -> Iterator[Planned]:
            planned = Planned(answer.place, shared=True)
            planned.add(answer.session_id, f"cc:{answer.key}:usage", answer.fields)
            yield planned

        return attempted(answer.place, plan())


def _says_where(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("cwd"), str) and not line.get("isSidechain")


def _ends(line: Mapping[str, Any], answer: str) -> bool:
    """Whether a line shows that an answer is over: another answer, or words of the user."""
    message = line.get("message")
    if not isinstance(message, Mapping):
        return False
    if line.get("type") == "assistant":
        return _answer_key(line, message) != answer
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    return not any(isinstance(b, Mapping) and b.get("type") == "tool_result" for b in blocks)


def _answer_key(line: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    return str(message.get("id") or line.get("uuid") or digest(message)[:16])


def _details(details: Any, event: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    """What the tool answered as the program keeps it, beside what it told the model."""
    said = event["payload"].get("result", event.get("error"))
    if details is None or details == said or details == f"Error: {event.get('error')}":
        return {}
    return {"details": tidy(details, planned.notes)}


def _time(line: Mapping[str, Any]) -> datetime | None:
    snapshot = line.get("snapshot")
    value = line.get("timestamp")
    if value is None and isinstance(snapshot, Mapping):
        value = snapshot.get("timestamp")
    return parse_time(value)
