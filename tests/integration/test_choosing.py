"""`client.chooser` on a real server: what worked is chosen, what came of it is learned."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme.errors import ArgumentError, MnemeError
from mneme.v1 import auth_pb2

BEST = {"auth": "oauth2", "ui": "mock"}


@pytest.fixture
def secret(new_tenant: Callable[..., Any]) -> str:
    return str(new_tenant("t", auth_pb2.KEY_SCOPE_LEARN).secret)


@pytest.fixture
def client(server: Any, secret: str) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=secret) as connected:
        yield connected


def rewards(client: MnemeClient, session_id: str) -> list[float]:
    return [
        point.episode_reward for point in client.get_learning_metrics(session_id).metrics.history
    ]


@pytest.mark.parametrize("algorithm", ["thompson", "linucb"])
def test_after_tens_of_rewards_it_chooses_what_works_for_the_kind_of_task(
    client: MnemeClient, algorithm: str
) -> None:
    ways = client.chooser("ways", algorithm=algorithm)
    for n in range(80):
        task = "auth" if n % 2 else "ui"
        with ways.choose(["oauth2", "mock", "guess"], state={"task_type": task}) as choice:
            choice.reward(1.0 if choice.action == BEST[task] else 0.0)
    settled = client.chooser("ways", algorithm=algorithm, explore=False)
    for task, best in BEST.items():
        with settled.choose(["oauth2", "mock", "guess"], state={"task_type": task}) as choice:
            assert choice.action == best
            assert choice.confidence > 0.8
            assert not choice.explored


def test_functions_are_options_and_the_chosen_one_is_called(client: MnemeClient) -> None:
    ways = client.chooser("sums")
    called: Counter[str] = Counter()

    @ways.option
    def careful(x: int, *, twice: bool = False) -> int:
        called["careful"] += 1
        return x * 2 if twice else x

    @ways.option
    def hasty(x: int, *, twice: bool = False) -> int:
        called["hasty"] += 1
        raise ValueError("too hasty")

    for _ in range(30):
        try:
            assert ways.run(3, twice=True, reward=lambda sum_: 1.0 if sum_ == 6 else 0.0) == 6
        except ValueError:
            assert called["hasty"]
    assert called["careful"] > called["hasty"]
    assert Counter(rewards(client, "sums")) == {1.0: called["careful"], 0.0: called["hasty"]}
    assert careful(4) == 4  # The decorator leaves it as it is.


def test_work_that_raises_is_a_failure_and_raises_on(client: MnemeClient) -> None:
    ways = client.chooser("ways", failure=-1.0)
    with pytest.raises(RuntimeError, match="broken"), ways.choose(["a"]):
        raise RuntimeError("broken")
    assert rewards(client, "ways") == [-1.0]


def test_work_that_was_interrupted_teaches_nothing(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    with pytest.raises(KeyboardInterrupt), ways.choose(["a"]):
        raise KeyboardInterrupt
    assert rewards(client, "ways") == []


def test_an_object_can_be_an_option(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    with ways.choose([{"strategy": "oauth2", "retries": 2}]) as choice:
        assert choice.action == {"strategy": "oauth2", "retries": 2}


def test_when_the_work_failed_its_exception_goes_on_also_if_nothing_can_be_learned(
    client: MnemeClient,
) -> None:
    ways = client.chooser("ways")

    def break_after_the_session_is_gone() -> None:
        client.delete_learning_session("ways")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken") as raised, ways.choose(["a"]):
        break_after_the_session_is_gone()
    assert "mneme could not learn from it" in raised.value.__notes__[0]
    with pytest.raises(MnemeError, match="ways"), ways.choose(["a"]):
        raise AssertionError("nothing was chosen")


def test_without_options_it_says_what_to_do(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    with pytest.raises(ArgumentError, match="name options, or decorate some"):
        ways.choose()

    @ways.option
    def one() -> None: ...

    with pytest.raises(ArgumentError, match="'one' already"):
        ways.option(one)


def test_what_is_no_list_of_options_and_no_state_is_refused_in_words(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    with pytest.raises(ArgumentError, match="among: should be a list of options, not 'fast'"):
        ways.choose("fast")
    with pytest.raises(ArgumentError, match=r"state: should be an object like .* not 'auth'"):
        ways.choose(["fast"], state="auth")  # type: ignore[arg-type]


def test_the_client_for_asyncio_chooses_likewise(server: Any, secret: str) -> None:
    async def chosen() -> list[float]:
        async with AsyncMnemeClient(server.address, api_key=secret) as client:
            ways = client.chooser("ways")

            @ways.option
            async def good() -> str:
                return "good"

            @ways.option
            async def bad() -> str:
                raise ValueError("bad")

            for _ in range(20):
                try:
                    assert await ways.run() == "good"
                except ValueError:
                    continue
            async with ways.choose(["good"]) as choice:
                choice.reward(0.5)
            history = (await client.get_learning_metrics("ways")).metrics.history
            return [point.episode_reward for point in history]

    told = asyncio.run(chosen())
    assert told[-1] == 0.5
    assert sorted(set(told)) == [0.0, 0.5, 1.0]
    assert told.count(1.0) > told.count(0.0)
