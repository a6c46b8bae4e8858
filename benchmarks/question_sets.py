"""Sets of memories with questions on them, read from the files that their makers publish.

locomo      chats of two people (LoCoMo)
beam        a user's questions and an assistant's long answers (BEAM)
qmsum       transcribed meetings (QMSum)
tau-bench   an agent at work for an airline's customers (tau-bench)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"session_\d+")
_MOST_OF_A_RESULT = 4_000
_MOST_OF_A_TEXT = 65_536
"""What the API takes."""


@dataclass(frozen=True)
class Said:
    """One event to record."""

    id: str
    text: str
    session: str
    event_type: str = "message"
    role: str = ""
    name: str = ""


@dataclass(frozen=True)
class Asked:
    """A question. It is `answered` when the store holds evidence for it."""

    text: str
    answered: bool


@dataclass(frozen=True)
class Store:
    """What one tenant holds, and the questions on it."""

    of: str
    name: str
    events: tuple[Said, ...]
    questions: tuple[Asked, ...]


def read_stores(folder: Path) -> list[Store]:
    """Return the stores of all the sets that lie in `folder`.

    Raises:
        FileNotFoundError: there are none.
    """
    stores = [
        store
        for name, read in _READERS.items()
        for file in sorted((folder / name).glob("*.json"))
        for store in read(name, json.loads(file.read_text(encoding="utf-8")))
    ]
    if not stores:
        raise FileNotFoundError(f"{folder} holds none of {', '.join(_READERS)}")
    return stores


def _locomo(of: str, data: Any) -> Iterator[Store]:
    for sample in data:
        talk = sample["conversation"]
        events = [
            Said(turn["dia_id"], f"{turn['speaker']}: {turn['text']}", session)
            for session, turns in talk.items()
            if _SESSION.fullmatch(session)
            for turn in turns
        ]
        # Those of category 5 ask for what was never said.
        asked = [
            Asked(q["question"], bool(q["evidence"]) and q["category"] != 5) for q in sample["qa"]
        ]
        yield Store(of, sample["sample_id"], tuple(events), tuple(asked))


def _beam(of: str, data: Any) -> Iterator[Store]:
    for chat in data:
        events = [
            Said(
                str(m["id"]), m["text"][:_MOST_OF_A_TEXT], f"session {m['session']}", role=m["role"]
            )
            for m in chat["messages"]
        ]
        yield Store(of, str(chat["id"]), tuple(events), _asked(chat))


def _qmsum(of: str, data: Any) -> Iterator[Store]:
    for meeting in data:
        events = [
            Said(str(turn["id"]), f"{turn['speaker']}: {turn['text']}", "meeting")
            for turn in meeting["turns"]
        ]
        yield Store(of, str(meeting["id"]), tuple(events), _asked(meeting))


def _asked(of: Mapping[str, Any]) -> tuple[Asked, ...]:
    return tuple(Asked(q["question"], bool(q["evidence"])) for q in of["questions"])


def _tau_bench(of: str, data: Any) -> Iterator[Store]:
    events = [
        said
        for run in data
        for place, message in enumerate(run["traj"])
        for said in _of_message(f"task-{run['task_id']}-{run['trial']}", place, message)
    ]
    tasks = {run["task_id"]: run["info"]["task"]["instruction"] for run in data}
    asked = tuple(Asked(instruction, True) for instruction in tasks.values())
    yield Store(of, "airline", tuple(events), asked)


def _of_message(session: str, place: int, message: Mapping[str, Any]) -> Iterator[Said]:
    role, text = message["role"], message.get("content") or ""
    key = f"{session}-{place}"
    if role == "tool":
        name = message.get("name", "")
        failed = "tool_error" if text.startswith("Error") else "tool_response"
        yield Said(key, f"{name}: {text}"[:_MOST_OF_A_RESULT], session, failed, name=name)
        return
    if text and role != "system":
        yield Said(key, text, session, role=role)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        called = f"{function['name']}: {function['arguments']}"
        yield Said(f"{key}-call", called, session, "tool_call", name=function["name"])


_READERS: Mapping[str, Callable[[str, Any], Iterator[Store]]] = {
    "locomo": _locomo,
    "beam": _beam,
    "qmsum": _qmsum,
    "tau-bench": _tau_bench,
}
