"""Causal edges, certificates and discovery: a part of the case `experience`."""

from __future__ import annotations

import itertools

import numpy as np
from mneme import MnemeClient

from benchmarks.cases.timing import timed
from benchmarks.context import Context
from benchmarks.report import Row
from benchmarks.texts import events, questions

_EDGES = 10_000
_WIDTH = 50
_FAN = 4
_DISCOVERED = 10_000
_CAUSES = 20
_PAGE = 500
_numbers = itertools.count()


def edges(context: Context, client: MnemeClient) -> list[Row]:
    """Measure edges and chains in a net of layers, each of whose nodes has four effects."""
    some, count = max(10, context.sizes.calls // 4), min(_EDGES, context.sizes.memories // 10)
    context.say(f"experience: {count:,} causal edges")
    for number in range(count):
        node, branch = divmod(number, _FAN)
        layer, place = divmod(node, _WIDTH)
        client.create_edge(
            f"c{layer}-{place}", f"c{layer + 1}-{(place * 7 + branch) % _WIDTH}",
            uplift=0.5, confidence=0.95,
        )  # fmt: skip
    return [
        timed(
            context, f"CreateEdge, beside {count:,}", 10,
            lambda n: client.create_edge(f"new-{n}", f"c0-{n % _WIDTH}", uplift=0.25),
            lambda: [next(_numbers) for _ in range(some)], "circles are looked for",
        ),
        timed(
            context, f"TraceEffects, {count:,} edges", 25,
            lambda n: client.trace_effects(cause=f"c0-{n % _WIDTH}"),
            lambda: [next(_numbers) for _ in range(some)], "chains of up to five edges",
        ),
    ]  # fmt: skip


def certificates(context: Context, client: MnemeClient) -> list[Row]:
    """Measure certificates of 12 results over everything that is there."""
    asked = questions(max(10, context.sizes.calls // 2), seed=11)
    return [
        timed(
            context, "RecallWithCertificate, 12 results", 30,
            lambda one: client.recall_with_certificate(one, limit=12), lambda: asked,
            "over all memories, episodes and skills; signed",
        )
    ]  # fmt: skip


def discovery(context: Context, client: MnemeClient) -> list[Row]:
    """Measure Discover over episodes of different tasks, half of whose labels change nothing."""
    count = min(_DISCOVERED, context.sizes.memories // 10)
    context.say(f"experience: discovering in {count:,} episodes")
    chance = np.random.default_rng(5)
    had = chance.random((count, _CAUSES)) < 0.3
    helped = had[:, : _CAUSES // 2].sum(axis=1)
    rewards = chance.normal(size=count) + 0.3 * helped
    tasks = [one.text for one in events(count, seed=15)]
    for start in range(0, count, _PAGE):
        client.import_episodes(
            [
                {
                    "id": f"d{n}",
                    "task": tasks[n],
                    "reward": float(rewards[n]),
                    "success": bool(rewards[n] > 1),
                    "tags": [f"cause-{place}" for place in np.flatnonzero(had[n])],
                }
                for n in range(start, min(start + _PAGE, count))
            ]
        )
    return [
        timed(
            context, f"Discover, {count:,} episodes, {_CAUSES} causes", 5_000,
            lambda _: client.discover(question={"dry_run": True}).result(), lambda: range(1),
            "estimated in a process of its own",
        )
    ]  # fmt: skip
