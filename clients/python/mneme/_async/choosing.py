"""Choosing by what worked: a learned policy picks one of several ways and hears what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from mneme._choice import BaseChoice, BaseChooser, Option
from mneme._generated.services import AsyncServices


class AsyncChoice(BaseChoice[AsyncServices], AbstractAsyncContextManager["AsyncChoice"]):
    """A choice as a context manager: chosen on the way in, its reward told on the way out.

    Raises:
        MnemeError: nothing could be chosen, or the reward not be told. When the work itself failed,
            its exception goes on, with a note that says so.
    """

    async def __aenter__(self) -> AsyncChoice:
        client = self._chooser.client
        if not self._chooser.started:
            await client.start_learning_session(**self._chooser.definition)
            self._chooser.started = True
        answer = await client.predict(**self._question)
        self._chosen(answer.prediction)
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


class AsyncChooser(BaseChooser[AsyncServices]):
    """Chooses among options by what worked, and learns what works.

        style = client.chooser("reply-style")
        async with style.choose(["short", "detailed"], state={"customer": "new"}) as choice:
            reply = await write(choice.action)
            choice.reward(rating(reply))

    Options can be functions, too: `run` calls the chosen one.

        @style.option
        async def short(question): ...
    """

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
            if reward is not None:
                choice.reward(reward(returned))
            return returned
