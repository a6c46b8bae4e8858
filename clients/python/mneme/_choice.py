"""Choices and choosers: what is asked and told, and the functions that are options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mneme.errors import ArgumentError
from mneme.spaces import plain_value

if TYPE_CHECKING:
    from mneme.types import Prediction

Option: TypeAlias = str | Mapping[str, Any]
"""An action: a label, or an object as a label."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
ClientT = TypeVar("ClientT")

ALGORITHM = "thompson"


class BaseChoice(Generic[ClientT]):
    """A choice among options, and what came of it.

    Attributes:
        action: what was chosen.
        confidence: the probability that none of the other options is better, from 0 to 1.
        explored: whether another one is thought to be better, and this one was chosen to learn.
        prediction: all that the server said.
    """

    action: Option
    confidence: float
    explored: bool
    prediction: Prediction

    def __init__(self, chooser: BaseChooser[ClientT], question: dict[str, Any]) -> None:
        self._chooser = chooser
        self._question = question
        self._reward: float | None = None

    def reward(self, amount: float) -> None:
        """Say how good what came of it was; the larger the better, usually from 0 to 1."""
        self._reward = amount

    def _chosen(self, prediction: Prediction) -> None:
        self.action = plain_value(prediction.action)
        self.confidence = prediction.confidence
        self.explored = prediction.explored
        self.prediction = prediction

    def _says(self, error: BaseException | None) -> bool:
        """Whether there is anything to tell: work that was interrupted says nothing."""
        return self._reward is not None or error is None or isinstance(error, Exception)

    def _outcome(self, error: BaseException | None) -> dict[str, Any]:
        """The fields of the request that tells what came of it."""
        told = self._reward
        if told is None:
            told = self._chooser.success if error is None else self._chooser.failure
        return {
            "session_id": self._chooser.session_id,
            "prediction_id": self.prediction.prediction_id,
            "reward": told,
        }


class BaseChooser(Generic[ClientT]):
    """What both choosers share: a learning session, and the functions that are its options.

    Args:
        client: the client.
        session_id: the learning session; it is started when it is first needed, and gone on with if
            it exists.
        algorithm: what learns. `thompson` and `linucb` learn from tens of rewards.
        config: the algorithm's keys; those left out have their defaults.
        success: the reward of work that ended without naming another one.
        failure: the reward of work that raised an exception.
        explore: whether to try options to learn from; if not, the best so far is chosen.
    """

    def __init__(
        self,
        client: ClientT,
        session_id: str,
        *,
        algorithm: str = ALGORITHM,
        config: Mapping[str, Any] | None = None,
        success: float = 1.0,
        failure: float = 0.0,
        explore: bool = True,
    ) -> None:
        self.client = client
        self.session_id = session_id
        self.definition: dict[str, Any] = {
            "session_id": session_id,
            "algorithm": algorithm,
            "config": config,
        }
        self.success = success
        self.failure = failure
        self.started = False
        self._explore = explore
        self._functions: dict[str, Callable[..., Any]] = {}

    def option(self, function: FunctionT) -> FunctionT:
        """Make a function an option, under its name: a decorator that leaves it as it is.

        Raises:
            ArgumentError: there is one of that name.
        """
        name = function.__name__
        if name in self._functions:
            raise ArgumentError(f"there is an option {name!r} already")
        self._functions[name] = function
        return function

    def _question(
        self, among: Iterable[Option] | None, state: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """The fields of the request for a choice."""
        if isinstance(among, str | Mapping):
            raise ArgumentError(f"among: should be a list of options, not {among!r}")
        if state is not None and not isinstance(state, Mapping):
            raise ArgumentError(
                f'state: should be an object like {{"task_type": "auth"}}, not {state!r}'
            )
        options = list(self._functions) if among is None else list(among)
        if not options:
            raise ArgumentError("there is nothing to choose from: name options, or decorate some")
        return {
            "session_id": self.session_id,
            "state": {"json": dict(state or {})},
            "allowed_actions": [
                {"label": one} if isinstance(one, str) else {"json": dict(one)} for one in options
            ],
            "explore": self._explore,
        }

    def _function(self, action: Option) -> Callable[..., Any]:
        assert isinstance(action, str)  # The functions were the options.
        return self._functions[action]
