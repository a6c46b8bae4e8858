"""What a handover says, and what of it the caller gave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.context.handover import (
    MAX_SUMMARY,
    decided,
    given_part,
    handover_text,
    joined,
    sorted_by_priority,
)
from mneme_server.features.context.model import Collected, Decision, Handover, LockedContext, Todo


def test_session_summary_building() -> None:
    """The seed's own test."""
    text = handover_text(
        Handover(
            "s",
            progress=("Fixed bug X",),
            completed_todos=("Implement feature Y",),
            decisions=(Decision("Use approach Z", "Better performance"),),
            locked_contexts=(LockedContext("api_spec", "1.0"),),
            files=("src/x.py",),
        )
    )
    assert text == (
        "Progress: Fixed bug X. Completed: Implement feature Y."
        " Decision: Use approach Z, because: Better performance. Contexts: api_spec."
        " Files: src/x.py"
    )


@given(st.lists(st.text(max_size=600), max_size=12), st.lists(st.text(max_size=600), max_size=12))
def test_a_handovers_summary_is_never_longer_than_a_model_reads(
    progress: list[str], files: list[str]
) -> None:
    text = handover_text(Handover("s", progress=tuple(progress), files=tuple(files)))
    assert len(text) <= MAX_SUMMARY


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("keys can rotate", "Sign with RS256, because: keys can rotate"),
        ("because keys can rotate", "Sign with RS256, because keys can rotate"),
        ("so that keys can rotate.", "Sign with RS256, so that keys can rotate"),
        ("", "Sign with RS256"),
    ],
)
def test_a_decision_keeps_its_reason(why: str, said: str) -> None:
    assert decided(Decision("Sign with RS256.", why)) == said


def test_what_is_given_comes_first_and_wins() -> None:
    given_ = Handover(
        "s", progress=("Did it",), completed_todos=("Write tests",), open_todos=(Todo("Later"),),
        decisions=(Decision("Use cents", "floats drift"),), files=("a.py",),
    )  # fmt: skip
    found = Handover(
        "s", progress=("Something",), open_todos=(Todo("write the tests"), Todo("ship it", 1)),
        decisions=(Decision("use cents"), Decision("use UTC")), files=("b.py", "a.py"),
        unresolved_errors=("pytest: 1 failed",), collected=(Collected("open_todos", 1, ("e7",)),),
    )  # fmt: skip
    both = sorted_by_priority(joined(given_, found), 6)
    assert both.progress == ("Did it",)
    assert [todo.content for todo in both.open_todos] == ["ship it", "Later"]
    assert [one.decision for one in both.decisions] == ["Use cents", "use UTC"]
    assert both.files == ("a.py", "b.py")
    assert both.given_files == ["a.py"]
    assert Collected("open_todos", 0, ("e7",)) in both.collected
    assert given_part(both) == given_


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Write tests", "write the tests", True),
        ("Die Rechnung prüfen", "Rechnung prüfen", True),
        ("Fix bug #12", "Fix bug #13", False),
        ("Review chapter 3 of the manual for all new users of the product",
         "Review chapter 4 of the manual for all new users of the product", False),
        ("Deploy to EU", "Deploy to US", False),
        ("Implement the login", "Check the login", False),
        ("Überweisung an Firma A prüfen", "Überweisung an Firma B prüfen", False),
    ],
)  # fmt: skip
def test_todos_that_differ_in_a_number_or_in_what_is_to_be_done_are_two(
    one: str, other: str, same: bool
) -> None:
    left = joined(Handover("s", completed_todos=(one,)), Handover("s", open_todos=(Todo(other),)))
    assert (left.open_todos == ()) is same


@given(st.lists(st.text(min_size=1, max_size=8), max_size=6), st.integers(0, 6))
def test_what_a_caller_gave_can_be_told_again(texts: list[str], first: int) -> None:
    distinct = tuple(dict.fromkeys(texts))
    given_ = Handover("s", files=distinct[:first])
    found = Handover("s", files=distinct[first:], progress=distinct)
    both = joined(given_, found)
    assert given_part(both) == given_
    assert replace(both, collected=()).files == distinct
