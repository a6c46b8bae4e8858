"""Chains, beside those that a search of all paths finds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.causal import chains
from mneme_server.features.causal.chains import EffectQuery, find_chains
from mneme_server.features.causal.model import CausalChain, CausalEdge
from mneme_server.features.skills.links import circle_closed_by

NODES = "abcdef"
UPLIFTS = st.floats(-4, 4, allow_nan=False)
# From a letter to a later one: they form no circle.
GRAPHS = st.dictionaries(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda two: two[0] < two[1]),
    st.tuples(UPLIFTS, st.sampled_from((0.5, 0.8, 1.0))),
).map(
    lambda found: [
        CausalEdge(id=f"{one}{two}", cause=one, effect=two, uplift=uplift, confidence=confidence)
        for (one, two), (uplift, confidence) in found.items()
    ]
)


def ask(edges: Sequence[CausalEdge], query: EffectQuery) -> chains.FoundChains:
    def out_of(nodes: Collection[str]) -> list[CausalEdge]:
        return [edge for edge in edges if edge.cause in nodes]

    def into(nodes: Collection[str]) -> list[CausalEdge]:
        return [edge for edge in edges if edge.effect in nodes]

    return find_chains(query, 1_000_000, out_of, into)


def all_paths(edges: Sequence[CausalEdge], start: str, longest: int) -> Iterator[list[CausalEdge]]:
    for edge in edges:
        if edge.cause == start:
            yield [edge]
            if longest > 1:
                for rest in all_paths(edges, edge.effect, longest - 1):
                    yield [edge, *rest]


def named(found: Sequence[CausalChain]) -> set[str]:
    return {" ".join(edge.id for edge in chain.edges) for chain in found}


@given(GRAPHS, st.sampled_from(NODES), st.sampled_from(["", *NODES]), st.integers(1, 5))
def test_every_chain_is_found_once_with_its_products(
    edges: list[CausalEdge], cause: str, effect: str, longest: int
) -> None:
    query = EffectQuery(cause, effect, min_confidence=0.4, max_length=longest)
    answer = ask(edges, query)
    expected = {
        " ".join(edge.id for edge in path)
        for path in all_paths(edges, cause, longest)
        if effect in ("", path[-1].effect) and math.prod(edge.confidence for edge in path) >= 0.4
    }
    assert named(answer.chains) == expected
    assert (answer.total, answer.truncated) == (len(expected), False)
    for chain in answer.chains:
        assert chain.uplift == pytest.approx(math.prod(edge.uplift for edge in chain.edges))
        assert chain.confidence == pytest.approx(math.prod(e.confidence for e in chain.edges))
    weights = [chain.weight for chain in answer.chains]
    assert weights == sorted(weights, reverse=True)


@given(GRAPHS, st.sampled_from(NODES))
def test_chains_into_an_effect_are_those_from_all_causes(
    edges: list[CausalEdge], effect: str
) -> None:
    backwards = ask(edges, EffectQuery(effect=effect, min_confidence=0, max_length=5))
    forwards = [
        ask(edges, EffectQuery(cause, effect, min_confidence=0, max_length=5)).chains
        for cause in NODES
    ]
    assert named(backwards.chains) == set().union(*map(named, forwards))


@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=30))
def test_a_graph_that_refuses_what_closes_a_circle_has_none(wanted: list[tuple[str, str]]) -> None:
    kept: dict[str, set[str]] = {}

    def effects_of(nodes: Collection[str]) -> dict[str, set[str]]:
        return {one: kept[one] for one in nodes if one in kept}

    for cause, effect in wanted:
        circle = circle_closed_by(cause, effect, effects_of)
        if circle:
            assert circle[0] == circle[-1] == cause
            assert all(b in kept.get(a, ()) for a, b in pairwise(circle[1:]))
        else:
            kept.setdefault(cause, set()).add(effect)
    # What has no circle can be put in an order.
    left = set(NODES)
    while left:
        ends = {one for one in left if not kept.get(one, set()) & left}
        assert ends
        left -= ends


def test_of_too_many_chains_the_surest_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_CHAINS", 3)
    edges = [
        CausalEdge(id=f"a{n}", cause="a", effect=f"n{n}", uplift=1.0, confidence=0.5 + n / 20)
        for n in range(6)
    ]
    answer = ask(edges, EffectQuery(cause="a", max_length=1))
    assert (named(answer.chains), answer.truncated) == ({"a5", "a4", "a3"}, True)
