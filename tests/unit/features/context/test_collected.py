"""A handover that nobody wrote: what a session's events tell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.context import handover, words
from mneme_server.features.context.handover import LISTS, Collector
from mneme_server.features.context.model import Decision, Handover
from mneme_server.features.context.notes import SessionNotes
from mneme_server.features.events.event_types import EventType
from support.backtracking import StepCounter
from unit.features.context.making import Log


def _found(log: Log) -> Handover:
    collector, notes = Collector(), SessionNotes()
    collector.add(log.events)
    notes.add(log.events)
    return collector.handover(notes, "s")


def _sources(found: Handover, kind: str) -> list[tuple[str, ...]]:
    return [entry.event_ids for entry in found.collected if entry.kind == kind]


def test_what_was_done_is_the_agents_last_word_and_the_calls_that_changed_something() -> None:
    log = Log().said("user", "Please cancel my trip to Oslo.")
    log.call("get_trip", trip="T1").worked("get_trip")
    log.call("cancel_trip", trip="T1", refund=True, amount=250).worked("cancel_trip")
    log.call("send_receipt", trip="T1").failed("send_receipt", "no address")
    log.said("assistant", "Your trip is cancelled. Is there anything else?")
    log.said("user", "No, thank you! ###STOP###")
    found = _found(log)
    assert found.progress == ("Your trip is cancelled.", "cancel_trip: trip T1, amount 250")
    assert _sources(found, "progress") == [("e8",), ("e4",)]
    assert found.unresolved_errors == ("send_receipt: no address",)
    assert _sources(found, "unresolved_errors") == [("e7",)]


@pytest.mark.parametrize(
    ("user", "agent"), [("User", "Assistant"), ("HUMAN", "AI"), ("user", "model"), ("", "")]
)
def test_what_the_user_says_is_none_of_the_agents_words_however_roles_are_spelled(
    user: str, agent: str
) -> None:
    asked, answered, thanked = (
        "I want a refund for the lamp.",
        "The refund is paid.",
        "We decided to keep the lamp because it is pretty.",
    )
    log = Log()
    for role, label, said in (
        (user, "User", asked), (agent, "Assistant", answered), (user, "User", thanked)
    ):  # fmt: skip
        if role:
            log.said(role, said)
        else:
            log.add(EventType.MESSAGE, f"{label}: {said}")
    found = _found(log)
    label = "" if user else "Assistant: "
    assert (found.progress, found.decisions) == ((f"{label}{answered}",), ())
    notes = SessionNotes()
    notes.add(log.events)
    assert (asked in notes.need, notes.end) == (True, f"{label}{answered}")
    assert answered not in notes.need


def test_what_will_be_done_is_no_progress() -> None:
    log = Log().said("user", "Cancel order #1 and refund order #2.")
    log.call("get_order", id=1).worked("get_order")
    log.said(
        "assistant",
        "Now I have all the information I need. 1. Cancelling order #1. 2. Refunding order #2.",
    )
    log.add(EventType.ERROR, name="api_error", error="You're out of extra usage")
    assert _found(log).progress == ()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("1. Cancelled order #1. 2. Refunded order #2.", True),
        ("Both orders are cancelled. I'll check the refund tomorrow.", True),
        ("Fixing the parser solved it.", True),
        ("I'm going to cancel the order now.", False),
        ("Let me look that up first.", False),
        ("Next, I will update the tests.", False),
        ("Looking at the failing test.", False),
    ],
)
def test_the_last_word_is_progress_where_it_says_that_something_was_done(
    said: str, told: bool
) -> None:
    progress = _found(Log().said("user", "Cancel my orders.").said("assistant", said)).progress
    assert bool(progress) is told
    assert not any("tomorrow" in step for step in progress)


@pytest.mark.parametrize(
    ("tool", "is_step"),
    [
        ("cancel_order", True), ("mcp__shop-tools__cancel_order", True), ("git_commit", True),
        ("get_order", False), ("mcp__shop__get_order", False), ("list_post", False),
        ("order_lookup", False), ("getUpdate", False),
    ],
)  # fmt: skip
def test_a_call_that_changes_something_is_a_step_whoever_serves_it(
    tool: str, is_step: bool
) -> None:
    found = _found(Log().call(tool, order_id="#1").worked(tool))
    own = tool.rpartition("__")[2]
    assert found.progress == ((f"{own}: order_id #1",) if is_step else ())


def test_a_failure_that_another_call_got_round_is_not_left() -> None:
    def left(then: str, **arguments: Any) -> tuple[str, ...]:
        log = Log()
        for number, (tool, asked) in enumerate((("edit", {"path": "src/a.py"}), (then, arguments))):
            call_id = f"c{number}"
            payload = {"arguments": asked}
            log.add(EventType.TOOL_CALL, name=tool, call_id=call_id, payload=payload)
            if number:
                log.add(EventType.TOOL_RESPONSE, name=tool, call_id=call_id)
            else:
                log.add(EventType.TOOL_ERROR, name=tool, call_id=call_id, error="no match")
        return _found(log).unresolved_errors

    assert left("write_file", path="src/a.py") == ()
    assert left("write_file", path="src/b.py") == ("edit: no match",)
    assert left("read_file", path="src/a.py") == ("edit: no match",)


def test_of_a_session_that_succeeded_as_others_say_no_failure_is_left() -> None:
    log = Log().call("deploy").failed("deploy", "timeout")
    collector, notes = Collector(), SessionNotes()
    collector.add(log.events)
    notes.add(log.events)
    assert collector.handover(notes, "s").unresolved_errors == ("deploy: timeout",)
    assert collector.handover(notes, "s", succeeded=True).unresolved_errors == ()


def test_files_come_with_the_changed_ones_first() -> None:
    log = Log().call("read_file", path="docs/a.md").call("edit_file", file_path="src/b.py")
    found = _found(log)
    assert found.files == ("src/b.py", "docs/a.md")
    assert _sources(found, "files") == [("e2",), ("e1",)]


def test_a_commit_is_a_step_and_other_commands_are_none() -> None:
    log = Log().call("bash", command="ls -l").worked("bash")
    log.call("bash", command='git add . && git commit -m "Rotate the keys"').worked("bash")
    assert _found(log).progress == ("Committed: Rotate the keys",)


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        ("We decided to sign with RS256 because keys can rotate.",
         Decision("We decided to sign with RS256", "because keys can rotate.")),
        ("Decision: amounts are in cents, since floats drift.",
         Decision("amounts are in cents", "since floats drift.")),
        ("I'll use SQLite since it needs no server.",
         Decision("I'll use SQLite", "since it needs no server.")),
        ("I've chosen the smaller model.", Decision("I've chosen the smaller model.")),
    ],
)  # fmt: skip
def test_a_decision_is_found_with_its_reason_whole(said: str, decision: Decision) -> None:
    found = _found(Log().said("assistant", f"I looked at both. {said} Then I went on."))
    assert found.decisions == (decision,)


@pytest.mark.parametrize(
    "said",
    [
        "Have we decided on a model?", "I'll use the calculator.", "The list is long.",
        "I will check the reservation.", "They decided nothing.", "In steps, as we agreed before.",
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_decision_is_none(said: str) -> None:
    assert _found(Log().said("assistant", said)).decisions == ()


def test_a_users_wish_is_no_decision_and_a_decision_event_is_one() -> None:
    log = Log().said("user", "I've decided to cancel because I am ill.")
    log.add(EventType.CUSTOM, "Money is Decimal from end to end.", name="decision")
    assert _found(log).decisions == (Decision("Money is Decimal from end to end."),)


TODO_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("TodoWrite", {"todos": [
        {"content": "write tests", "status": "completed", "priority": "high"},
        {"content": "ship it", "status": "in_progress", "priority": "high"},
        {"content": "call Ann", "status": "cancelled"}]}),
    ("update_plan", {"plan": [{"step": "write tests", "status": "completed"},
                              {"step": "ship it", "status": "pending"}]}),
    ("write_todos", {"todos": '["ship it"]', "x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), TODO_CALLS)
def test_the_last_state_of_a_todo_list_says_what_is_open(
    tool: str, arguments: dict[str, Any]
) -> None:
    log = Log().call(tool, todos=[{"content": "an idea that was given up", "status": "pending"}])
    log.call(tool, **arguments)
    found = _found(log)
    assert [todo.content for todo in found.open_todos] == ["ship it"]
    assert "an idea that was given up" not in found.completed_todos
    assert _sources(found, "open_todos") == [("e2",)]


def test_tasks_that_are_made_and_changed_one_by_one_end_as_they_were_left() -> None:
    log = Log().call("TaskCreate", subject="write tests").call("TaskCreate", subject="ship it")
    log.call("TaskUpdate", taskId="1", status="completed")
    found = _found(log)
    assert found.completed_todos == ("write tests",)
    assert [todo.content for todo in found.open_todos] == ["ship it"]


def test_boxes_in_the_agents_message_and_an_events_payload_are_todos_too() -> None:
    log = Log().said("assistant", "Where we are:\n- [x] write tests\n- [ ] ship it")
    log.add(EventType.CUSTOM, name="state", payload={"open_todos": ["call Ann"]})
    found = _found(log)
    assert found.completed_todos == ("write tests",)
    assert [todo.content for todo in found.open_todos] == ["ship it", "call Ann"]


def test_courtesies_alone_hand_over_nothing() -> None:
    log = Log().said("user", "Hello").said("assistant", "How can I help you?")
    assert not _found(log).has_content


PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("todos", "content", "status", "priority", "taskId", "x")), inner
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(("TodoWrite", "TaskCreate", "TaskUpdate", "plan")), PAYLOADS),
        max_size=5,
    ),
    st.text(max_size=300),
)
def test_whatever_a_payload_holds_is_read(calls: list[tuple[str, Any]], said: str) -> None:
    log = Log().said("assistant", said)
    for tool, arguments in calls:
        log.add(EventType.TOOL_CALL, name=tool, payload={"arguments": arguments})
        log.add(EventType.CUSTOM, payload={"todos": arguments, "open_todos": arguments})
    found = _found(log)
    assert len(found.collected) == sum(len(getattr(found, kind)) for kind in LISTS)


@pytest.mark.parametrize(
    "log",
    [
        lambda times: Log().call("bash", command="git commit -m " * times).worked("bash"),
        lambda times: (
            Log().call("bash", command="git commit\n" * times + "-m 'too late'").worked("bash")
        ),
        lambda times: Log().said("assistant", "I'll use it" + " " * times + "now"),
        lambda times: Log().said("assistant", "#" * times),
        lambda times: Log().said("assistant", "A word. " * 9 + "\n" * times),
        lambda times: Log().said("assistant", "A word. " * 9 + "\n \n" * times),
    ],
    ids=["commits", "lines", "blanks", "marks", "ends", "blank lines"],
)
def test_what_repeats_itself_takes_no_longer_than_its_length(
    log: Callable[[int], Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, counter, collector = [0], StepCounter(), Collector()
    counter.watch(monkeypatch, handover, words)
    for times in (200, 400, 800):
        collector.add(log(times).events)
        taken.append(counter.steps)
    few, more, most = (after - before for before, after in itertools.pairwise(taken))
    # Twice as many repetitions take twice as many more steps, not four times as many.
    assert most - more <= 2.2 * (more - few)
    assert not collector.handover(SessionNotes(), "s").decisions


def test_of_several_commands_the_first_that_commits_with_a_message_is_told() -> None:
    command = (
        "cd git && echo commit -m 'no'\ngit log | sort\ngit add . ; git commit -am \"One\nmore\""
    )
    log = Log().call("bash", command=f"{command}; git commit -m 'two'").worked("bash")
    assert _found(log).progress == ("Committed: One more",)
