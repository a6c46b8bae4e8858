"""The successes of a group of episodes against its failures, and what critiques of both say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mneme.visible import visible_line

from mneme_server.common.masking import template_of
from mneme_server.features.context.words import cut, folded, sentences_of, telling, words_of
from mneme_server.features.events.model import Event
from mneme_server.features.reflect.model import SIGNIFICANT
from mneme_server.features.skills.model import (
    CritiquePoint,
    CritiqueSummary,
    Episode,
    SkillFindings,
    ToolPath,
    Trait,
    TraitCounts,
)
from mneme_server.statistics.inference import benjamini_hochberg, fisher_exact

MIN_GROUP = 3
"""Attempts that must be on either side of a comparison."""
SHARED = 0.8
"""Share of the successes from which something is shared by them."""
MAX_WAYS = 3
MAX_DIFFERENCES = 10
MAX_CRITIQUES = 5
EXAMPLE_CHARS = 300
_CRITICS = 200
_ERROR_CHARS = 200
_SAYS_THE_OUTCOME = frozenset(("reward", "success", "outcome", "status", "result", "score", "task"))
"""Labels such as "reward:1" say how an attempt ended; that it ended so is no finding."""
SAME_WORDS = 0.6
"""Share of two sentences' telling words, common to both, from which they count as one point."""
MAX_POINTS = 20
_POINT_CHARS = 500


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Attempts at tasks that mean the same, the latest first, and which of them succeeded.

    `example` is the most typical success. `errors` are those of its sessions, as far as they are
    recorded.
    """

    episodes: Sequence[Episode]
    worked: Sequence[bool]
    example: Episode
    errors: Mapping[str, Sequence[Event]]

    @property
    def successes(self) -> int:
        """How many attempts succeeded."""
        return sum(self.worked)


def compared(groups: Sequence[TaskGroup]) -> list[SkillFindings]:
    """Return what each group's episodes say.

    The q-values are adjusted for all comparisons of all groups.
    """
    tables = [_compared(group) for group in groups]
    p_values = [difference.q_value for table in tables for difference in table]
    left = iter(benjamini_hochberg(np.array(p_values, float)).tolist())
    return [
        _findings(group, [replace(one, q_value=next(left)) for one in table])
        for group, table in zip(groups, tables, strict=True)
    ]


def _compared(group: TaskGroup) -> list[TraitCounts]:
    """Return the traits that can be compared, with p-values in place of q-values."""
    total, won = len(group.episodes), group.successes
    if min(won, total - won) < MIN_GROUP:
        return []
    found = [
        one
        for one in _counted(group)
        if MIN_GROUP <= one.successes + one.failures <= total - MIN_GROUP
    ]
    having = np.array([one.successes + one.failures for one in found], np.int64)
    every = np.ones(len(found), np.int64)
    p_values = fisher_exact(
        np.array([one.successes for one in found], np.int64), having, won * every, total * every
    )
    return [replace(one, q_value=float(p)) for one, p in zip(found, p_values, strict=True)]


def _counted(group: TaskGroup) -> list[TraitCounts]:
    """Return how many successes and failures have each trait that some have."""
    counts: Counter[tuple[Trait, str, bool]] = Counter()
    for episode, worked in zip(group.episodes, group.worked, strict=True):
        for trait, name in set(_traits(episode, group.errors.get(episode.session_id, ()))):
            counts[trait, name, worked] += 1
    return [
        TraitCounts(trait, name, counts[trait, name, True], counts[trait, name, False])
        for trait, name in sorted({(trait, name) for trait, name, _ in counts})
    ]


def says_the_outcome(name: str) -> bool:
    """Tell whether a label, or the name of a field, says how an attempt ended."""
    key = name.replace("=", ":").partition(":")[0].strip().lower()
    return key in _SAYS_THE_OUTCOME


def _traits(episode: Episode, errors: Sequence[Event]) -> Iterable[tuple[Trait, str]]:
    for tool in episode.tools:
        yield Trait.TOOL, tool
    for tag in episode.tags:
        if not says_the_outcome(tag):
            yield Trait.TAG, tag
    for error in errors:
        said = template_of(error.error or error.text)
        if said:
            yield Trait.ERROR, cut(f"{error.name}: {said}" if error.name else said, _ERROR_CHARS)


def _findings(group: TaskGroup, differences: Sequence[TraitCounts]) -> SkillFindings:
    sure = [one for one in differences if one.q_value <= SIGNIFICANT]
    sure.sort(key=lambda one: (one.q_value, one.trait, one.name))
    won = group.successes
    shared = [
        one for one in _counted(group) if one.trait is Trait.TOOL and one.successes >= SHARED * won
    ]
    critiques = summarize_critiques(group.episodes[:_CRITICS])
    output = group.example.output
    return SkillFindings(
        attempts=len(group.episodes),
        successes=won,
        example_task=cut(group.example.task, EXAMPLE_CHARS),
        example_output=cut(telling(output) or output, EXAMPLE_CHARS),
        example_id=group.example.id,
        ways=tuple(_ways(group)),
        shared=tuple(sorted(shared, key=lambda one: (-one.successes, one.name))),
        differences=tuple(sure[:MAX_DIFFERENCES]),
        compared=len(differences),
        critiques=tuple(critiques.points[:MAX_CRITIQUES]),
    )


def _ways(group: TaskGroup) -> list[ToolPath]:
    counts = Counter(
        _without_repeats(episode.tools)
        for episode, worked in zip(group.episodes, group.worked, strict=True)
        if worked and episode.tools
    )
    ranked = sorted(counts.items(), key=lambda way: (-way[1], len(way[0]), way[0]))
    return [ToolPath(tools, count) for tools, count in ranked[:MAX_WAYS] if count > 1]


def _without_repeats(tools: Sequence[str]) -> tuple[str, ...]:
    return tuple(tool for place, tool in enumerate(tools) if not place or tool != tools[place - 1])


@dataclass(slots=True)
class _PointDraft:
    """A point under way: what it is quoted by, and the episodes that make it."""

    text: str
    words: frozenset[str]
    place: int
    episodes: dict[str, bool] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return sum(not success for success in self.episodes.values())


def summarize_critiques(episodes: Sequence[Episode]) -> CritiqueSummary:
    """Return what the critiques of these episodes say. Every point is a sentence of one of them.

    Sentences that share most of their telling words are one point, quoted by the first. What a
    critique says in words that tell nothing ("It went well.") is no point of its own.
    """
    points: list[_PointDraft] = []
    critics = [episode for episode in episodes if episode.critique.strip()]
    for episode in critics:
        for sentence in sentences_of(episode.critique):
            _take(points, sentence.strip(), episode)
    points.sort(key=lambda one: (-len(one.episodes), -one.failures, one.place))
    shown = [
        CritiquePoint(
            text=point.text,
            episode_ids=tuple(point.episodes),
            failures=point.failures,
            successes=len(point.episodes) - point.failures,
        )
        for point in points[:MAX_POINTS]
    ]
    more = len(points) - len(shown)
    return CritiqueSummary(
        points=shown,
        more=more,
        with_critique=len(critics),
        without_critique=len(episodes) - len(critics),
        text=_text(shown, more, episodes, len(critics)),
    )


def _take(points: list[_PointDraft], sentence: str, episode: Episode) -> None:
    words = frozenset(map(folded, words_of(sentence)))
    if not words:
        return
    for point in points:
        if len(words & point.words) >= SAME_WORDS * len(words | point.words):
            point.episodes.setdefault(episode.id, episode.success)
            return
    points.append(
        _PointDraft(cut(sentence, _POINT_CHARS), words, len(points), {episode.id: episode.success})
    )


def _text(
    points: Sequence[CritiquePoint], more: int, episodes: Sequence[Episode], critics: int
) -> str:
    if not points:
        return ""
    failed = sum(not episode.success for episode in episodes)
    lines = [
        f"What the critiques of {critics} of {_attempts(len(episodes))} say"
        f" ({failed} failed, {len(episodes) - failed} succeeded):"
    ]
    lines += [f"- {visible_line(point.text)} [{_said_by(point)}]" for point in points]
    if more:
        lines.append(f"- and {more} more")
    return "\n".join(lines)


def _attempts(count: int) -> str:
    return f"{count} attempt" if count == 1 else f"{count} attempts"


def _said_by(point: CritiquePoint) -> str:
    counts = ((point.failures, "failed"), (point.successes, "succeeded"))
    return ", ".join(f"{count} {how}" for count, how in counts if count)
