"""Attempts: past lessons before the work, a reflection after it."""

from __future__ import annotations

from contextlib import AsyncContextDecorator
from types import TracebackType
from typing import Any

from mneme._attempt import AttemptRecord
from mneme._generated.services import AsyncServices


class AsyncAttempt(AttemptRecord, AsyncContextDecorator):
    """An attempt at a task: a context manager, and a decorator of functions.

        async with client.attempt("parse the export", session_id="s1", project="shop") as attempt:
            await run_agent(prompt + attempt.lessons)
            attempt.worked("used the csv module")

    On the way in it loads past lessons. On the way out it stores a reflection: a success, or, with
    the exception's text, a failure, and lets the exception go on.

    Raises:
        MnemeError: the lessons could not be loaded or the reflection not stored. When the work
            itself failed, its exception goes on, with a note that says so.
    """

    def __init__(self, client: AsyncServices, task: str, **about: Any) -> None:
        super().__init__(task, **about)
        self._client = client
        self._about = about

    def _recreate_cm(self) -> AsyncAttempt:
        """A new attempt for each call of a decorated function."""
        return AsyncAttempt(self._client, self.task, **self._about)

    async def __aenter__(self) -> AsyncAttempt:
        if self._loads:
            self._learned(await self._client.search_reflections(**self._search()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._reflects:
            return
        try:
            stored = await self._client.create_reflection(**self._conclusion(error))
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"mneme could not store the reflection: {failure}")
            return
        self.reflection = stored.reflection
