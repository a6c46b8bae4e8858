"""Gymnasium environments, played through the API: a learning session chooses, and is told.

Needs the extra `gym`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from statistics import fmean, stdev
from typing import Any, TypeAlias

from mneme._extras import from_wheels

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"mneme.gym needs the extra `gym` ({error}): install it {from_wheels('gym')}"
    ) from error

from mneme.client import MnemeClient
from mneme.errors import ArgumentError
from mneme.types import SpaceFields
from mneme.v1 import learning_pb2, learning_service_pb2

Environment: TypeAlias = str | Callable[[], gymnasium.Env[Any, Any]]
"""The id of an environment, or a function that makes one."""


@dataclass(frozen=True, slots=True)
class Played:
    """What playing came to.

    Args:
        returns: the sum of rewards of each episode that ended, in the order of their ends.
        steps: taken in all.
        seconds: it took.
    """

    returns: list[float] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean return; NaN without an episode."""
        return fmean(self.returns) if self.returns else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation of the returns; NaN with fewer than two episodes."""
        return stdev(self.returns) if len(self.returns) > 1 else math.nan


def start(
    client: MnemeClient,
    session_id: str,
    environment: Environment,
    algorithm: str,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> None:
    """Start a learning session with the environment's spaces, or resume it.

    Args:
        client: the client; its key has the scope `learn`.
        session_id: the session.
        environment: what will be played.
        algorithm: what learns; `client.list_algorithms()` lists them.
        config: the algorithm's keys; those left out have their defaults.
        seed: what everything at random is drawn from.

    Raises:
        ArgumentError: a session cannot have such spaces.
        MnemeError: the session cannot be started.
    """
    made = _make(environment)
    try:
        client.start_learning_session(
            algorithm,
            session_id=session_id,
            config=config,
            state_space=space_of(made.observation_space),
            action_space=space_of(made.action_space),
            seed=seed,
        )
    finally:
        made.close()


def play(
    client: MnemeClient,
    session_id: str,
    environment: Environment,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    actors: int = 1,
    learn: bool = True,
    explore: bool | None = None,
    target_return: float | None = None,
    seed: int = 0,
    progress: Callable[[Played], object] | None = None,
) -> Played:
    """Play an environment by what a session chooses, and tell it what came of it.

    Args:
        client: the client; its key has the scope `learn`.
        session_id: the session, started before.
        environment: what is played.
        steps: how many steps to take at most; None: as many as the episodes have.
        episodes: how many episodes to end at most; None: as many as the steps give.
        actors: how many environments are played at once: their states are asked for together.
        learn: whether the session is told what came of its actions. A policy that looks back
            (decision_transformer) needs to be told.
        explore: whether actions are chosen to learn from; None: as `learn`.
        target_return: the return to aim at, for algorithms that follow one.
        seed: of the environments; the first actor's, and those after it of the others.
        progress: told after each step of all actors how far it is; it may raise to stop.

    Raises:
        ArgumentError: neither steps nor episodes are given.
        MnemeError: the session cannot be asked or told.
    """
    if steps is None and episodes is None:
        raise ArgumentError("say how many steps or episodes to play")
    bound = _Bound(math.inf if steps is None else steps, math.inf if episodes is None else episodes)
    asked = _Asked(session_id, learn if explore is None else explore, learn, target_return)
    seats = [_Seat(_make(environment), f"actor-{n}", seed + n) for n in range(actors)]
    requests: SimpleQueue[learning_service_pb2.ActRequest | None] = SimpleQueue()
    try:
        with client.act(iter(requests.get, None)) as answers:

            def ask(request: learning_service_pb2.ActRequest) -> Sequence[learning_pb2.Prediction]:
                requests.put(request)
                return next(answers).raw.predictions

            played = _played(seats, asked, ask, bound, progress)
            requests.put(None)
            for _ in answers:
                pass  # The server ends the stream when it has done all.
            return played
    finally:
        requests.put(None)
        for seat in seats:
            seat.environment.close()


def _played(
    seats: Sequence[_Seat],
    asked: _Asked,
    ask: Callable[[learning_service_pb2.ActRequest], Sequence[learning_pb2.Prediction]],
    bound: _Bound,
    progress: Callable[[Played], object] | None,
) -> Played:
    """Play. Episodes that begin are ended, unless the steps are over, so that short ones do not
    count more than long ones."""
    begun_at, returns, taken, begun = time.perf_counter(), list[float](), 0, 0
    while True:
        for seat in seats:
            if seat.state is None and begun < bound.episodes:
                seat.begin()
                begun += 1
        playing = [seat for seat in seats if seat.state is not None and taken < bound.steps]
        request = asked.request(seats, playing)
        predictions = ask(request) if playing or request.feedback else ()
        for seat, prediction in zip(playing, predictions, strict=True):
            seat.step(prediction)
            if seat.state is None:
                returns.append(seat.total)
        taken += len(playing)
        played = Played(returns, taken, time.perf_counter() - begun_at)
        if progress is not None:
            progress(played)
        if not playing:
            return played


def space_of(space: spaces.Space[Any]) -> SpaceFields:
    """Return a space of Gymnasium as the API has it; the parts of a Tuple are named "0", "1", ….

    Raises:
        ArgumentError: a session cannot have such a space.
    """
    match space:
        case spaces.Discrete():
            return {"discrete": {"n": int(space.n)}}
        case spaces.MultiDiscrete():
            return {"multi_discrete": {"sizes": [int(size) for size in space.nvec.flatten()]}}
        case spaces.MultiBinary():
            return {"multi_discrete": {"sizes": [2] * int(np.prod(space.shape))}}
        case spaces.Box():
            low, high = space.low.flatten(), space.high.flatten()
            return {"box": {"low": low.tolist(), "high": high.tolist()}}
        case spaces.Dict() | spaces.Tuple():
            inner = [{"key": name, **space_of(one)} for name, one in _parts(space)]
            return {"dict": {"spaces": inner}}  # type: ignore[typeddict-item]
    raise ArgumentError(f"a learning session cannot have the space {space}")


def state_of(space: spaces.Space[Any], observation: Any) -> learning_pb2.State:
    """Return an observation as the API has it. Numbers beyond the bounds of a box, as some
    environments observe them, are put on the bound."""
    value = _plain(space, observation)
    if isinstance(value, dict):
        state = learning_pb2.State()
        state.json.update(value)
        return state
    if isinstance(value, list):
        return learning_pb2.State(numbers=learning_pb2.Numbers(values=value))
    return learning_pb2.State(number=value)


def action_of(space: spaces.Space[Any], action: learning_pb2.Action) -> Any:
    """Return an action of the API as the environment takes it."""
    match space:
        case spaces.Discrete():
            return int(space.start) + action.number
        case spaces.MultiDiscrete() | spaces.MultiBinary() | spaces.Box():
            numbers = np.array(action.numbers.values, dtype=space.dtype).reshape(space.shape)
            return numbers + space.start if isinstance(space, spaces.MultiDiscrete) else numbers
    raise ArgumentError(f"a learning session cannot have the action space {space}")


class _Seat:
    """One environment and its episode; `state` is None between episodes."""

    def __init__(self, environment: gymnasium.Env[Any, Any], actor_id: str, seed: int) -> None:
        self.environment = environment
        self.actor_id = actor_id
        self.state: learning_pb2.State | None = None
        self.feedback: learning_pb2.Experience | None = None
        self.total = 0.0
        self._seed: int | None = seed  # Of the first episode; the others follow from it.

    def begin(self) -> None:
        """Begin an episode."""
        observation, _ = self.environment.reset(seed=self._seed)
        self._seed = None
        self.state = state_of(self.environment.observation_space, observation)
        self.total = 0.0

    def step(self, prediction: learning_pb2.Prediction) -> None:
        """Take the action; the episode may end with it."""
        environment = self.environment
        action = action_of(environment.action_space, prediction.action)
        observation, reward, terminated, truncated, _ = environment.step(action)
        state = state_of(environment.observation_space, observation)
        self.total += float(reward)
        self.feedback = learning_pb2.Experience(
            prediction_id=prediction.prediction_id,
            reward=float(reward),
            next_state=None if terminated else state,
            terminated=terminated,
            truncated=truncated and not terminated,
        )
        self.state = None if terminated or truncated else state


@dataclass(frozen=True, slots=True)
class _Bound:
    """How much is played: at most so many steps, and so many episodes."""

    steps: float
    episodes: float


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked in each message."""

    session_id: str
    explore: bool
    learn: bool
    target_return: float | None

    def request(
        self, seats: Sequence[_Seat], playing: Sequence[_Seat]
    ) -> learning_service_pb2.ActRequest:
        """Return what there is to tell, and the question for those who play."""
        request = learning_service_pb2.ActRequest(
            session_id=self.session_id, explore=self.explore, without_feedback=not self.learn
        )
        for seat in seats:
            if self.learn and seat.feedback is not None:
                request.feedback.append(seat.feedback)
                seat.feedback = None
        for seat in playing:
            request.states.add(
                state=seat.state, actor_id=seat.actor_id, target_return=self.target_return
            )
        return request


def _make(environment: Environment) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(environment) if isinstance(environment, str) else environment()


def _parts(space: spaces.Dict | spaces.Tuple[Any]) -> Iterator[tuple[str, spaces.Space[Any]]]:
    if isinstance(space, spaces.Dict):
        yield from space.spaces.items()
    else:
        yield from ((str(place), one) for place, one in enumerate(space.spaces))


def _plain(space: spaces.Space[Any], value: Any) -> Any:
    """Return a value as JSON has it: a number, a list of numbers, or an object."""
    match space:
        case spaces.Discrete():
            return int(value) - int(space.start)
        case spaces.MultiDiscrete():
            return (np.asarray(value) - space.start).flatten().tolist()
        case spaces.MultiBinary():
            return np.asarray(value).flatten().tolist()
        case spaces.Box():
            return np.clip(value, space.low, space.high).flatten().tolist()
        case spaces.Dict():
            return {name: _plain(inner, value[name]) for name, inner in _parts(space)}
        case spaces.Tuple():
            inner_values = zip(_parts(space), value, strict=True)
            return {name: _plain(inner, one) for (name, inner), one in inner_values}
    raise ArgumentError(f"a learning session cannot have the space {space}")
