"""Reading LoCoMo's file format: conversations in sessions, and questions with evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"session_(\d+)")
_BETWEEN_IDS = re.compile(r"[;,\s]+")
_WHEN = "%I:%M %p on %d %B, %Y"


class FormatError(Exception):
    """The file is not in LoCoMo's format; the message says where."""


@dataclass(frozen=True)
class Turn:
    """Something that was said. `text` has the speaker and the caption of a shared picture."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Session:
    """Turns of one day."""

    id: str
    started_at: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Question:
    """A question and the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True)
class Conversation:
    """Sessions in order, and what is asked about them.

    `without_evidence` counts the questions left out because none of their evidence is a turn.
    """

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    without_evidence: int

    @property
    def session_of(self) -> dict[str, str]:
        """Sessions' ids by turns' ids."""
        return {turn.id: session.id for session in self.sessions for turn in session.turns}


def read_conversations(path: Path) -> list[Conversation]:
    """Read a file.

    Raises:
        FormatError: it cannot be read, or is no such file.
    """
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from error
    if not isinstance(records, list):
        raise FormatError(f"{path}: expected a list of conversations")
    conversations = []
    for number, record in enumerate(records):
        try:
            conversations.append(_conversation(record, number))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(
                f"{path}: conversation {number + 1}: {type(error).__name__}: {error}"
            ) from error
    return conversations


def evidence_ids(evidence: str) -> list[str]:
    """Return the ids in one evidence string, which may hold several."""
    return [part for part in _BETWEEN_IDS.split(evidence) if part]


def _conversation(record: Mapping[str, Any], number: int) -> Conversation:
    talk = record["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
    sessions = tuple(_session(talk, n) for n in numbers if talk[f"session_{n}"])
    turns = {turn.id for session in sessions for turn in session.turns}
    questions = [_question(item, turns) for item in record["qa"]]
    asked = tuple(question for question in questions if question.evidence)
    return Conversation(
        id=str(record.get("sample_id", number + 1)),
        sessions=sessions,
        questions=asked,
        without_evidence=len(questions) - len(asked),
    )


def _session(talk: Mapping[str, Any], number: int) -> Session:
    name = f"session_{number}"
    start = datetime.strptime(talk[f"{name}_date_time"], _WHEN).replace(tzinfo=UTC)
    turns = tuple(
        Turn(id=turn["dia_id"], text=_text(turn), at=start + timedelta(seconds=place))
        for place, turn in enumerate(talk[name])
    )
    return Session(id=name, started_at=start, turns=turns)


def _text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    said = f"{turn['speaker']}: {turn['text']}"
    return f"{said} [shares {caption}]" if caption else said


def _question(item: Mapping[str, Any], turns: set[str]) -> Question:
    ids = [found for text in item.get("evidence", ()) for found in evidence_ids(text)]
    return Question(
        text=item["question"],
        evidence=frozenset(ids) & turns,
        category=str(item.get("category", "")),
    )
