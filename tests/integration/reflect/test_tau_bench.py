"""Two hundred real runs of an agent: what Reflect counts, counted again from the file itself."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import reflect_service_pb2 as pb
from support.api import Api
from support.reflecting import COMPARISON, COST, ERRORS, SEQUENCES, TRENDS, reflect
from support.server import LocalServer
from unit.cli.command import mneme

_VARIABLE = "TAU_BENCH_FILE"
_FILE = Path(os.environ.get(_VARIABLE) or "tests/data/tau-bench/gpt-4o-airline.json")
"""A file of tau-bench's historical trajectories, as its repository publishes them."""


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    if not _FILE.exists():
        pytest.skip(f"set {_VARIABLE} to tau-bench's trajectories: {_FILE} does not exist")
    found: list[dict[str, Any]] = json.loads(_FILE.read_text())
    return found


@pytest.fixture(scope="module")
def imported(runs: list[dict[str, Any]], server: LocalServer) -> Api:
    api = server.keys.tenant("tau-bench")
    secret = str(api.secret)
    result = mneme(
        *["import", str(_FILE), "--agent", "gpt-4o", "--address", server.address],
        *["--api-key", secret],
    )
    assert result.code == 0, result.err
    return api


def tools_of(run: dict[str, Any]) -> list[str]:
    """The tools that a run called, in order."""
    return [
        call["function"]["name"]
        for message in run["traj"]
        for call in message.get("tool_calls") or ()
    ]


def errors_of(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The tool and the message of each error of a run."""
    for message in run["traj"]:
        if message["role"] == "tool" and message["content"].startswith("Error"):
            yield message["name"], message["content"]


_KINDS = {
    r"Error: payment amount does not add up, total price is \d+, but paid \d+": (
        "Error: payment amount does not add up, total price is <num>, but paid <num>"
    ),
    r"Error: flight HAT\d+ not available on date \d{4}-\d\d-\d\d": (
        "Error: flight <id> not available on date <date>"
    ),
    r"Error: not enough seats on flight HAT\d+": "Error: not enough seats on flight <id>",
    r"Error: payment method \w+_\d+ not found": "Error: payment method <id> not found",
    r"Error: not enough balance in payment method \w+_\d+": (
        "Error: not enough balance in payment method <id>"
    ),
}


def _template(message: str) -> str:
    fitting = [to for pattern, to in _KINDS.items() if re.fullmatch(pattern, message)]
    return fitting[0] if fitting else message


def test_the_recurring_errors_are_named_with_the_counts_of_the_file(
    runs: list[dict[str, Any]], imported: Api
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    sessions: dict[tuple[str, str], set[int]] = defaultdict(set)
    for number, run in enumerate(runs):
        for tool, message in errors_of(run):
            counts[tool, _template(message)] += 1
            sessions[tool, _template(message)].add(number)
    calls = Counter(tool for run in runs for tool in tools_of(run))
    answer = reflect(imported, ERRORS, limit=100)
    assert answer.metadata.sessions_analyzed == len(runs)
    found = {(p.tool_name, p.template): p for p in answer.error_patterns.patterns}
    assert {key: p.count for key, p in found.items()} == counts
    assert {key: p.sessions_affected for key, p in found.items()} == {
        key: len(of) for key, of in sessions.items()
    }
    for (tool, _), pattern in found.items():
        assert pattern.rate == pytest.approx(pattern.count / calls[tool])
    assert answer.error_patterns.error_count == counts.total()
    # The dearest first: those that are in the most sessions that failed.
    lost = [
        (sum(runs[i]["reward"] < 0.5 for i in sessions[p.tool_name, p.template]), p.count)
        for p in answer.error_patterns.patterns
    ]
    assert [failed for failed, _ in lost] == sorted((failed for failed, _ in lost), reverse=True)
    assert lost[0] == (12, 24)


def test_what_came_before_each_error_is_counted_as_in_the_file(
    runs: list[dict[str, Any]], imported: Api
) -> None:
    pattern = reflect(imported, ERRORS, {"window": 1}).error_patterns.patterns[0]
    seen: Counter[str] = Counter()
    followed: Counter[str] = Counter()
    for run in runs:
        before = ""
        for call, answer in _calls_with_answers(run):
            seen[before] += call == pattern.tool_name
            fails = answer.startswith("Error: payment amount") and call == pattern.tool_name
            followed[before] += fails
            before = call
    assert pattern.preceding
    for effect in pattern.preceding:
        (tool,) = effect.tools
        assert (effect.count, effect.effect_count) == (seen[tool], followed[tool])


def _calls_with_answers(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    waiting: list[str] = []
    for message in run["traj"]:
        waiting += [call["function"]["name"] for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            yield waiting.pop(0), message["content"]
    for call in waiting:
        yield call, ""


def _sequences(tools: list[str]) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(tools[i : i + length])
        for length in (1, 2, 3, 4)
        for i in range(len(tools) - length + 1)
    )


def test_the_sequences_before_reward_0_and_1_are_those_of_the_file(
    runs: list[dict[str, Any]], imported: Api
) -> None:
    total: Counter[tuple[str, ...]] = Counter()
    in_runs: dict[bool, Counter[tuple[str, ...]]] = {True: Counter(), False: Counter()}
    with_calls = {True: 0, False: 0}
    for run in runs:
        found = _sequences(tools_of(run))
        total += found
        in_runs[run["reward"] >= 0.5].update(found.keys())
        with_calls[run["reward"] >= 0.5] += bool(tools_of(run))
    result = reflect(imported, SEQUENCES, limit=100).tool_sequences
    assert result.sequence_count == len(total)
    for common in result.common:
        assert common.count == total[tuple(common.tools)]
    tables = ((result.before_success, True), (result.before_failure, False))
    for effects, outcome in tables:
        assert len(effects) == 100
        for effect in effects:
            tools = tuple(effect.tools)
            hits, others = in_runs[outcome][tools], in_runs[not outcome][tools]
            assert (effect.count, effect.effect_count) == (hits + others, hits)
            left = (with_calls[outcome] - hits, with_calls[not outcome] - others)
            assert effect.base_rate == pytest.approx(left[0] / sum(left))
            if hits and left[0]:
                assert effect.lift_interval.low <= effect.lift <= effect.lift_interval.high
            else:
                assert (effect.lift, effect.HasField("lift_interval")) == (0, False)
    lengths = [len(tools_of(run)) for run in runs if tools_of(run)]
    assert result.average_length == pytest.approx(sum(lengths) / len(lengths))


def test_what_four_tries_of_a_few_tasks_have_in_common_is_counted_and_not_claimed(
    runs: list[dict[str, Any]], imported: Api
) -> None:
    answer = reflect(imported, SEQUENCES, limit=100)
    result = answer.tool_sequences
    failure = {tuple(e.tools): e for e in result.before_failure}
    booked = [run for run in runs if "book_reservation" in tools_of(run)]
    rewards = [run["reward"] for run in booked]
    assert (len(rewards), rewards.count(0)) == (24, 23)
    found = failure["book_reservation",]
    assert (found.count, found.effect_count) == (24, 23)
    # These are tries of ten tasks, which are ten observations at most.
    assert len({run["task_id"] for run in booked}) == 10
    assert not found.sure
    # What is merely common comes last.
    kinds = [insight.type for insight in answer.insights]
    assert kinds.index("common_sequence") == len(kinds) - 3


def test_what_may_have_resolved_an_error_is_that_of_the_file(
    runs: list[dict[str, Any]], imported: Api
) -> None:
    (pattern,) = [
        p
        for p in reflect(imported, ERRORS).error_patterns.patterns
        if p.template == "Error: payment method not found"
    ]
    with_it = [run for run in runs if (pattern.tool_name, pattern.template) in errors_of(run)]
    won = [run for run in with_it if run["reward"] >= 0.5]
    assert (pattern.outcome.sessions, pattern.outcome.successes) == (len(with_it), len(won))
    assert sum(way.sessions for way in pattern.recoveries) == len(won)
    (way,) = pattern.recoveries
    assert way.kind == "other_arguments"
    for run in won:
        answers = list(_calls_with_answers(run))
        last = max(i for i, call in enumerate(answers) if call == (pattern.tool_name,
                                                                   pattern.template))  # fmt: skip
        good = [tool for tool, said in answers[last + 1 :] if not said.startswith("Error")]
        assert good[: len(way.tools)] == list(way.tools)


def test_the_outcome_by_task_is_that_of_the_file(runs: list[dict[str, Any]], imported: Api) -> None:
    answer = reflect(imported, COMPARISON, limit=100)
    by = {found.dimension: found for found in answer.session_comparison.outcomes}
    tasks: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        tasks[str(run["task_id"])].append(run["reward"])
    assert by["task"].group_count == len(tasks)
    assert {g.key: (g.outcome.sessions, g.outcome.successes) for g in by["task"].groups} == {
        key: (len(rewards), sum(reward >= 0.5 for reward in rewards))
        for key, rewards in tasks.items()
    }
    assert by["task"].q_value <= 0.05
    assert not any(group.key.startswith("reward") for group in by["tag"].groups)


def test_without_costs_durations_and_times_nothing_is_made_up(imported: Api) -> None:
    assert reflect(imported, COST).cost_analysis.total_cost_usd == 0
    trends = reflect(imported, TRENDS).performance_trends
    assert trends.success_rate.trend == pb.TREND_UNSPECIFIED
    assert not trends.points[0].HasField("latency_p50_ms")
    compared = reflect(imported, COMPARISON).session_comparison
    assert {c.trend for c in compared.comparisons} <= {pb.TREND_STABLE, pb.TREND_UNSPECIFIED}
