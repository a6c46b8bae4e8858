"""`semantic_session_search`: past sessions, by what their summaries say."""

from __future__ import annotations

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import TOKENS, Offer, offers
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.text import Item, day, listing
from mneme_mcp.tool import Call, Reply, ToolSpec


@offers(
    "search_sessions",
    query='In plain words, e.g. "JWT validation".',
    project=...,
    agent_id=...,
    user_id=...,
    from_='Active at or after, e.g. "2026-01-01".',
    to=...,
    limit=Offer(default=5),
    min_score="Leave out what scores lower.",
    token_budget=TOKENS,
)
class SearchArguments(SnakeArguments):
    """Which sessions."""


class FoundSession(SnakeOutput):
    """A session and how well it fits."""

    session_id: str
    summary: str
    score: float
    similarity: float | None = None
    outcome: Name = ""
    project: str = ""
    agent_id: str = ""
    started_at: str = ""
    ended_at: str = ""
    error_count: int = 0


class SearchOutput(SnakeOutput):
    """The sessions found, the best first."""

    results: list[FoundSession]
    searched_count: int
    omitted: int = 0
    message: str = ""


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `semantic_session_search`."""
    answer = to_dict(await call.client.search_sessions(**given.request()))
    results = [
        FoundSession.model_validate(
            {**one["session"], **one["summary"], "score": one["score"]}
            | {"similarity": one.get("similarity")}
        )
        for one in answer["results"]
    ]
    found = SearchOutput(results=results, searched_count=int(answer["searched_count"]))
    if not results:
        found.message = (
            f"No relevant sessions found among {found.searched_count}. A session is found once it "
            "has been summarised: when it ends, or is handed over with sleep."
        )
        return Reply(found.message, found)
    items = [_item(place, one) for place, one in enumerate(results, 1)]
    shown = listing(
        "Sessions, the best first:", items, given.token_budget, more="raise token_budget"
    )
    found.results, found.omitted = results[: len(shown.bodies)], shown.omitted
    for result, body in zip(found.results, shown.bodies, strict=True):
        result.summary = body
    return Reply(shown.text, found)


def _item(place: int, one: FoundSession) -> Item:
    about = [day(one.started_at), one.project, one.outcome]
    return Item(
        f"{place}. {one.session_id} [{', '.join(filter(None, about))}] ({one.score:.2f})",
        one.summary,
    )


TOOLS = (
    ToolSpec(
        name="semantic_session_search",
        title="Search sessions",
        description=(
            "Finds past sessions by the meaning and the words of their summaries and handovers.\n"
            'Use it to find when something was worked on ("which session dealt with OAuth?"); for '
            "what to do about a topic, agentlens_context gathers more.\n"
            "Returns sessions, the best first, each with its id, date, outcome and summary.\n"
            'Example: {"query": "JWT validation", "project": "shop-api"}.'
        ),
        arguments=SearchArguments,
        output=SearchOutput,
        handler=search,
        read_only=True,
    ),
)
