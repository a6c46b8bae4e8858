"""`client.chooser` on a real server: what worked is chosen, what came of it is learned."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme.errors import AlreadyExistsError, ArgumentError, MnemeError, NotFoundError
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


def test_a_choice_waits_for_its_reward_however_long_it_takes(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    choice = ways.pick(["a", "b"], {"task_type": "auth"})
    assert choice.action in ("a", "b")
    assert rewards(client, "ways") == []
    choice.reward(1)
    assert rewards(client, "ways") == [1.0]


def test_work_that_ends_without_a_reward_leaves_the_choice_open(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    with ways.choose(["a"]) as choice:
        pass
    assert rewards(client, "ways") == []
    choice.reward(0.25)
    assert rewards(client, "ways") == [0.25]


def test_another_process_tells_the_reward_by_the_choice_s_id(
    client: MnemeClient, server: Any, secret: str
) -> None:
    choice_id = client.chooser("ways").pick(["a"]).id
    with MnemeClient(server.address, api_key=secret) as other:
        other.chooser("ways").reward(choice_id, 0.75)
    assert rewards(client, "ways") == [0.75]
    with pytest.raises(NotFoundError, match="prediction"):
        client.chooser("ways").reward("unknown", 1)
    with pytest.raises(ArgumentError, match="should be the id of a choice, not ''"):
        client.chooser("ways").reward("", 1)


def test_a_reward_that_comes_after_another_one_is_refused_and_the_same_again_is_harmless(
    client: MnemeClient,
) -> None:
    ways = client.chooser("ways")
    choice = ways.pick(["a"])
    choice.reward(1)
    choice.reward(1)
    with pytest.raises(AlreadyExistsError):
        choice.reward(0)
    with pytest.raises(AlreadyExistsError, match="given feedback already"):
        ways.reward(choice.id, 0)
    with pytest.raises(RuntimeError), ways.choose(["a"]) as failed:
        raise RuntimeError("broken")
    with pytest.raises(AlreadyExistsError):
        failed.reward(1)
    assert rewards(client, "ways") == [1.0, 0.0]


def test_a_reward_that_was_told_is_not_replaced_by_what_fails_after_it(client: MnemeClient) -> None:
    ways = client.chooser("ways")

    def break_after(reward: Callable[[float], None]) -> None:
        reward(1)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"), ways.choose(["a"]) as choice:
        break_after(choice.reward)
    assert rewards(client, "ways") == [1.0]


@pytest.mark.parametrize("amount", ["good", "1", None, [1], float("nan"), float("inf")])
def test_what_is_no_number_is_refused_as_a_reward_there_and_then(
    client: MnemeClient, amount: Any
) -> None:
    with (
        pytest.raises(ArgumentError, match="reward: should be a"),
        client.chooser("ways").choose(["a"]) as choice,
    ):
        choice.reward(amount)
    assert rewards(client, "ways") == []
    choice.reward(1)
    assert rewards(client, "ways") == [1.0]


def test_a_reward_before_anything_is_chosen_says_what_to_do(client: MnemeClient) -> None:
    with pytest.raises(ArgumentError, match="nothing is chosen yet: use `with`, or `pick`"):
        client.chooser("ways").choose(["a"]).reward(1)


def test_a_chooser_explains_what_it_chooses(client: MnemeClient) -> None:
    ways = client.chooser("ways")
    for n in range(20):
        task = "auth" if n % 2 else "ui"
        choice = ways.pick(["oauth2", "mock"], {"task_type": task})
        choice.reward(choice.action == BEST[task])
    explanation = ways.explain(state={"task_type": "auth"})
    assert explanation.action.label == "oauth2"
    assert ways.explain(["mock"], {"task_type": "auth"}).action.label == "mock"
    assert ways.explain(state={"task_type": "auth"}, action="mock").action.label == "mock"


def test_a_misspelt_argument_of_a_chooser_names_the_one_that_was_meant(client: MnemeClient) -> None:
    with pytest.raises(TypeError, match=r"^pick\(\) .* 'sate': did you mean 'state'\?$"):
        client.chooser("ways").pick(["a"], sate={})  # type: ignore[call-arg]


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
                await choice.reward(0.5)
            later = await ways.pick(["good"])
            await later.reward(True)
            history = (await client.get_learning_metrics("ways")).metrics.history
            return [point.episode_reward for point in history]

    told = asyncio.run(chosen())
    assert told[-2:] == [0.5, 1.0]
    assert sorted(set(told)) == [0.0, 0.5, 1.0]
    assert told.count(1.0) > told.count(0.0)
