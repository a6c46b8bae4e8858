"""What Reflect and Discover say, held against records of which the truth is known: a few seeds of
what `make truth` runs many of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from mneme_server.features.reflect.model import Analysis
from unit.features.reflect.making import most_false_alarms

from benchmarks.truth import shapes, worlds
from benchmarks.truth.judging import judged

SEEDS = 20


@pytest.mark.parametrize("shape", [shapes.trials, shapes.long_fail, shapes.drift])
def test_hardly_anything_is_claimed_where_there_is_nothing(shape: shapes.Shape) -> None:
    verdicts = [judged(shape, seed) for seed in range(SEEDS)]
    false = Counter(one for verdict in verdicts for one, said in verdict.false.items() if said)
    assert max(false.values(), default=0) <= most_false_alarms(SEEDS)


@pytest.mark.parametrize(
    ("shape", "analysis"),
    [
        (shapes.next_call, Analysis.TOOL_SEQUENCES),
        (shapes.simpson, Analysis.TOOL_SEQUENCES),
        (shapes.success_falls, Analysis.PERFORMANCE_TRENDS),
    ],
)
def test_what_there_is_is_found_about_as_often_as_by_a_plain_test(
    shape: shapes.Shape, analysis: Analysis
) -> None:
    verdicts = [judged(shape, seed, analysis) for seed in range(SEEDS)]
    assert any(one.plain for one in verdicts)
    assert sum(one.found for one in verdicts) >= sum(one.plain for one in verdicts) - SEEDS // 5


def test_that_other_agents_ran_is_no_improvement() -> None:
    verdicts = [
        judged(shapes.who_ran, seed, Analysis.PERFORMANCE_TRENDS, Analysis.SESSION_COMPARISON)
        for seed in range(SEEDS)
    ]
    assert sum(one.found for one in verdicts) >= SEEDS // 2
    improving = [
        told
        for one in verdicts
        for said in one.false.values()
        for told in said
        if "improving" in told or "better" in told
    ]
    assert len(improving) <= most_false_alarms(SEEDS)


@pytest.mark.parametrize("world", worlds.NULL)
def test_discover_keeps_hardly_an_edge_where_nothing_changes_anything(
    world: worlds.World,
) -> None:
    found = [worlds.edges(world(np.random.default_rng(seed), 300), seed) for seed in range(SEEDS)]
    assert sum(map(bool, found)) <= most_false_alarms(SEEDS)


def test_what_helps_is_found_though_it_is_tried_where_it_is_hard() -> None:
    found = [worlds.edges(worlds.helps(np.random.default_rng(s), 400), s) for s in range(SEEDS)]
    signs = [
        one[("strategy:review", "success")]
        for one in found
        if ("strategy:review", "success") in one
    ]
    assert len(signs) >= SEEDS // 4
    assert min(signs) > 0
