"""Attempts at the same: how often it was tried, how that went, and what tells those that succeeded
from those that failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from mneme.visible import visible_line

from mneme_server.common.humanize import day
from mneme_server.features.context.model import PastSession
from mneme_server.features.context.words import own_name
from mneme_server.features.events.history import active_us
from mneme_server.features.events.model import Outcome

_TOLD_TOOLS = 3
_ENDED = {
    Outcome.SUCCESS: "succeeded",
    Outcome.FAILURE: "failed",
    Outcome.PARTIAL: "partly succeeded",
    Outcome.UNKNOWN: "outcome unknown",
}
_COUNTED = {
    Outcome.SUCCESS: "succeeded",
    Outcome.PARTIAL: "succeeded partly",
    Outcome.FAILURE: "failed",
    Outcome.UNKNOWN: "nobody judged",
}


@dataclass(frozen=True, slots=True)
class TriedSession:
    """A session at a task, how it ended, and the tools that it called."""

    session_id: str
    outcome: Outcome
    at_us: int
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Attempts:
    """Several attempts at one task. `differed` says in words what tells those that succeeded from
    those that failed; "" where nothing that is known does."""

    task: str
    sessions: Sequence[TriedSession]
    differed: str = ""

    @property
    def succeeded(self) -> int:
        """How many are known to have succeeded."""
        return sum(one.outcome is Outcome.SUCCESS for one in self.sessions)

    @property
    def failed(self) -> int:
        """How many are known to have failed."""
        return sum(one.outcome is Outcome.FAILURE for one in self.sessions)


def attempts_of(task: str, tried: Iterable[PastSession]) -> Attempts:
    """Return the attempts at a task, the latest first, with the tools that tell those that
    succeeded from those that failed."""
    sessions = [
        TriedSession(
            one.session.id, one.session.outcome, active_us(one.session), frozenset(one.tools)
        )
        for one in tried
    ]
    said = [
        f"only those that {who} called {', '.join(tools)}"
        for who, tools in _apart((one.outcome, one.tools) for one in sessions)
    ]
    ordered = sorted(sessions, key=lambda one: (-one.at_us, one.session_id))
    return Attempts(task, ordered, "; ".join(said))


def told(attempts: Attempts) -> str:
    """Return attempts in words: how many, how they ended, what differed, and which they were."""
    count = len(attempts.sessions)
    unknown = count - attempts.succeeded - attempts.failed
    ended = [f"{attempts.succeeded} succeeded", f"{attempts.failed} failed"]
    if unknown:
        ended.append(f"of {unknown} it is not known")
    differed = f"; {attempts.differed}" if attempts.differed else ""
    named = ", ".join(
        f"{one.session_id} ({_ENDED[one.outcome]}, {day(one.at_us)})" for one in attempts.sessions
    )
    task = f"task {attempts.task}: " if attempts.task else ""
    return f"{task}tried {count} times, {', '.join(ended)}{differed}. Sessions: {named}"


def tries_of(last: PastSession, others: Sequence[PastSession]) -> list[PastSession]:
    """Return the sessions that were asked the same as the last one, it among them; none where no
    other was."""
    asked = _asked(last)
    same = [one for one in others if asked and _asked(one) == asked]
    by_id = {one.session.id: one for one in [last, *same]}
    return [*by_id.values()] if len(by_id) > 1 else []


def _asked(past: PastSession) -> str:
    """Return what a session was asked: the first line of what its events tell."""
    if past.summary is None or not past.session.event_count:
        return ""
    return " ".join(past.summary.text.split("\n", 1)[0].lower().split())


def said_of_tries(tries: Sequence[PastSession]) -> str:
    """Return how often the same was tried, how that went, and what differed."""
    counts = Counter(one.session.outcome for one in tries)
    went = [f"{counts[outcome]} {word}" for outcome, word in _COUNTED.items() if counts[outcome]]
    often = {2: "twice"}.get(len(tries), f"{len(tries)} times")
    differed = [
        f" Only those that {who} called {', '.join(map(visible_line, tools[:_TOLD_TOOLS]))}."
        for who, tools in _apart((one.session.outcome, _own_tools(one)) for one in tries)
    ]
    return f"The same was tried {often}: {', '.join(went)}.{''.join(differed)}"


def _own_tools(past: PastSession) -> set[str]:
    return {own_name(name) for name, _ in past.summary.tools} if past.summary else set()


def _apart(tried: Iterable[tuple[Outcome, Set[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Yield which tools all that succeeded called and none that failed, and the other way round."""
    by: dict[Outcome, list[Set[str]]] = defaultdict(list)
    for outcome, tools in tried:
        by[outcome].append(tools)
    for mine, others in ((Outcome.SUCCESS, Outcome.FAILURE), (Outcome.FAILURE, Outcome.SUCCESS)):
        if by[mine] and by[others]:
            only = frozenset.intersection(*map(frozenset, by[mine])).difference(*by[others])
            if only:
                yield _ENDED[mine], sorted(only)
