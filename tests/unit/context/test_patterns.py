"""Patterns and suggestions: from evidence that they name, and none without."""

from __future__ import annotations

from mneme_server.context.model import Decision, LockedContext, PastSession, Todo
from mneme_server.context.patterns import Topics, patterns_of
from mneme_server.context.suggestions import Advice, suggestions_of
from unit.context.making import Log, handover, past


def _no_advice(_error: str) -> None:
    return None


def test_sessions_that_have_nothing_in_common_show_no_pattern() -> None:
    sessions = [
        past("a", left=handover("a", progress=("Fixed the parser",), files=("src/parse.py",))),
        past("b", left=handover("b", progress=("Painted a logo",), files=("img/logo.svg",))),
    ]
    assert patterns_of(sessions) == []
    assert patterns_of([]) == []
    assert patterns_of(sessions[:1]) == []


def test_a_file_of_two_sessions_out_of_few_recurs_and_of_many_it_takes_three() -> None:
    with_file = [past(f"s{n}", left=handover(f"s{n}", files=("core/x.rs",))) for n in range(3)]
    others = [past(f"o{n}", left=handover(f"o{n}")) for n in range(4)]
    (pattern,) = (p for p in patterns_of(with_file[:2]) if p.type == "recurring_file")
    assert pattern.evidence.session_ids == ("s0", "s1")
    assert "core/x.rs" in pattern.description
    assert not [p for p in patterns_of(with_file[:2] + others) if p.type == "recurring_file"]
    assert [p for p in patterns_of(with_file + others) if p.type == "recurring_file"]


def test_an_error_that_comes_back_with_other_values_recurs_and_names_its_events() -> None:
    sessions = [
        past("a", Log().failed("pay", "amount 10 does not add up to 12")),
        past("b", Log().call("pay").failed("pay", "amount 7 does not add up to 99")),
        past("c", Log().failed("pay", "card expired")),
    ]
    (pattern,) = (p for p in patterns_of(sessions) if p.type == "recurring_error")
    assert pattern.evidence.session_ids == ("a", "b")
    assert pattern.evidence.event_ids == ("e1", "e2")
    assert "does not add up" in pattern.description


def test_tools_that_follow_each_other_over_sessions_are_a_workflow_said_once() -> None:
    sessions = [
        past(f"s{n}", Log().call("read").call("edit").call("test").call(f"other{n}"))
        for n in range(3)
    ]
    workflows = [p for p in patterns_of(sessions) if p.type == "tool_workflow"]
    assert [w.subject for w in workflows] == ["read → edit → test"]
    assert set(workflows[0].evidence.session_ids) == {"s0", "s1", "s2"}


def test_one_tool_called_again_and_again_is_no_workflow() -> None:
    sessions = [past(f"s{n}", Log().call("read").call("read")) for n in range(3)]
    assert not [p for p in patterns_of(sessions) if p.type == "tool_workflow"]


def test_a_todo_left_open_again_recurs_also_in_other_words_order() -> None:
    sessions = [
        past("a", left=handover("a", todos=(Todo("Add refresh tokens"),))),
        past("b", left=handover("b", todos=(Todo("refresh tokens: add them"),))),
    ]
    (pattern,) = (p for p in patterns_of(sessions) if p.type == "open_todo")
    assert pattern.evidence.session_ids == ("a", "b")


def test_a_todo_that_the_last_session_no_longer_has_is_not_open() -> None:
    sessions = [
        past("now", left=handover("now", completed_todos=("Add refresh tokens",))),
        past("a", left=handover("a", todos=(Todo("Add refresh tokens"),))),
        past("b", left=handover("b", todos=(Todo("Add refresh tokens"),))),
    ]
    assert not [p for p in patterns_of(sessions) if p.type == "open_todo"]


def test_a_topic_of_all_sessions_is_named_with_them() -> None:
    sessions = [
        past("a", left=handover("a", progress=("JWT decoding",), files=("src/auth/jwt.py",))),
        past("b", left=handover("b", progress=("OAuth login",), files=("src/auth/oauth.py",))),
    ]
    (pattern,) = (p for p in patterns_of(sessions) if p.type == "topic")
    assert pattern.description == "both of these sessions share the topic auth"


def _about(name: str, *said: str) -> PastSession:
    log = Log()
    for text in said:
        log.said("user", text)
    return past(name, log)


def _topics(sessions: list[PastSession], among: Topics | None) -> list[str]:
    return [p.description for p in patterns_of(sessions, among) if p.type == "topic"]


def test_a_topic_that_nearly_every_session_has_is_not_stated() -> None:
    said = ("cancel my reservation", "the reservation is wrong: cancel it")
    sessions = [_about(f"s{n}", *said) for n in range(6)]
    common = Topics(100, {"reservation": 95, "cancel": 12})
    assert _topics(sessions, common) == ["all 6 of these sessions share the topic cancel"]
    assert _topics(sessions, Topics(100, {"reservation": 95, "cancel": 80})) == []


def test_where_there_is_no_other_session_many_sessions_stand_out_by_nothing() -> None:
    sessions = [_about(f"s{n}", "cancel it", "do cancel it") for n in range(6)]
    assert _topics(sessions, None) == []
    assert _topics(sessions, Topics(6, {"cancel": 6})) == []


def test_the_words_of_errors_are_no_topic_of_sessions() -> None:
    sessions = [past(f"s{n}", Log().failed("pay", "KeyError: no such card")) for n in range(3)]
    assert _topics(sessions, None) == []


def test_a_label_that_sessions_share_is_called_one() -> None:
    sessions = [past(f"s{n}", Log().call(f"t{n}"), tags=("team:red",)) for n in range(3)]
    assert _topics(sessions, None) == ["all 3 of these sessions share the label team:red"]


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
