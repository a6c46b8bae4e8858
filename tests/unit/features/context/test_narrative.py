"""The narrative: what a stranger reads."""

from __future__ import annotations

from typing import Any

import pytest
from mneme_server.features.context.model import Awakening, Decision, PastSession, Related, Todo
from mneme_server.features.context.patterns import patterns_of
from mneme_server.features.context.wake_up import NOTHING, narrate, suggestions_of, tries_of
from mneme_server.features.events.model import GradeSource, Outcome, SessionStatus
from unit.features.context.making import DAY, NOW, Log, handover, past


def test_with_nothing_to_tell_it_says_so() -> None:
    assert narrate(Awakening(None), NOW) == NOTHING


def test_it_weaves_the_last_session_related_work_pattern_and_next_step() -> None:
    from dataclasses import replace

    last_left = handover(
        "now", project="shop", progress=("Fixed the authentication bug.",), duration_s=5_400,
        decisions=(Decision("Use RS256", "better security"),), todos=(Todo("Add refresh tokens"),),
        files=("src/auth/jwt.py", "tests/test_jwt.py"),
    )  # fmt: skip
    last = past("now", left=last_left, project="shop")
    weeks = handover("oauth", progress=("OAuth2 setup",), files=("src/auth/jwt.py",))
    earlier = past("oauth", left=replace(weeks, created_us=NOW - 8 * DAY))
    patterns = patterns_of([last, earlier])
    woken = Awakening(
        last,
        related=[Related(earlier, 0.6, 0.8, 0.1, 0.6)],
        patterns=patterns,
        suggestions=suggestions_of(last, patterns, lambda _: None),
    )
    assert narrate(woken, NOW) == (
        "Last session on shop, 1 day ago, after 1 hour 30 minutes: Fixed the authentication bug.\n"
        "Decided: Use RS256, because: better security.\n"
        "It succeeded, says its agent.\n\n"
        "Related work from 1 week ago, which succeeded: OAuth2 setup.\n\n"
        "Context: both of these sessions share the topic auth.\n"
        "Pattern: src/auth/jwt.py was touched in 2 sessions.\n\n"
        "Suggested next step: Add refresh tokens."
    )


def test_a_pattern_whose_error_is_a_sentence_ends_with_one_full_stop() -> None:
    sessions = [past(name, Log().failed("game", "It is pitch black.")) for name in ("a", "b")]
    told = narrate(Awakening(sessions[0], patterns=patterns_of(sessions)), NOW)
    assert "Pattern: the same error in 2 sessions: game: It is pitch black." in told.splitlines()


def test_related_sessions_that_say_the_same_are_told_in_one_line() -> None:
    asked = (("Play to the end", 4), ("Play to the end", 2), ("Mow the lawn", 3))
    related = [
        Related(past(text, Log().said("user", text), ended_us=NOW - days * DAY), 0.6, 0.8, 0.1, 0.6)
        for text, days in asked
    ]
    told = narrate(Awakening(past("now"), related=related), NOW).splitlines()
    assert [line for line in told if line.startswith("Related work")] == [
        "Related work in 2 sessions, the latest from 2 days ago (2 succeeded): Play to the end.",
        "Related work from 3 days ago, which succeeded: Mow the lawn.",
    ]


def test_sessions_since_the_last_handover_are_told() -> None:
    later = past("later", Log().said("user", "Why is the build red?"))
    last = past("now", left=handover("now", progress=("Green build",)))
    told = narrate(Awakening(last, later=[later]), NOW)
    assert "Since then one session was at work and left no handover." in told
    assert "Why is the build red?" in told


def test_a_session_without_a_handover_is_told_from_its_events() -> None:
    told = narrate(Awakening(past("a", Log().said("user", "Book a flight"))), NOW)
    assert told.startswith("Last session, ")
    assert "Book a flight" in told
    assert "It left no handover" in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "It succeeded, says its agent."),
        ({"status": SessionStatus.ERROR}, "It failed, says its agent."),
        ({"metadata_json": '{"reward":0.2}'}, "It failed, says its record."),
        ({"observed": True}, "Nobody said how it turned out."),
        (
            {"outcome": Outcome.PARTIAL, "outcome_by": GradeSource.PERSON},
            "It partly succeeded, says a person.",
        ),
    ],
)
def test_it_tells_how_the_last_session_turned_out_and_who_said_so(
    fields: dict[str, Any], told: str
) -> None:
    last = past("a", Log().said("user", "Book a flight"), **fields)
    assert told in narrate(Awakening(last), NOW).splitlines()


def test_it_tells_how_often_the_same_was_tried_and_what_differed() -> None:
    def tried(name: str, *tools: str, **fields: Any) -> PastSession:
        log = Log().said("user", "Refund order 7 to the card.")
        for tool in tools:
            log.call(tool).worked(tool)
        return past(name, log, **fields)

    failed = {"status": SessionStatus.ERROR}
    last = tried("e", "mcp__shop__find_user", **failed)
    others = [
        tried("a", "find_user", "refund"),
        tried("b", "find_user", "refund", "mail"),
        tried("c", "find_user", "transfer", **failed),
        tried("d", "find_user", observed=True),
        past("else", Log().said("user", "Cancel order 8 at once.")),
    ]
    tries = tries_of(last, others)
    told = narrate(Awakening(last, tries=tries), NOW).splitlines()
    assert (
        "The same was tried 5 times: 2 succeeded, 2 failed, 1 nobody judged."
        " Only those that succeeded called refund."
    ) in told
    assert tries_of(last, others[-1:]) == []


def test_what_was_left_months_ago_or_done_since_is_not_suggested() -> None:
    log = Log().call("deploy").failed("deploy", "timeout")
    left = handover("now", todos=(Todo("Write release notes"),))
    last = past("now", log, left)

    def suggested(*later: PastSession, now: int = NOW) -> set[str]:
        return {
            one.type for one in suggestions_of(last, [], lambda _: None, later=later, now_us=now)
        }

    assert suggested() == {"open_todo", "unresolved_error"}
    assert suggested(now=NOW + 90 * DAY) == set()
    deployed = past("later", Log().call("deploy").worked("deploy"))
    assert suggested(deployed) == {"open_todo"}
    written = Log().said("user", "Please write the release notes for 2.4.")
    assert suggested(past("later", written)) == {"unresolved_error"}
    assert "open_todo" in suggested(past("later", written, status=SessionStatus.ERROR))
