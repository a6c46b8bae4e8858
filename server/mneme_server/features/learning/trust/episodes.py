"""Episodes, from transitions as they were recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from mneme_server.features.learning.learner import Transition

Episode: TypeAlias = Sequence[Transition]
"""The transitions of an actor from the first to the one that ended it, in their order."""


def episodes_of(transitions: Iterable[Transition]) -> list[Episode]:
    """Return the episodes that have ended, in the order in which they began.

    Args:
        transitions: in the order in which they were taken; those of several actors may alternate.
    """
    begun: list[list[Transition]] = []
    under_way: dict[str, list[Transition]] = {}
    for one in transitions:
        episode = under_way.get(one.actor)
        if episode is None:
            episode = under_way[one.actor] = []
            begun.append(episode)
        episode.append(one)
        if one.ends:
            del under_way[one.actor]
    return [episode for episode in begun if episode[-1].ends]
