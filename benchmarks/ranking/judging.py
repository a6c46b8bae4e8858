"""What is found: questions asked of the stored sets in each mode, and with terms switched off."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from mneme import MnemeClient
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.memory.model import MEMORY
from mneme_server.features.recall.model import RecallMode, RecallQuery
from mneme_server.features.recall.ranking import TERMS, RankingWeights

from benchmarks.ranking.sets import Asked, Attempts, Talk
from benchmarks.ranking.store import Store, tenant_of
from benchmarks.retrieval import fraction_found
from benchmarks.session_questions import session_questions

CUT = 10
"""Results that are looked at."""
ATTEMPTS = 4
"""Attempts at each of tau-bench's tasks, and results that are looked at."""
MODES = {"hybrid": RecallMode.HYBRID, "dense": RecallMode.DENSE, "words": RecallMode.LEXICAL}

SEARCHED = frozenset({EVENT, MEMORY})
"""Kinds of memory that are searched."""

Ask: TypeAlias = Callable[[str, str], Sequence[str]]
"""Asks a tenant a question; returns the ids of the best `CUT` events."""


@dataclass
class Found:
    """Shares of the evidence among the first ten: each question's, and by group of questions.

    Groups are the kinds of questions, and "said by ROLE": of the evidence that this role said.
    """

    shares: list[float] = field(default_factory=list)
    groups: dict[str, list[float]] = field(default_factory=dict)

    def add(self, asked: Asked, found: Sequence[str], roles: Mapping[str, str]) -> None:
        """Judge one question; `roles` are the events' by id."""
        share = fraction_found(asked.evidence, found, CUT)
        self.shares.append(share)
        if asked.kind:
            self.groups.setdefault(asked.kind, []).append(share)
        for role in sorted({roles[event] for event in asked.evidence} - {""}):
            said = [event for event in asked.evidence if roles[event] == role]
            self.groups.setdefault(f"said by the {role}", []).append(
                fraction_found(said, found, CUT)
            )

    @property
    def mean(self) -> float:
        """The mean share over the questions."""
        return statistics.fmean(self.shares)

    def by_group(self) -> dict[str, float]:
        """The mean share of each group."""
        return {name: statistics.fmean(shares) for name, shares in sorted(self.groups.items())}


def judge(talks: Sequence[Talk], ask: Ask) -> Found:
    """Ask all questions."""
    found = Found()
    for talk in talks:
        roles = {said.id: said.role for said in talk.events}
        for asked in talk.questions:
            found.add(asked, ask(tenant_of(talk), asked.text), roles)
    return found


def asking(store: Store, mode: RecallMode, weights: RankingWeights | None = None) -> Ask:
    """Return what asks as the API does by default, with these weights."""

    def ask(tenant: str, text: str) -> Sequence[str]:
        query = RecallQuery(
            text=text, filter=DocumentFilter(kinds=SEARCHED), limit=CUT, mode=mode,
            weights=weights or RankingWeights(), every_copy=False,
        )  # fmt: skip
        return [result.document.source_id for result in store.recall.search(tenant, query).results]

    return ask


def ablations() -> Iterator[tuple[str, RankingWeights]]:
    """Yield each term with the weights that switch it off."""
    for name in TERMS:
        yield name, replace(RankingWeights(), **{name: 0.0})


@dataclass(frozen=True)
class Sessions:
    """How sessions are found: `attempts` is the mean share of a task's attempts among the first
    four, `first` tells of each of the twenty questions whether its first answer is right."""

    attempts: float
    first: Sequence[bool]


def judge_sessions(search: Callable[[str], Sequence[str]], attempts: Attempts) -> Sessions:
    """Search sessions by the tasks' instructions and by the twenty questions.

    Args:
        search: returns the ids of the best four sessions, the best first.
        attempts: the tasks.
    """
    shares = [
        sum(_task_of(session) == task for session in search(instruction)) / ATTEMPTS
        for task, instruction in attempts.instructions.items()
    ]
    first = [next(iter(search(q.text)), "") in q.sessions for q in session_questions()]
    return Sessions(statistics.fmean(shares), first)


def searches(client: MnemeClient) -> dict[str, Callable[[str], Sequence[str]]]:
    """Return the ways in which sessions are searched, by name."""

    def recall(mode: str) -> Callable[[str], Sequence[str]]:
        return lambda text: [
            result.source_id
            for result in client.recall(
                text,
                scopes=["session"],
                limit=ATTEMPTS,
                mode=mode,  # type: ignore[arg-type]
            ).results
        ]

    return {
        "Recall": recall("hybrid"),
        "SearchSessions": lambda text: [
            found.session.id for found in client.search_sessions(text, limit=ATTEMPTS).results
        ],
        "GetContext": lambda text: [
            found.session_id for found in client.get_context(text, limit=ATTEMPTS).sessions
        ],
        "dense": recall("dense"),
        "words": recall("lexical"),
    }


def _task_of(session_id: str) -> int:
    return int(session_id.split("-")[1])  # task-48-trial-0-…, as `mneme import` names them.
