"""Following work that outlasts a call: what needs no waiting, and how long to wait."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from mneme._core.answers import Answer
from mneme.errors import DeadlineExceededError, MnemeError, UnavailableError


class _Operation(Protocol):
    """What is read here of an operation, which is the generated answer."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def done(self) -> bool: ...
    @property
    def error(self) -> MnemeError | None: ...
    @property
    def response(self) -> Any: ...


OperationT = TypeVar("OperationT", bound=_Operation)
AnswerT_co = TypeVar("AnswerT_co", bound=Answer[Any], covariant=True)

LONGEST_WAIT_S = 20.0
"""How long one call waits for the end."""
_SHORTEST_S = 0.5
"""Between two questions, when the server has no room for calls that wait."""
_ANSWER_S = 10.0
"""How much longer than it was asked to wait a server may take to answer."""
_GRACE_S = 1.0
"""The same once the time is up; one that says nothing costs no more."""
_RESTART_S = 60.0
"""How long a server may be away meanwhile: operations survive its restart."""


class _Limits(TypedDict):
    max_wait: timedelta
    timeout: float


class Patience:
    """When to ask again, and until when; the same for both clients.

    Args:
        timeout: seconds in all; None: no limit.
        every: seconds that one question may take.
    """

    def __init__(self, timeout: float | None, every: float = LONGEST_WAIT_S) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self._every = every
        self._asked_at = 0.0
        self._away_since: float | None = None

    def ask(self) -> _Limits:
        """How long the next question may wait, and take in all."""
        self._asked_at = time.monotonic()
        left = self._left()
        wait = min(self._every, left)
        limit = wait + _ANSWER_S
        if self._until is not None:
            limit = min(limit, left + _GRACE_S)
        return {"max_wait": timedelta(seconds=wait), "timeout": limit}

    def answered(self) -> float:
        """Seconds to pause after an answer that was not the end.

        Raises:
            TimeoutError: the time is up.
        """
        self._away_since = None
        return self._pause()

    def failed(self, error: UnavailableError | DeadlineExceededError) -> float:
        """Seconds to pause while the server is away.

        Raises:
            UnavailableError: it has been away for too long.
            DeadlineExceededError: it is there, and says nothing.
            TimeoutError: the time is up.
        """
        now = time.monotonic()
        self._away_since = self._away_since or now
        pause = self._pause()
        if isinstance(error, DeadlineExceededError) or now - self._away_since > _RESTART_S:
            raise error
        return pause

    def _pause(self) -> float:
        left = self._left()
        if left <= 0:
            raise TimeoutError("the operation has not ended in time; it goes on")
        took = time.monotonic() - self._asked_at
        return min(max(0.0, min(_SHORTEST_S, self._every) - took), left)

    def _left(self) -> float:
        if self._until is None:
            return LONGEST_WAIT_S
        return max(0.0, self._until - time.monotonic())


class Followed(Generic[OperationT, AnswerT_co]):
    """An operation as it was last seen.

    Args:
        client: makes the calls.
        operation: the operation.
        tenant_id: whose it is, where that is neither the administrator nor the caller's tenant.
    """

    def __init__(self, client: Any, operation: OperationT, tenant_id: str | None = None) -> None:
        self._client = client
        self._tenant_id = tenant_id
        self.operation = operation

    @property
    def id(self) -> str:
        """Its id, with which another process can follow it: `client.operation(id)`."""
        return self.operation.id

    @property
    def done(self) -> bool:
        """Whether it had ended when it was last seen."""
        return self.operation.done

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self.operation.kind}, {self.operation.state})"

    def _seen(self, answer: Any) -> OperationT:
        seen: OperationT = answer.operation
        self.operation = seen
        return seen

    def _outcome(self) -> AnswerT_co:
        """What it came to, once it has ended."""
        if self.operation.error is not None:
            raise self.operation.error
        response: AnswerT_co = self.operation.response
        return response
