"""The twenty questions about sessions: that they are fair can be checked wherever the runs are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.session_questions import rare_words, session_questions

_VARIABLE = "TAU_BENCH_FILE"
_FILE = Path(os.environ.get(_VARIABLE) or "tests/data/tau-bench/gpt-4o-airline.json")


def said_and_done(runs: list[dict[str, Any]]) -> Iterator[str]:
    """All that is recorded of each run but the agent's policy, which is the same for all."""
    for run in runs:
        told = [message for message in run["traj"] if message["role"] != "system"]
        yield " ".join(f"{m.get('content') or ''} {json.dumps(m.get('tool_calls'))}" for m in told)


def test_there_are_twenty_questions_each_asked_once_and_with_a_right_answer() -> None:
    questions = session_questions()
    assert len({question.text for question in questions}) == len(questions) == 20
    assert all(question.sessions for question in questions)


def test_a_word_is_rare_when_some_sessions_have_it_but_few() -> None:
    sessions = ["flights and parrots"] * 7 + ["flights"] * 3
    asked = "Which parrots had flights booked?"
    assert rare_words([asked], sessions) == {asked: {"parrot": 7}}
    assert rare_words([asked], [*sessions, "a parrot"]) == {}


def test_no_question_uses_words_that_only_few_sessions_have() -> None:
    if not _FILE.exists():
        pytest.skip(f"set {_VARIABLE} to tau-bench's trajectories: {_FILE} does not exist")
    runs = json.loads(_FILE.read_text())
    asked = [question.text for question in session_questions()]
    assert rare_words(asked, said_and_done(runs)) == {}
