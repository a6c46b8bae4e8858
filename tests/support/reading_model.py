"""A model that knows nothing but the memories quoted in its prompt.

To a question it repeats every quoted memory that shares a word with it. Anything else it has
remembered, in place of the quoted memories that are about the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mneme.visible import QUOTED

from support.model import ChatModel, serving

UNKNOWN = "I do not know."
_MEMORY = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_WORD_LENGTH = 5
"""Shorter words are in every sentence."""


@dataclass(frozen=True)
class ReadingModel:
    """Where it is served, and the prompts that it was given."""

    url: str
    prompts: list[str] = field(default_factory=list)


@contextmanager
def serving_reading_model() -> Iterator[ReadingModel]:
    """Serve it for the block."""
    prompts: list[str] = []

    class Handler(ChatModel):
        def message_for(self, asked: dict[str, Any]) -> dict[str, Any]:
            system, *turns = asked["messages"]
            prompts.append(system["content"])
            return _said(_quoted_in(system["content"]), turns[-1])

    with serving(Handler) as address:
        yield ReadingModel(f"{address}/v1", prompts)


def _quoted_in(prompt: str) -> dict[int, str]:
    """The memories below the line that says that they are quoted, by their numbers."""
    _, _, below = prompt.partition(QUOTED)
    return {int(number): text for number, text in _MEMORY.findall(below)}


def _said(known: dict[int, str], turn: dict[str, Any]) -> dict[str, Any]:
    if turn["role"] == "tool":
        return {"content": "Noted."}
    related = [number for number, text in known.items() if _words(text) & _words(turn["content"])]
    if turn["content"].endswith("?"):
        told = "; ".join(known[number] for number in related)
        return {"content": f"You told me: {told}" if told else UNKNOWN}
    arguments = json.dumps({"fact": turn["content"], "replaces": related})
    call = {"name": "remember", "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) >= _WORD_LENGTH}
