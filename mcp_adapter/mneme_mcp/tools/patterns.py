"""`agentdb_pattern_*`: what to look for in memories, kept under a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from mneme import to_dict
from pydantic import Field

from mneme_mcp.arguments import Labels, SnakeArguments, Word
from mneme_mcp.failures import Refused
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import STRUCTURED_HAS_ALL, Item, counted, listing, quoted_lines
from mneme_mcp.tool import Call, Reply, ToolSpec

_TEXT_TOKENS = 800
_VERDICT = re.compile(r"verdicts\[(\d+)\]")
PatternType = Literal["regex", "semantic", "structural"]


_DATA = {
    "regex": ({"regex": "expression"}, '{"regex": "ID-\\\\d+"}'),
    "semantic": (
        {"text": "text", "threshold": "threshold"},
        '{"text": "a complaint about delivery", "threshold": 0.5}',
    ),
    "structural": (
        {"schema": "schema", "target": "target"},
        '{"schema": {"required": ["priority"]}, "target": "metadata"}',
    ),
}
"""What a pattern of each type is made of: names here and in the API, and an example."""


@offers(
    "create_pattern",
    name="The pattern's name.",
    description=...,
    pattern_type=(Annotated[PatternType, Word], Field(description="What it matches by.")),
    pattern_data=(
        dict[str, Any],
        Field(
            description=(
                '{"regex": …} in RE2\'s syntax; {"text": …, "threshold": 0.5} for a meaning; '
                'or {"schema": a JSON Schema, "target": "metadata" or "text"}.'
            )
        ),
    ),
)
class StoreArguments(SnakeArguments):
    """A pattern to store."""

    holders = {
        f"{kind}.{there}": f"pattern_data.{here}"
        for kind, (names, _) in _DATA.items()
        for here, there in names.items()
    }


class StoreOutput(SnakeOutput):
    """The pattern."""

    pattern_id: str
    name: str
    pattern_type: str
    pattern_data: Free


async def store(call: Call, given: StoreArguments) -> Reply:
    """Answer `agentdb_pattern_store`."""
    names, example = _DATA[given.pattern_type]
    unknown = sorted(set(given.pattern_data) - set(names))
    first = next(iter(names))
    if unknown or not given.pattern_data.get(first):
        wrong = f"does not take {', '.join(unknown)}" if unknown else f"needs {first!r}"
        said = f"of a {given.pattern_type} pattern {wrong}; give for example {example}"
        raise Refused(f"pattern_data {said}.", "INVALID_PARAMETER", fields=[("pattern_data", said)])
    definition = {names[name]: value for name, value in given.pattern_data.items()}
    pattern = {**given.request(), given.pattern_type: definition}
    answer = to_dict(await call.client.create_pattern(**pattern))
    kind, data = _definition(answer["pattern"])
    stored = StoreOutput(
        pattern_id=answer["pattern"]["id"],
        name=given.name,
        pattern_type=kind,
        pattern_data=data,
    )
    return Reply(f"Stored the {kind} pattern {given.name} (id {stored.pattern_id}).", stored)


def _definition(pattern: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A pattern's type, and what it is made of, as the tools name it."""
    kind = next(kind for kind in _DATA if kind in pattern)
    names, _ = _DATA[kind]
    return kind, {name: pattern[kind][there] for name, there in names.items()}


@offers(
    "match_pattern",
    pattern_name=Offer(at="name"),
    limit=...,
    extract_matches=Offer(
        "Also return what they match, and where.", at="omit_matches", default=True, negated=True
    ),
)
class SearchArguments(SnakeArguments):
    """Which pattern to look for."""

    synonyms = {"k": "limit", "name": "pattern_name"}


class Matched(SnakeOutput):
    """A memory that matches, and where: characters from and to."""

    vector_id: str
    text: str
    matches: list[str] = []
    match_positions: list[tuple[int, int]] = []
    similarity: float | None = None


class SearchStats(SnakeOutput):
    """What matched, and how long it took."""

    total_matches: int
    searched: int
    search_time_ms: float


class SearchOutput(SnakeOutput):
    """The memories that match, the newest first."""

    pattern_name: str
    results: list[Matched]
    stats: SearchStats


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `agentdb_pattern_search`."""
    answer = to_dict(await call.client.match_pattern(**given.request()))
    results = [
        Matched(
            vector_id=one["memory"]["id"],
            text=one["memory"]["text"],
            matches=[match["text"] for match in one["matches"]],
            match_positions=[(match["start"], match["end"]) for match in one["matches"]],
            similarity=one.get("similarity"),
        )
        for one in answer["results"]
    ]
    found = SearchOutput(
        pattern_name=given.pattern_name,
        results=results,
        stats=SearchStats(
            total_matches=answer["total_matches"],
            searched=answer["searched_count"],
            search_time_ms=answer["search_ms"],
        ),
    )
    if not results:
        searched = counted(found.stats.searched, "memory", "memories")
        return Reply(f"None of {searched} matches.", found)
    title = f"{found.stats.total_matches} of {found.stats.searched} memories match:"
    items = [Item(f"{n}. [id {one.vector_id}]", one.text) for n, one in enumerate(results, 1)]
    return Reply(
        listing(title, items, _TEXT_TOKENS, more=STRUCTURED_HAS_ALL).text, found, _TEXT_TOKENS
    )


@offers("list_pattern_stats", pattern_name=Offer("Only this pattern; empty: all.", at="name"))
class StatsArguments(SnakeArguments):
    """Whose statistics."""

    synonyms = {"name": "pattern_name"}


class PatternStats(SnakeOutput):
    """How a pattern was used; `last_used` is in seconds since 1970."""

    pattern_id: str
    name: str
    pattern_type: str
    uses: int
    success_rate: float | None = None
    reported: int
    avg_match_time_ms: float | None = None
    last_used: int | None = None


class StatsOutput(SnakeOutput):
    """Statistics, by the patterns' names."""

    patterns: list[PatternStats]


async def stats(call: Call, given: StatsArguments) -> Reply:
    """Answer `agentdb_pattern_stats`."""
    answer = await call.client.list_pattern_stats(**given.request(), page_size=1000)
    return _told([_stats(one) for one in to_dict(answer)["stats"]])


def _told(patterns: list[PatternStats]) -> Reply:
    lines = [
        f"{one.name} ({one.pattern_type}): {counted(one.uses, 'use')}, "
        + (
            "no match was judged yet"
            if one.success_rate is None
            else f"{one.success_rate:.0%} of {one.reported} judged matches right"
        )
        for one in patterns
    ]
    said = quoted_lines("", lines) if lines else "There are no patterns."
    return Reply(said, StatsOutput(patterns=patterns))


def _stats(one: Mapping[str, Any]) -> PatternStats:
    last = one.get("last_used_at")
    return PatternStats(
        pattern_id=one["pattern"]["id"],
        name=one["pattern"]["name"],
        pattern_type=_definition(one["pattern"])[0],
        uses=one["uses"],
        success_rate=one.get("success_rate"),
        reported=one["right_count"] + one["wrong_count"],
        avg_match_time_ms=one.get("average_ms"),
        last_used=int(datetime.fromisoformat(last).timestamp()) if last else None,
    )


@offers(
    "record_pattern_matches",
    pattern_name=Offer(at="name"),
    right=(Labels, Field([], description="Ids of memories that it matched rightly.")),
    wrong=(Labels, Field([], description="Ids of memories that it matched wrongly.")),
)
class FeedbackArguments(SnakeArguments):
    """What matches turned out to be."""

    synonyms = {"name": "pattern_name"}

    def spelled(self, path: str) -> str:
        """A field's path; a verdict is named by the list that its memory is in."""
        if not path.startswith("verdicts"):
            return super().spelled(path)
        given = [f"right[{place}]" for place in range(len(self.right))]
        given += [f"wrong[{place}]" for place in range(len(self.wrong))]
        found = _VERDICT.match(path)
        return given[int(found[1])] if found else given[0].partition("[")[0]


async def feedback(call: Call, given: FeedbackArguments) -> Reply:
    """Answer `agentdb_pattern_feedback`."""
    verdicts = [{"memory_id": one, "right": True} for one in given.right]
    verdicts += [{"memory_id": one, "right": False} for one in given.wrong]
    if not verdicts:
        return await stats(call, StatsArguments.model_validate(given.request()))
    answer = await call.client.record_pattern_matches(
        **given.request(),
        verdicts=verdicts,  # type: ignore[arg-type]
    )
    return _told([_stats(to_dict(answer)["stats"])])


_IF_MISSING = "agentdb_pattern_stats lists the patterns."

TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="agentdb_pattern_store",
        title="Store a pattern",
        description=(
            "Stores something to look for in memories, under a name: a regular expression, a "
            "meaning, or a structure.\n"
            "Use it for what you will look for again.\n"
            "Returns its id. Storing the same again changes nothing.\n"
            'Example: {"name": "tickets", "pattern_type": "regex", "pattern_data": {"regex": '
            '"T-(\\\\d+)"}}.'
        ),
        arguments=StoreArguments,
        output=StoreOutput,
        handler=store,
    ),
    ToolSpec(
        name="agentdb_pattern_search",
        title="Search with a pattern",
        description=(
            "Finds the memories that a stored pattern matches, and where.\n"
            "Use it to extract what a pattern is for; then say with agentdb_pattern_feedback which "
            "matches were right.\n"
            "Returns the newest, with what matched and its positions in characters.\n"
            'Example: {"pattern_name": "tickets"}.'
        ),
        arguments=SearchArguments,
        output=SearchOutput,
        handler=search,
        read_only=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="agentdb_pattern_stats",
        title="Pattern statistics",
        description=(
            "Lists the stored patterns, and how well they did.\n"
            "Use it before you store another, or to see whether one is worth keeping.\n"
            "Returns for each how often it was used, how long that took, and how often it was "
            "right.\n"
            'Example: {"pattern_name": "tickets"}.'
        ),
        arguments=StatsArguments,
        output=StatsOutput,
        handler=stats,
        read_only=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="agentdb_pattern_feedback",
        title="Judge matches",
        description=(
            "Records which memories a pattern matched rightly, and which wrongly: its success rate "
            "comes from that.\n"
            "Use it after agentdb_pattern_search, once you know.\n"
            "Returns the pattern's statistics.\n"
            'Example: {"pattern_name": "tickets", "right": ["01J8ZQ…"], "wrong": []}.'
        ),
        arguments=FeedbackArguments,
        output=StatsOutput,
        handler=feedback,
        if_missing=_IF_MISSING,
    ),
)
