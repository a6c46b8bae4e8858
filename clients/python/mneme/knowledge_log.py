"""The knowledge log as files: one line of JSON per experience, one file per project.

Lines are appended whether or not a server runs, and brought to one later. The files are
`<folder>/logs/<repo>.jsonl`, readable by people, `jq` and `grep`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.types import SuccessRate, SuccessRateFields

TYPES = ("error", "success", "pattern")

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RATE = re.compile(r"(\d{1,9})/(\d{1,9})")
_REQUIRED = ("repo", "event_type", "context", "lesson")
_TEXTS = ("agent_id", "repo", "event_type", "context", "command", "lesson", "success_rate")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log: where it is, and what it says or why it cannot be read."""

    path: Path
    number: int
    entry: dict[str, Any] | None
    problem: str = ""


def entry_of(
    *,
    project: str,
    event_type: str,
    context: str,
    lesson: str,
    agent_id: str = "",
    command: str = "",
    success_rate: str = "",
    tags: Iterable[str] = (),
    timestamp: datetime | None = None,
) -> dict[str, Any]:
    """An entry as it stands in a log.

    Raises:
        ValueError: a value cannot be used; the message says which and why.
    """
    moment = (timestamp or datetime.now(UTC)).astimezone(UTC)
    entry = {
        "timestamp": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "agent_id": agent_id,
        "repo": project,
        "event_type": event_type.lower(),
        "context": context,
        "command": command,
        "lesson": lesson,
        "success_rate": success_rate,
        "tags": sorted(set(tags)),
    }
    if problem := problem_of(entry):
        raise ValueError(problem)
    return entry


def append(folder: Path, entry: dict[str, Any]) -> Path:
    """Append an entry to its repository's log, durably, and return the file.

    Writers in several processes lose nothing of each other: each holds the file's lock while it
    adds its line in one write. A line that a crash cut off is ended first.

    Raises:
        OSError: the file cannot be written; nothing was added.
    """
    path = folder / "logs" / f"{entry['repo']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        end = os.fstat(descriptor).st_size
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) != len(line):
            os.ftruncate(descriptor, end)
            raise OSError(f"{path}: the disk is full; nothing was added")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path


@dataclass(slots=True)
class LogReader:
    """Reads a folder's logs from where it stopped the last time."""

    folder: Path
    _places: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def new_lines(self) -> Iterator[LogLine]:
        """Yield the lines that were added since the last call, by file, then by place.

        A line without its end is still being written; it comes next time. A file that became
        shorter was replaced, and is read anew.
        """
        for path in sorted((self.folder / "logs").glob("*.jsonl")):
            offset, number = self._places.get(path, (0, 0))
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < offset:
                    offset = number = 0
                file.seek(offset)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break
                    offset += len(raw)
                    number += 1
                    self._places[path] = (offset, number)
                    if raw.strip():
                        yield _line(path, number, raw)


def request_of(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of CreateKnowledge for an entry of a log."""
    return {
        "project": entry["repo"],
        "type": entry["event_type"],
        "context": entry["context"],
        "lesson": entry["lesson"],
        "agent_id": entry.get("agent_id", ""),
        "command": entry.get("command", ""),
        "success_rate": rate_of(entry.get("success_rate", "")),
        "tags": entry.get("tags", []),
        "timestamp": datetime.fromisoformat(entry["timestamp"]) if "timestamp" in entry else None,
    }


def rate_of(text: str) -> SuccessRateFields | None:
    """The success rate that a text "X/Y" says; None for an empty one.

    Raises:
        ValueError: it says none; the message says how it is written.
    """
    if problem := _rate_problem(text):
        raise ValueError(problem)
    successes, _, tries = text.partition("/")
    return {"successes": int(successes), "tries": int(tries)} if text else None


def rate_text(rate: SuccessRate) -> str:
    """A success rate as a log has it, "X/Y"; empty when it is not known."""
    return f"{rate.successes}/{rate.tries}" if rate.tries else ""


def problem_of(entry: Any) -> str:
    """Why an entry cannot be used; empty when it can."""
    if not isinstance(entry, dict):
        return "not a JSON object"
    wrong = [key for key in _TEXTS if not isinstance(entry.get(key, ""), str)]
    if wrong:
        return f"{wrong[0]} is not a text"
    missing = [key for key in _REQUIRED if not entry.get(key)]
    if missing:
        return f"{missing[0]} is missing"
    if entry["event_type"] not in TYPES:
        return f"event_type is {entry['event_type']!r:.120}, not one of {', '.join(TYPES)}"
    if not _REPO.fullmatch(entry["repo"]):
        return f"repo {entry['repo']!r:.120} is not a name: letters, digits, '.', '_' and '-'"
    return _rate_problem(entry.get("success_rate", "")) or _rest_problem(entry)


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: bytes of a command line that are no UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _rate_problem(rate: str) -> str:
    if not rate:
        return ""
    match = _RATE.fullmatch(rate)
    if not match or int(match[2]) < 1 or int(match[1]) > int(match[2]):
        return f"success_rate {rate!r:.120} is not X/Y with X at most Y and Y at least 1"
    return ""


def _rest_problem(entry: dict[str, Any]) -> str:
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return "tags is not a list of texts"
    texts = {"tags": "".join(tags), **{key: entry.get(key, "") for key in _TEXTS}}
    broken = [key for key, text in texts.items() if not _is_unicode(text)]
    if broken:
        return f"{broken[0]} holds what is not Unicode"
    try:
        moment = datetime.fromisoformat(entry.get("timestamp", "1970-01-01T00:00:00Z"))
    except (TypeError, ValueError):
        return f"timestamp {entry['timestamp']!r} is not an ISO time"
    return "" if moment.tzinfo else "timestamp has no time zone"


def _line(path: Path, number: int, raw: bytes) -> LogLine:
    try:
        entry = json.loads(raw)
    except ValueError as error:
        return LogLine(path, number, None, f"not JSON: {error}")
    except RecursionError:
        return LogLine(path, number, None, "nested too deep")
    problem = problem_of(entry)
    return LogLine(path, number, None if problem else entry, problem)
