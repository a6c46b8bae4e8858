"""`mneme.gym` on a real server: environments that others wrote, played and learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mneme import MnemeClient, gym
from mneme.errors import ArgumentError
from mneme.v1 import auth_pb2, learning_pb2


@pytest.fixture
def client(server: Any, new_tenant: Callable[..., Any]) -> Iterator[MnemeClient]:
    secret = new_tenant("t", auth_pb2.KEY_SCOPE_LEARN).secret
    with MnemeClient(server.address, api_key=secret) as connected:
        yield connected


def frozen_lake() -> gymnasium.Env[Any, Any]:
    """A walk of six steps around holes; it pays 1 at its end."""
    return gymnasium.make("FrozenLake-v1", is_slippery=False)


def test_a_session_learns_to_cross_a_lake_and_never_falls_in_again(client: MnemeClient) -> None:
    config = {"epsilon": 0.3, "learning_rate": 0.5}
    gym.start(client, "lake", frozen_lake, "q_learning", config=config, seed=1)
    told = []
    learned = gym.play(client, "lake", frozen_lake, steps=4_000, actors=8, progress=told.append)
    assert learned.steps == 4_000
    assert told[-1] == learned
    session = client.get_learning_session("lake").session
    assert session.transitions == 4_000
    assert session.episodes_completed == len(learned.returns)
    assert session.total_reward == sum(learned.returns)

    crossed = gym.play(client, "lake", frozen_lake, episodes=3, learn=False)
    assert (crossed.returns, crossed.steps) == ([1.0, 1.0, 1.0], 18)
    assert client.get_learning_session("lake").session.transitions == 4_000  # Nothing was told.


def test_episodes_that_begin_are_ended_so_that_short_ones_do_not_count_more(
    client: MnemeClient,
) -> None:
    lengths = iter([1, 5, 1, 1, 1, 1, 1])

    class Walk(gymnasium.Env[int, int]):
        observation_space = spaces.Discrete(10)
        action_space = spaces.Discrete(2)

        def reset(self, **_: Any) -> tuple[int, dict[str, Any]]:
            self.left = next(lengths)
            return self.left, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            self.left -= 1
            return self.left, 1.0, self.left == 0, False, {}

    gym.start(client, "walk", Walk, "q_learning")
    played = gym.play(client, "walk", Walk, episodes=4, actors=2)
    assert sorted(played.returns) == [1.0, 1.0, 1.0, 5.0]
    assert (played.mean, played.steps) == (2.0, 8)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(4, start=2),
        spaces.MultiDiscrete([3, 4], start=[1, 0]),
        spaces.MultiBinary(3),
        spaces.Box(-2.0, 2.0, (2, 3)),
    ],
    ids=lambda space: type(space).__name__,
)
def test_actions_and_states_of_a_space_are_told_and_understood(space: spaces.Space[Any]) -> None:
    space.seed(3)
    for _ in range(20):
        value = space.sample()
        state = gym.state_of(space, value)
        kind = state.WhichOneof("value")
        action = learning_pb2.Action(**{kind: getattr(state, kind)})
        understood = gym.action_of(space, action)
        assert space.contains(understood)
        assert np.allclose(understood, value)


def test_objects_and_tuples_are_objects_and_numbers_beyond_their_bounds_are_put_on_them() -> None:
    space = spaces.Dict(
        {
            "place": spaces.Box(0.0, 1.0, (2,)),
            "card": spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2))),
        }
    )
    observed = {"place": np.array([1.5, -0.5]), "card": (2, 1)}
    state = gym.state_of(space, observed)
    assert dict(state.json["card"]) == {"0": 2, "1": 1}
    assert list(state.json["place"]) == [1.0, 0.0]


def test_a_space_that_sessions_cannot_have_is_named() -> None:
    with pytest.raises(ArgumentError, match="cannot have the space Text"):
        gym.space_of(spaces.Text(5))


def test_it_asks_how_much_to_play(client: MnemeClient) -> None:
    with pytest.raises(ArgumentError, match="how many steps or episodes"):
        gym.play(client, "lake", frozen_lake)
