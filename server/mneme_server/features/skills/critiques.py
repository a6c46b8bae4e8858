"""What the critiques of episodes say, in their own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mneme.visible import visible_line

from mneme_server.features.context.words import cut, folded, sentences_of, words_of
from mneme_server.features.skills.episode_model import CritiquePoint, CritiqueSummary, Episode

SAME_WORDS = 0.6
"""Share of two sentences' telling words, common to both, from which they count as one point."""
MAX_POINTS = 20
_POINT_CHARS = 500


@dataclass(slots=True)
class _Point:
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
    points: list[_Point] = []
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


def _take(points: list[_Point], sentence: str, episode: Episode) -> None:
    words = frozenset(map(folded, words_of(sentence)))
    if not words:
        return
    for point in points:
        if len(words & point.words) >= SAME_WORDS * len(words | point.words):
            point.episodes.setdefault(episode.id, episode.success)
            return
    points.append(
        _Point(cut(sentence, _POINT_CHARS), words, len(points), {episode.id: episode.success})
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
