"""The items of a context: what was found of every kind, ranked against each other by what it is
worth to the request, as many of them as the budget holds, and the text that they make.

What is stored stays data: each item is on one line behind what it is, or in a tag with its markup
escaped, and nothing of it passes for a heading, a tag or an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from xml.sax.saxutils import escape, quoteattr

from mneme.visible import QUOTED, visible_line

from mneme_server.common.humanize import day
from mneme_server.common.passages import around
from mneme_server.features.context.attempts import Attempts, told
from mneme_server.features.context.experience import Attempt, ProvenSkill
from mneme_server.features.context.model import SESSION, ContextSession
from mneme_server.features.context.words import without_tokens
from mneme_server.features.events.history import active_us
from mneme_server.features.learn.model import (
    LESSON,
    REFLECTION,
    FoundLesson,
    FoundReflection,
    Reflection,
)
from mneme_server.features.recall.model import Recalled

_PINNED_SHARE = 4
"""What is pinned takes a quarter of the budget at most: the rest is for the request."""
_PER_TOKEN = 4
"""ASCII characters that count as a token: what English takes with the usual tokenizers."""
_SHOWN_WHOLE = 1_600
"""Characters of a text that a context holds whole; of longer ones what bears on the topic."""
_EXCERPT = 800
"""Characters of that: some ten sentences."""


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
    ONLY_PINNED = "only what is pinned"


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something that bears on the request.

    `kind` is a kind of memory. `text` is what it says, whole; of a long one an `excerpt`: what
    bears on the request, with what stands next to it. `worth` is recall's score, 0 to 1, by which
    items of all kinds are ranked; `similarity` the cosine if it is known. `said_by` is the role
    that said it, `note` what else is to be told of it beside its source; `pinned` that it is there
    whatever it is worth.
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
    excerpt: bool = False
    note: str = ""
    pinned: bool = False

    @property
    def day(self) -> str:
        """The day (UTC) of its date, in ISO's spelling."""
        return day(self.at_us)

    @property
    def source(self) -> str:
        """What it is and where it comes from, in words."""
        if self.attempts is not None:
            return f"{len(self.attempts.sessions)} sessions at one task"
        # Ids that clients make of events begin with the session's.
        known = not self.session_id or self.id.startswith(self.session_id)
        of = "" if known else f" of session {self.session_id}"
        by = f", by {self.said_by}" if self.said_by else ""
        part = "part of " if self.excerpt else ""
        note = f", {self.note}" if self.note else ""
        return visible_line(f"{part}{self.kind} {self.id}{of}{by}{note}")


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


def compose(
    items: Iterable[ContextItem],
    budget: int,
    written: ContextFormat,
    pinned: Sequence[ContextItem] = (),
) -> Composition:
    """Return the context that the items make, the strongest first; of equal ones the latest.

    Before them come those that are `pinned`, in their order, as many as fit their share of the
    budget; a pinned one among the items that does not fit it stands where its worth puts it.
    """
    items = list(items)
    found = {(one.kind, one.id): one for one in items}
    first = [_worth_of(found.get((one.kind, one.id)), one) for one in pinned]
    first = [one.item for one in in_turn(first, budget // _PINNED_SHARE, written).items]
    there = {(one.kind, one.id) for one in first}
    rest = [one for one in items if (one.kind, one.id) not in there]
    rest.sort(key=lambda one: (-one.worth, -one.at_us, one.kind, one.id))
    composed = in_turn([*first, *rest], budget, written)
    unfit = sum((one.kind, one.id) not in there | found.keys() for one in pinned)
    outcome = composed.outcome
    if first and not found:
        outcome = ContextOutcome.ONLY_PINNED
    return replace(composed, left_out=composed.left_out + unfit, outcome=outcome)


def _worth_of(found: ContextItem | None, pinned: ContextItem) -> ContextItem:
    if found is None:
        return pinned
    return replace(pinned, worth=found.worth, similarity=found.similarity)


def in_turn(in_order: Sequence[ContextItem], budget: int, written: ContextFormat) -> Composition:
    """Return the context that items make in their order.

    An item is there whole or not at all: one that does not fit any more makes room for the next.
    What several say in the same words is told once.
    """
    style = _STYLES[written]
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
    return Composition(fitted, len(ranked) - len(fitted), tokens_of(text), text)


@dataclass(frozen=True, slots=True)
class _Style:
    """How items are written: each on a line of its own, and what stands around them all."""

    line: Callable[[ContextItem], str]
    around: Callable[[str], str]


def markdown_line(item: ContextItem) -> str:
    """Return an item as a line of a list in Markdown."""
    return f"- {item.day}, {item.source}: {visible_line(item.text)}"


def _tagged_line(item: ContextItem) -> str:
    source = quoteattr(item.source)
    said = escape(visible_line(item.text))
    return f"<item date={quoteattr(item.day)} source={source}>{said}</item>"


_MARKDOWN = _Style(markdown_line, f"{QUOTED}\n\n{{}}".format)
_TAGGED = _Style(_tagged_line, f'<memory note="{QUOTED.rstrip(":")}">\n{{}}\n</memory>'.format)
_STYLES = {
    ContextFormat.MARKDOWN: _MARKDOWN,
    ContextFormat.XML: _TAGGED,
    ContextFormat.MESSAGES: _TAGGED,
}


def recalled_item(found: Recalled) -> ContextItem:
    """Return what recall found as an item of a context."""
    document = found.document
    said = document.text
    if found.passage is not None and len(said) > _SHOWN_WHOLE:
        start, end = around(said, found.passage, _EXCERPT)
        said = said[start:end]
    return ContextItem(
        kind=document.kind.name,
        id=document.source_id,
        text=without_tokens(said),
        excerpt=len(said) < len(document.text),
        at_us=document.timestamp_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=document.session_id,
        said_by=document.role,
    )


def session_items(
    found: Sequence[ContextSession],
    worth: Mapping[str, float],
    attempts_at: Mapping[str, Attempts],
) -> Iterator[ContextItem]:
    """Yield an item for each session, and one for all attempts at a task together.

    Args:
        found: the sessions.
        worth: what each of them is worth, by id.
        attempts_at: the attempts at tasks, by the first session of each.
    """
    at_a_task = {one.session_id: first for first, at in attempts_at.items() for one in at.sessions}
    told_already: set[str] = set()
    for one in found:
        key = one.past.session.id
        first = at_a_task.get(key, "")
        if first in told_already or not one.past.summary:
            continue
        said, attempts = one.past.summary.text, attempts_at.get(first)
        if attempts is not None:
            told_already.add(first)
            said = f"{told(attempts)}. {said}"
        yield ContextItem(
            kind=SESSION.name,
            id=key,
            text=said,
            at_us=active_us(one.past.session),
            worth=worth[key],
            similarity=one.similarity,
            session_id=key,
            attempts=attempts,
        )


def lesson_item(found: FoundLesson) -> ContextItem:
    """Return a lesson as an item of a context."""
    lesson = found.lesson
    return ContextItem(
        kind=LESSON.name,
        id=lesson.id,
        text=f"{lesson.title}: {lesson.content}",
        at_us=lesson.updated_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=lesson.source_session_id,
    )


def reflection_item(found: FoundReflection) -> ContextItem:
    """Return a reflection as an item of a context."""
    reflection = found.reflection
    return ContextItem(
        kind=REFLECTION.name,
        id=reflection.id,
        text=_said(reflection),
        at_us=reflection.created_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=reflection.session_id,
    )


def attempt_item(one: Attempt) -> ContextItem:
    """Return an attempt as an item of a context."""
    ended = "succeeded" if one.success else "failed"
    said = f": {one.critique}" if one.critique else ""
    return ContextItem(
        kind="episode",
        id=one.episode_id,
        text=f"“{one.task}” {ended}, reward {one.reward:.2g}{said}",
        at_us=one.occurred_us,
        worth=one.score,
        similarity=one.similarity,
    )


def skill_item(one: ProvenSkill) -> ContextItem:
    """Return a skill as an item of a context."""
    return ContextItem(
        kind="skill",
        id=one.skill_id,
        text=f"{one.name} ({one.said}): {one.description}".rstrip(": "),
        at_us=one.updated_us,
        worth=one.score,
        similarity=one.similarity,
    )


def _said(reflection: Reflection) -> str:
    parts = [
        f"“{reflection.task_description}”: {reflection.outcome.name.lower()}",
        _listed("worked", reflection.what_worked),
        _listed("did not work", reflection.what_did_not_work),
        f"next strategy: {reflection.next_strategy}" if reflection.next_strategy else "",
    ]
    return "; ".join(filter(None, parts))


def _listed(what: str, said: Sequence[str]) -> str:
    return f"{what}: {', '.join(said)}" if said else ""
