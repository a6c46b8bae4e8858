"""Choosing by what worked: a learned policy picks one of several ways and hears what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from mneme._choice import BaseChoice, BaseChooser, Option, amount_of
from mneme._generated.answers import Explanation
from mneme._generated.services import AsyncServices


class AsyncChoice(BaseChoice[AsyncServices], AbstractAsyncContextManager["AsyncChoice"]):
    """A choice, which waits for its reward: a minute, a month, in this process or by its `id` in
    another one. As a context manager it is chosen on the way in, and work that raises has the
    chooser's `failure` as its reward; work that ends leaves the choice open.

    Raises:
        MnemeError: nothing could be chosen, or the reward not be told. When the work itself failed,
            its exception goes on, with a note that says so.
    """

    async def reward(self, amount: float) -> None:
        """Tell how good what came of it was, now: there is one reward for each choice.

        Args:
            amount: the larger the better, usually from 0 to 1; True and False are 1 and 0.

        Raises:
            ArgumentError: it is no finite number.
            AlreadyExistsError: the choice has another reward already.
            NotFoundError: it comes too late, more than 30 days after the choice.
        """
        self._tried = True  # Also when it is refused: then the work has not failed.
        await self._chooser.client.feedback(**self._outcome(amount))

    async def _decide(self) -> None:
        client = self._chooser.client
        if not self._chooser.started:
            await client.start_learning_session(**self._chooser.definition)
            self._chooser.started = True
        answer = await client.predict(**self._question)
        self._chosen(answer.prediction)

    async def __aenter__(self) -> AsyncChoice:
        if not self._is_chosen:
            await self._decide()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or self._tried:
            return
        try:
            await self.reward(self._chooser.failure)
        except Exception as failure:
            error.add_note(f"mneme could not learn from it: {failure}")


class AsyncChooser(BaseChooser[AsyncServices]):
    """Chooses among options by what worked, and learns what works.

        style = client.chooser("reply-style")
        choice = await style.pick(["short", "detailed"], {"customer": "new"})
        reply = await write(choice.action)
        await choice.reward(rating(reply))

    Options can be functions, too: `run` calls the chosen one.

        @style.option
        async def short(question): ...
    """

    async def pick(
        self, among: Iterable[Option] | None = None, state: Mapping[str, Any] | None = None
    ) -> AsyncChoice:
        """Choose one of the options; its reward is told when it is known.

        Args:
            among: the options; None: the functions that were made options.
            state: what is known of the situation, as JSON.

        Raises:
            ArgumentError: there are no options.
        """
        choice = self.choose(among, state=state)
        await choice._decide()
        return choice

    async def reward(self, choice_id: str, amount: float) -> None:
        """Tell how good what came of a choice was, perhaps one of another process.

        Args:
            choice_id: the choice's `id`.
            amount: the larger the better, usually from 0 to 1; True and False are 1 and 0.

        Raises:
            ArgumentError: the amount is no finite number, or the id is empty.
            AlreadyExistsError: the choice has a reward already.
            NotFoundError: it comes too late, more than 30 days after the choice, or the choice is
                none of this session.
        """
        await self.client.feedback(**self._told(choice_id, amount_of(amount)))

    async def explain(
        self,
        among: Iterable[Option] | None = None,
        state: Mapping[str, Any] | None = None,
        *,
        action: Option | None = None,
    ) -> Explanation:
        """Explain what is chosen in a situation: how much each part of it speaks for the action,
        and what would have to differ for another one.

        Args:
            among: the options; None: all that are known.
            state: what is known of the situation, as JSON.
            action: the option to explain; None: the one that would be chosen.

        Raises:
            FailedPreconditionError: nothing has been learned yet.
        """
        answer = await self.client.explain(**self._explained(among, state, action))
        return answer.explanation

    def choose(
        self, among: Iterable[Option] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> AsyncChoice:
        """Return a choice among options, to be used with `async with`.

        Args:
            among: the options; None: the functions that were made options.
            state: what is known of the situation, as JSON.

        Raises:
            ArgumentError: there are no options.
        """
        return AsyncChoice(self, self._question(among, state))

    async def run(
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
        async with self.choose(state=state) as choice:
            returned = await self._function(choice.action)(*args, **kwargs)
            await choice.reward(self.success if reward is None else reward(returned))
            return returned
