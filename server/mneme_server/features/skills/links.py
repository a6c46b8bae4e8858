"""Prerequisites of skills, and edges from causes to effects, form no circle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

NextTo = Callable[[Collection[str]], Mapping[str, Collection[str]]]
"""Returns what comes next after some nodes, by node; those that nothing follows are left out."""


def circle_closed_by(
    parent: str, child: str, children_of: NextTo, parents_of: NextTo | None = None
) -> list[str]:
    """Return the circle that a link from `parent` to `child` would close, from `parent` to
    `parent`; empty if it closes none.

    It is a shortest one. Nodes are looked up a step at a time, each once.

    Args:
        parent: where the new link begins.
        child: where it ends.
        children_of: returns the children of nodes that have some.
        parents_of: returns their parents; with it the search goes on from where fewer were reached,
            so that what nothing leads to costs one step, however much follows from the child.
    """
    if parent == child:
        return [parent, parent]
    ahead = _CircleSearch(child, children_of)
    behind = None if parents_of is None else _CircleSearch(parent, parents_of)
    while ahead.edge:
        if behind is not None and not behind.edge:
            return []
        if behind is not None and len(behind.reached) <= len(ahead.reached):
            met = behind.step() & ahead.reached.keys()
        else:
            met = ahead.step() & ({parent} if behind is None else behind.reached.keys())
        if met:
            middle = min(met)
            rest = [parent] if behind is None else behind.path_to(middle)
            return [parent, *ahead.path_to(middle)[:-1], *rest[::-1]]
    return []


@dataclass(slots=True)
class _CircleSearch:
    """Goes from a node to all that can be reached, a step at a time.

    `reached` tells from where each was; `edge` holds those that the last step reached.
    """

    start: str
    next_to: NextTo
    reached: dict[str, str] = field(init=False)
    edge: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.reached, self.edge = {self.start: ""}, [self.start]

    def step(self) -> set[str]:
        """Go one step; return what is reached."""
        found, before = self.next_to(self.edge), self.edge
        self.edge = []
        for node in before:
            for further in sorted(found.get(node, ())):
                if further not in self.reached:
                    self.reached[further] = node
                    self.edge.append(further)
        return set(self.edge)

    def path_to(self, node: str) -> list[str]:
        """Return the way from the start to a node that was reached, both ends included."""
        path = [node]
        while path[-1] != self.start:
            path.append(self.reached[path[-1]])
        return path[::-1]
