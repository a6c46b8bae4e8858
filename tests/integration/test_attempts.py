"""`client.attempt` on a real server: lessons before the work, a reflection after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient


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
    assert (stored.outcome, list(stored.what_worked)) == (1, ["used the csv module"])
    assert stored.next_strategy == "Continue with this approach"
    assert attempt.reflection == stored


def test_failure_is_recorded_and_raised_again(client: MnemeClient) -> None:
    with pytest.raises(RuntimeError, match="quoted"), client.attempt("Parse CSV", session_id="s1"):
        raise RuntimeError("quoted fields broke it")
    (stored,) = reflections(client)
    assert stored.outcome == 3
    assert list(stored.what_did_not_work) == ["RuntimeError: quoted fields broke it"]
    assert stored.next_strategy == "Try a different approach"


def test_past_lessons_are_loaded_as_prompt_text_and_counted_as_applied(
    client: MnemeClient,
) -> None:
    with client.attempt("Parse CSV files", session_id="s1", project="p") as first:
        assert first.lessons == ""
        first.worked("used the csv module")
    with (
        pytest.raises(ValueError, match="bad"),
        client.attempt("Write a CSV parser", session_id="s2", project="p") as second,
    ):
        raise ValueError("bad delimiter")
    assert "used the csv module" in second.lessons
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
    assert reflections(client)[0].outcome == 2


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
    import asyncio

    asyncio.run(_attempt(server.address, api.secret))
    assert [one.outcome for one in reflections(client)] == [1, 3, 1]
