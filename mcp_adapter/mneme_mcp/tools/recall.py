"""`agentlens_recall`: what bears on a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from mneme import to_dict
from mneme.types import MemoryKindChoice
from pydantic import Field

from mneme_mcp.arguments import CamelArguments, Word
from mneme_mcp.offers import TOKENS, offers
from mneme_mcp.outputs import CamelOutput, Free, Name
from mneme_mcp.text import Item, counted, day, listing
from mneme_mcp.tool import Call, Reply, ToolSpec

_DOUBTFUL = 0.2
_MANY = {"knowledge": "knowledge", "memory": "memories"}
_SCOPES: dict[str, MemoryKindChoice] = {
    _MANY.get(kind, f"{kind}s"): kind for kind in get_args(MemoryKindChoice)
}
if TYPE_CHECKING:
    Scope = str
else:
    Scope = Literal[("all", *_SCOPES)]


@offers(
    "recall",
    query="What you want to know or are about to do, in plain words, e.g. "
    '"authentication issues" or "how did we fix the flaky payment test".',
    scope=(Annotated[Scope, Word], Field("all", description='Where to look, e.g. "lessons".')),
    agent_id='Only of this agent, e.g. "coder-1".',
    session_id=...,
    user_id='Only for this user, e.g. "user123".',
    project='Only of this project, e.g. "shop-api".',
    tags='Only with all of these labels, e.g. ["billing"].',
    event_types='Only events of these types, e.g. ["tool_error"].',
    min_severity=...,
    name="Only events of this tool or name.",
    author='Only what this author said: "user", "assistant", or a name.',
    from_='At or after, e.g. "2026-01-01".',
    to=...,
    limit=...,
    min_score="Leave out what scores lower.",
    min_confidence="Return nothing when less sure than this.",
    context_turns="How many events around each to add.",
    token_budget=TOKENS,
)
class RecallArguments(CamelArguments):
    """What to recall."""

    synonyms = {"scopes": "scope", "tool": "name", "tool_name": "name", "event_type": "event_types"}


class Turn(CamelOutput):
    """What happened just before or after."""

    source_id: str
    event_type: Name = ""
    author: str = ""
    text: str
    timestamp: str = ""


class Version(CamelOutput):
    """Another result that says almost the same at another time."""

    source_id: str
    timestamp: str = ""


class Recalled(CamelOutput):
    """One recalled memory."""

    source_type: Name
    source_id: str
    score: float
    similarity: float | None = None
    text: str
    timestamp: str = ""
    session_id: str = ""
    agent_id: str = ""
    metadata: Free = {}
    copies: int = 1
    first_time: str = ""
    last_time: str = ""
    before: Annotated[list[Turn], Field(description="Shown in the text.")] = []
    after: Annotated[list[Turn], Field(description="Shown in the text.")] = []
    older: Version | None = None
    newer: Version | None = None


class RecallOutput(CamelOutput):
    """What was recalled, the best first."""

    results: list[Recalled]
    query: str
    total_results: int
    searched_count: int = 0
    confidence: float | None = None
    omitted: int = 0
    message: str = ""


async def recall(call: Call, given: RecallArguments) -> Reply:
    """Answer `agentlens_recall`."""
    answer = to_dict(
        await call.client.recall(
            **given.request(),
            scopes=None if given.scope == "all" else [_SCOPES[given.scope]],
        )
    )
    found = RecallOutput.model_validate(answer | {"query": given.query})
    if not found.results:
        found.message = _why_nothing(answer["outcome"], given)
        return Reply(found.message, found)
    return _within_budget(found, given.token_budget, doubt_on(answer) + notes_on(answer))


def doubt_on(answer: dict[str, Any]) -> list[str]:
    """Return that probably nothing that was found answers, where that is so."""
    sure = answer.get("confidence")
    if sure is None or sure >= _DOUBTFUL:
        return []
    return [f"(Confidence {sure:.2f}: probably nothing here answers this.)"]


def notes_on(answer: dict[str, Any]) -> list[str]:
    """Return what else an agent should know of how its memories were found."""
    notes = []
    if answer.get("words_only"):
        notes.append("(Found by words alone: the embedding backend is not answering.)")
    if answer.get("reranking") in ("late", "failed"):
        notes.append("(Not reranked: the reranker is not answering.)")
    if pending := int(answer["pending_count"]):
        waiting = counted(pending, "memory", "memories")
        notes.append(f"({waiting} not embedded yet: found by words only.)")
    return notes


def _within_budget(found: RecallOutput, budget: int, notes: list[str]) -> Reply:
    successors = {
        result.source_id: str(result.metadata.get("superseded_by", "")) for result in found.results
    }
    items = [_item(place, result, successors) for place, result in enumerate(found.results, 1)]
    shown = listing("Memories, best first:", items, budget, notes=notes)
    found.omitted = shown.omitted
    found.results = found.results[: len(shown.bodies)]
    for result, body in zip(found.results, shown.bodies, strict=True):
        result.text, result.before, result.after = body, [], []
    return Reply(shown.text, found)


def _item(place: int, result: Recalled, successors: Mapping[str, str]) -> Item:
    facts = result.metadata
    kind = result.source_type
    about = [day(result.timestamp)]
    if kind == "event":
        about.append(str(facts.get("event_type", kind)).lower())
    elif kind != "session":
        about.append(kind)
    about.append(str(facts.get("name") or facts.get("title") or ""))
    about.append(f"session {result.session_id}" if result.session_id else "")
    if kind not in ("event", "session"):
        about.append(f"id {result.source_id}")
    about += _copies(result, successors)
    return Item(
        f"{place}. [{', '.join(filter(None, about))}] ({result.score:.2f})", _with_turns(result)
    )


def _copies(result: Recalled, successors: Mapping[str, str]) -> list[str]:
    """Say what the result stands for, what says almost the same, and what replaced what.

    `successors` names for each result the one that superseded it, or "".
    """
    said = ["archived"] if result.metadata.get("archived") else []
    if result.copies > 1:
        said.append(
            f"{result.copies} like this, {day(result.first_time)} to {day(result.last_time)}"
        )
    if (older := result.older) is not None:
        replaced = _replaced(result.source_id, older.source_id, successors)
        what = "replaced the one" if replaced else "newer than a similar one"
        said.append(f"{what} from {day(older.timestamp)}")
    if (newer := result.newer) is not None:
        replaced = _replaced(newer.source_id, result.source_id, successors)
        what = "replaced by the one" if replaced else "older than a similar one"
        said.append(f"{what} from {day(newer.timestamp)}")
    elif replaced_by := result.metadata.get("superseded_by"):
        said.append(f"replaced by {replaced_by}")
    return said


def _replaced(newer: str, older: str, successors: Mapping[str, str]) -> bool:
    """Tell whether one memory superseded another, itself or over others.

    Of what says almost the same, only what was superseded is left out.
    """
    if older not in successors:
        return True
    for _ in successors:
        older = successors.get(older, "")
        if older == newer:
            return True
    return False


def _with_turns(result: Recalled) -> str:
    """Return what the result says, then what happened around it, which is cut first."""

    def side(name: str, turns: list[Turn]) -> str:
        said = " | ".join(f"{turn.author or turn.event_type}: {turn.text}" for turn in turns)
        return f" [{name}: {said}]" if said else ""

    return result.text + side("before", result.before) + side("after", result.after)


def _why_nothing(outcome: str, given: RecallArguments) -> str:
    nothing = "No relevant memories found"
    if outcome == "nothing_stored":
        where = "in memory" if given.scope == "all" else f"among the {given.scope}"
        return (
            f"{nothing}: nothing is stored {where} yet. Save what you learn with agentlens_learn, "
            "and it will be found here."
        )
    if outcome == "nothing_matches_filters":
        return f"{nothing}: nothing passes the filters. Try fewer, or none."
    if outcome == "nothing_confident":
        return f"{nothing}: nothing stored is likely to answer this."
    if given.min_score:
        return f"{nothing} with a score of {given.min_score:g} or more. Try a lower minScore."
    return f"{nothing}. Try other words, or a wider scope."


TOOLS = (
    ToolSpec(
        name="agentlens_recall",
        title="Recall memories",
        description=(
            "Searches your memory of all earlier work by meaning and by words: events, session "
            "summaries, lessons, reflections, memories, attempts, skills and the knowledge log.\n"
            "Use it before you start a task, when you meet an error, and whenever you think "
            '"have I seen this before?". Ask about the matter itself, in plain words.\n'
            "Returns the memories that bear on the query, best first, each with its kind, "
            "date, score (0 to 1) and text, within tokenBudget. Says so when there are none.\n"
            'Example: {"query": "deployment failures", "scope": "events", "from": "2026-01-01"}.'
        ),
        arguments=RecallArguments,
        output=RecallOutput,
        handler=recall,
        read_only=True,
    ),
)
