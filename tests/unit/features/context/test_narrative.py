"""The narrative: what a stranger reads."""

from __future__ import annotations

from mneme_server.features.context.model import Awakening, Decision, Related, Todo
from mneme_server.features.context.patterns import patterns_of
from mneme_server.features.context.wake_up import NOTHING, narrate, suggestions_of
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
        "Decided: Use RS256, because: better security.\n\n"
        "Related work from 1 week ago: OAuth2 setup.\n\n"
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
        "Related work in 2 sessions, the latest from 2 days ago: Play to the end.",
        "Related work from 3 days ago: Mow the lawn.",
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
