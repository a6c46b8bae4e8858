"""How well evidence was found: the arithmetic."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

CUTS = (5, 10)
METRICS = tuple(
    f"{prefix}{kind}@{cut}"
    for prefix in ("", "session ")
    for kind in ("recall", "any")
    for cut in CUTS
)
"""Names of the metrics of a question: of turns, and of sessions."""


@dataclass(frozen=True)
class Judged:
    """One question's metrics, by name, each 0 to 1."""

    conversation: str
    category: str
    metrics: Mapping[str, float]


def fraction_found(evidence: Collection[T], ranked: Sequence[T], cut: int) -> float:
    """Return which part of the evidence is among the first `cut`.

    Raises:
        ValueError: there is no evidence.
    """
    wanted = set(evidence)
    if not wanted:
        raise ValueError("a question without evidence cannot be judged")
    return len(wanted.intersection(ranked[:cut])) / len(wanted)


def any_found(evidence: Collection[T], ranked: Sequence[T], cut: int) -> float:
    """Return 1 when some of the evidence is among the first `cut`, else 0."""
    return float(fraction_found(evidence, ranked, cut) > 0)


def distinct(ranked: Iterable[T]) -> list[T]:
    """Return the items in their order, each once."""
    return list(dict.fromkeys(ranked))


def judge(
    evidence: Collection[str],
    session_of: Mapping[str, str],
    turns: Sequence[str],
    sessions: Sequence[str],
) -> dict[str, float]:
    """Return the metrics of one question.

    Args:
        evidence: ids of the turns that answer it.
        session_of: sessions by turn.
        turns: ids of the turns found, the best first.
        sessions: their sessions, from a longer list; repeats count once.
    """
    found = distinct(sessions)
    wanted = {session_of[turn] for turn in evidence}
    metrics: dict[str, float] = {}
    for cut in CUTS:
        metrics[f"recall@{cut}"] = fraction_found(evidence, turns, cut)
        metrics[f"any@{cut}"] = any_found(evidence, turns, cut)
        metrics[f"session recall@{cut}"] = fraction_found(wanted, found, cut)
        metrics[f"session any@{cut}"] = any_found(wanted, found, cut)
    return metrics


def means(judged: Sequence[Judged]) -> dict[str, float]:
    """Return the mean of each metric over the questions.

    Raises:
        ValueError: there are no questions.
    """
    if not judged:
        raise ValueError("no question was asked")
    return {name: statistics.fmean(item.metrics[name] for item in judged) for name in METRICS}


def means_by(judged: Sequence[Judged], key: Callable[[Judged], str]) -> dict[str, dict[str, float]]:
    """Return the means of each group, with the number of its questions as "questions"."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        groups.setdefault(key(item), []).append(item)
    return {
        name: {"questions": float(len(group)), **means(group)}
        for name, group in sorted(groups.items())
    }
