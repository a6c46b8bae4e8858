"""Choosing by what worked: a learned policy picks one of several ways and hears what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mneme._generated.services import AsyncServices, SyncServices
from mneme.errors import ArgumentError
from mneme.spaces import plain_value

if TYPE_CHECKING:
    from mneme.types import Prediction

Option: TypeAlias = str | Mapping[str, Any]
"""An action: a label, or an object as a label."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
ClientT = TypeVar("ClientT")

ALGORITHM = "thompson"


class _Pending(Generic[ClientT]):
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

    def __init__(self, chooser: _Chooser[ClientT], question: dict[str, Any]) -> None:
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


class Choice(_Pending[SyncServices], AbstractContextManager["Choice"]):
    """A choice as a context manager: chosen on the way in, its reward told on the way out.

    Raises:
        MnemeError: nothing could be chosen, or the reward not be told. When the work itself failed,
            its exception goes on, with a note that says so.
    """

    def __enter__(self) -> Choice:
        client = self._chooser.client
        if not self._chooser.started:
            client.start_learning_session(**self._chooser.definition)
            self._chooser.started = True
        self._chosen(client.predict(**self._question).prediction)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._says(error):
            return
        try:
            self._chooser.client.feedback(**self._outcome(error))
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"mneme could not learn from it: {failure}")


class AsyncChoice(_Pending[AsyncServices], AbstractAsyncContextManager["AsyncChoice"]):
    """`Choice` for asyncio: `async with`."""

    async def __aenter__(self) -> AsyncChoice:
        client = self._chooser.client
        if not self._chooser.started:
            await client.start_learning_session(**self._chooser.definition)
            self._chooser.started = True
        self._chosen((await client.predict(**self._question)).prediction)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._says(error):
            return
        try:
            await self._chooser.client.feedback(**self._outcome(error))
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"mneme could not learn from it: {failure}")


class _Chooser(Generic[ClientT]):
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


class Chooser(_Chooser[SyncServices]):
    """Chooses among options by what worked, and learns what works.

        style = client.chooser("reply-style")
        with style.choose(["short", "detailed"], state={"customer": "new"}) as choice:
            reply = write(choice.action)
            choice.reward(rating(reply))

    Options can be functions, too: `run` calls the chosen one.

        @style.option
        def short(question): ...
    """

    def choose(
        self, among: Iterable[Option] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Choice:
        """Return a choice among options, to be used with `with`.

        Args:
            among: the options; None: the functions that were made options.
            state: what is known of the situation, as JSON.

        Raises:
            ArgumentError: there are no options.
        """
        return Choice(self, self._question(among, state))

    def run(
        self,
        *args: Any,
        state: Mapping[str, Any] | None = None,
        reward: Callable[[Any], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the function that is chosen, tell what came of it, and return what it returned.

        Args:
            args: the function's.
            state: what is known of the situation, as JSON.
            reward: says how good what it returned is; None: `success`.
            kwargs: the function's.
        """
        with self.choose(state=state) as choice:
            returned = self._function(choice.action)(*args, **kwargs)
            if reward is not None:
                choice.reward(reward(returned))
            return returned


class AsyncChooser(_Chooser[AsyncServices]):
    """`Chooser` for asyncio: `async with`, and coroutine functions as options."""

    def choose(
        self, among: Iterable[Option] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> AsyncChoice:
        """Return a choice among options, to be used with `async with`; see `Chooser`."""
        return AsyncChoice(self, self._question(among, state))

    async def run(
        self,
        *args: Any,
        state: Mapping[str, Any] | None = None,
        reward: Callable[[Any], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Await the coroutine function that is chosen; see `Chooser`."""
        async with self.choose(state=state) as choice:
            chosen: Callable[..., Awaitable[Any]] = self._function(choice.action)
            returned = await chosen(*args, **kwargs)
            if reward is not None:
                choice.reward(reward(returned))
            return returned
