"""One set from its file to its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mneme_server.features.recall.model import RecallMode

from benchmarks.ranking.judging import (
    MODES,
    Found,
    Sessions,
    ablations,
    asking,
    judge,
    judge_sessions,
    searches,
)
from benchmarks.ranking.sets import READERS, read_attempts
from benchmarks.ranking.store import import_runs, record, stored

_TENANT = "attempts"


@dataclass(frozen=True)
class SetResult:
    """What was found in each mode, and in hybrid without each term."""

    questions: int
    modes: Mapping[str, Found]
    ablated: Mapping[str, Found]

    @property
    def groups(self) -> Sequence[str]:
        """The groups of questions, where there are any that say something."""
        return [name for name in self.modes["hybrid"].by_group() if not name.isdigit()]


def measure_set(
    cache: Path, name: str, file: Path, embedder: str, say: Callable[[str], None], *, ablate: bool
) -> SetResult:
    """Ask a set's questions."""
    talks = READERS[name](file)
    with stored(cache, name, file, embedder, lambda store: record(store, talks), say) as store:
        say(f"{name}: asking")
        modes = {mode: judge(talks, asking(store, how)) for mode, how in MODES.items()}
        ablated = {}
        for term, weights in ablations() if ablate else ():
            say(f"{name}: without {term}")
            ablated[term] = judge(talks, asking(store, RecallMode.HYBRID, weights))
    questions = sum(len(talk.questions) for talk in talks)
    return SetResult(questions, modes, ablated)


def measure_sessions(
    cache: Path, file: Path, embedder: str, say: Callable[[str], None]
) -> dict[str, Sessions]:
    """Search tau-bench's sessions in every way."""
    attempts = read_attempts(file)

    with stored(
        cache, "tau-bench", file, embedder,
        lambda store: import_runs(store, file, _TENANT, attempts.runs), say,
    ) as store:  # fmt: skip
        client = store.client(_TENANT)
        found = {}
        for way, search in searches(client).items():
            say(f"tau-bench: {way}")
            found[way] = judge_sessions(search, attempts)
        return found
