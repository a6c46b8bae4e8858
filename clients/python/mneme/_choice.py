"""Choices and choosers: what is asked and told, and the functions that are options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mneme._core.misspelt import tells_misspelt
from mneme._core.ulid import new_ulid
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
        id: by this its reward is told in another process, too, with `chooser.reward`; some hundred
            characters, more with the size of the state.
    """

    action: Option
    confidence: float
    explored: bool
    prediction: Prediction
    id: str

    def __init__(self, chooser: BaseChooser[ClientT], question: dict[str, Any]) -> None:
        self._chooser = chooser
        self._question = question
        self._is_chosen = False
        self._tried = False
        # One for all tries, so that a reward that arrived though its answer was lost counts once.
        self._feedback_id = new_ulid()

    def _chosen(self, prediction: Prediction) -> None:
        self.action = plain_value(prediction.action)
        self.confidence = prediction.confidence
        self.explored = prediction.explored
        self.prediction = prediction
        self.id = prediction.prediction_id
        self._is_chosen = True

    def _outcome(self, amount: float) -> dict[str, Any]:
        """The fields of the request that tells what came of it."""
        told = amount_of(amount)
        if not self._is_chosen:
            raise ArgumentError("nothing is chosen yet: use `with`, or `pick` instead of `choose`")
        return {**self._chooser._told(self.id, told), "feedback_id": self._feedback_id}


class BaseChooser(Generic[ClientT]):
    """What both choosers share: a learning session, and the functions that are its options.

    Args:
        client: the client.
        session_id: the learning session; it is started when it is first needed, and gone on with if
            it exists.
        algorithm: what learns. `thompson` and `linucb` learn from tens of rewards.
        config: the algorithm's keys; those left out have their defaults.
        success: the reward of a function that `run` called and that returned.
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tells_misspelt(cls)

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
        options = _actions(list(self._functions) if among is None else among)
        if not options:
            raise ArgumentError("there is nothing to choose from: name options, or decorate some")
        return {
            "session_id": self.session_id,
            "state": _state(state),
            "allowed_actions": options,
            "explore": self._explore,
        }

    def _told(self, choice_id: str, reward: float) -> dict[str, Any]:
        """The fields of the request that tells a reward."""
        if not isinstance(choice_id, str) or not choice_id:
            raise ArgumentError(f"choice_id: should be the id of a choice, not {choice_id!r}")
        return {"session_id": self.session_id, "prediction_id": choice_id, "reward": reward}

    def _explained(
        self,
        among: Iterable[Option] | None,
        state: Mapping[str, Any] | None,
        action: Option | None,
    ) -> dict[str, Any]:
        """The fields of the request for an explanation."""
        return {
            "session_id": self.session_id,
            "state": _state(state),
            "action": None if action is None else _action(action),
            "allowed_actions": [] if among is None else _actions(among),
        }

    def _function(self, action: Option) -> Callable[..., Any]:
        assert isinstance(action, str)  # The functions were the options.
        return self._functions[action]


def amount_of(reward: Any) -> float:
    """A reward as a number.

    Raises:
        ArgumentError: it is no finite number.
    """
    # Any kind of number, NumPy's too; texts have no __float__, though float() takes them.
    if not hasattr(reward, "__float__"):
        raise ArgumentError(f"reward: should be a number such as 1, 0 or 0.5, not {reward!r}")
    amount = float(reward)
    if not math.isfinite(amount):
        raise ArgumentError(f"reward: should be a finite number, not {amount}")
    return amount


def _state(state: Any) -> dict[str, Any]:
    if state is not None and not isinstance(state, Mapping):
        raise ArgumentError(
            f'state: should be an object like {{"task_type": "auth"}}, not {state!r}'
        )
    return {"json": dict(state or {})}


def _actions(among: Any) -> list[dict[str, Any]]:
    if isinstance(among, str | Mapping):
        raise ArgumentError(f"among: should be a list of options, not {among!r}")
    return [_action(one) for one in among]


def _action(one: Option) -> dict[str, Any]:
    return {"label": one} if isinstance(one, str) else {"json": dict(one)}
