"""`causal_*` and `learner_discover`: what brings about what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mneme import to_dict
from mneme.types import DiscoveryQuestionFields

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import STRUCTURED_HAS_ALL, Item, counted, listing
from mneme_mcp.tool import Call, Reply, ToolSpec

_PATIENCE_S = 600.0
_TOKENS = 800
_KEPT = ("created", "updated", "unchanged", "kept")
"""What becomes of an effect that was discovered."""

NAME = "A label, or memory:ID, episode:ID, skill:ID, tag:NAME, tool:NAME."


@offers(
    "create_edge",
    cause=NAME,
    effect=NAME,
    uplift=Offer("How much more of the effect the cause brings, e.g. 0.25.", required=True),
    confidence="How sure that is.",
    sample_size=...,
    evidence_ids="Ids of what supports it.",
    mechanism="Why the cause has this effect.",
    metadata=...,
)
class CreateEdgeArguments(SnakeArguments):
    """What changes what."""


class CreateEdgeOutput(SnakeOutput):
    """The added edge."""

    edge_id: str
    cause: str
    effect: str
    uplift: float
    confidence: float


async def create_edge(call: Call, given: CreateEdgeArguments) -> Reply:
    """Answer `causal_add_edge`."""
    answer = to_dict(await call.client.create_edge(**given.request()))
    edge = answer["edge"]
    made = CreateEdgeOutput.model_validate({**edge, "edge_id": edge["id"]})
    return Reply(f"Added: {made.cause} → {made.effect} (edge {made.edge_id}).", made)


@offers(
    "trace_effects",
    cause="Find what follows from this.",
    effect="Find what leads to this.",
    min_confidence=...,
    min_uplift="Leave out smaller uplifts, whether they help or harm.",
    limit=...,
)
class QueryArguments(SnakeArguments):
    """From where to where."""

    synonyms = {"k": "limit"}


class ChainOutput(SnakeOutput):
    """A chain of edges, with the product of their uplifts and confidences."""

    cause: str
    effect: str
    uplift: float
    confidence: float
    path: list[str]


class QueryOutput(SnakeOutput):
    """Chains, what is likely to change most first."""

    chains: list[ChainOutput]
    total: int
    assumption: str = ""


async def query(call: Call, given: QueryArguments) -> Reply:
    """Answer `causal_query`."""
    answer = to_dict(await call.client.trace_effects(**given.request()))
    chains = [
        ChainOutput.model_validate(
            {**one, "path": [one["cause"], *(edge["effect"] for edge in one["path"])]}
        )
        for one in answer["chains"]
    ]
    output = QueryOutput(
        chains=chains, total=answer["total_chains"], assumption=answer["assumption"]
    )
    if not chains:
        return Reply("No chain is sure enough.", output)
    items = [
        Item(f"{place}. {one.uplift:+.3g} [{one.confidence:.2f}]", " → ".join(one.path))
        for place, one in enumerate(chains, 1)
    ]
    head = f"{counted(output.total, 'chain')}, uplift [confidence]:"
    text = "\n".join(
        filter(
            None, [listing(head, items, _TOKENS, more=STRUCTURED_HAS_ALL).text, output.assumption]
        )
    )
    return Reply(text, output, _TOKENS)


@offers(
    "DiscoveryQuestion",
    min_attempts="Leave out causes that fewer attempts had.",
    min_success_rate="Share that must succeed with the cause (or without, if it harms).",
    min_confidence="Leave out effects less sure than this.",
    dry_run="Only say what would be kept.",
    adjust_for='Metadata known before the attempt, e.g. ["difficulty", "tag:hard"].',
    project="Only attempts on this project.",
    tags="Only attempts with all of these labels.",
)
class DiscoverArguments(SnakeArguments):
    """Which effects are worth knowing."""


class EffectOutput(SnakeOutput):
    """What a cause changes."""

    cause: str
    outcome: str
    uplift: float
    low: float
    high: float
    plain_difference: float
    confidence: float
    treated_count: int
    control_count: int
    change: str
    edge_id: str = ""


class NotAdjustedOutput(SnakeOutput):
    """What was to be adjusted for and was not."""

    name: str
    why: str


class DiscoverOutput(SnakeOutput):
    """What was discovered, the surest first."""

    discovered: list[EffectOutput]
    tested: int
    refused: int
    removed: int
    episodes: int
    adjusted_for: list[str]
    not_adjusted_for: list[NotAdjustedOutput]
    dry_run: bool


_WHY_NOT_ADJUSTED = {
    "same_in_all": "all attempts have the same",
    "too_few_alike": "no value is shared by 10 attempts",
}


def _unadjusted(left: Sequence[NotAdjustedOutput]) -> str:
    return "".join(
        f" Not adjusted for {one.name}: {_WHY_NOT_ADJUSTED.get(one.why, one.why)}." for one in left
    )


def _said(found: Sequence[EffectOutput]) -> list[tuple[str, str]]:
    """The effects and their figures; outcomes with the same ones together, as reward and success
    are where all rewards are 0 or 1."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    for one in found:
        figures = (
            f"{one.uplift:+.3g} (95 %: {one.low:+.3g} to {one.high:+.3g}; unadjusted"
            f" {one.plain_difference:+.3g})"
        )
        outcomes.setdefault((one.cause, figures), []).append(one.outcome)
    return [
        (f"{cause} → {', '.join(alike)}", figures) for (cause, figures), alike in outcomes.items()
    ]


async def discover(call: Call, given: DiscoverArguments) -> Reply:
    """Answer `learner_discover`."""
    question = cast("DiscoveryQuestionFields", given.request())
    running = await call.client.discover(question=question)
    answer = cast(
        "Mapping[str, Any]",
        to_dict(await call.waiting_for(running.result(timeout=_PATIENCE_S), "Estimating effects")),
    )
    found = [
        EffectOutput.model_validate(one) for one in answer["findings"] if one["change"] in _KEPT
    ]
    output = DiscoverOutput(
        discovered=found,
        tested=answer["tested_count"],
        refused=answer["refused_count"],
        removed=answer["removed_count"],
        episodes=answer["episode_count"],
        adjusted_for=answer["adjusted_for"],
        not_adjusted_for=answer["not_adjusted_for"],
        dry_run=given.dry_run,
    )
    head = (
        f"{counted(output.episodes, 'attempt')}: {counted(output.tested, 'effect')} tested,"
        f" {len(found)} sure; {output.refused} not estimated (too few attempts, or none alike)"
        f"{'. Dry run: nothing was changed' if given.dry_run else ''}."
        f"{_unadjusted(output.not_adjusted_for)}"
    )
    items = [
        Item(f"{place}. {effect}:", said) for place, (effect, said) in enumerate(_said(found), 1)
    ]
    return Reply(
        listing(head, items, _TOKENS, more=STRUCTURED_HAS_ALL).text if items else head,
        output,
        _TOKENS,
    )


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="causal_add_edge",
        title="Say what changes what",
        description=(
            "Records that a cause changes an effect, by how much, and how sure that is.\n"
            "Use it when you have evidence: an experiment, counts, a mechanism.\n"
            "Returns the edge's id. An effect that would bring about its own cause is refused.\n"
            'Example: {"cause": "oauth2_strategy", "effect": "authentication_success", '
            '"uplift": 0.25, "confidence": 0.95}.'
        ),
        arguments=CreateEdgeArguments,
        output=CreateEdgeOutput,
        handler=create_edge,
    ),
    ToolSpec(
        name="causal_query",
        title="Ask what changes what",
        description=(
            "Follows known causes and effects, also over several steps.\n"
            "Use it before you choose how to do something: what helps, what harms?\n"
            "Returns chains with the product of their uplifts, what changes most first.\n"
            'Example: {"effect": "success", "min_confidence": 0.5}.'
        ),
        arguments=QueryArguments,
        output=QueryOutput,
        handler=query,
        read_only=True,
    ),
    ToolSpec(
        name="learner_discover",
        title="Discover what helps",
        description=(
            "Estimates from stored attempts how labels, tools and skills change reward and "
            "success, comparing attempts that are alike, and keeps what is sure.\n"
            "Use it now and then, when hundreds of attempts are stored.\n"
            "Returns the effects that are sure.\n"
            'Example: {"min_attempts": 3, "min_success_rate": 0.6, "dry_run": true}.'
        ),
        arguments=DiscoverArguments,
        output=DiscoverOutput,
        handler=discover,
    ),
)
