"""What an agent does in a made-up session, before any format writes it down."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

WORDS = (
    *("flight", "ticket", "parser", "cache", "Straße", "東京", "retry", "schema"),
    *("'quote'", '"twice"', "back\\slash", "tab\there"),
)
TOOLS = ("Bash", "Read", "search_flights", "edit_file", "mcp__db__query")


@dataclass
class Call:
    """A call of a tool with its answer; `failed` is what the format marks as an error."""

    id: str
    tool: str
    arguments: dict[str, Any]
    answer: str
    failed: bool


@dataclass
class Turn:
    """A prompt of the user, and the model's answers to it, each with the calls it makes."""

    prompt: str
    answers: list[tuple[str, str, list[Call]]] = field(default_factory=list)


class Story:
    """Makes turns by a seed; the same seed tells the same story."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.time = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=seed)

    def turns(self) -> list[Turn]:
        return [
            Turn(
                self.words(6),
                [
                    (self.words(9), self.words(12), [self.call() for _ in range(self.some(2))])
                    for _ in range(1 + self.some(2))
                ],
            )
            for _ in range(2 + self.some(2))
        ]

    def call(self) -> Call:
        failed = self.random.random() < 0.3
        shape = self.random.random()
        if failed:
            answer = f"it went wrong: {self.words(5)}"
        elif shape < 0.3:
            answer = '{"rows": [1, 2.5, {"name": "ü"}], "more": false}'
        elif shape < 0.5:
            answer = "line\n" * self.some(40) + self.words(3)
        else:
            answer = self.words(10)
        arguments = {
            "path": self.words(2),
            "limit": self.some(1000),
            "nested": {"flags": [True, None, self.words(1)], "ratio": 0.25},
        }
        return Call(f"call_{self.hex(12)}", self.random.choice(TOOLS), arguments, answer, failed)

    def words(self, count: int) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(count)) + f" {self.hex(4)}"

    def some(self, most: int) -> int:
        return self.random.randint(0, most)

    def hex(self, length: int) -> str:
        return "".join(self.random.choice("0123456789abcdef") for _ in range(length))

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def now(self) -> str:
        self.time += timedelta(seconds=1 + self.random.random())
        return self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
