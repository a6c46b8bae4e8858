"""The items of a context: what was found of every kind, ranked against each other by what it is
worth to the request, as many of them as the budget holds, and the text that they make.

What is stored stays data: each item is on one line behind what it is, or in a tag with its markup
escaped, and nothing of it passes for a heading, a tag or an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from xml.sax.saxutils import escape, quoteattr

from mneme.visible import QUOTED, visible_line

from mneme_server.common.clock import MICROSECONDS
from mneme_server.features.events.model import Outcome

_PER_TOKEN = 4
"""ASCII characters that count as a token: what English takes with the usual tokenizers."""


class ContextFormat(IntEnum):
    """How a context is written. The numbers are those of `mneme.v1.ContextFormat`."""

    MARKDOWN = 1
    XML = 2
    MESSAGES = 3


class ContextOutcome(Enum):
    """Why a context is what it is; the names are those of `mneme.v1.ContextOutcome`."""

    FOUND = "found"
    NOTHING_STORED = "nothing stored"
    NOTHING_SURE = "nothing sure enough"
    NOTHING_FITS = "nothing fits"


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


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something that bears on the request.

    `kind` is a kind of memory, `text` what it says, whole. `worth` is recall's score, 0 to 1, by
    which items of all kinds are ranked; `similarity` the cosine if it is known. `said_by` is the
    role that said it.
    """

    kind: str
    id: str
    text: str
    at_us: int
    worth: float
    similarity: float | None = None
    session_id: str = ""
    said_by: str = ""
    attempts: Attempts | None = None

    @property
    def day(self) -> str:
        """The day (UTC) of its date, in ISO's spelling."""
        return _day(self.at_us)

    @property
    def source(self) -> str:
        """What it is and where it comes from, in words."""
        if self.attempts is not None:
            return f"{len(self.attempts.sessions)} sessions at one task"
        # Ids that clients make of events begin with the session's.
        known = not self.session_id or self.id.startswith(self.session_id)
        of = "" if known else f" of session {self.session_id}"
        by = f", by {self.said_by}" if self.said_by else ""
        return visible_line(f"{self.kind} {self.id}{of}{by}")


@dataclass(frozen=True, slots=True)
class FittedItem:
    """An item that a context holds, and the tokens that its line counts."""

    item: ContextItem
    tokens: int


@dataclass(frozen=True, slots=True)
class Composition:
    """A context as it is read. `left_out` counts the items that did not fit; `text` is empty
    without any that did."""

    items: Sequence[FittedItem] = ()
    left_out: int = 0
    tokens: int = 0
    text: str = ""
    outcome: ContextOutcome = ContextOutcome.FOUND


def tokens_of(text: str) -> int:
    """Return the tokens that a text counts: one for each four characters of ASCII, begun ones too,
    and one for each other character."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // _PER_TOKEN) + len(text) - plain


def compose(items: Iterable[ContextItem], budget: int, written: ContextFormat) -> Composition:
    """Return the context that the items make, the strongest first; of equal ones the latest.

    An item is there whole or not at all: one that does not fit any more makes room for the next.
    """
    style = _STYLES[written]
    in_order = sorted(items, key=lambda one: (-one.worth, -one.at_us, one.kind, one.id))
    # What several say in the same words is told once.
    ranked = list({visible_line(one.text): one for one in reversed(in_order)}.values())[::-1]
    if not ranked:
        return Composition(outcome=ContextOutcome.NOTHING_SURE)
    used = tokens_of(style.around(""))
    fitted: list[FittedItem] = []
    lines: list[str] = []
    for item in ranked:
        line = style.line(item)
        tokens = tokens_of(f"{line}\n")
        if used + tokens <= budget:
            used += tokens
            fitted.append(FittedItem(item, tokens))
            lines.append(line)
    if not fitted:
        return Composition(left_out=len(ranked), outcome=ContextOutcome.NOTHING_FITS)
    text = style.around("\n".join(lines))
    return Composition(fitted, len(ranked) - len(fitted), used, text)


@dataclass(frozen=True, slots=True)
class _Style:
    """How items are written: each on a line of its own, and what stands around them all."""

    line: Callable[[ContextItem], str]
    around: Callable[[str], str]


def _markdown_line(item: ContextItem) -> str:
    return f"- {item.day}, {item.source}: {visible_line(item.text)}"


def _tagged_line(item: ContextItem) -> str:
    source = quoteattr(item.source)
    said = escape(visible_line(item.text))
    return f"<item date={quoteattr(item.day)} source={source}>{said}</item>"


_MARKDOWN = _Style(_markdown_line, f"{QUOTED}\n\n{{}}".format)
_TAGGED = _Style(_tagged_line, f'<memory note="{QUOTED.rstrip(":")}">\n{{}}\n</memory>'.format)
_STYLES = {
    ContextFormat.MARKDOWN: _MARKDOWN,
    ContextFormat.XML: _TAGGED,
    ContextFormat.MESSAGES: _TAGGED,
}


def attempts_of(task: str, sessions: Sequence[TriedSession]) -> Attempts:
    """Return the attempts at a task, the latest first, with the tools that tell those that
    succeeded from those that failed."""
    ordered = sorted(sessions, key=lambda one: (-one.at_us, one.session_id))
    by = {
        outcome: [one.tools for one in ordered if one.outcome is outcome]
        for outcome in (Outcome.SUCCESS, Outcome.FAILURE)
    }
    worked, failed = by[Outcome.SUCCESS], by[Outcome.FAILURE]
    said = []
    if worked and failed:
        for who, these, those in (
            ("succeeded", worked, failed), ("failed", failed, worked),
        ):  # fmt: skip
            only = frozenset.intersection(*these) - frozenset().union(*those)
            if only:
                said.append(f"only those that {who} called {', '.join(sorted(only))}")
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
        f"{one.session_id} ({_ENDED[one.outcome]}, {_day(one.at_us)})" for one in attempts.sessions
    )
    task = f"task {attempts.task}: " if attempts.task else ""
    return f"{task}tried {count} times, {', '.join(ended)}{differed}. Sessions: {named}"


_ENDED = {
    Outcome.SUCCESS: "succeeded",
    Outcome.FAILURE: "failed",
    Outcome.PARTIAL: "partly succeeded",
    Outcome.UNKNOWN: "outcome unknown",
}


def _day(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / MICROSECONDS, UTC).date().isoformat()
