"""How well recall ranks, on every set whose file is given, beside its two sides alone."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.context import Context
from benchmarks.ranking.files import OPTIONS
from benchmarks.ranking.judging import Found, Sessions
from benchmarks.ranking.run import measure_sessions, measure_set
from benchmarks.report import NO_BUDGET, Row, at_least, both

LEAST = {"locomo": 0.845, "beam": 0.58, "qmsum": 0.16}
"""Shares of the evidence among the first ten."""
LEAST_BY_THE_ASSISTANT = 0.15
ATTEMPTS, FIRST_RIGHT = 0.88, 17
_WAYS = ("Recall", "SearchSessions", "GetContext")


def run(context: Context) -> list[Row]:
    """Measure the sets; one whose file is not given says so."""
    rows = []
    for name, (variable, about) in OPTIONS.items():
        file = context.sets.get(name)
        if file is None:
            how = f"--{name} or {variable} names no file"
            rows.append(Row(f"Ranking, {name}", "", "skipped", NO_BUDGET, how))
        elif name == "tau-bench":
            rows += _sessions(measure_sessions(context.cache, file, "local", context.say), about)
        else:
            measured = measure_set(context.cache, name, file, "local", context.say, ablate=False)
            rows += _set(name, measured.modes, about)
    return rows


def _set(name: str, modes: Mapping[str, Found], about: str) -> list[Row]:
    shares = {mode: found.mean for mode, found in modes.items()}
    hybrid, parts = shares["hybrid"], max(shares["dense"], shares["words"])
    how = f"share of the evidence among the first ten; {about}"
    rows = [
        Row(
            f"Ranking, {name}",
            f"≥ {LEAST[name]}, and no less than dense or words alone",
            f"{hybrid:.3f}; dense {shares['dense']:.3f}, words {shares['words']:.3f}",
            both(at_least(hybrid, LEAST[name]), at_least(hybrid, parts)),
            how,
            shares,
        )
    ]
    for group in modes["hybrid"].by_group():
        if not group.startswith("said by"):
            continue
        said = {mode: found.by_group()[group] for mode, found in modes.items()}
        budget = LEAST_BY_THE_ASSISTANT if "assistant" in group else None
        rows.append(
            Row(
                f"Ranking, {name}, {group}",
                "" if budget is None else f"≥ {budget}",
                f"{said['hybrid']:.3f}; dense {said['dense']:.3f}, words {said['words']:.3f}",
                NO_BUDGET if budget is None else at_least(said["hybrid"], budget),
                how,
                said,
            )
        )
    return rows


def _sessions(found: Mapping[str, Sessions], about: str) -> list[Row]:
    parts = max(found["dense"].attempts, found["words"].attempts)
    rows = []
    for way in _WAYS:
        attempts, first = found[way].attempts, sum(found[way].first)
        rows += [
            Row(
                f"Sessions by {way}",
                f"≥ {ATTEMPTS}, and no less than dense or words alone",
                f"{attempts:.3f}; dense {found['dense'].attempts:.3f},"
                f" words {found['words'].attempts:.3f}",
                both(at_least(attempts, ATTEMPTS), at_least(attempts, parts)),
                f"a task's four attempts among the first four; {about}",
                {"attempts": attempts},
            ),
            Row(
                f"Twenty questions by {way}",
                f"{FIRST_RIGHT} right",
                f"{first} right at the first result",
                at_least(first, FIRST_RIGHT),
                "questions about the same sessions, in docs/recall.md",
                {"first_right": first},
            ),
        ]
    return rows
