"""Prerequisites form no circle, whichever links are tried in whichever order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.skills.links import circle_closed_by

_SKILLS = st.sampled_from("abcdefgh")
_TRIED = st.lists(st.tuples(_SKILLS, _SKILLS), max_size=40)


class _Links:
    def __init__(self) -> None:
        self.children: dict[str, set[str]] = defaultdict(set)

    def of(self, skills: Collection[str]) -> Mapping[str, Collection[str]]:
        return {skill: self.children[skill] for skill in skills if self.children[skill]}

    def parents(self, skills: Collection[str]) -> Mapping[str, Collection[str]]:
        of = {
            one: {p for p, children in self.children.items() if one in children} for one in skills
        }
        return {one: parents for one, parents in of.items() if parents}


def _has_circle(graph: Mapping[str, Collection[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


@given(_TRIED, st.booleans())
def test_a_link_is_refused_exactly_when_it_would_close_a_circle(
    tried: list[tuple[str, str]], from_both_ends: bool
) -> None:
    links = _Links()
    for parent, child in tried:
        circle = circle_closed_by(
            parent, child, links.of, links.parents if from_both_ends else None
        )
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


@given(_TRIED)
def test_from_both_ends_the_circle_is_as_short(tried: list[tuple[str, str]]) -> None:
    links = _Links()
    for parent, child in tried:
        circle = circle_closed_by(parent, child, links.of)
        both = circle_closed_by(parent, child, links.of, links.parents)
        assert len(both) == len(circle)
        if not circle:
            links.children[parent].add(child)


def test_what_nothing_leads_to_is_found_out_in_a_step_however_much_follows() -> None:
    links = _Links()
    for number in range(1_000):
        links.children[f"n{number}"].add(f"n{number + 1}")
    asked: list[int] = []

    def children(nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        asked.append(len(nodes))
        return links.of(nodes)

    assert circle_closed_by("new", "n0", children, links.parents) == []
    assert len(asked) <= 2


def test_the_circle_named_is_a_shortest_one() -> None:
    links = _Links()
    for parent, child in ("ab", "bc", "cd", "bd", "dz"):
        links.children[parent].add(child)
    assert circle_closed_by("z", "a", links.of) == ["z", "a", "b", "d", "z"]
