"""Prerequisites of skills form no circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping


def circle_closed_by(
    parent: str,
    child: str,
    children_of: Callable[[Collection[str]], Mapping[str, Collection[str]]],
) -> list[str]:
    """Return the circle that a link from `parent` to `child` would close, from `parent` to
    `parent`; empty if it closes none.

    It is a shortest one. Skills are looked up a step at a time, each once.

    Args:
        parent: where the new link begins.
        child: where it ends.
        children_of: returns the children of skills that have some, by skill.
    """
    if parent == child:
        return [parent, parent]
    came_from: dict[str, str] = {child: parent}
    edge = deque([child])
    while edge:
        found = children_of(list(edge))
        ahead: deque[str] = deque()
        for skill in edge:
            for further in sorted(found.get(skill, ())):
                if further == parent:
                    return _back(came_from, skill, parent)
                if further not in came_from:
                    came_from[further] = skill
                    ahead.append(further)
        edge = ahead
    return []


def _back(came_from: Mapping[str, str], last: str, start: str) -> list[str]:
    path = [start]
    while last != start:
        path.append(last)
        last = came_from[last]
    return [*path, start][::-1]
