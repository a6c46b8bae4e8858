"""What an agent can use: copies as one result, what was said around it, and the newer version."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import Api
from support.making import TOOL_CALL, TOOL_ERROR, at, event, ids_of, recall, record, struct

DECLINED = "Payment of ${} declined by the bank"
QUESTION = "why was the payment declined"


def declined(number: int, **fields: Any) -> events_pb.NewEvent:
    return event(
        DECLINED.format(10 + number / 4), f"s{number}", TOOL_ERROR, id=f"d{number}",
        name="pay", at=number * 3_600, **fields,
    )  # fmt: skip


def test_errors_that_differ_in_an_amount_are_one_result_with_a_count_and_a_span(api: Api) -> None:
    record(api, *map(declined, range(12)), wait=True)
    record(api, event("The bank asks to confirm a payment by phone", id="other"), wait=True)
    answer = recall(api, QUESTION)
    (payments,) = [r for r in answer.results if r.source_id.startswith("d")]
    assert payments.copies == 12
    assert (payments.first_time, payments.last_time) == (at(0), at(11 * 3_600))
    assert "other" in ids_of(answer)
    assert answer.total_results == 13
    apart = recall(api, QUESTION, every_copy=True, limit=20)
    assert len(apart.results) == 13
    assert {(r.copies, r.HasField("first_time")) for r in apart.results} == {(1, False)}


def test_hundreds_of_copies_do_not_crowd_out_the_rest(api: Api) -> None:
    record(api, *map(declined, range(400)), wait=True)
    fitting = [
        event(f"A declined payment: {word}", f"t{word}", id=word)
        for word in ("expired", "stolen", "limit", "currency", "address", "fraud")
    ]
    record(api, *fitting, wait=True)
    answer = recall(api, QUESTION)
    assert {"expired", "stolen", "limit", "currency", "address", "fraud"} < set(ids_of(answer))
    (payments,) = [r for r in answer.results if r.source_id.startswith("d")]
    assert payments.copies == 400
    assert answer.searched_count == 406


def test_copies_are_counted_among_what_the_filters_let_through(api: Api) -> None:
    record(api, *map(declined, range(8)), wait=True)
    answer = recall(api, QUESTION, start_time=at(3_000), end_time=at(3 * 3_600 + 1))
    assert [(r.copies, r.first_time, r.last_time) for r in answer.results] == [
        (3, at(3_600), at(3 * 3_600))
    ]


@pytest.mark.parametrize(
    ("texts", "results"),
    [
        (("pay failed: HTTP 404", "pay failed: HTTP 500"), 2),
        (("pay failed: timeout after 30 s", "pay failed: timeout after 31 s"), 1),
        (("pay failed for order A1", "pay failed for order B2"), 1),
        (("pay failed for Ann", "pay failed for Bob"), 2),
    ],
)
def test_what_names_another_failure_is_no_copy(api: Api, texts: list[str], results: int) -> None:
    events = [event(text, f"s{n}", TOOL_ERROR) for n, text in enumerate(texts)]
    record(api, *events, wait=True)
    assert len(recall(api, "pay failed").results) == results


def test_a_retry_is_a_copy_within_its_session_only(api: Api) -> None:
    record(
        api,
        *(event(f"upload report, attempt {n}", "one", TOOL_CALL, at=n) for n in range(3)),
        event("upload report, attempt 1", "two", TOOL_CALL, id="elsewhere"),
        wait=True,
    )
    found = recall(api, "upload the report").results
    assert sorted((r.session_id, r.copies) for r in found) == [("one", 3), ("two", 1)]


def test_what_is_said_with_other_amounts_is_not_hidden(api: Api) -> None:
    said = [event(f"The budget is {n} euros", id=f"b{n}", at=n * 3_600) for n in range(1, 4)]
    record(api, *said, wait=True)
    assert set(ids_of(recall(api, "what is the budget"))) == {"b1", "b2", "b3"}


def test_lessons_are_never_grouped(api: Api) -> None:
    for key in ("one", "two"):
        lesson = learn_pb.CreateLessonRequest(lesson_id=key, title="Retry", content="twice")
        api.learn.CreateLesson(lesson)
    found = recall(api, "retry twice").results
    assert {(result.source_id, result.copies) for result in found} == {("one", 1), ("two", 1)}


def test_the_newer_of_two_that_say_almost_the_same_comes_first(api: Api) -> None:
    record(
        api,
        event("The release deadline is Friday, March 15", id="old", at=0),
        event("The release deadline is now Tuesday, April 2", id="new", at=86_400),
        event("We like the release notes short", id="other", at=90_000),
        wait=True,
    )
    for limit in (1, 10):
        answer = recall(api, "is the release deadline Friday March 15", limit=limit, explain=True)
        assert answer.results[0].source_id == "new"
    first, second = answer.results[:2]
    assert (first.older.source_id, first.older.timestamp) == ("old", at(0))
    assert second.source_id == "old"
    assert (second.newer.source_id, second.newer.timestamp) == ("new", at(86_400))
    assert first.score >= second.score
    assert not any(r.HasField("older") or r.HasField("newer") for r in answer.results[2:])
    # The terms still add up to what the scores are made of.
    sums = [math.fsum(t.contribution for t in r.terms) for r in answer.results]
    assert sums == sorted(sums, reverse=True)
    assert "newer" in {term.name for term in first.terms}
    apart = recall(api, "is the release deadline Friday March 15", every_copy=True)
    assert apart.results[0].source_id == "old"


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("write about cheese number 7", "c7", "c12"),  # It names the one that it wants.
        ("what was written about cheese number 7", "c7", "c12"),
        ("was it cheese number 7", "c12", "c11"),  # It asks whether that still holds.
        ("write about cheese number 99", "c12", "c11"),
        ("write about cheese", "c12", "c11"),
    ],
)
def test_what_has_the_number_that_a_query_names_comes_before_newer_ones(
    api: Api, query: str, first: str, second: str
) -> None:
    numbers = range(1, 13)
    said = [event(f"Write about cheese number {n}", id=f"c{n}", at=n * 3_600) for n in numbers]
    record(api, *said, wait=True)
    found = recall(api, query).results
    assert [result.source_id for result in found[:2]] == [first, second]
    assert [result.score for result in found] == sorted((r.score for r in found), reverse=True)
    names_newer = {r.source_id: r.newer.source_id for r in found if r.HasField("newer")}
    assert all(int(newer[1:]) > int(older[1:]) for older, newer in names_newer.items())
    assert "c7" in names_newer


@pytest.fixture
def talk(api: Api) -> Api:
    record(
        api,
        event("Where shall we meet?", "talk", id="0", payload=struct(role="user")),
        event("In the museum at noon", "talk", id="1", payload=struct(role="assistant")),
        event("look up: museum", "talk", TOOL_CALL, id="2"),
        event("It opens at ten on Sundays", "talk", id="3", payload=struct(role="assistant")),
        event("Somebody else's question", "talk", id="4", metadata={"userId": "bob"}),
        event("Thanks!", "talk", id="5"),
        event("In the museum at night", "elsewhere", id="6"),
        wait=True,
    )
    return api


@pytest.mark.parametrize(
    ("turns", "before", "after"),
    [(0, "", ""), (1, "2", "4"), (2, "12", "45"), (3, "012", "45")],
)
def test_turns_are_what_happened_just_before_and_after(
    talk: Api, turns: int, before: str, after: str
) -> None:
    answer = recall(talk, "opens at ten on Sundays", context_turns=turns)
    found = next(r for r in answer.results if r.source_id == "3")
    assert "".join(turn.source_id for turn in found.before) == before
    assert "".join(turn.source_id for turn in found.after) == after


def test_a_turn_says_who_said_what_and_when(talk: Api) -> None:
    answer = recall(talk, "opens at ten on Sundays", context_turns=2, event_types=["message"])
    found = next(r for r in answer.results if r.source_id == "3")
    first, call = found.before
    assert (first.author, first.event_type) == ("assistant", "message")
    assert (call.author, call.event_type) == ("", "tool_call")
    assert first.text == "In the museum at noon"
    assert first.HasField("timestamp")


def test_turns_of_another_user_stay_with_them(api: Api) -> None:
    start = events_pb.StartSessionRequest(session_id="shared", user_id="ann")
    api.events.StartSession(start)
    record(
        api,
        event("my secret", "shared", id="bobs", metadata={"userId": "bob"}),
        event("museum of Ann", "shared", id="anns"),
        event("closing time", "shared", id="next"),
        wait=True,
    )
    for user, before in (("ann", []), (None, ["bobs"])):
        answer = recall(api, "museum of Ann", user_id=user, context_turns=3)
        found = next(r for r in answer.results if r.source_id == "anns")
        assert [turn.source_id for turn in found.before] == before
        assert [turn.source_id for turn in found.after] == ["next"]


def test_what_has_no_session_has_no_turns(talk: Api) -> None:
    talk.learn.CreateLesson(learn_pb.CreateLessonRequest(title="Museums", content="close early"))
    answer = recall(talk, "museums close early", scopes=["lesson"], context_turns=3)
    assert [(len(r.before), len(r.after)) for r in answer.results] == [(0, 0)]


def test_the_turns_of_a_hundred_long_results_fit_a_message(api: Api) -> None:
    # Of few tokens, which are quick to embed.
    filler = "x" * 7_500
    long = [event(f"word {filler} {chr(97 + n % 26) * 3}{n}x", id=str(n)) for n in range(120)]
    record(api, *long, wait=True)
    answer = recall(api, "word", limit=100, context_turns=3)
    assert len(answer.results) == 100
    assert max(len(t.text) for r in answer.results for t in (*r.before, *r.after)) <= 1_000
    assert answer.ByteSize() < 4 * 1024 * 1024
