from __future__ import annotations

from mneme_server.features.events.event_types import EventType
from mneme_server.features.reflect.error_patterns import NEEDED, error_patterns
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    ErrorPattern,
    ErrorPatterns,
    ErrorPatternsParams,
)
from unit.features.reflect.record import Record


def found_in(record: Record) -> AnalysisFindings:
    return error_patterns(record.history(*NEEDED), record, ErrorPatternsParams(), 10)


def pattern_in(record: Record) -> ErrorPattern:
    result = found_in(record).result
    assert isinstance(result, ErrorPatterns)
    return result.patterns[0]


def paying(*ends: tuple[bool, str]) -> Record:
    """Sessions in which `pay` fails once; then as each letter says: p is the same call again, q one
    with other arguments, P one that fails again, other letters are other tools."""
    record = Record()
    for number, (won, then) in enumerate(ends):
        name, at = f"s{number:02d}", number * 100.0
        record.session(name, at=at, reward=float(won))
        record.call(name, "pay", at, error="card refused", arguments={"card": 1})
        for step, letter in enumerate(then, start=1):
            if letter in "pqP":
                error = "card refused" if letter == "P" else ""
                card = {"card": 2 if letter == "q" else 1}
                record.call(name, "pay", at + step, error=error, arguments=card)
            else:
                record.call(name, letter, at + step)
    return record


def test_what_followed_an_error_is_told_of_the_sessions_that_succeeded() -> None:
    record = paying(
        (True, "p"), (True, "aq"), (True, "aq"), (True, "Paq"), (True, "ab"), (True, ""),
        (False, "aq"), (False, "p"),
    )  # fmt: skip
    found = pattern_in(record).recoveries
    assert [(way.kind, way.tools, way.sessions) for way in found] == [
        ("other_arguments", ("a", "pay"), 3),
        ("no_call", (), 1),
        ("other_tool", ("a",), 1),
        ("same_call", ("pay",), 1),
    ]
    assert found[0].session_ids == ("s03", "s02", "s01")
    (told,) = [i for i in found_in(record).insights if i.type == "error_recovery"]
    assert told.summary == (
        "Of 6 sessions that succeeded in spite of “card refused” of pay, after the last such error"
        " pay went through with other arguments in 3; pay went through with the same arguments in"
        " 1; another call went through in 1; no further call went through in 1."
    )
    assert told.event_ids == (found[0].error_event_id, found[0].event_id)


def test_arguments_that_were_not_recorded_are_neither_the_same_nor_others() -> None:
    record = Record()
    for number, arguments in enumerate((None, None, {"card": 1})):
        name, at = f"s{number}", number * 100.0
        record.session(name, at=at, reward=1.0)
        record.call(name, "pay", at, error="card refused")
        record.call(name, "pay", at + 1, arguments=arguments)
    assert [(way.kind, way.sessions) for way in pattern_in(record).recoveries] == [("same_tool", 3)]
    (told,) = [i for i in found_in(record).insights if i.type == "error_recovery"]
    assert told.summary.endswith("after the last such error pay went through in 3.")


def test_a_tool_that_nobody_named_is_told_as_one() -> None:
    record = Record()
    for number in range(3):
        name, at = f"s{number}", number * 100.0
        record.session(name, at=at, reward=1.0)
        record.call(name, "", at)
        record.call(name, "", at + 1, error="bad")
        record.call(name, "", at + 2)
    told = {insight.type: insight.summary for insight in found_in(record).insights}
    assert told["recurring_error"].endswith("; called just before: (unnamed) (3).")
    assert told["error_recovery"].endswith("after the last such error it went through in 3.")


def test_the_events_of_a_recovery_are_the_last_error_and_the_call_that_went_through() -> None:
    (way,) = pattern_in(paying((True, "Pap"))).recoveries
    # Each call is two events: pay, its error, pay, its error, a, its answer, pay.
    assert (way.error_event_id, way.event_id) == ("event-4", "event-7")


def test_of_an_error_outside_tools_the_next_call_that_goes_through_is_told() -> None:
    record = Record()
    for number in range(2):
        name = f"s{number}"
        record.session(name, at=number * 100.0, reward=1.0)
        record.add(name, EventType.ERROR, number * 100.0 + 1, error="out of memory")
        record.call(name, "a", number * 100.0 + 2, error="bad")
        record.call(name, "b", number * 100.0 + 3)
    (pattern,) = [
        p for p in getattr(found_in(record).result, "patterns", ()) if p.template == "out of memory"
    ]
    assert [(way.kind, way.tools, way.sessions) for way in pattern.recoveries] == [
        ("other_tool", ("b",), 2)
    ]


def test_sessions_with_an_error_are_compared_with_the_others() -> None:
    record = paying(*[(False, "")] * 20)
    for number in range(30):
        name = f"t{number:02d}"
        # At the same time as the others: what is of another time is not compared.
        at = number * 66.0 + 1
        record.session(name, at=at, reward=float(number % 5 != 0))
        record.call(name, "pay", at)
    findings = found_in(record)
    split = pattern_in(record).outcome
    assert split is not None
    assert (split.sessions, split.successes) == (20, 0)
    assert (split.other_sessions, split.other_successes) == (30, 24)
    assert split.is_sure
    (told,) = [i for i in findings.insights if i.type == "outcome_with_error"]
    assert told.summary == (
        "Of the sessions with “card refused” of pay, 0 of 20 (0 %) succeeded, of the others 24 of"
        " 30 (80 %); q < 0.001."
    )


def test_no_recovery_is_made_up_where_no_session_succeeded() -> None:
    assert pattern_in(paying((False, "p"), (False, ""))).recoveries == ()
