from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import SessionStatus
from mneme_server.features.reflect.model import AnalysisFindings, ToolSequences, ToolSequencesParams
from mneme_server.features.reflect.tool_sequences import NEEDED, arguments_of, tool_sequences
from unit.features.reflect.making import TOOLS, most_false_alarms, random_calls
from unit.features.reflect.record import Record


def found_in(record: Record, limit: int = 10, **params: int) -> AnalysisFindings:
    return tool_sequences(record.history(*NEEDED), record, ToolSequencesParams(**params), limit)


def sequences_in(record: Record, limit: int = 10, **params: int) -> ToolSequences:
    result = found_in(record, limit, **params).result
    assert isinstance(result, ToolSequences)
    return result


def calling(*sessions: str) -> Record:
    record = Record()
    for number, tools in enumerate(sessions):
        for step, tool in enumerate(tools):
            record.call(f"s{number}", tool, number * 100.0 + step)
    return record


def test_common_sequences_come_with_their_frequency() -> None:
    result = sequences_in(calling("abc", "ab", "abab", "c"))
    assert [(use.tool, use.count, use.sessions, use.failed) for use in result.tools] == [
        ("a", 4, 3, 0), ("b", 4, 3, 0), ("c", 2, 2, 0),
    ]  # fmt: skip
    first = result.common[0]
    assert (first.tools, first.count, first.sessions) == (("a", "b"), 4, 3)
    assert first.support == pytest.approx(3 / 4)
    assert result.average_length == pytest.approx(10 / 4)
    assert result.sequence_count == 10  # a, b, c, ab, bc, ba, abc, aba, bab, abab.
    assert sequences_in(calling("abc", "ab"), max_length=1).common[0].tools == ("a",)


def test_sequences_that_commonly_precede_errors_are_identified() -> None:
    rng = np.random.default_rng(1)
    record = Record()
    for number in range(60):
        before: tuple[str, ...] = ()
        for step in range(15):
            tool = str(rng.choice(TOOLS))
            risk = 0.7 if before[-2:] == ("search", "book") else 0.05
            record.call(f"s{number}", tool, step, error="bad" if rng.random() < risk else "")
            before = (*before, tool)
    result = sequences_in(record, min_length=1)
    surest, *_ = [e for e in result.before_errors if e.tools[-2:] == ("search", "book")]
    assert surest.is_sure
    assert surest.effect == "call_fails"
    assert surest.q_value < 0.001
    assert surest.lift_interval.low > 2


def test_the_report_has_common_sequences_error_prone_ones_and_the_average_length() -> None:
    record = calling("ab", "ab", "ab")
    for number in range(3):
        record.call(f"s{number}", "c", 50.0 + 100 * number, error="bad")
    result = sequences_in(record)
    assert result.common[0].tools == ("a", "b")
    assert {effect.tools for effect in result.before_errors} == {("a", "b"), ("a",), ("b",)}
    assert result.average_length == 3


def planted_outcomes(seed: int, sessions: int = 150) -> Record:
    """Sessions that check before they pay mostly succeed, others mostly fail."""
    rng = np.random.default_rng(seed)
    record = Record()
    for number in range(sessions):
        careful = rng.random() < 0.5
        won = rng.random() < (0.8 if careful else 0.3)
        session = record.session(f"s{number:04d}", at=number * 100.0, reward=float(won))
        noise = [str(tool) for tool in rng.choice(("think", "mail", "search"), 6)]
        for step, tool in enumerate([*noise, *(["check"] if careful else []), "pay"]):
            record.call(session, tool, number * 100.0 + step)
    return record


def test_planted_sequences_before_success_and_failure_are_found() -> None:
    for seed in range(3):
        result = sequences_in(planted_outcomes(seed))
        success, failure = result.before_success[0], result.before_failure[0]
        assert success.tools == ("check",)
        assert success.lift_interval.low > 1
        assert success.q_value < 0.01
        assert failure.tools == ("check",)
        assert failure.lift_interval.high < 1
        told = [
            i for i in found_in(planted_outcomes(seed)).insights
            if i.type == "sequence_before_success"
        ]  # fmt: skip
        # That sessions with mail → check → pay do as well says nothing new.
        assert [tuple(i.data["tools"]) for i in told] == [("check",)]  # type: ignore[arg-type]


def test_sequences_of_the_same_sessions_are_told_once() -> None:
    record = Record()
    for number in range(60):
        won = number % 2 == 0 or number % 3 == 0
        record.session(f"s{number}", at=number * 100.0, reward=float(won))
        tools = (
            ["game", "bag", "game", "game", "game"]
            if number % 2 == 0
            else ["map", "mail"] * 2 + ["map"]
        )
        for step, tool in enumerate(tools):
            record.call(f"s{number}", tool, number * 100.0 + step)
    insights = found_in(record, 30).insights
    told = [i.data["tools"] for i in insights if i.type == "sequence_before_success"]
    assert told == [["bag"]]


def test_of_common_sequences_those_that_extend_a_more_common_one_are_not_told() -> None:
    insights = found_in(calling("mmmmm", "mmmm", "abc", "ab")).insights
    told = [i.data["tools"] for i in insights if i.type == "common_sequence"]
    assert told == [["m", "m"], ["a", "b"], ["b", "c"]]


def alternating(risk: dict[tuple[str, str], float]) -> Record:
    """Sessions in which a tool, "a" or "b", is called between others by chance."""
    rng = np.random.default_rng(3)
    record = Record()
    for number in range(120):
        record.session(f"s{number}", at=number * 100.0)
        before = ""
        for step in range(6):
            tool = str(rng.choice(("a", "b")))
            fails = rng.random() < risk.get((before, tool), 0.0)
            record.call(f"s{number}", tool, number * 100.0 + step, error="bad" if fails else "")
            before = tool
    return record


def test_that_another_tool_follows_is_no_finding() -> None:
    """After "b" calls fail as "a" does, wherever that comes."""
    record = alternating({(before, "a"): 0.5 for before in ("", "a", "b")})
    assert not [e for e in sequences_in(record, max_length=1).before_errors if e.is_sure]


def test_a_rate_of_0_makes_no_ratio_but_may_be_a_finding() -> None:
    record = alternating({("b", "a"): 0.5, ("b", "b"): 0.5, ("", "a"): 0.5, ("", "b"): 0.5})
    (never,) = [e for e in sequences_in(record).before_errors if e.tools == ("a",)]
    assert never.effect_count == 0
    assert not never.has_ratio
    assert never.is_sure
    told = [i for i in found_in(record).insights if i.data.get("tools") == ["a"]]
    assert f"0 of {never.count} (0 %) " in told[0].summary
    assert "×" not in told[0].summary
    assert "lift" not in told[0].data


def test_the_strongest_comes_first_also_where_others_are_surer() -> None:
    record = planted_outcomes(3, 200)
    effects = [e for e in sequences_in(record, 50).before_success if e.is_sure]
    strengths = [effect.strength for effect in effects]
    assert strengths == sorted(strengths, reverse=True)


def test_the_end_of_a_session_is_read_from_its_metadata_before_its_status() -> None:
    record = Record()
    for number in range(12):
        record.session(f"s{number}", status=SessionStatus.COMPLETED, success=number < 6)
        for step, tool in enumerate("ab" if number < 6 else "cd"):
            record.call(f"s{number}", tool, step)
    (best,) = [e for e in sequences_in(record).before_success if e.tools == ("a", "b")]
    assert (best.count, best.effect_count) == (6, 6)


@pytest.mark.parametrize("moody", [False, True], ids=["alike", "moody"])
def test_in_random_calls_false_alarms_are_as_rare_as_stated(moody: bool) -> None:
    runs = 30
    kinds = {"error_after_sequence", "sequence_before_success", "sequence_before_failure"}
    alarms = sum(
        any(i.type in kinds for i in found_in(random_calls(seed, 60, 12, moody=moody)).insights)
        for seed in range(runs)
    )
    assert alarms <= most_false_alarms(runs)


def test_shuffled_outcomes_tell_nothing() -> None:
    runs = 30
    alarms = 0
    for seed in range(runs):
        record = planted_outcomes(seed, 80)
        rng = np.random.default_rng(seed + 1_000)
        outcomes = rng.permutation([row.outcome for row in record.rows.values()])
        for (name, row), outcome in zip(list(record.rows.items()), outcomes, strict=True):
            record.rows[name] = row._replace(outcome=int(outcome))
        result = sequences_in(record)
        alarms += any(e.is_sure for e in (*result.before_success, *result.before_failure))
    assert alarms <= most_false_alarms(runs)


def test_a_loop_is_the_same_call_with_the_same_arguments_three_times_in_a_row() -> None:
    record = Record()
    for step in range(4):
        record.call("stuck", "fetch", step, arguments={"b": 1, "a": [2]})
    for step in range(5):
        record.call("busy", "fetch", step, arguments={"page": step})
    record.call("twice", "fetch", 0, arguments={"a": 1})
    record.call("twice", "fetch", 1, arguments={"a": 1})
    (loop,) = sequences_in(record).loops
    assert (loop.tool, loop.longest_run, loop.runs) == ("fetch", 4, 1)
    assert loop.arguments == '{"a":[2],"b":1}'
    assert loop.session_ids == ("stuck",)


def test_a_loop_ends_with_its_session() -> None:
    record = Record()
    for session in ("one", "two"):
        for step in range(2):
            record.call(session, "fetch", step, arguments={"a": 1})
    assert sequences_in(record).loops == ()


def test_calls_whose_arguments_were_not_recorded_are_no_loop() -> None:
    record = Record()
    for step, command in enumerate(("ls", "cat notes", "rm notes", "pwd")):
        record.add("told", EventType.TOOL_CALL, step, name="bash", text=command)
        record.call("silent", "bash", step)
        error = {"error": "it does not answer"}  # Of a call that was not recorded.
        record.add("failed", EventType.TOOL_ERROR, step, name="bash", payload=error)
    assert sequences_in(record).loops == ()
    for step in range(10, 13):
        record.call("told", "bash", step, arguments={})
    (loop,) = sequences_in(record).loops
    assert (loop.longest_run, loop.arguments) == (3, "{}")


def test_arguments_are_found_under_their_usual_names_and_call_ids_are_none() -> None:
    assert arguments_of('{"input":{"x":1},"call_id":"7"}') == '{"x":1}'
    assert arguments_of('{"call_id":"7","path":"/x"}') == '{"path":"/x"}'
    assert arguments_of('{"call_id":"7"}') == arguments_of("{}") == ""


def test_sessions_without_calls_do_not_count() -> None:
    record = calling("ab", "ab", "ab")
    record.add("talk", EventType.MESSAGE, 0, text="hello")
    assert sequences_in(record).common[0].support == 1.0
    empty = Record()
    assert sequences_in(empty).common == ()
    assert found_in(empty).notes == ["there are no tool calls in range"]


def test_the_order_and_the_figures_do_not_depend_on_the_limit() -> None:
    record = planted_outcomes(5)
    few, many = sequences_in(record, 3), sequences_in(record, 50)
    assert few.before_success == many.before_success[:3]
    assert few.common == many.common[:3]


def test_labels_that_say_how_a_session_ended_hide_nothing_that_goes_with_it() -> None:
    """As importers of benchmarks write them: at the same reward nothing ever differs."""
    found = []
    for labelled in (False, True):
        record = Record()
        for number in range(80):
            deploys, won = number % 2 == 0, number % 10 not in (0, 2, 4, 1)
            tags = (f"reward:{int(won)}",) if labelled else ()
            name = record.session(f"s{number:02d}", at=60.0 * number, reward=float(won), tags=tags)
            for step, tool in enumerate(("read", "deploy" if deploys else "edit", "test")):
                record.call(name, tool, 60.0 * number + step)
        found.append([one.summary for one in found_in(record).insights])
    assert found[0] == found[1]
    assert any(one.startswith("Sessions with deploy fail more often") for one in found[0])


def test_that_tasks_are_too_few_for_a_test_is_told() -> None:
    def notes(tasks: int) -> list[str]:
        record = Record()
        for number in range(60):
            at = 60.0 * number
            said = {"task_id": f"task-{number % tasks}", "reward": float(number % 2)}
            name = record.session(f"s{number:02d}", at=at, **said)
            record.call(name, "read" if number % 3 else "edit", at)
        return [note for note in found_in(record).notes if "tested only from" in note]

    (told,) = notes(4)
    assert told.startswith("the sessions are of 4 tasks, and attempts at one task are alike")
    assert notes(20) == []
