"""Sets of conversations with questions: read from the files that their authors publish.

None of them is part of this project; their licences say what they may be used for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.locomo_file import FormatError, read_conversations

_MAX_TEXT = 65_536
_START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    """One event of a conversation, or a memory, which has no session. `role` is "" where nobody has
    one."""

    id: str
    session: str
    text: str
    at: datetime
    role: str = ""


@dataclass(frozen=True)
class Asked:
    """A question, and the ids of the events that answer it."""

    text: str
    evidence: frozenset[str]
    kind: str = ""


@dataclass(frozen=True)
class Talk:
    """One conversation, or one user's memories: what a tenant holds, and is asked.

    `near` are questions on the same subject that nothing answers, `foreign` those on others.
    """

    id: str
    events: Sequence[Said]
    questions: Sequence[Asked]
    near: Sequence[str] = ()
    foreign: Sequence[str] = ()


def read_locomo(path: Path) -> list[Talk]:
    """Read two people's chats over months (LoCoMo)."""
    return [
        Talk(
            conversation.id,
            [
                Said(turn.id, session.id, turn.text, turn.at)
                for session in conversation.sessions
                for turn in session.turns
            ],
            [Asked(q.text, q.evidence, q.category) for q in conversation.questions],
        )
        for conversation in read_conversations(path)
    ]


def read_beam(path: Path) -> list[Talk]:
    """Read a user's questions and an assistant's long answers (BEAM, converted).

    A list of objects with `id`, `messages` (`id`, `session`, `day`, `role`, `text`) and `questions`
    (`kind`, `question`, `evidence`: ids of messages). Questions without an answer are left out.
    """
    return [_beam_talk(talk) for talk in _records(path)]


def _beam_talk(talk: Mapping[str, Any]) -> Talk:
    at = _START
    events = []
    for place, message in enumerate(talk["messages"]):
        if message["day"]:
            at = datetime.strptime(message["day"], "%B-%d-%Y").replace(tzinfo=UTC)
        when = at + timedelta(seconds=place)
        text = message["text"][:_MAX_TEXT]
        events.append(Said(str(message["id"]), message["session"], text, when, message["role"]))
    return Talk(str(talk["id"]), events, _asked(talk["questions"]))


def read_qmsum(path: Path) -> list[Talk]:
    """Read transcribed meetings (QMSum, converted).

    A list of objects with `id`, `turns` (`id`, `speaker`, `text`) and `questions` (`question`,
    `evidence`: ids of turns).
    """
    return [
        Talk(
            str(meeting["id"]),
            [
                Said(
                    str(turn["id"]),
                    "meeting",
                    f"{turn['speaker']}: {turn['text']}",
                    _START + timedelta(seconds=place),
                )
                for place, turn in enumerate(meeting["turns"])
            ],
            _asked(meeting["questions"]),
        )
        for meeting in _records(path)
    ]


def read_facts(folder: Path) -> list[Talk]:
    """Read users' facts, and questions in other words.

    A file `u*.json` for each user: an object with `user`, `facts` (`id`, `date`, `text`),
    `questions` (`q`, `answers`: ids of facts, `kind`), and texts of questions that no fact answers:
    `near` on the same user, `foreign` on other subjects.
    """
    return [_user(_record(path)) for path in sorted(folder.glob("u*.json"))]


def _user(user: Mapping[str, Any]) -> Talk:
    return Talk(
        user["user"],
        [
            Said(
                fact["id"],
                "",
                fact["text"],
                datetime.fromisoformat(fact["date"]).replace(tzinfo=UTC),
            )
            for fact in user["facts"]
        ],
        [Asked(item["q"], frozenset(item["answers"]), item["kind"]) for item in user["questions"]],
        near=user["near"],
        foreign=user["foreign"],
    )


READERS: Mapping[str, Callable[[Path], list[Talk]]] = {
    "locomo": read_locomo,
    "beam": read_beam,
    "qmsum": read_qmsum,
    "facts": read_facts,
}
"""The sets of which events or memories are searched, by name."""


@dataclass(frozen=True)
class Attempts:
    """Attempts at tasks (tau-bench): what each task asks for, by its number."""

    instructions: Mapping[int, str]
    runs: int


def read_attempts(path: Path) -> Attempts:
    """Read the tasks of tau-bench's trajectories; `mneme import` reads the rest."""
    runs = _records(path)
    tasks = {run["task_id"]: run["info"]["task"]["instruction"] for run in runs}
    return Attempts(tasks, len(runs))


def _asked(questions: Sequence[Mapping[str, Any]]) -> list[Asked]:
    return [
        Asked(item["question"], frozenset(map(str, item["evidence"])), item.get("kind", ""))
        for item in questions
        if item["evidence"]
    ]


def _records(path: Path) -> list[Any]:
    records = _read(path)
    if not isinstance(records, list):
        raise FormatError(f"{path}: expected a list")
    return records


def _record(path: Path) -> Mapping[str, Any]:
    record = _read(path)
    if not isinstance(record, dict):
        raise FormatError(f"{path}: expected an object")
    return record


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from error
