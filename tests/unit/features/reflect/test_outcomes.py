from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import SessionStatus
from mneme_server.features.reflect.error_patterns import NEEDED as ERRORS_NEED
from mneme_server.features.reflect.error_patterns import error_patterns
from mneme_server.features.reflect.model import (
    ErrorPatternsParams,
    Insight,
    OutcomeBy,
    SessionComparison,
    SessionComparisonParams,
)
from mneme_server.features.reflect.session_comparison import NEEDED, session_comparison
from unit.features.reflect.making import most_false_alarms
from unit.features.reflect.record import DAY, Record


def compared(record: Record, limit: int = 10) -> tuple[dict[str, OutcomeBy], list[Insight]]:
    findings = session_comparison(record.history(*NEEDED), record, SessionComparisonParams(), limit)
    assert isinstance(findings.result, SessionComparison)
    return {by.dimension: by for by in findings.result.outcomes}, findings.insights


def attempts(seed: int, *, tasks: int = 12, each: int = 6, apart: bool) -> Record:
    """Attempts at tasks, some of which are easy and some hard if they lie `apart`."""
    rng = np.random.default_rng(seed)
    record = Record()
    for number in range(tasks * each):
        task = number % tasks
        rate = (0.95 if task % 2 else 0.1) if apart else 0.5
        won = rng.random() < rate
        name = f"s{number:03d}"
        record.session(
            name, at=number * 100.0, task_id=task, reward=float(won),
            tags=(f"reward:{int(won)}", f"task:{task}", "nightly" if number % 3 else "release"),
            project="even" if task % 2 else "odd", agent=f"agent-{number // 3 % 2}",
        )  # fmt: skip
        record.add(name, EventType.MESSAGE, number * 100.0, text="hello")
    return record


def test_the_outcome_is_told_by_task_tag_project_and_agent() -> None:
    found, insights = compared(attempts(1, apart=True))
    assert set(found) == {"task", "tag", "project", "agent"}
    assert found["task"].is_sure
    assert found["task"].group_count == 12
    project = {group.key: group.split for group in found["project"].groups}
    assert project["even"].rate > 0.8 > 0.3 > project["odd"].rate
    assert project["even"].other_sessions == project["odd"].sessions == 36
    # Twelve tasks are six of either project: how these differ is told by counts alone.
    assert project["even"].tasks == 6
    assert not project["even"].tested
    assert not found["project"].is_sure
    assert not found["agent"].is_sure
    told = {insight.type for insight in insights}
    assert "outcome_differs" in told
    # Which tasks are the best and the worst is told there: one sentence, not one for each task.
    assert any(group.split.is_sure for group in found["task"].groups)
    assert "outcome_by_task" not in told


def test_what_two_groups_share_out_is_told_in_one_sentence() -> None:
    """Of two projects, or of two labels of which every session has one."""
    record = Record()
    for number in range(40):
        night = number % 2
        record.session(
            f"s{number:02d}", at=number * DAY, reward=float(not night or number % 8 == 1),
            tags=("night" if night else "day",), project="left" if night else "right",
        )  # fmt: skip
        record.add(f"s{number:02d}", EventType.MESSAGE, number * DAY, text="hello")
    found, insights = compared(record)
    assert all(g.split.is_sure for by in ("tag", "project") for g in found[by].groups)
    told = [i.summary for i in insights if i.type.startswith("outcome")]
    assert len(told) == 2
    assert any("20 of 20 (100 %) succeeded with project right, 5 of 20" in one for one in told)
    assert any("with tag" in one and "of the others" in one for one in told)


def test_a_label_that_says_how_a_session_ended_is_no_finding() -> None:
    found, _ = compared(attempts(1, apart=True))
    assert {group.key for group in found["tag"].groups} == {"nightly", "release"}


def test_tasks_may_be_named_by_a_label_and_small_groups_are_left_out() -> None:
    record = Record()
    for number in range(9):
        tags = ("task:refund",) if number < 4 else ("task:rare",) if number < 6 else ()
        record.session(f"s{number}", at=number, reward=float(number % 2), tags=tags)
        record.add(f"s{number}", EventType.MESSAGE, number, text="hello")
    found, _ = compared(record)
    (task,) = found["task"].groups
    assert (task.key, task.split.sessions, task.split.successes) == ("refund", 4, 2)
    assert (task.split.other_sessions, task.split.other_successes) == (5, 2)
    assert "tag" not in found


def test_it_is_said_how_many_sessions_do_not_count_for_how_sessions_ended() -> None:
    record = attempts(1, apart=True)
    for number in range(40):
        record.call(f"open-{number}", "pay", number * 100.0, error="card refused")
    told = "40 sessions without a known outcome do not count for how sessions ended"
    history = record.history(*ERRORS_NEED)
    assert told in error_patterns(history, record, ErrorPatternsParams(), 10).notes
    history = record.history(*NEEDED)
    assert told in session_comparison(history, record, SessionComparisonParams(), 10).notes


def test_small_groups_far_apart_are_named_and_not_a_large_one_between_them() -> None:
    record = Record()
    ends = {"all": [1.0, 0.0] * 500} | {f"t{n}": [float(n % 2)] * 3 for n in range(40)}
    for task, rewards in ends.items():
        for number, reward in enumerate(rewards):
            record.session(f"{task}-{number:04d}", at=number * DAY, task=task, reward=reward)
    found, insights = compared(record)
    assert found["task"].is_sure
    (told,) = [i.summary for i in insights if i.type == "outcome_differs"]
    assert "3 of 3 (100 %) succeeded with task t1, 0 of 3 (0 %) with t0" in told


def test_where_nothing_differs_false_alarms_are_as_rare_as_stated() -> None:
    runs = 40
    alarms = 0
    for seed in range(runs):
        found, _ = compared(attempts(seed, apart=False), 100)
        alarms += any(by.is_sure or any(g.split.is_sure for g in by.groups)
                      for by in found.values())  # fmt: skip
    assert alarms <= most_false_alarms(runs)


def test_the_groups_that_differ_most_are_shown_and_how_many_there_are() -> None:
    found, _ = compared(attempts(2, apart=True), 3)
    assert len(found["task"].groups) == 3
    assert found["task"].group_count == 12
    strengths = [group.split.strength for group in found["task"].groups]
    assert strengths == sorted(strengths, reverse=True)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_where_all_sessions_end_alike_nothing_is_told(reward: float) -> None:
    record = Record()
    for number in range(30):
        record.session(f"s{number}", at=number * DAY, reward=reward, project=f"p{number % 3}")
        record.add(f"s{number}", EventType.MESSAGE, number * DAY, text="hello")
    found, insights = compared(record)
    assert not any(by.is_sure or any(g.split.is_sure for g in by.groups) for by in found.values())
    assert insights == []


def test_sessions_that_hold_only_a_handover_are_no_cheap_ones() -> None:
    record = Record()
    for number in range(20):
        name = f"s{number:02d}"
        record.session(name, at=number * DAY, status=SessionStatus.COMPLETED)
        record.add(name, EventType.LLM_RESPONSE, number * DAY, cost=0.5, model="m")
    for number in range(10):
        record.handover(f"h{number}", at=(10 + number) * DAY)
    history = record.history(*NEEDED)
    assert len(history.sessions) == 20
    assert history.notes == ["10 sessions left out that hold no events, only a handover"]
    findings = session_comparison(history, record, SessionComparisonParams(recent_sessions=10), 10)
    assert isinstance(findings.result, SessionComparison)
    assert findings.result.recent_count == 10
    (cost,) = [c for c in findings.result.comparisons if c.measure == "cost_per_session"]
    assert (cost.recent_mean, cost.earlier_mean) == (0.5, 0.5)
    assert findings.insights == []
