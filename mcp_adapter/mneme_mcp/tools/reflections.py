"""`reflection_*`: what was concluded from attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mneme import to_dict

from mneme_mcp.arguments import CamelArguments
from mneme_mcp.offers import TOKENS, Offer, offers
from mneme_mcp.outputs import CamelOutput, Name
from mneme_mcp.text import counted, quoted, quoted_lines
from mneme_mcp.tool import Call, Reply, ToolSpec


class ReflectionOutput(CamelOutput):
    """A reflection."""

    api_names = {"project": "project_id"}

    id: str
    session_id: str
    project_id: str = ""
    agent_id: str = ""
    task_description: str
    attempt_number: int
    outcome: Name
    what_worked: list[str] = []
    what_did_not_work: list[str] = []
    next_strategy: str = ""
    tags: list[str] = []
    related_entity_ids: list[str] = []
    applied_reflection_ids: list[str] = []
    created_at: str = ""
    score: float | None = None


def found_reflection(found: Mapping[str, Any]) -> ReflectionOutput:
    """A reflection of a search, with its score."""
    return ReflectionOutput.model_validate({**found["reflection"], "score": found["score"]})


@offers(
    "create_reflection",
    session_id='The session of the attempt, e.g. "s-42".',
    task_description='What you attempted, e.g. "Parse CSV file".',
    outcome=...,
    next_strategy=Offer(
        'What to do next time, e.g. "Use csv-parse library".', required=True, least=0
    ),
    attempt_number="Which attempt it was, from 1; counted if left out.",
    what_worked='E.g. ["Handled edge cases from library docs"].',
    what_did_not_work='E.g. ["Regex failed on quoted fields"].',
    project='The project, e.g. "shop-api".',
    agent_id="The agent.",
    tags='Labels, e.g. ["parsing"].',
    related_entity_ids=...,
    applied_reflection_ids="Ids of reflections you were shown before; they count as reused.",
)
class StoreArguments(CamelArguments):
    """A reflection to store."""

    synonyms = {"task": "task_description", "query": "task_description"}


class StoreOutput(CamelOutput):
    """The stored reflection."""

    reflection: ReflectionOutput
    pruned_count: int = 0


async def store(call: Call, given: StoreArguments) -> Reply:
    """Answer `reflection_store`."""
    answer = to_dict(await call.client.create_reflection(**given.request()))
    stored = StoreOutput.model_validate(answer)
    one = stored.reflection
    text = f"Stored reflection {one.id}: attempt {one.attempt_number}, {one.outcome}."
    if stored.pruned_count:
        text += f" {stored.pruned_count} old ones were removed to stay within the server's limits."
    return Reply(text, stored)


@offers(
    "list_reflections",
    session_id=Offer('The session, e.g. "s-42".', required=True),
    limit=Offer("Maximum reflections.", default=5, most=100),
    token_budget=TOKENS,
)
class GetArguments(CamelArguments):
    """Whose reflections."""


@offers(
    "search_reflections",
    project=Offer('The project, e.g. "shop-api".', required=True),
    query=Offer(
        "The task at hand; similar ones are found by meaning, e.g. "
        '"Debug login timeout issues". Without it: the newest.',
        at="task_description",
        default="",
    ),
    outcome_filter=Offer('Only with these outcomes, e.g. ["failure"].', at="filter.outcomes"),
    tags=...,
    session_id=...,
    limit=...,
    token_budget=TOKENS,
)
class SearchArguments(CamelArguments):
    """Which reflections."""

    synonyms = {"outcome": "outcome_filter", "outcomes": "outcome_filter"}


class ReflectionsOutput(CamelOutput):
    """Reflections: the best first in a search, else the newest."""

    reflections: list[ReflectionOutput]
    total: int
    message: str = ""


async def get(call: Call, given: GetArguments) -> Reply:
    """Answer `reflection_get`."""
    nothing = f"No reflections found for the session {given.session_id}."
    return await _newest(call, given, nothing)


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `reflection_search`."""

    nothing = (
        f"No reflections found for the project {given.project} with these filters. Store one "
        "with reflection_store after an attempt."
    )
    if not given.query:
        return await _newest(call, given, nothing)
    answer = to_dict(await call.client.search_reflections(**given.request()))
    reflections = [found_reflection(found) for found in answer["results"]]
    return _reply(reflections, int(answer["searched_count"]), answer["text"], given, nothing)


async def _newest(call: Call, given: GetArguments | SearchArguments, nothing: str) -> Reply:
    wanted = given.request()["filter"]
    answer = to_dict(await call.client.list_reflections(filter=wanted, page_size=given.limit))
    reflections = [ReflectionOutput.model_validate(one) for one in answer["reflections"]]
    return _reply(reflections, int(answer["total_size"]), answer["text"], given, nothing)


def _reply(
    reflections: list[ReflectionOutput],
    total: int,
    prompt: str,
    given: GetArguments | SearchArguments,
    nothing: str,
) -> Reply:
    output = ReflectionsOutput(reflections=reflections, total=total)
    if not reflections:
        output.message = nothing
        return Reply(nothing, output)
    text = quoted(prompt, given.token_budget, "raise tokenBudget or lower limit")
    return Reply(text, output, given.token_budget)


@offers(
    "summarize_reflections",
    project=Offer('The project, e.g. "shop-api".', required=True),
    session_id="Only of this session.",
)
class SummaryArguments(CamelArguments):
    """What to summarize."""


class Theme(CamelOutput):
    """What several reflections say."""

    text: str
    count: int
    reflection_ids: list[str] = []
    variants: list[str] = []


class SummaryOutput(CamelOutput):
    """The summary; the themes say how often each of the failures and strategies was met."""

    total_reflections: int
    success_rate: float
    common_failures: list[str]
    effective_strategies: list[str]
    recent_lessons: list[ReflectionOutput] = []
    failure_themes: list[Theme] = []
    strategy_themes: list[Theme] = []


async def summary(call: Call, given: SummaryArguments) -> Reply:
    """Answer `reflection_summary`."""
    answer = to_dict(await call.client.summarize_reflections(**given.request()))
    failures = [Theme.model_validate(one) for one in answer["common_failures"]]
    strategies = [Theme.model_validate(one) for one in answer["effective_strategies"]]
    output = SummaryOutput(
        total_reflections=answer["total_reflections"],
        success_rate=answer["success_rate"],
        common_failures=[theme.text for theme in failures],
        effective_strategies=[theme.text for theme in strategies],
        recent_lessons=[ReflectionOutput.model_validate(o) for o in answer["recent_lessons"]],
        failure_themes=failures,
        strategy_themes=strategies,
    )
    if not output.total_reflections:
        return Reply(f"No reflections found for the project {given.project}.", output)
    total = counted(output.total_reflections, "reflection")
    lines = [f"{total}, {output.success_rate:.0%} of them successes."]
    lines += _themes("What fails:", failures) + _themes("What works:", strategies)
    return Reply(quoted_lines("", lines), output)


def _themes(head: str, themes: list[Theme]) -> list[str]:
    return [head, *(f"- {one.text} ({one.count}×)" for one in themes)] if themes else []


TOOLS = (
    ToolSpec(
        name="reflection_store",
        title="Store a reflection",
        description=(
            "Stores what you concluded from one attempt at a task: how it ended, what worked, "
            "what did not, what to do next time.\n"
            "Use it after each attempt that taught you something, above all after failures, and "
            "before you try again. For rules that hold beyond the task, use agentlens_learn.\n"
            "Returns the reflection with its id and the attempt's number.\n"
            'Example: {"sessionId": "s-42", "project": "shop-api", "taskDescription": "Parse CSV '
            'file", "outcome": "failure", "whatDidNotWork": ["Regex failed on quoted fields"], '
            '"nextStrategy": "Use csv-parse library"}.'
        ),
        arguments=StoreArguments,
        output=StoreOutput,
        handler=store,
    ),
    ToolSpec(
        name="reflection_get",
        title="Get a session's reflections",
        description=(
            "Returns the newest reflections of a session as text to work from.\n"
            "Use it before another attempt in the same session.\n"
            'Example: {"sessionId": "s-42", "limit": 5}.'
        ),
        arguments=GetArguments,
        output=ReflectionsOutput,
        handler=get,
        read_only=True,
    ),
    ToolSpec(
        name="reflection_search",
        title="Search reflections",
        description=(
            "Finds what earlier attempts at similar tasks taught, across the sessions of a "
            "project, by meaning.\n"
            "Use it before you start a task: what failed before, and what to try instead.\n"
            "Returns the reflections that bear on the task, the best first, as text to work from.\n"
            'Example: {"project": "shop-api", "query": "Debug login timeout issues", '
            '"outcomeFilter": ["failure", "partial"]}.'
        ),
        arguments=SearchArguments,
        output=ReflectionsOutput,
        handler=search,
        read_only=True,
    ),
    ToolSpec(
        name="reflection_summary",
        title="Summarize reflections",
        description=(
            "Summarizes all reflections of a project: how often attempts succeed, what fails again "
            "and again, which strategies work, grouped by meaning.\n"
            "Use it now and then to see habits that single reflections do not show.\n"
            'Example: {"project": "shop-api"}.'
        ),
        arguments=SummaryArguments,
        output=SummaryOutput,
        handler=summary,
        read_only=True,
    ),
)
