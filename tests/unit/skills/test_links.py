"""Prerequisites form no circle, whichever links are tried in whichever order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from mneme_server.skills.links import circle_closed_by

_SKILLS = st.sampled_from("abcdefgh")
_TRIED = st.lists(st.tuples(_SKILLS, _SKILLS), max_size=40)


class _Links:
    def __init__(self) -> None:
        self.children: dict[str, set[str]] = defaultdict(set)

    def of(self, skills: Collection[str]) -> Mapping[str, Collection[str]]:
        return {skill: self.children[skill] for skill in skills if self.children[skill]}


def _has_circle(graph: Mapping[str, Collection[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


@given(_TRIED)
def test_a_link_is_refused_exactly_when_it_would_close_a_circle(
    tried: list[tuple[str, str]],
) -> None:
    links = _Links()
    for parent, child in tried:
        circle = circle_closed_by(parent, child, links.of)
        tried_too = {**links.children, parent: links.children[parent] | {child}}
        assert bool(circle) == _has_circle(tried_too)
        if circle:
            assert circle[0] == circle[-1] == parent
            assert circle[1] == child
            steps = pairwise(circle[1:])
            assert all(after in links.children[before] for before, after in steps)
            assert len(set(circle)) == len(circle) - 1
        else:
            links.children[parent].add(child)


def test_the_circle_named_is_a_shortest_one() -> None:
    links = _Links()
    for parent, child in ("ab", "bc", "cd", "bd", "dz"):
        links.children[parent].add(child)
    assert circle_closed_by("z", "a", links.of) == ["z", "a", "b", "d", "z"]
