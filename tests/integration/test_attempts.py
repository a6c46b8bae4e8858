"""`client.attempt` on a real server: lessons before the work, a reflection after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme.attempts import tags_of


@pytest.fixture
def client(server: Any, api: Any) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=api.secret) as connected:
        yield connected


def reflections(client: MnemeClient) -> list[Any]:
    return list(client.iter_reflections())


def test_success_is_recorded_with_what_worked(client: MnemeClient) -> None:
    with client.attempt("Parse CSV", session_id="s1", project="p", tags=["csv"]) as attempt:
        attempt.worked("used the csv module")
    (stored,) = reflections(client)
    assert (stored.outcome, list(stored.what_worked)) == ("success", ["used the csv module"])
    assert stored.next_strategy == "Continue with this approach"
    assert attempt.reflection == stored


def test_failure_is_recorded_and_raised_again(client: MnemeClient) -> None:
    with pytest.raises(RuntimeError, match="quoted"), client.attempt("Parse CSV", session_id="s1"):
        raise RuntimeError("quoted fields broke it")
    (stored,) = reflections(client)
    assert stored.outcome == "failure"
    assert list(stored.what_did_not_work) == ["RuntimeError: quoted fields broke it"]
    assert stored.next_strategy == "Try a different approach"


def test_a_failure_is_recorded_whose_words_are_no_text(client: MnemeClient) -> None:
    """Names of files may hold bytes that are none."""
    with (
        pytest.raises(FileNotFoundError) as raised,
        client.attempt("Parse CSV", session_id="s1"),
    ):
        raise FileNotFoundError("caf\udce9\0.csv")
    (stored,) = reflections(client)
    assert list(stored.what_did_not_work) == ["FileNotFoundError: caf??.csv"]
    assert not hasattr(raised.value, "__notes__")


def test_the_last_fifty_notes_of_each_kind_are_kept_and_long_ones_are_cut(
    client: MnemeClient,
) -> None:
    """A reflection takes no more; it is not lost for them, nor is why the work failed."""

    def work() -> None:
        with client.attempt("Parse CSV", session_id="s1") as attempt:
            for number in range(60):
                attempt.worked(f"way {number}")
                attempt.did_not_work(f"row {number}\0" + "x" * 5_000)
            raise RuntimeError("too many")

    with pytest.raises(RuntimeError) as raised:
        work()
    assert not hasattr(raised.value, "__notes__")
    (stored,) = reflections(client)
    assert list(stored.what_worked) == [f"way {number}" for number in range(10, 60)]
    assert list(stored.what_did_not_work)[-1] == "RuntimeError: too many"
    assert [one[:8] for one in stored.what_did_not_work[:-1]] == [
        f"row {number}?x"[:8] for number in range(11, 60)
    ]


def test_no_reflection_is_lost_to_empty_notes_long_texts_or_many_tags(client: MnemeClient) -> None:
    """What does not fit is left out, cut with a mark, or replaced; the rest is stored."""
    tags = ["", *(f"tag {number:02}" for number in range(70)), "line\nline", "x" * 101]
    with client.attempt("t" * 8_193, session_id="s1", tags=tags) as attempt:
        attempt.worked("")
        attempt.worked("a" * 4_096)
        attempt.worked("b" * 4_097)
        attempt.did_not_work("")
        attempt.next_strategy = "c" * 8_192 + "\udce9"
    (stored,) = reflections(client)
    assert stored.task_description == "t" * 8_191 + "…"
    assert list(stored.what_worked) == ["a" * 4_096, "b" * 4_095 + "…"]
    assert list(stored.what_did_not_work) == []
    assert stored.next_strategy == "c" * 8_191 + "…"
    last = [f"tag {number:02}" for number in range(8, 70)]
    assert list(stored.tags) == ["line?line", *last, "x" * 99 + "…"]


def test_past_lessons_are_loaded_as_prompt_text_and_counted_as_applied(
    client: MnemeClient,
) -> None:
    with client.attempt("Parse CSV files", session_id="s1", project="p") as first:
        assert first.text == ""
        first.worked("used the csv module")
    with (
        pytest.raises(ValueError, match="bad"),
        client.attempt("Write a CSV parser", session_id="s2", project="p") as second,
    ):
        raise ValueError("bad delimiter")
    assert "used the csv module" in second.text
    newest = reflections(client)[0]
    assert newest.next_strategy == "Try: used the csv module"
    assert list(newest.applied_reflection_ids) == [second.past[0].id]


def test_an_attempt_decorates_functions_anew_for_each_call(client: MnemeClient) -> None:
    @client.attempt("Parse CSV", session_id="s1")
    def parse(text: str) -> int:
        return len(text)

    assert (parse("ab"), parse("abc")) == (2, 3)
    assert [one.attempt_number for one in reflections(client)] == [2, 1]


def test_partial_success_is_its_own_outcome(client: MnemeClient) -> None:
    with client.attempt("Parse CSV", session_id="s1") as attempt:
        attempt.did_not_work("dates")
        attempt.partial()
    assert reflections(client)[0].outcome == "partial"


def test_a_server_that_is_gone_does_not_hide_why_the_work_failed(client: MnemeClient) -> None:
    def work() -> None:
        with client.attempt("Parse CSV", session_id="s1"):
            client.close()
            raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError) as raised:
        work()
    assert "could not store the reflection" in raised.value.__notes__[0]


async def _attempt(address: str, secret: str) -> None:
    async with AsyncMnemeClient(address, api_key=secret) as client:
        async with client.attempt("Parse CSV", session_id="s1") as attempt:
            attempt.worked("asyncio")
        with pytest.raises(RuntimeError):
            async with client.attempt("Parse CSV", session_id="s1"):
                raise RuntimeError("no")

        @client.attempt("Parse CSV", session_id="s1")
        async def parse() -> int:
            return 5

        assert await parse() == 5


def test_attempts_work_the_same_under_asyncio(server: Any, api: Any, client: MnemeClient) -> None:
    asyncio.run(_attempt(server.address, api.secret))
    assert [one.outcome for one in reflections(client)] == ["success", "failure", "success"]


@pytest.mark.parametrize(
    ("task", "tags"),
    [
        ("Fix authentication timeout", ("authentication", "debugging")),
        ("Test the OAuth login", ("authentication", "testing")),
        ("Run test_capture again", ("testing",)),
        ("Refactoring the error handling", ("debugging", "refactoring")),
        ("Write to the author of the latest prefix", ()),
    ],
)
def test_a_task_says_its_tags_by_whole_words(task: str, tags: tuple[str, ...]) -> None:
    assert tags_of(task) == tags


def test_a_reflection_has_the_tags_of_its_task_unless_others_are_given(client: MnemeClient) -> None:
    with client.attempt("Fix the flaky test", session_id="s1"):
        pass
    with client.attempt("Fix the flaky test", session_id="s2", tags=["mine"]):
        pass
    with client.attempt("Fix the flaky test", session_id="s3", tags=[]):
        pass
    tags = {one.session_id: list(one.tags) for one in reflections(client)}
    assert tags == {"s1": ["debugging", "testing"], "s2": ["mine"], "s3": []}


def test_an_attempt_that_is_switched_off_neither_loads_nor_stores(client: MnemeClient) -> None:
    with client.attempt("Parse CSV", session_id="s1"):
        pass
    with client.attempt("Parse CSV", session_id="s2", enabled=False) as off:
        assert (off.text, off.past) == ("", [])
    assert off.reflection is None
    assert [one.session_id for one in reflections(client)] == ["s1"]
    assert client.summarize_reflections().metrics.search_count == 1


def test_past_lessons_are_loaded_without_a_reflection_afterwards(client: MnemeClient) -> None:
    with client.attempt("Parse CSV", session_id="s1"):
        pass
    with client.attempt(
        "Parse CSV", session_id="s2", auto_reflect=False, include_past_lessons=1
    ) as attempt:
        pass
    assert len(attempt.past) == 1
    assert attempt.reflection is None
    assert len(reflections(client)) == 1


async def _switched_off(address: str, secret: str) -> None:
    async with AsyncMnemeClient(address, api_key=secret) as client:
        async with client.attempt("Fix it", session_id="s1", enabled=False) as off:
            pass
        assert off.reflection is None
        async with client.attempt("Fix it", session_id="s1") as on:
            pass
        assert on.reflection is not None
        assert list(on.reflection.tags) == ["debugging"]


def test_an_attempt_in_asyncio_can_be_switched_off_too(server: Any, api: Any) -> None:
    asyncio.run(_switched_off(server.address, api.secret))
