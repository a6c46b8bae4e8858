"""`agentlens_context`: what of the past bears on a topic."""

from __future__ import annotations

from mneme import to_dict

from mneme_mcp.arguments import CamelArguments
from mneme_mcp.offers import TOKENS, offers
from mneme_mcp.outputs import CamelOutput, Name
from mneme_mcp.text import fit
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.lessons import LessonOutput, found_lesson
from mneme_mcp.tools.reflections import ReflectionOutput, found_reflection

NOTHING = "No relevant past context found"


@offers(
    "get_context",
    query='What you are about to do or were asked, e.g. "database migrations".',
    user_id='Only for this user, e.g. "user123".',
    agent_id=...,
    project='Only of this project, e.g. "shop-api".',
    from_="Active at or after.",
    to=...,
    limit=...,
    without_experience=...,
    token_budget=TOKENS,
)
class ContextArguments(CamelArguments):
    """What context is needed."""


class KeyEvent(CamelOutput):
    """An event that tells what happened."""

    event_type: Name
    summary: str
    timestamp: str


class ContextSession(CamelOutput):
    """A past session."""

    session_id: str
    summary: str
    relevance_score: float
    started_at: str = ""
    ended_at: str = ""
    outcome: Name = ""
    agent_id: str = ""
    key_events: list[KeyEvent] = []


class ContextEpisode(CamelOutput):
    """An earlier attempt."""

    episode_id: str
    task: str
    success: bool
    reward: float
    critique: str = ""
    occurred_at: str = ""
    score: float


class ContextSkill(CamelOutput):
    """A skill that was used."""

    skill_id: str
    name: str
    description: str = ""
    use_count: int
    success_count: int
    success_low: float
    success_high: float
    score: float


class ContextOutput(CamelOutput):
    """Sessions, lessons, reflections, episodes and skills, the best first."""

    sessions: list[ContextSession]
    lessons: list[LessonOutput]
    reflections: list[ReflectionOutput] = []
    episodes: list[ContextEpisode] = []
    skills: list[ContextSkill] = []
    topic: str
    total_sessions: int
    message: str = ""


async def context(call: Call, given: ContextArguments) -> Reply:
    """Answer `agentlens_context`."""
    answer = to_dict(
        await call.client.get_context(**given.request(), token_budget=given.token_budget)
    )
    found = ContextOutput(
        sessions=[ContextSession.model_validate(one) for one in answer["sessions"]],
        lessons=[found_lesson(one) for one in answer["lessons"]],
        reflections=[found_reflection(one) for one in answer["reflections"]],
        episodes=[ContextEpisode.model_validate(one) for one in answer["episodes"]],
        skills=[ContextSkill.model_validate(one) for one in answer["skills"]],
        topic=given.query,
        total_sessions=int(answer["total_sessions"]),
    )
    if not answer["text"]:
        found.message = NOTHING
        filtered = given.user_id or given.agent_id or given.project or given.from_ or given.to
        hint = " that passes the filters; try fewer of them." if filtered else "."
        return Reply(NOTHING + hint, found)
    text = fit(answer["text"], given.token_budget, "raise tokenBudget or lower limit")
    return Reply(text, found, given.token_budget)


TOOLS = (
    ToolSpec(
        name="agentlens_context",
        title="Get context from past sessions",
        description=(
            "Gathers what past sessions, lessons, reflections, attempts and skills say about a "
            "topic: each session with its summary and a few key events, not its whole timeline.\n"
            "Use it at the start of a task, or when a user refers to earlier work "
            '("as we did last time"). For single facts, agentlens_recall works better.\n'
            "Returns markdown that you can work from, within tokenBudget, and the same in "
            f'structured form; "{NOTHING}" when there is none.\n'
            'Example: {"query": "refund for a cancelled flight", "userId": "user123"}.'
        ),
        arguments=ContextArguments,
        output=ContextOutput,
        handler=context,
        read_only=True,
    ),
)
