from __future__ import annotations

import numpy as np
import pytest
from mneme_server.common import deadline
from mneme_server.features.events.event_types import EventType
from mneme_server.features.reflect.error_patterns import NEEDED, error_patterns
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    ErrorPatterns,
    ErrorPatternsParams,
    RateBaseline,
)
from unit.features.reflect.making import TOOLS, most_false_alarms, random_calls
from unit.features.reflect.record import Record

ADD_UP = "payment amount does not add up, total is {}, paid {}"


def found_in(record: Record, limit: int = 10, **params: object) -> AnalysisFindings:
    given = ErrorPatternsParams(**params)  # type: ignore[arg-type]
    return error_patterns(record.history(*NEEDED), record, given, limit)


def patterns_in(record: Record, limit: int = 10, **params: object) -> ErrorPatterns:
    result = found_in(record, limit, **params).result
    assert isinstance(result, ErrorPatterns)
    return result


def test_similar_errors_of_several_sessions_are_one_pattern_with_its_frequency() -> None:
    record = Record()
    for number in range(6):
        record.call(f"s{number % 4}", "pay", number, error=ADD_UP.format(number * 7, number))
    record.call("s1", "pay", 9)
    record.call("s1", "mail", 10, error="mailbox full")
    (payment, mail) = patterns_in(record).patterns
    assert payment.template == "payment amount does not add up, total is <num>, paid <num>"
    assert (payment.tool_name, payment.count, payment.sessions_affected) == ("pay", 6, 4)
    assert payment.rate == pytest.approx(6 / 7)
    assert (mail.template, mail.count) == ("mailbox full", 1)


def test_a_pattern_tells_its_count_its_first_and_last_time_and_the_sequence_before_it() -> None:
    record = Record()
    for number in range(3):
        at = 100.0 * number
        record.call(f"s{number}", "search", at)
        record.call(f"s{number}", "calculate", at + 1)
        record.call(f"s{number}", "pay", at + 2, error=ADD_UP.format(number, 1))
    (pattern,) = patterns_in(record).patterns
    assert (pattern.first_seen_us, pattern.last_seen_us) == (2_000_000, 202_000_000)
    assert [effect.tools for effect in pattern.preceding] == [("search", "calculate")]
    assert (pattern.preceding[0].count, pattern.preceding[0].effect_count) == (3, 3)
    newest = pattern.examples[0]
    assert newest.message == ADD_UP.format(2, 1)
    assert (newest.session_id, newest.timestamp_us) == ("s2", 202_000_000)


def test_the_same_message_of_two_tools_is_two_patterns() -> None:
    record = Record()
    record.call("s", "book", 0, error="not found")
    record.call("s", "cancel", 1, error="not found")
    assert {p.tool_name for p in patterns_in(record).patterns} == {"book", "cancel"}


def test_an_error_is_of_the_tool_that_was_called_however_the_answer_spells_it() -> None:
    record = Record()
    for number in range(8):
        name, at, call = f"s{number}", number * 100.0, f"call-{number}"
        record.add(name, EventType.TOOL_CALL, at, name="mcp__files__read", call=call)
        if number < 2:
            record.add(name, EventType.TOOL_ERROR, at + 1, name="read", call=call, error="gone")
    record.add("s0", EventType.TOOL_CALL, 50, call="nameless")
    record.add("s0", EventType.TOOL_ERROR, 51, name="write", call="nameless", error="full")
    read, write = patterns_in(record).patterns
    assert (read.tool_name, read.rate) == ("mcp__files__read", pytest.approx(2 / 8))
    assert (write.tool_name, write.rate) == ("write", 1)


@pytest.mark.parametrize("with_ids", [True, False])
def test_calls_that_name_no_tool_count_for_the_one_that_their_answers_name(
    with_ids: bool,
) -> None:
    record = Record()
    for number in range(8):
        at, call = number * 100.0, f"call-{number}" if with_ids else ""
        record.add("s", EventType.TOOL_CALL, at, call=call)
        if number < 2:
            record.add("s", EventType.TOOL_ERROR, at + 1, name="pay", call=call, error="full")
        else:
            record.add("s", EventType.TOOL_RESPONSE, at + 1, name="pay", call=call)
    (pattern,) = patterns_in(record).patterns
    assert (pattern.tool_name, pattern.count) == ("pay", 2)
    assert pattern.rate == pytest.approx(2 / 8)


def test_an_error_outside_tools_has_no_tool_and_no_rate() -> None:
    record = Record()
    record.call("s", "book", 0)
    record.add("s", EventType.ERROR, 1, error="out of memory")
    (pattern,) = patterns_in(record).patterns
    assert (pattern.tool_name, pattern.rate) == ("", 0.0)
    assert pattern.preceding[0].tools == ("book",)
    assert pattern.preceding[0].effect == "error_follows"


def test_parameters_choose_the_tool_the_least_count_and_the_examples() -> None:
    record = Record()
    for number in range(3):
        record.call("s", "book", number, error="full")
    record.call("s", "mail", 9, error="bounced")
    assert [p.tool_name for p in patterns_in(record, tool="mail").patterns] == ["mail"]
    assert [p.tool_name for p in patterns_in(record, min_count=2).patterns] == ["book"]
    assert len(patterns_in(record, examples=1).patterns[0].examples) == 1
    result = patterns_in(record, 1)
    assert (len(result.patterns), result.pattern_count, result.error_count) == (1, 2, 4)


def test_an_error_that_recurs_in_few_sessions_is_no_finding_and_yet_is_told() -> None:
    record = Record()
    record.call("s", "book", 0, error="room 12 is full")
    record.call("s", "book", 1, error="room 7 is full")
    findings = found_in(record)
    assert findings.insights == []
    assert "an error came 2 times in 1 session; a finding is of 3 at the least" in findings.notes
    record.call("t", "book", 2, error="room 9 is full")
    record.call("u", "book", 3, error="room 1 is full")
    findings = found_in(record)
    assert [insight.type for insight in findings.insights] == ["recurring_error"]
    assert not any("at the least" in note for note in findings.notes)


def planted(seed: int, baseline: float = 0.02) -> Record:
    """`pay` fails half of the time right after `refund`, and seldom else."""
    rng = np.random.default_rng(seed)
    record = Record()
    for number in range(80):
        before = ""
        for step in range(15):
            tool = str(rng.choice(TOOLS))
            risk = 0.5 if (before, tool) == ("refund", "pay") else baseline
            message = (
                f"no money left in account {rng.integers(1_000_000)}" if rng.random() < risk else ""
            )
            record.call(f"s{number:03d}", tool, number * 100.0 + step, error=message)
            before = tool
    return record


def test_a_planted_sequence_before_an_error_is_found_with_an_interval_around_its_lift() -> None:
    for seed in range(3):
        findings = found_in(planted(seed), baseline=RateBaseline.SAME_TOOL, tool="pay")
        told = [i for i in findings.insights if i.type == "error_after_sequence"]
        assert ("refund",) in [tuple(i.data["tools"]) for i in told]  # type: ignore[arg-type]
        assert isinstance(findings.result, ErrorPatterns)
        best = findings.result.patterns[0].preceding[0]
        assert best.tools[-1] == "refund"
        assert best.q_value <= 0.05
        assert 1 < best.lift_interval.low < best.lift < best.lift_interval.high


def test_that_a_tools_error_comes_where_the_tool_is_called_is_not_told() -> None:
    rng = np.random.default_rng(1)
    record = Record()
    for number in range(60):
        tools = ["move_arm"] * 8 if number % 3 == 0 else ["search", "mail", "book"] * 3
        for step, tool in enumerate(tools):
            fails = tool == "move_arm" and rng.random() < 0.3
            error = "E-207 overheat" if fails else ""
            record.call(f"s{number:02d}", tool, number * 100.0 + step, error=error)
    findings = found_in(record)
    assert not [i for i in findings.insights if i.type == "error_after_sequence"]
    assert isinstance(findings.result, ErrorPatterns)
    (overheat,) = findings.result.patterns
    # The table has its figures all the same: of the tool's own calls.
    assert overheat.preceding[0].tools[-1] == "move_arm"
    assert overheat.preceding[0].count + overheat.preceding[0].base_count == 160
    assert not overheat.preceding[0].is_sure


def test_a_sequence_after_which_a_tool_fails_more_often_than_else_is_told_by_default() -> None:
    told = [i for i in found_in(planted(1)).insights if i.type == "error_after_sequence"]
    assert ["refund"] in [i.data["tools"] for i in told if i.data["tool_name"] == "pay"]


@pytest.mark.parametrize("moody", [False, True], ids=["alike", "moody"])
@pytest.mark.parametrize("baseline", RateBaseline)
def test_in_random_calls_false_alarms_are_as_rare_as_stated(
    moody: bool, baseline: RateBaseline
) -> None:
    runs = 25
    alarms = 0
    for seed in range(runs):
        findings = found_in(random_calls(seed, 40, 12, moody=moody), baseline=baseline)
        alarms += any(i.type == "error_after_sequence" for i in findings.insights)
    assert alarms <= most_false_alarms(runs)


def test_one_session_that_fails_again_and_again_is_no_evidence() -> None:
    record = random_calls(1, 30, 12, error_rate=0.0)
    for step in range(40):
        record.call("stuck", "pay", 1e6 + step, error="card refused")
    findings = found_in(record)
    assert not [i for i in findings.insights if i.type == "error_after_sequence"]


def test_for_who_has_left_no_error_is_compared() -> None:
    record = planted(1)
    history = record.history(*NEEDED)
    with deadline.within(0), pytest.raises(deadline.Abandoned):
        error_patterns(history, record, ErrorPatternsParams(), 10)


def test_without_errors_there_are_no_patterns() -> None:
    record = Record()
    record.call("s", "book", 0)
    for without in (record, Record()):
        result = patterns_in(without)
        assert (result.patterns, result.pattern_count, result.error_count) == ((), 0, 0)
        assert result.outcome is not None
        assert not result.outcome.tested


def timeouts(fatal: str, harmless: str, fails_on: str) -> Record:
    """Sessions that time out on one of two hosts; those on `fails_on` fail."""
    record = Record()
    for number in range(60):
        host = fatal if number % 3 == 0 else harmless
        name = record.session(f"s{number:02d}", at=number * 60.0, reward=float(host != fails_on))
        said = f"connect to {host}: timed out"
        record.call(name, "query", number * 60.0, error=said if number % 2 else "")
        record.call(name, "query", number * 60.0 + 1, error=said if number % 2 else "")
        record.call(name, "write", number * 60.0 + 2)
    return record


@pytest.mark.parametrize(
    ("fatal", "harmless"),
    [
        ("db-primary.prod.example.com:5432", "cache-01.prod.example.com:6379"),
        ("db1", "web12"),
        ("10.0.0.17", "10.0.0.18"),
    ],
)
def test_hosts_of_which_only_one_is_fatal_are_told_apart(fatal: str, harmless: str) -> None:
    patterns = patterns_in(timeouts(fatal, harmless, fails_on=fatal)).patterns
    found = {one.template: (one.failed_sessions, one.sessions_affected) for one in patterns}
    assert found == {
        f"connect to {fatal}: timed out": (10, 10),
        f"connect to {harmless}: timed out": (0, 20),
    }


def test_hosts_that_behave_alike_are_one_pattern() -> None:
    (pattern,) = patterns_in(timeouts("db1", "web12", fails_on="none")).patterns
    assert pattern.template == "connect to <id>: timed out"
    assert pattern.count == 60


def test_ids_that_are_other_ones_each_time_stay_one_pattern() -> None:
    record = Record()
    for number in range(90):
        name = record.session(f"s{number:02d}", at=number * 60.0, reward=float(number % 2))
        record.call(name, "query", number * 60.0, error=f"user bob{number} was not found")
    (pattern,) = patterns_in(record).patterns
    assert (pattern.template, pattern.count) == ("user <id> was not found", 90)


def test_answers_that_hold_a_traceback_are_told_as_a_guess_and_count_as_no_errors() -> None:
    record = Record()
    raised = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'"
    for number in range(4):
        for tool, text in (("bash", raised), ("bash", "ok"), ("read", "def f(): ...")):
            record.call(f"s{number}", tool, float(number))
            record.events[-1].text = text
    findings = found_in(record)
    assert isinstance(findings.result, ErrorPatterns)
    assert findings.result.error_count == 0
    (told,) = findings.insights
    assert told.type == "unmarked_error"
    assert told.summary.startswith("4 answers of bash in 4 sessions may be errors that nothing")
    assert "guess" in told.summary
    assert told.q_value is None
    assert len(told.event_ids) == 4
