"""What a summary says of a session."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.context.model import Todo
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import Outcome, Severity
from unit.features.context.making import Log, handover, summary_of


def _a_session() -> Log:
    log = Log().said("system", "You book flights.").said("user", "Please rebook me to Lisbon")
    log.call("search_flights").worked("search_flights")
    log.call("search_flights").worked("search_flights")
    log.call("book_reservation").failed("book_reservation", "Payment of 250 does not add up to 320")
    log.call("book_reservation").failed("book_reservation", "Payment of 10 does not add up to 99")
    log.add(EventType.LLM_CALL, model="gpt-4o")
    return log.said("assistant", "I could not book it")


def test_a_summary_names_agent_duration_tools_with_counts_models_cost_and_labels() -> None:
    summary = summary_of(
        _a_session(), agent_id="a1", agent_name="Ann", tags=("travel",), total_cost_usd=0.25,
        total_input_tokens=1_000, total_output_tokens=234,
    )  # fmt: skip
    for said in (
        "Agent Ann", "11 seconds", "search_flights ×2", "book_reservation ×2", "gpt-4o",
        "0.2500 USD", "1,234 tokens", "travel", "Please rebook me to Lisbon", "I could not book it",
    ):  # fmt: skip
        assert said in summary.text, said
    assert "You book flights" not in summary.text


def test_a_summary_tells_what_the_user_needs_and_what_came_of_it() -> None:
    log = Log().said("user", "Hi! I need help.").said("assistant", "How can I help you?")
    log.said("user", "Cancel the trip to Oslo, the fair is off.")
    log.said("assistant", "The trip to Oslo is cancelled. Is there anything else?")
    log.said("user", "No, thank you! ###STOP###")
    assert summary_of(log).text.splitlines()[:2] == [
        "Cancel the trip to Oslo, the fair is off.",
        "At the end: The trip to Oslo is cancelled.",
    ]


def test_a_line_of_a_summary_is_a_sentence_so_that_all_can_be_read_in_one_line() -> None:
    left = handover(progress=("The token expired",), todos=(Todo("Refresh it", 1),))
    assert summary_of(_a_session(), left).text.splitlines()[:4] == [
        "Progress: The token expired.",
        "Open: Refresh it.",
        "Please rebook me to Lisbon.",
        "At the end: I could not book it.",
    ]


def test_an_error_that_is_a_sentence_ends_a_summary_s_line_with_one_full_stop() -> None:
    lines = summary_of(Log().failed("game", "It is pitch black.")).text.splitlines()
    assert lines[0] == "Errors: game: It is pitch black."


def test_given_a_session_with_tool_calls_and_errors_the_summary_mentions_the_tools_and_errors() -> (
    None
):
    summary = summary_of(_a_session())
    assert summary.tool_sequence == ("search_flights", "book_reservation")
    assert dict(summary.tools) == {"search_flights": 2, "book_reservation": 2}
    (error,) = summary.errors  # Both differ in amounts only.
    assert (error.count, error.tool, error.resolved) == (2, "book_reservation", False)
    assert error.event_ids == ("e8", "e10")
    assert "Payment of 250 does not add up to 320 (×2)" in summary.error_summary
    assert summary.error_summary in summary.text


def test_topics_are_extracted_from_tool_names_error_messages_and_session_labels() -> None:
    log = _a_session().failed("db", "TimeoutError: the database did not answer")
    topics = summary_of(log, tags=("travel",)).topics
    assert {"travel", "search_flights", "book_reservation", "TimeoutError"} <= set(topics)
    assert {"payment"} <= {topic.lower() for topic in topics}
    assert len(topics) == len({topic.lower() for topic in topics}) <= 20


def test_an_error_is_resolved_when_its_tool_works_afterwards() -> None:
    log = Log().failed("pytest", "2 failed").worked("pytest").failed("ruff", "1 error")
    resolved = {error.tool: error.resolved for error in summary_of(log).errors}
    assert resolved == {"pytest": True, "ruff": False}


def test_that_a_tool_works_again_resolves_no_error_of_another_one_in_the_same_words() -> None:
    log = Log().failed("read", "connection refused").failed("write", "connection refused")
    log.worked("read")
    summary = summary_of(log)
    assert [(e.tool, e.count, e.resolved) for e in summary.errors] == [
        ("read", 1, True), ("write", 1, False)
    ]  # fmt: skip
    assert summary.error_summary == "read: connection refused; write: connection refused."


def test_an_error_of_no_tool_is_resolved_when_much_came_after_it() -> None:
    early = Log().add(EventType.ERROR, error="lost the connection")
    for _ in range(11):
        early.said("user", "go on")
    late = Log().add(EventType.ERROR, error="lost the connection").said("user", "go on")
    assert [summary_of(log).errors[0].resolved for log in (early, late)] == [True, False]


def test_an_alert_is_resolved_when_it_says_so() -> None:
    log = Log().add(
        EventType.ALERT_TRIGGERED, "checkout fell", name="checkout", severity=Severity.CRITICAL
    )
    assert [error.resolved for error in summary_of(log).errors] == [False]
    log.add(EventType.ALERT_RESOLVED, "checkout is back", name="checkout")
    assert [error.resolved for error in summary_of(log).errors] == [True]


def test_an_error_event_gets_its_tool_from_the_call_that_it_answers() -> None:
    log = Log().add(EventType.TOOL_CALL, name="fetch", call_id="c1")
    log.add(EventType.TOOL_ERROR, call_id="c1", error="404")
    assert summary_of(log).errors[0].tool == "fetch"


def test_the_outcome_is_what_the_metadata_says_else_the_status() -> None:
    assert summary_of(Log()).outcome == Outcome.SUCCESS
    assert summary_of(Log(), metadata_json='{"reward":0.0}').outcome == Outcome.FAILURE


def test_files_are_those_that_tools_name_and_a_change_counts_more_than_a_look() -> None:
    log = Log().call("read_file", path="src/a.py").call("edit_file", file_path="src/a.py")
    log.call("read_file", path="docs/b.md").call("get", path="/v1/users").call("ls", path="src")
    files = {file.path: (file.event_id, file.changed) for file in summary_of(log).files}
    assert files == {"src/a.py": ("e2", True), "docs/b.md": ("e3", False)}


def test_a_summary_with_a_handover_begins_with_it_and_keeps_the_tools_and_errors() -> None:
    left = handover(progress=("Rebooked the Lisbon trip",))
    summary = summary_of(_a_session(), left)
    assert summary.text.startswith("Progress: Rebooked the Lisbon trip")
    assert "search_flights ×2" in summary.text
    assert "does not add up" in summary.text
    assert "lisbon" in summary.topics


def test_that_a_session_ended_does_not_say_that_it_succeeded() -> None:
    seen = summary_of(Log(), observed=True)
    assert (seen.text, seen.outcome) == ("0 events, ended.", Outcome.UNKNOWN)


def test_a_session_without_anything_still_has_a_summary() -> None:
    assert summary_of(Log()).text == "0 events, ended in success."


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=120))
def test_a_tool_sequence_has_runs_once_and_at_most_fifty_tools(
    calls: list[tuple[str, bool]],
) -> None:
    log = Log()
    for name, chatter in calls:
        log.call(name)
        if chatter:
            log.said("user", "and now")
    sequence = summary_of(log).tool_sequence
    assert len(sequence) <= 50
    assert all(one != other for one, other in pairwise(sequence))
    assert set(sequence) <= {name for name, _ in calls}
    assert sum(count for _, count in summary_of(log).tools) == len(calls)
