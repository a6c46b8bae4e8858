"""`skill_*`: what works for a kind of task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import TOKENS, Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import Item, counted, listing
from mneme_mcp.tool import Call, Reply, ToolSpec


class SkillOutput(SnakeOutput):
    """A skill and its record."""

    api_names = {"id": "skill_id"}

    skill_id: str = ""
    name: str
    description: str = ""
    code: str = ""
    signature: Free = {}
    uses: int = 0
    success_rate: float | None = None
    lower_bound: float | None = None
    avg_reward: float | None = None
    avg_latency_ms: float | None = None
    claimed_success_rate: float | None = None
    tags: list[str] = []
    links: list[str] = []
    score: float | None = None
    similarity: float | None = None


@offers(
    "create_skill",
    name='A unique name, e.g. "oauth2_login".',
    description=...,
    code=...,
    inputs=Offer('What it takes, e.g. {"issuer": "URL"}.', at="signature.inputs"),
    outputs=Offer('What it returns, e.g. {"token": "a JWT"}.', at="signature.outputs"),
    claimed_success_rate=...,
    source_episode_ids="Ids of the attempts that it comes from.",
    project=...,
    tags=...,
    metadata=...,
)
class CreateArguments(SnakeArguments):
    """A skill to save."""

    synonyms = {"success_rate": "claimed_success_rate", "episode_id": "source_episode_ids"}


class CreateOutput(SnakeOutput):
    """The saved skill."""

    skill_id: str
    name: str


async def create(call: Call, given: CreateArguments) -> Reply:
    """Answer `skill_create`."""
    answer = to_dict(await call.client.create_skill(**given.request()))
    made = CreateOutput(skill_id=answer["skill"]["id"], name=answer["skill"]["name"])
    return Reply(f"Saved the skill {made.name} (id {made.skill_id}).", made)


@offers(
    "search_skills",
    query=...,
    limit=...,
    min_success_rate="Only those that succeed at least this often.",
    tags=...,
    project=...,
    token_budget=TOKENS,
)
class SearchArguments(SnakeArguments):
    """What a skill is needed for."""

    synonyms = {"k": "limit"}


class SkillsOutput(SnakeOutput):
    """Skills, best first."""

    skills: list[SkillOutput]
    searched: int


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `skill_search`."""
    answer = to_dict(await call.client.search_skills(**given.request()))
    found = [_found_skill(one) for one in answer["results"]]
    output = SkillsOutput(skills=found, searched=answer["searched_count"])
    if not found:
        return Reply(f"None of {counted(output.searched, 'skill')} fits.", output)
    return _listed("Skills, best first:", found, output, given.token_budget)


@offers(
    "consolidate_skills",
    min_attempts=...,
    min_reward="Reward from which an attempt counts as a success.",
    dry_run="Only say what would be made.",
    project="Only attempts on this project.",
    tags="Only attempts with all of these labels.",
    token_budget=TOKENS,
)
class ConsolidateArguments(SnakeArguments):
    """Which attempts make a skill."""


class ConsolidateOutput(SnakeOutput):
    """The skills that the attempts make."""

    skills: list[SkillOutput]
    created: int
    updated: int
    unchanged: int
    episodes: int
    dry_run: bool


async def consolidate(call: Call, given: ConsolidateArguments) -> Reply:
    """Answer `skill_consolidate`."""
    answer = to_dict(
        await call.waiting_for(
            call.client.consolidate_skills(**given.request()), "Comparing attempts"
        )
    )
    made = [_skill(one["skill"]) for one in answer["skills"]]
    output = ConsolidateOutput(
        skills=made,
        created=answer["created_count"],
        updated=answer["updated_count"],
        unchanged=answer["unchanged_count"],
        episodes=answer["episode_count"],
        dry_run=given.dry_run,
    )
    head = (
        f"{counted(output.episodes, 'attempt')}: {counted(output.created, 'skill')} created,"
        f" {output.updated} updated, {output.unchanged} unchanged"
        f"{' (dry run: nothing was changed)' if given.dry_run else ''}."
    )
    return _listed(head, made, output, given.token_budget) if made else Reply(head, output)


def _listed(
    head: str, skills: list[SkillOutput], output: SkillsOutput | ConsolidateOutput, budget: int
) -> Reply:
    items = [
        Item(
            f"{place}. {one.name} [{_record(one)}]:",
            "\n".join(filter(None, [one.description, *one.links, one.code])),
        )
        for place, one in enumerate(skills, 1)
    ]
    return Reply(listing(head, items, budget, more="raise token_budget").text, output, budget)


def _found_skill(found: Mapping[str, Any]) -> SkillOutput:
    links = [_link(one) for one in found["links"]]
    similarity = found.get("similarity")
    return _skill(found["skill"], links=links, score=found["score"], similarity=similarity)


def _skill(skill: Mapping[str, Any], **more: Any) -> SkillOutput:
    record = skill["record"]
    return SkillOutput.model_validate(
        {
            **skill,
            "uses": record["uses"],
            "success_rate": record.get("success_rate"),
            "lower_bound": record["lower_bound"],
            "avg_reward": record.get("average_reward"),
            "avg_latency_ms": record.get("average_latency_ms"),
            "signature": skill.get("signature") or {},
            "metadata": skill.get("metadata") or {},
            **more,
        }
    )


def _link(link: Mapping[str, Any]) -> str:
    said = {
        "prerequisite": "is a prerequisite of",
        "alternative": "has the alternative",
        "refinement": "is refined by",
        "composition": "contains",
    }[str(link["relationship"])]
    return f"{link['parent_name']} {said} {link['child_name']}"


def _record(one: SkillOutput) -> str:
    said = "never used"
    if one.success_rate is not None:
        said = f"succeeded in {one.success_rate:.0%} of {counted(one.uses, 'use')}"
    return f"{said}; id {one.skill_id}" if one.skill_id else said


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="skill_create",
        title="Save a skill",
        description=(
            "Saves how a kind of task is done, under a unique name.\n"
            "Use it when something worked and will be needed again.\n"
            "Returns its id.\n"
            'Example: {"name": "oauth2_implementation", "description": "OAuth2 with PKCE flow", '
            '"code": "login(pkce=True)"}.'
        ),
        arguments=CreateArguments,
        output=CreateOutput,
        handler=create,
    ),
    ToolSpec(
        name="skill_search",
        title="Search skills",
        description=(
            "Finds skills for a task by meaning; of those that fit, the ones that are known to "
            "work come first.\n"
            "Use it before you work out how to do something.\n"
            "Returns each with its description, code, record and links.\n"
            'Example: {"query": "secure authentication", "k": 10, "min_success_rate": 0.6}.'
        ),
        arguments=SearchArguments,
        output=SkillsOutput,
        handler=search,
        read_only=True,
    ),
    ToolSpec(
        name="skill_consolidate",
        title="Make skills from attempts",
        description=(
            "Makes skills from tasks that succeeded again and again: how often, how, and what sets "
            "successes apart from failures. Running it again changes nothing.\n"
            "Use it now and then, when many attempts are stored.\n"
            "Returns the skills, those with the most successes first.\n"
            'Example: {"min_attempts": 3, "min_reward": 0.7, "dry_run": true}.'
        ),
        arguments=ConsolidateArguments,
        output=ConsolidateOutput,
        handler=consolidate,
    ),
)
