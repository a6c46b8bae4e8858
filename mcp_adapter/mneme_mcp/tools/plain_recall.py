"""`mneme_recall`: what is known about a question, short."""

from __future__ import annotations

from typing import Any

from mneme import to_dict

from mneme_mcp.arguments import DEFAULT_TOKEN_BUDGET
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.plain import PlainArguments, named, scope, short
from mneme_mcp.text import Item, day, listing
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.recall import doubt_on, notes_on

_NOTHING = {
    "nothing_stored": "Nothing is stored yet.",
    "nothing_matches_filters": "Nothing passes the filters: leave some out.",
    "nothing_confident": "Nothing stored is likely to answer this.",
}


@offers(
    "recall",
    query="The question, in plain words.",
    **scope(user_id='Only about this user, and what is nobody\'s, e.g. "ann".'),
    from_='At or after, e.g. "2026-01-31".',
    to=...,
    limit=Offer("At most so many.", default=8),
)
class RecallArguments(PlainArguments):
    """What to recall."""

    synonyms = {"question": "query"}


class Recalled(SnakeOutput):
    """One item that bears on the question."""

    id: str
    text: str
    date: str = ""
    score: float


class RecallOutput(SnakeOutput):
    """What bears on the question, the best first."""

    results: list[Recalled]
    confidence: float | None = None
    omitted: int = 0
    message: str = ""


async def recall(call: Call, given: RecallArguments) -> Reply:
    """Answer `mneme_recall`."""
    answer = to_dict(await call.client.recall(**given.request()))
    results = [_recalled(one) for one in answer["results"]]
    found = RecallOutput(results=results, confidence=answer.get("confidence"))
    if not results:
        found.message = _NOTHING.get(answer["outcome"], "Nothing found: try other words.")
        return Reply(found.message, found)
    items = [
        Item(f"{place}. {one.id}, {one.date}", one.text) for place, one in enumerate(results, 1)
    ]
    # The doubt first of all: who reads the best result before it takes that for the answer.
    head = " ".join([*doubt_on(answer), "Best first; mneme_get gives the whole:"])
    shown = listing(head, items, DEFAULT_TOKEN_BUDGET, notes=notes_on(answer), more="lower limit")
    found.results, found.omitted = results[: len(shown.bodies)], shown.omitted
    return Reply(shown.text, found)


def _recalled(result: dict[str, Any]) -> Recalled:
    passage = result.get("passage")  # Of a long text, what bears on the question.
    return Recalled(
        id=named(result["source_type"], result["source_id"], result["session_id"]),
        text=f"… {short(passage['text'])} …" if passage else short(result["text"]),
        date=day(result["timestamp"]),
        score=round(result["score"], 3),
    )


TOOLS = (
    ToolSpec(
        name="mneme_recall",
        title="Recall",
        description=(
            "Looks up a single thing in all that was said, done and learned before, by meaning and "
            "words.\n"
            "Use it for a question about the past, when the user refers to something earlier, and "
            "before you say that you do not know.\n"
            "Returns ids, dates and short texts, best first; says so if nothing fits.\n"
            'Example: {"query": "how does Ann want invoices", "user_id": "ann"}.'
        ),
        arguments=RecallArguments,
        output=RecallOutput,
        handler=recall,
        read_only=True,
    ),
)
