"""Notes of a session's events, kept while they are read."""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mneme_server.common.masking import NO_MESSAGE, telling_part, template_of
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.index.words.languages import language_of
from mneme_server.features.context.model import SessionError, TouchedFile
from mneme_server.features.context.words import cut, looks, own_words, telling, words_of
from mneme_server.features.events.event_types import EventPart, role_of, traits_of
from mneme_server.features.events.history import EventDigest
from mneme_server.features.events.model import Session, Severity
from mneme_server.features.events.store.history import SqlActivity

MAX_TOOL_SEQUENCE = 50
_MAX_TEMPLATES = 200
_MAX_FILES = 200
_MAX_CALLS = 1_000
_MAX_WORDS = 5_000
_EVENTS_OF_AN_ERROR = 5
_NAMELESS_TAIL = 10
"""An error without a tool counts as unresolved when so few events or fewer came after it."""
MESSAGE_CHARS = 240
_OPENING = 3
"""Messages that may tell what is wanted: "I need help with a flight" comes before which flight."""
_ENOUGH_WORDS = 8
_ROLES = {"user": "user", "assistant": "assistant", "agent": "assistant"}

_FILE_KEYS = ("file_path", "path", "file", "filename", "notebook_path")
_FILE = re.compile(r"[^\s:*?\"<>|]{0,280}[^\s:*?\"<>|/\\]\.[A-Za-z]\w{0,7}")
_CHANGES = re.compile(r"edit|write|create|patch|replace|insert|apply|delete|move", re.IGNORECASE)
_PAGE = 2_000
_MAX_ARGUMENTS = 4_000
_SHORTEST_VALUE, _LONGEST_VALUE = 4, 200
"""Characters of an argument that names something: "yes" does not."""


def event_pages(tenant: OpenTenant, session_id: str) -> Iterator[Sequence[EventDigest]]:
    """Yield a session's events in the order of their sequence, page by page.

    A long session takes no more memory than a short one, and no reader keeps the write-ahead log
    from being emptied: each page is read in a transaction of its own.
    """
    last_sequence = 0
    while True:
        with tenant.read() as unit:
            page = unit.get(SqlActivity).digests(session_id, last_sequence, _PAGE)
        yield page
        if len(page) < _PAGE:
            return
        last_sequence = page[-1].sequence


@dataclass(slots=True)
class _Error:
    example: str
    tool: str
    count: int = 0
    last_sequence: int = 0
    event_ids: list[str] = field(default_factory=list)
    got_round: bool = False


@dataclass(slots=True)
class _Speaker:
    """What somebody said first and last, as far as it tells something."""

    first: str = ""
    last: str = ""
    messages: int = 0

    def says(self, said: str, answer: str) -> None:
        """Hear a message; `answer` is what of it may be the last word."""
        if self.messages < _OPENING and own_words(self.first) < _ENOUGH_WORDS:
            self.first = f"{self.first} {said}".strip()
            self.messages += 1
        self.last = cut(answer, MESSAGE_CHARS) or self.last


class SessionNotes:
    """What is kept of a session's events while they are read, in bounded space.

    `add` takes the events in the order of their sequence.
    """

    def __init__(self) -> None:
        self.tools: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.sequence: list[str] = []
        self.files: OrderedDict[str, TouchedFile] = OrderedDict()
        self.need = ""  # What the user, or else anybody, asked first.
        self.end = ""  # What the agent, or else anybody, said last.
        self._speakers: dict[str, _Speaker] = {}
        self._language = ""
        self.last_sequence = 0
        self.first_us: int | None = None
        self.last_us: int | None = None
        self._errors: OrderedDict[tuple[str, str], _Error] = OrderedDict()
        self._worked: dict[str, int] = {}
        self._calls: OrderedDict[str, str] = OrderedDict()
        # What calls were about, by their ids, and the failures that were about it.
        self._about: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._failed_about: dict[str, dict[int, _Error]] = {}

    def add(self, events: Iterable[EventDigest]) -> None:
        """Read some more events."""
        for event in events:
            self.last_sequence = event.sequence
            at = event.timestamp_us
            self.first_us = at if self.first_us is None else min(self.first_us, at)
            self.last_us = at if self.last_us is None else max(self.last_us, at)
            if event.model:
                self.models[event.model] += 1
            part = traits_of(event.event_type).part
            if part is EventPart.FAILURE or event.severity >= Severity.ERROR:
                self._failed(event)
            elif part is EventPart.CALL:
                self._called(event)
            elif part in (EventPart.ANSWER, EventPart.RECOVERY):
                self._worked[self._tool_of(event)] = event.sequence
                self._get_round(event)
            elif part is EventPart.TALK:
                self._said(event)
        user = self._speakers.get("user")
        everyone = self._speakers.get("")
        asks = next((who for who in (user, everyone) if who and who.first), None)
        self.need = asks.first if asks else ""
        agent = self._speakers.get("assistant")
        answers = next((who for who in (agent, everyone) if who and who.last), None)
        self.end = answers.last if answers else ""

    def errors(self, *, succeeded: bool = False) -> list[SessionError]:
        """Return the errors, the most frequent first; of a session that `succeeded`, as others say
        than its agent, all are resolved: it got round them."""
        found = [
            SessionError(
                template=template,
                example=error.example,
                tool=error.tool,
                count=error.count,
                event_ids=tuple(error.event_ids),
                resolved=succeeded or self._is_resolved(error),
            )
            for (_, template), error in self._errors.items()
        ]
        return sorted(found, key=lambda error: -error.count)

    def _called(self, event: EventDigest) -> None:
        if event.name:
            self.tools[event.name] += 1
            if not self.sequence or self.sequence[-1] != event.name:
                self.sequence.append(event.name)
                del self.sequence[MAX_TOOL_SEQUENCE + 1 :]
            if event.call_id:
                self._calls[event.call_id] = event.name
                self._about[event.call_id] = _values_in(event.payload_json)
                if len(self._calls) > _MAX_CALLS:
                    self._calls.popitem(last=False)
                    self._about.popitem(last=False)
        for path in _files_in(event.payload_json):
            changed = bool(_CHANGES.search(event.name)) and not looks(event.name)
            before = self.files.get(path)
            is_new = before is None and len(self.files) < _MAX_FILES
            if is_new or (before is not None and changed and not before.changed):
                self.files[path] = TouchedFile(path, event.id, changed)

    def _failed(self, event: EventDigest) -> None:
        message = event.error or event.text
        template = template_of(message)
        if template == NO_MESSAGE:
            template = f"{event.name} failed" if event.name else "error"
        # That one tool works again says nothing of another that failed with the same words.
        tool = self._tool_of(event)
        error = self._errors.get((tool, template))
        if error is None:
            if len(self._errors) >= _MAX_TEMPLATES:
                return
            example = cut(telling_part(message), MESSAGE_CHARS) or template
            error = self._errors[tool, template] = _Error(example, tool)
        error.count += 1
        error.last_sequence = event.sequence
        error.got_round = False
        for value in self._about.get(event.call_id, ()):
            self._failed_about.setdefault(value, {})[id(error)] = error
        error.event_ids = [*error.event_ids, event.id][-_EVENTS_OF_AN_ERROR:]

    def _get_round(self, event: EventDigest) -> None:
        """Take failures as got round that were about the same, where another tool did it: one that
        only looks does not do what one that changes could not."""
        tool = self._tool_of(event)
        for value in self._about.get(event.call_id, ()):
            left = {}
            for key, error in self._failed_about.pop(value, {}).items():
                if looks(tool) and not looks(error.tool):
                    left[key] = error
                else:
                    error.got_round = True
            if left:
                self._failed_about[value] = left

    def _said(self, event: EventDigest) -> None:
        role = _role_of(event)
        if not event.text or role == "system":
            return
        said = telling(event.text)
        if not said:
            return
        if len(self.words) < _MAX_WORDS:
            # A short message does not tell its language: it is taken to be in that of those before.
            self._language = language_of(said) or self._language
            self.words.update(words_of(said, self._language))
        who = _ROLES.get(role, "")
        answer = telling(event.text, answers_only=True) if who == "assistant" else said
        for name in {"", who}:
            self._speakers.setdefault(name, _Speaker()).says(said, answer)

    def _tool_of(self, event: EventDigest) -> str:
        return event.name or self._calls.get(event.call_id, "")

    def _is_resolved(self, error: _Error) -> bool:
        if error.got_round:
            return True
        if error.tool:
            return self._worked.get(error.tool, 0) > error.last_sequence
        return self.last_sequence - error.last_sequence > _NAMELESS_TAIL


def duration_s(session: Session, notes: SessionNotes) -> int:
    """Return how long a session took by its events, in seconds; 0 when they do not say."""
    if notes.last_us is None or notes.first_us is None:
        return 0
    first = min(notes.first_us, session.started_us) if session.declared else notes.first_us
    return max(0, (notes.last_us - first) // 1_000_000)


def _values_in(payload_json: str) -> frozenset[str]:
    """Return what the arguments of a call name: ids, paths, numbers of orders."""
    if len(payload_json) > _MAX_ARGUMENTS:
        return frozenset()
    payload = json.loads(payload_json) if payload_json not in ("", "{}") else {}
    found: set[str] = set()
    for place in [payload, *(payload.get(key) for key in ("arguments", "input", "args", "kwargs"))]:
        for value in place.values() if isinstance(place, dict) else ():
            text = str(value) if isinstance(value, str | int) and value is not True else ""
            if _SHORTEST_VALUE <= len(text) <= _LONGEST_VALUE and not text.isspace():
                found.add(text)
    return frozenset(found)


def _files_in(payload_json: str) -> list[str]:
    """Return the files that a tool's arguments name."""
    if not any(f'"{key}"' in payload_json for key in _FILE_KEYS):
        return []
    payload = json.loads(payload_json)
    places = [payload, *(payload.get(key) for key in ("arguments", "input", "args", "kwargs"))]
    named = [place.get(key) for place in places if isinstance(place, dict) for key in _FILE_KEYS]
    return [path for path in named if isinstance(path, str) and _FILE.fullmatch(path)]


def _role_of(event: EventDigest) -> str:
    payload = json.loads(event.payload_json) if '"role"' in event.payload_json else {}
    return role_of(event.event_type, payload, event.text)
