"""`reflexion_*`: what was attempted, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from mneme import to_dict
from pydantic import model_validator

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import TOKENS, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import Item, count_tokens, counted, listing, paragraphs, quoted
from mneme_mcp.tool import Call, Reply, ToolSpec

# What a list of attempts needs, and below what critiques say too little.
_ATTEMPTS_TOKENS = 100
_LEAST_TOKENS = 40


class EpisodeOutput(SnakeOutput):
    """An attempt at a task."""

    api_names = {"id": "episode_id"}

    episode_id: str
    session_id: str = ""
    task: str
    input: str = ""
    output: str = ""
    critique: str = ""
    reward: float
    success: bool
    latency_ms: int | None = None
    tokens_used: int | None = None
    tools: list[str] = []
    tags: list[str] = []
    metadata: Free = {}
    occurred_at: str = ""
    filled_fields: list[str] = []
    score: float | None = None
    similarity: float | None = None


@offers(
    "create_episode",
    session_id="The session of the attempt. If it was recorded, what you leave out here "
    "is taken from its record.",
    task='What was to be done, e.g. "Implement OAuth2".',
    input="What you were given.",
    output="What you produced.",
    critique="What you think of it: what went well or wrong, what to do next time.",
    reward="How good the result was, 0 to 1.",
    success=...,
    latency_ms=...,
    tokens_used="Tokens it took.",
    tools="The tools you called, in order.",
    tags='Labels, e.g. ["auth"].',
    metadata=...,
    project='The project, e.g. "shop-api".',
    agent_id=...,
    user_id=...,
)
class StoreArguments(SnakeArguments):
    """An attempt to store."""

    @model_validator(mode="after")
    def _names_an_attempt(self) -> StoreArguments:
        if not self.task and not self.session_id:
            raise ValueError("give task, or the session_id of a session that was recorded")
        return self


class StoreOutput(SnakeOutput):
    """The stored attempt."""

    episode_id: str
    reward: float
    success: bool
    filled_fields: list[str] = []


async def store(call: Call, given: StoreArguments) -> Reply:
    """Answer `reflexion_store`."""
    answer = to_dict(await call.client.create_episode(**given.request()))
    one = EpisodeOutput.model_validate(answer["episode"])
    text = f"Stored attempt {one.episode_id}: {_outcome(one)}."
    if one.filled_fields:
        text += f" Taken from the session's record: {', '.join(one.filled_fields)}."
    data = StoreOutput.model_validate(one.model_dump())
    return Reply(text, data)


@offers(
    "search_episodes",
    query=...,
    limit="Maximum attempts.",
    only_failures=...,
    only_successes=...,
    min_reward="Only with at least this reward.",
    tags=...,
    session_id=...,
    project=...,
    token_budget=TOKENS,
)
class RetrieveArguments(SnakeArguments):
    """Which attempts."""

    synonyms = {"k": "limit"}

    @model_validator(mode="after")
    def _leaves_something(self) -> RetrieveArguments:
        if self.only_failures and self.only_successes:
            raise ValueError("give only_failures or only_successes, not both")
        return self


class RetrieveOutput(SnakeOutput):
    """The attempts found, best first, and what their critiques say."""

    episodes: list[EpisodeOutput]
    critique_summary: str = ""
    searched: int


async def retrieve(call: Call, given: RetrieveArguments) -> Reply:
    """Answer `reflexion_retrieve`."""
    answer = to_dict(await call.client.search_episodes(**given.request()))
    found = [
        EpisodeOutput.model_validate(
            {**one["episode"], "score": one["score"], "similarity": one.get("similarity")}
        )
        for one in answer["results"]
    ]
    said = answer["critiques"]["text"]
    output = RetrieveOutput(
        episodes=found, critique_summary=said, searched=answer["searched_count"]
    )
    if not found:
        return Reply(f"None of {counted(output.searched, 'attempt')} fits.", output)
    items = [
        Item(f"{place}. [{_outcome(one)}; id {one.episode_id}] {_task(one)}", one.output)
        for place, one in enumerate(found, 1)
    ]
    more = "raise token_budget"
    told = _critiques_within(said, given.token_budget, more)
    left = given.token_budget - count_tokens(told)
    shown = listing("Past attempts, best match first:", items, left, more=more)
    for one, body in zip(found, shown.bodies, strict=False):
        one.output = body
    return Reply(paragraphs([told, shown.text]), output, given.token_budget)


def _critiques_within(said: str, budget: int, more: str) -> str:
    """What critiques say, in at most half a budget; nothing where the attempts need all of it."""
    room = min(budget // 2, budget - _ATTEMPTS_TOKENS)
    return quoted(said, room, more) if room >= _LEAST_TOKENS else ""


def _task(one: EpisodeOutput) -> str:
    """What was to be done, to stand before what came out of it."""
    return f"{one.task}:" if one.output else one.task


def _outcome(one: EpisodeOutput) -> str:
    return f"{'succeeded' if one.success else 'failed'}, reward {one.reward:g}"


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="reflexion_store",
        title="Store an attempt",
        description=(
            "Stores an attempt at a task with what came of it and what you think of it.\n"
            "Use it after each attempt, above all after failures. The id of a recorded session is "
            "enough: task, outcome, tools and times are taken from its record.\n"
            "Returns the attempt's id, and what was taken from the record.\n"
            'Example: {"session_id": "session-1", "task": "implement_auth", "reward": 0.95, '
            '"success": true, "critique": "OAuth2 worked at once"}.'
        ),
        arguments=StoreArguments,
        output=StoreOutput,
        handler=store,
    ),
    ToolSpec(
        name="reflexion_retrieve",
        title="Find past attempts",
        description=(
            "Finds past attempts at similar tasks by meaning, however old, with what their "
            "critiques say.\n"
            "Use it before you start a task; with only_failures to see what to avoid.\n"
            "Returns the critiques' points, quoted, and the attempts, best match first.\n"
            'Example: {"query": "authentication", "only_failures": true, "k": 3}.'
        ),
        arguments=RetrieveArguments,
        output=RetrieveOutput,
        handler=retrieve,
        read_only=True,
    ),
)
