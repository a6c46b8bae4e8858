"""Attempts: past lessons before the work, a reflection after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AsyncContextDecorator, ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mneme._core.fitting import fitting, fitting_all
from mneme.v1.reflection_pb2 import StoreReflectionRequest

if TYPE_CHECKING:
    from mneme._generated.services import AsyncServices, SyncServices
    from mneme.types import Reflection, SearchReflectionsResponse

PAST_LESSONS = 3
_KEEP = "Continue with this approach"
_CHANGE = "Try a different approach"
_FIELDS: Mapping[str, Any] = StoreReflectionRequest.DESCRIPTOR.fields_by_name
# Words, not parts of them: "author", "latest" and "prefix" say nothing.
_TAGS = {
    tag: re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE)
    for tag, words in {
        "authentication": r"o?auth|authenticat\w*|authori[sz]\w*",
        "testing": r"test(?:s|ed|ing)?",
        "debugging": r"errors?|bugs?|bugfix|fix(?:es|ed|ing)?|debug\w*",
        "refactoring": r"refactor\w*",
    }.items()
}


def tags_of(task: str) -> tuple[str, ...]:
    """The labels that a task's words give: what it is about, as far as that is plain."""
    return tuple(tag for tag, words in _TAGS.items() if words.search(task))


class AttemptRecord:
    """What is known of one attempt, and what will be stored of it.

    Attributes:
        lessons: past reflections on similar tasks, as text for a prompt; empty without any.
        past: the same as answers, the most relevant first.
        next_strategy: what to do next time; when it is left empty, a sentence is made from the
            outcome and from what worked in the past.
        reflection: what was stored, after the attempt; None when nothing was.
    """

    def __init__(
        self, task: str, *, session_id: str, project: str, agent_id: str,
        tags: Iterable[str] | None, enabled: bool, auto_reflect: bool, include_past_lessons: int,
    ) -> None:  # fmt: skip
        self.task = task
        self.lessons = ""
        self.past: list[Reflection] = []
        self.next_strategy = ""
        self.reflection: Reflection | None = None
        self._session_id = session_id
        self._project = project
        self._agent_id = agent_id
        self._tags = tags_of(task) if tags is None else tuple(tags)
        self._loads = include_past_lessons if enabled else 0
        self._reflects = enabled and auto_reflect
        self._worked: list[str] = []
        self._did_not: list[str] = []
        self._partial = False

    def worked(self, what: str) -> None:
        """Note something that worked; of more than 50 notes, the last are stored."""
        self._worked.append(what)

    def did_not_work(self, what: str) -> None:
        """Note something that did not work; of more than 50 notes, the last are stored."""
        self._did_not.append(what)

    def partial(self) -> None:
        """Say that only some of it worked, unless an exception says that it failed."""
        self._partial = True

    def _search(self) -> dict[str, Any]:
        """The fields of the request for past lessons."""
        return {
            "task_description": self._task(),
            "filter": {"project": self._project or None},
            "limit": self._loads,
        }

    def _learned(self, answer: SearchReflectionsResponse) -> None:
        self.lessons = answer.prompt
        self.past = [found.reflection for found in answer.results]

    def _conclusion(self, error: BaseException | None) -> dict[str, Any]:
        """The fields of the request that stores the reflection."""
        did_not = list(self._did_not)
        if error is not None:
            did_not.append(f"{type(error).__name__}: {error}")
        outcome = "success"
        if error is not None:
            outcome = "failure"
        elif self._partial:
            outcome = "partial"
        return {
            "session_id": self._session_id,
            "project": self._project,
            "agent_id": self._agent_id,
            "task_description": self._task(),
            "outcome": outcome,
            "what_worked": fitting_all(_FIELDS["what_worked"], self._worked),
            "what_did_not_work": fitting_all(_FIELDS["what_did_not_work"], did_not),
            "next_strategy": fitting(
                _FIELDS["next_strategy"], self.next_strategy or self._suggestion(outcome)
            ),
            "tags": fitting_all(_FIELDS["tags"], self._tags),
            "applied_reflection_ids": [reflection.id for reflection in self.past],
        }

    def _task(self) -> str:
        return fitting(_FIELDS["task_description"], self.task)

    def _suggestion(self, outcome: str) -> str:
        if outcome != "failure":
            return _KEEP
        worked = [what for reflection in self.past for what in reflection.what_worked]
        return f"Try: {worked[0]}" if worked else _CHANGE


class Attempt(AttemptRecord, ContextDecorator):
    """An attempt at a task: a context manager, and a decorator of functions.

        with client.attempt("parse the export", session_id="s1", project="shop") as attempt:
            run_agent(prompt + attempt.lessons)
            attempt.worked("used the csv module")

    On the way in it loads past lessons. On the way out it stores a reflection: a success, or, with
    the exception's text, a failure, and lets the exception go on.

    Raises:
        MnemeError: the lessons could not be loaded or the reflection not stored. When the work
            itself failed, its exception goes on, with a note that says so.
    """

    def __init__(self, client: SyncServices, task: str, **about: Any) -> None:
        super().__init__(task, **about)
        self._client = client
        self._about = about

    def _recreate_cm(self) -> Attempt:
        """A new attempt for each call of a decorated function."""
        return Attempt(self._client, self.task, **self._about)

    def __enter__(self) -> Attempt:
        if self._loads:
            self._learned(self._client.search_reflections(**self._search()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._reflects:
            return
        try:
            stored = self._client.store_reflection(**self._conclusion(error))
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"mneme could not store the reflection: {failure}")
            return
        self.reflection = stored.reflection


class AsyncAttempt(AttemptRecord, AsyncContextDecorator):
    """`Attempt` for asyncio: `async with`, and a decorator of coroutine functions."""

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
            stored = await self._client.store_reflection(**self._conclusion(error))
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"mneme could not store the reflection: {failure}")
            return
        self.reflection = stored.reflection
