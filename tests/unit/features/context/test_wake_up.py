"""Suggestions: from evidence that they name, and none without."""

from __future__ import annotations

from mneme_server.features.context.learned import Advice
from mneme_server.features.context.model import Decision, LockedContext, Todo
from mneme_server.features.context.patterns import patterns_of
from mneme_server.features.context.wake_up import suggestions_of
from unit.features.context.making import Log, handover, past


def _no_advice(_error: str) -> None:
    return None


def test_without_a_last_session_or_anything_open_nothing_is_suggested() -> None:
    assert suggestions_of(None, [], _no_advice) == []
    calm = past("a", Log().call("read").worked("read"), handover("a", progress=("Read it",)))
    assert suggestions_of(calm, patterns_of([calm]), _no_advice) == []


def test_open_todos_come_first_the_most_urgent_before_the_others() -> None:
    left = handover("a", todos=(Todo("Ship it", 1), Todo("Write docs", 3)))
    made = suggestions_of(past("a", left=left), [], _no_advice)
    assert [s.description for s in made] == ["Ship it (priority 1)", "Write docs (priority 3)"]
    assert {s.evidence.session_ids for s in made} == {("a",)}


def test_an_error_that_was_not_resolved_is_suggested_with_its_events() -> None:
    log = Log().failed("pytest", "1 failed").worked("pytest").failed("deploy", "no space left")
    (made,) = suggestions_of(past("a", log), [], _no_advice)
    assert made.type == "unresolved_error"
    assert "deploy" in made.description
    assert "no space left" in made.description
    assert made.evidence.event_ids == ("e3",)


def test_code_changed_without_a_test_is_suggested_but_not_with_one_nor_for_prose() -> None:
    def kinds(*files: str) -> list[str]:
        last = past("a", left=handover("a", files=files))
        return [s.type for s in suggestions_of(last, [], _no_advice)]

    assert kinds("src/auth.py", "README.md") == ["untested_change"]
    assert kinds("src/auth.py", "tests/test_auth.py") == []
    assert kinds("web/app.ts", "web/app.spec.ts") == []
    assert kinds("README.md", "config.yaml") == []


def test_a_file_that_was_only_read_needs_no_test() -> None:
    looked = past("a", Log().call("read_file", path="src/a.py"))
    edited = past("b", Log().call("edit_file", path="src/a.py"))
    assert suggestions_of(looked, [], _no_advice) == []
    (made,) = suggestions_of(edited, [], _no_advice)
    assert (made.type, made.evidence.event_ids) == ("untested_change", ("e1",))


def test_a_repeated_failure_is_suggested_only_with_what_addresses_it() -> None:
    sessions = [past(n, Log().failed("pay", f"amount {n} does not add up")) for n in ("1", "2")]
    patterns = patterns_of(sessions)
    resolved = past("last", Log().failed("pay", "amount 3 does not add up").worked("pay"))
    assert suggestions_of(resolved, patterns, _no_advice) == []
    made = suggestions_of(
        resolved, patterns, lambda error: Advice(f"sum the items: {error}", lesson_id="l1")
    )
    (repeated,) = (s for s in made if s.type == "repeated_failure")
    assert repeated.evidence.lesson_ids == ("l1",)
    assert set(repeated.evidence.session_ids) == {"1", "2"}
    assert repeated.evidence.event_ids
    assert "sum the items: pay: amount 1 does not add up" in repeated.description


def test_an_unresolved_error_that_came_before_is_suggested_once_with_what_addresses_it() -> None:
    log = Log().failed("move_arm", "E-207 overheat").failed("deploy", "no space left")
    sessions = [past("last", log), past("before", Log().failed("move_arm", "E-207 overheat"))]
    patterns = patterns_of(sessions)
    made = suggestions_of(sessions[0], patterns, lambda _: Advice("let it cool", lesson_id="l1"))
    assert [s.type for s in made] == ["unresolved_error", "repeated_failure"]
    assert "no space left" in made[0].description
    assert "E-207 overheat; a lesson says: let it cool" in made[1].description
    without = suggestions_of(sessions[0], patterns, _no_advice)
    assert [s.type for s in without] == ["unresolved_error", "unresolved_error"]


def test_every_pattern_and_suggestion_names_sessions_that_exist() -> None:
    log = Log().call("read").call("edit").failed("pay", "amount 1 is wrong")
    sessions = [
        past(
            f"s{n}", log,
            handover(
                f"s{n}", progress=("Worked on payment",), files=("src/pay/x.py",),
                todos=(Todo("Ask the bank"),), decisions=(Decision("Use cents"),),
                locked_contexts=(LockedContext("pay_spec"),),
            ),
        )
        for n in range(4)
    ]  # fmt: skip
    patterns = patterns_of(sessions)
    assert {p.type for p in patterns} == {
        "topic", "recurring_file", "recurring_error", "tool_workflow", "open_todo",
    }  # fmt: skip
    made = [*patterns, *suggestions_of(sessions[0], patterns, lambda _: Advice("x", "l"))]
    ids, events = {s.session.id for s in sessions}, {event.id for event in log.events}
    for one in made:
        assert one.evidence.session_ids
        assert set(one.evidence.session_ids) <= ids
        assert set(one.evidence.event_ids) <= events
