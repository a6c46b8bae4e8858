"""One operation while it runs."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import structlog

from mneme_server.common.canonical import JsonObject
from mneme_server.common.clock import now_us
from mneme_server.common.errors import (
    Aborted,
    MnemeError,
    Reason,
    Unauthenticated,
    facts_of,
    is_failure,
)
from mneme_server.common.progress import Cancelled, Progress, Step
from mneme_server.features.operations.model import LongWork, Operation, State
from mneme_server.features.operations.ports import OperationStore

_MOST_ATTEMPTS = 5
"""So often work may end the server before it is given up."""
_WRITES = 5
_WRITE_AGAIN_S = 1.0
"""How often, and how long apart, beginning and end are written when the catalog cannot be."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class Server(Protocol):
    """What knows whether the server stops."""

    @property
    def stopping(self) -> bool:
        """Whether it does."""
        ...


class Run:
    """Does the work of an operation, once, and writes down how it ended.

    Work that ends because the server stops has not ended: it goes on at the next start.

    Attributes:
        progress: how far it is; None before it said anything.
        ended: set once it is not done any more, and how it ended is written down.
        lost: whether the key that started it was revoked meanwhile: if it is called off, it fails.
    """

    def __init__(
        self,
        operation: Operation,
        work: LongWork,
        store: OperationStore,
        server: Server,
        kept_us: int,
    ) -> None:
        self.progress: Progress | None = None
        self.ended = threading.Event()
        self.lost = False
        self.key_id = operation.key_id
        self.scope = operation.scope
        self.key = self._key = operation.key
        self._work = work
        self._store = store
        self._server = server
        self._kept_us = kept_us

    def __call__(self, step: Step) -> None:
        """Do the work."""
        try:
            self._run(step)
        finally:
            self.ended.set()

    def _run(self, step: Step) -> None:
        operation = self._insist("beginning", self._begin)
        if operation is None:
            return
        try:
            result = self._work.run(_Task(operation, step, self._store))
        except BaseException as error:
            if not is_failure(error):
                raise
            if self._server.stopping:
                return
            self._failed(operation, error)
        else:
            self._finish(State.SUCCEEDED, result=result)

    def note(self, progress: Progress) -> None:
        """Keep how far it is."""
        self.progress = progress

    def never_began(self) -> None:
        """Write down that it was cancelled while it waited."""
        try:
            self._called_off()
        finally:
            self.ended.set()

    def _begin(self) -> Operation | None:
        """Note that it runs; None if it shall not."""
        known = self._store.get(self._key)
        if known is None or known.done:
            return None
        if known.cancel_requested:
            self._called_off()
            return None
        if known.attempts >= _MOST_ATTEMPTS:
            gone = Aborted(
                f"the server stopped {known.attempts} times while this ran; it is not tried again",
                reason=Reason.WORK_INTERRUPTED,
            )
            self._finish(State.FAILED, error=facts_of(gone))
            return None
        return self._store.begin(self._key, now_us())

    def _failed(self, operation: Operation, error: BaseException) -> None:
        if isinstance(error, Cancelled):
            self._called_off()
        elif isinstance(error, MnemeError):
            _log.warning("operation failed", operation=operation.key.id, kind=operation.kind,
                         tenant=operation.tenant_id, error=error.message)  # fmt: skip
            self._finish(State.FAILED, error=facts_of(error))
        else:
            error_id = secrets.token_hex(8)
            _log.error("internal error in an operation", error_id=error_id, kind=operation.kind,
                       operation=operation.key.id, exc_info=error)  # fmt: skip
            self._finish(State.FAILED, error={"error_id": error_id})

    def _called_off(self) -> None:
        if not self.lost:
            self._finish(State.CANCELLED)
            return
        revoked = Unauthenticated(
            "the API key that started it was revoked, or may not start it any more; it was called"
            " off",
            reason=Reason.API_KEY_INVALID,
        )
        self._finish(State.FAILED, error=facts_of(revoked))

    def _finish(
        self, state: State, *, result: JsonObject | None = None, error: JsonObject | None = None
    ) -> None:
        """Write how it ended. It is done again at the next start if it never can be written."""
        now = now_us()
        self._insist(
            "end",
            lambda: self._store.finish(
                self._key, state, now_us=now, expires_us=now + self._kept_us,
                progress=self.progress, result=result, error=error,
            ),
        )  # fmt: skip

    def _insist(self, what: str, write: Callable[[], T]) -> T | None:
        """Write, also when the catalog cannot be written for a moment; None if it never can be."""
        for attempt in range(_WRITES):
            try:
                return write()
            except MnemeError as problem:
                _log.error(f"an operation's {what} cannot be written", operation=self._key.id,
                           error=problem.message)  # fmt: skip
                if self._server.stopping or attempt == _WRITES - 1:
                    break
                threading.Event().wait(_WRITE_AGAIN_S)
        return None


class _Task:
    """Implements `features.operations.model.Task`."""

    def __init__(self, operation: Operation, step: Step, store: OperationStore) -> None:
        self.tenant_id = operation.tenant_id
        self.request: Mapping[str, Any] = operation.request
        self.kept: Mapping[str, Any] = operation.kept
        self._key = operation.key
        self._step = step
        self._store = store

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say how far the work is."""
        self._step.report(stage, done, total)

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do a heavy part of the work in a process of its own."""
        return self._step.apart(function, **arguments)

    def keep(self, **facts: Any) -> None:
        """Note facts for the case that the server stops now."""
        self._keep(facts, committed=False)

    def commit(self, **facts: Any) -> None:
        """Go beyond the point where the operation can be cancelled."""
        self._keep(facts, committed=True)

    def _keep(self, facts: dict[str, Any], *, committed: bool) -> None:
        if not self._store.keep(self._key, facts, committed=committed):
            raise Cancelled
        self.kept = {**self.kept, **facts}
