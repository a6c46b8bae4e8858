"""Patterns: from evidence that they name, and none without."""

from __future__ import annotations

from collections import Counter

import pytest
from mneme_server.features.context import patterns
from mneme_server.features.context.handover import todo_key
from mneme_server.features.context.model import PastSession, Todo
from mneme_server.features.context.patterns import Topics, patterns_of
from unit.features.context.making import Log, handover, past


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


def test_the_same_words_of_two_tools_are_two_errors() -> None:
    sessions = [
        past("a", Log().failed("read", "connection refused")),
        past("b", Log().failed("write", "connection refused")),
        past("c", Log().failed("write", "connection refused")),
    ]
    (pattern,) = (p for p in patterns_of(sessions) if p.type == "recurring_error")
    assert pattern.description == "the same error in 2 sessions: write: connection refused"
    assert (pattern.evidence.session_ids, pattern.subject) == (("b", "c"), "connection refused")


def test_sessions_share_no_topic_by_the_words_that_sentences_of_their_language_are_made_with() -> (
    None
):
    texts = (
        (
            "Die Rechnung ist nicht bezahlt, und die Mahnung wurde gesendet.",
            "Und nicht die zweite?",
        ),
        (
            "Die Heizung geht nicht, und wir haben die Firma angerufen.",
            "Nicht die Heizung, und nun?",
        ),
    )
    sessions = []
    for number, said in enumerate(texts):
        log = Log()
        for text in said:
            log.said("user", text)
        sessions.append(past(f"s{number}", log))
    assert patterns_of(sessions) == []


def test_of_long_sessions_it_is_said_how_often_tools_came_at_least() -> None:
    for calls, often in ((20, "came 18 times"), (200, "came at least 48 times")):
        log = Log()
        for _ in range(calls // 2):
            log.call("read").call("edit")
        sessions = [past(f"s{n}", log) for n in range(2)]
        first = next(p for p in patterns_of(sessions) if p.type == "tool_workflow")
        assert first.description == f"read → edit → read → edit {often} in 2 sessions"


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


def test_todos_that_differ_in_a_number_have_not_been_left_open_again() -> None:
    sessions = [
        past(f"s{n}", left=handover(f"s{n}", todos=(Todo(f"Fix bug #{n}"), Todo("Fix the build"))))
        for n in range(3)
    ]
    (pattern,) = (p for p in patterns_of(sessions) if p.type == "open_todo")
    assert pattern.description == "“Fix the build” has been left open in 3 sessions"


def test_each_todo_is_read_once_however_many_others_it_is_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: Counter[str] = Counter()

    def counted(text: str) -> frozenset[str]:
        read[text] += 1
        return todo_key(text)

    monkeypatch.setattr(patterns, "todo_key", counted)
    sessions = [
        past(
            f"s{n}",
            left=handover(f"s{n}", todos=tuple(Todo(f"Fix {50 * n + m}") for m in range(50))),
        )
        for n in range(10)
    ]
    assert patterns_of(sessions) == []
    assert len(read) == 500
    assert max(read.values()) == 2  # One of the last session is looked for, too.
