"""Records of attempts: what is asked before the work, and what is stored after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mneme._core.fitting import fitting, fitting_all
from mneme.v1.reflection_pb2 import CreateReflectionRequest

if TYPE_CHECKING:
    from mneme.types import Reflection, SearchReflectionsResponse

PAST_LESSONS = 3
_KEEP = "Continue with this approach"
_CHANGE = "Try a different approach"
_FIELDS: Mapping[str, Any] = CreateReflectionRequest.DESCRIPTOR.fields_by_name
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
        text: past reflections on similar tasks, as text for a prompt; empty without any.
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
        self.text = ""
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
        self.text = answer.text
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
