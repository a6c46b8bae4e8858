"""Twenty questions as people ask them about tau-bench's airline sessions, with the right sessions.

The questions were written before the ranking of sessions was worked on. They tell the situation,
not the words: no question has a word by which one task could be told, see `rare_words`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mneme_server.engine.index.words.analysis import analyzer

FEWEST_SESSIONS = 8
"""Sessions that must have a word which a question uses, unless none has: twice the attempts at a
task, 4 % of all sessions."""
_FILE = Path(__file__).with_name("session_questions.json")


@dataclass(frozen=True)
class SessionQuestion:
    """A question, and the sessions of which any is a right first answer.

    `sessions` are ids as `mneme import` makes them: all attempts at the tasks it is about.
    """

    text: str
    sessions: frozenset[str]


def session_questions() -> list[SessionQuestion]:
    """Read the questions."""
    entries = json.loads(_FILE.read_text(encoding="utf-8"))
    return [SessionQuestion(item["question"], frozenset(item["sessions"])) for item in entries]


def rare_words(questions: Sequence[str], sessions: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return, by question, its words that fewer than `FEWEST_SESSIONS` have, but some do.

    Words are compared as recall compares them: English stems without stop words.

    Args:
        questions: the questions.
        sessions: all that was said and done in each session.
    """
    stems, telling = analyzer(), analyzer(stop=True)
    having: Counter[str] = Counter()
    for text in sessions:
        having.update(set(stems.analyze(text)))
    rare = {
        question: {
            word: having[word]
            for word in telling.analyze(question)
            if 0 < having[word] < FEWEST_SESSIONS
        }
        for question in questions
    }
    return {question: words for question, words in rare.items() if words}
