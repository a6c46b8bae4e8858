"""A support bot that knows its customers: what they told it once is recalled into the prompt.

    OPENAI_API_KEY=… .venv/bin/python examples/support_bot.py ann
    OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none OPENAI_MODEL=qwen3 \\
        .venv/bin/python examples/support_bot.py ann

Any model with OpenAI's form of API that can call tools will do; the second line is for Ollama. Say
these three things, the last one after you have started the bot anew:

    Please send my invoices by post.
    From now on, send my invoices by email.
    How will I get my invoices?

The model decides what is worth remembering and which older memory that replaces; the memory keeps
both and says which one holds. It lies in the folder `memory`, whose server starts and stops by
itself. `.venv/bin/mneme --local memory memories list --user ann --superseded` shows all of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import mneme
from mneme.types import RecallResult
from mneme.visible import QUOTED, visible_line
from openai import OpenAI

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
PROMPT = """\
You are the support bot of a shop. Answer in one or two sentences, from the memories below and from
what the customer says. If neither tells, say that you do not know. When the customer states a fact
or a wish that will matter later, call `remember`, and name the memories that are no longer true.
"""
REMEMBER: Any = {
    "type": "function",
    "function": {
        "name": "remember",
        "description": "Keep one fact about this customer for later conversations.",
        "parameters": {
            "type": "object",
            "properties": {
                "fact": {"type": "string", "description": "The fact, as one sentence."},
                "replaces": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "Numbers of the memories that it makes untrue.",
                },
            },
            "required": ["fact"],
        },
    },
}


def main() -> None:
    """Talk to one customer until they say nothing more."""
    customer = sys.argv[1] if len(sys.argv) > 1 else "ann"
    turns: list[Any] = []
    with OpenAI() as model, mneme.local("memory") as memory:
        for said in lines_of_customer():
            turns.append({"role": "user", "content": said})
            print(f"bot> {answer(model, memory, customer, turns)}", flush=True)


def lines_of_customer() -> Iterator[str]:
    """What is typed, or piped in, up to an empty line or the end."""
    try:
        while said := input("you> ").strip():
            yield said
    except EOFError:
        print()


def answer(model: OpenAI, memory: mneme.MnemeClient, customer: str, turns: list[Any]) -> str:
    """Recall, ask the model, remember what it wants remembered, and return what it says."""
    known = recalled(memory, customer, turns[-1]["content"])
    system: Any = {"role": "system", "content": f"{PROMPT}\n{quoted(known)}"}
    while True:
        asked = model.chat.completions.create(
            model=MODEL, messages=[system, *turns], tools=[REMEMBER]
        )
        message = asked.choices[0].message
        turns.append(message.model_dump(exclude_none=True))
        calls: list[Any] = message.tool_calls or []
        if not calls:
            return message.content or ""
        for call in calls:
            done = remember(memory, customer, known, json.loads(call.function.arguments))
            turns.append({"role": "tool", "tool_call_id": call.id, "content": done})


def recalled(memory: mneme.MnemeClient, customer: str, said: str) -> list[RecallResult]:
    """What is known of the customer that bears on what they say, and still holds."""
    found = memory.recall(
        said, scopes=["memory"], user_id=customer, limit=8, min_confidence=0.05
    ).results
    return [one for one in found if "until" not in one.metadata]


def quoted(known: list[RecallResult]) -> str:
    """Memories as data for a prompt: one line each, below a line that says so."""
    lines = [f"[{number}] {visible_line(one.text)}" for number, one in enumerate(known, 1)]
    return "\n".join([QUOTED, *(lines or ["(nothing bears on this)"])])


def remember(
    memory: mneme.MnemeClient, customer: str, known: list[RecallResult], given: dict[str, Any]
) -> str:
    """Store a fact; it can replace only what was recalled of the same customer."""
    replaced = [known[n - 1] for n in given.get("replaces", []) if 0 < n <= len(known)]
    ids = [one.source_id for one in replaced]
    memory.remember(given["fact"], user_id=customer, supersedes=ids)
    print(f"     remembered: {visible_line(given['fact'])}")
    for one in replaced:
        print(f"     instead of: {visible_line(one.text)}")
    return "Remembered."


if __name__ == "__main__":
    main()
