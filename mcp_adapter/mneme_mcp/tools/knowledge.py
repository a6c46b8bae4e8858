"""`memory_*`: one line of experience at a time, by project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from mneme import to_dict
from mneme.knowledge_log import rate_of
from mneme.visible import QUOTED
from pydantic import AfterValidator, BeforeValidator, Field

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.text import count_tokens
from mneme_mcp.tool import Call, Reply, ToolSpec

_QUOTED_TOKENS = count_tokens(QUOTED)


def _rate(text: str) -> str:
    try:
        rate_of(text)
    except ValueError:
        raise ValueError('should be X/Y, e.g. "9/10", with X at most Y') from None
    return text


def _as_text(rate: Any) -> Any:
    return f"{rate['successes']}/{rate['tries']}" if isinstance(rate, Mapping) else rate


class Entry(SnakeOutput):
    """A line of the knowledge log."""

    api_names = {"type": "event_type"}

    id: str
    project: str
    agent_id: str = ""
    event_type: Name
    context: str
    command: str = ""
    lesson: str
    success_rate: Annotated[str, BeforeValidator(_as_text)] = ""
    tags: list[str] = []
    timestamp: str
    score: float | None = None


@offers(
    "create_knowledge",
    project='The project: the repository\'s name, "shop-api".',
    event_type=Offer(
        "error: took more than one attempt; success: a solution that works; "
        "pattern: a rule to reuse.",
        at="type",
    ),
    context='What was being attempted, e.g. "npm install failed with EACCES".',
    lesson='What was learned, e.g. "always verify ownership before npm operations".',
    command='The exact command, e.g. "sudo chown -R $USER . && npm ci".',
    success_rate=(
        Annotated[str, AfterValidator(_rate)],
        Field("", description='How often it worked, e.g. "9/10".'),
    ),
    tags='Labels, e.g. ["npm", "permissions"].',
    agent_id="Who learned it.",
    timestamp='When, e.g. "2026-10-31T04:58:01Z"; default now.',
)
class LogArguments(SnakeArguments):
    """A line to log."""

    synonyms = {"type": "event_type"}


class LogOutput(SnakeOutput):
    """The logged line."""

    entry: Entry
    duplicate: bool = False


async def log(call: Call, given: LogArguments) -> Reply:
    """Answer `memory_log`."""
    answer = to_dict(
        await call.client.create_knowledge(
            **given.request(), success_rate=rate_of(given.success_rate)
        )
    )
    logged = LogOutput.model_validate(answer)
    what = "Already logged" if logged.duplicate else "Logged"
    return Reply(f"{what}: {logged.entry.lesson} (id {logged.entry.id})", logged)


@offers(
    "search_knowledge",
    query='In plain words, e.g. "npm install fails with permission error".',
    project="Only this project.",
    event_type=Offer("Only this kind.", at="filter.type"),
    tags=...,
    limit=...,
    token_budget=(int, Field(500, ge=50, le=100_000, description="Most tokens")),
)
class QueryArguments(SnakeArguments):
    """What experience is wanted."""

    synonyms = {"type": "event_type"}


class QueryOutput(SnakeOutput):
    """What was found, the best first."""

    entries: list[Entry]
    token_count: int = 0
    omitted_count: int = 0
    message: str = ""


async def query(call: Call, given: QueryArguments) -> Reply:
    """Answer `memory_query`."""
    answer = to_dict(
        await call.client.search_knowledge(
            **given.request(), token_budget=given.token_budget - _QUOTED_TOKENS
        )
    )
    found = QueryOutput.model_validate(
        answer | {"entries": [{**one["entry"], "score": one["score"]} for one in answer["entries"]]}
    )
    if not found.entries:
        found.message = answer["markdown"]
        return Reply(found.message, found)
    found.token_count += _QUOTED_TOKENS
    return Reply(f"{QUOTED}\n{answer['markdown']}", found)


TOOLS = (
    ToolSpec(
        name="memory_log",
        title="Log experience",
        description=(
            "Appends one line of experience to the knowledge log that all agents of a project "
            "share: what was attempted, what was learned, the command if one applies.\n"
            "Use it after an error that took more than one attempt, after finding a working "
            'solution to a known problem, or for a reusable pattern ("always check X before Y").\n'
            "Returns the entry; a repeated line is reported as a duplicate.\n"
            'Example: {"project": "shop-api", "event_type": "error", "context": "npm install '
            'failed with EACCES", "command": "sudo chown -R $USER . && npm ci", "lesson": "always '
            'verify ownership before npm operations", "tags": ["npm", "permissions"]}.'
        ),
        arguments=LogArguments,
        output=LogOutput,
        handler=log,
        idempotent=True,
    ),
    ToolSpec(
        name="memory_query",
        title="Query experience",
        description=(
            "Answers from the knowledge log within token_budget: the experience that bears on a "
            "query, ranked by meaning, recency and success rate.\n"
            "Use it when a command fails or before a step that others took before you.\n"
            "Returns a numbered markdown list, and the entries in structured form.\n"
            'Example: {"query": "npm install fails with permission error", "project": "shop-api"}.'
        ),
        arguments=QueryArguments,
        output=QueryOutput,
        handler=query,
        read_only=True,
    ),
)
