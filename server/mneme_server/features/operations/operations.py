"""Starting operations, following them, calling them off, and going on after a restart."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import structlog

from mneme_server.common import deadline, fencing, interpreter
from mneme_server.common.canonical import JsonObject
from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    MnemeError,
    NotFound,
    PermissionDenied,
    Reason,
    Unauthenticated,
    facts_of,
    is_failure,
)
from mneme_server.common.fencing import OWN, Fence, Leases
from mneme_server.common.identity import Caller, KeyScope, new_id
from mneme_server.common.progress import Cancelled, Progress, Step
from mneme_server.engine.background.jobs import Job, Jobs
from mneme_server.features.operations.model import (
    ADMINISTRATOR,
    LongWork,
    Operation,
    OperationFilter,
    OperationKey,
    OperationState,
    OperationTask,
)
from mneme_server.features.operations.store import SqlOperations

T = TypeVar("T")

MOST_UNFINISHED = 100
"""Operations of one owner that may wait and run."""
KEPT_US = 7 * DAY_US
"""How long an operation is known after its end."""
_FORGET_S = 30.0
"""How long the deletion of a tenant waits for its operations, which were called off."""

_MOST_ATTEMPTS = 5
"""So often work may end the server before it is given up."""
_WRITES = 5
_WRITE_AGAIN_S = 1.0
"""How often, and how long apart, beginning and end are written when the catalog cannot be."""
_log = structlog.get_logger(__name__)


class _Unknown:
    """The work of a kind that this server does not have, and the one before had."""

    def run(self, task: OperationTask) -> JsonObject:
        """Fail."""
        raise Aborted(
            "this server does not know operations of this kind", reason=Reason.WORK_INTERRUPTED
        )

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: nobody knows what it left."""


class Operations:
    """The operations of the server. Thread-safe.

    Args:
        store: keeps them.
        jobs: does their work.
        places: calls that may wait for an operation's end at once; each holds a thread.
        leases: say which of the operations are this server's.
    """

    def __init__(
        self,
        store: SqlOperations,
        jobs: Jobs,
        *,
        places: int,
        leases: Leases = OWN,
    ) -> None:
        self._leases = leases
        self._taken: dict[OperationKey, Fence] = {}  # Of what was taken over and has not begun.
        self._store = store
        self._jobs = jobs
        self._places = threading.Semaphore(places)
        self._works: dict[str, LongWork] = {}
        self._during: dict[str, Callable[[], AbstractContextManager[object]]] = {}
        self._lock = threading.Lock()  # Guards what follows.
        self._runs: dict[OperationKey, tuple[Run, Job]] = {}
        self._recovered: Sequence[Operation] = ()

    def bring(self, kind: str, work: LongWork) -> None:
        """Let operations of this kind be started.

        Raises:
            ValueError: another work is of this kind.
        """
        if kind in self._works:
            raise ValueError(f"two operations are called {kind}")
        self._works[kind] = work

    def hold(self, kind: str, during: Callable[[], AbstractContextManager[object]]) -> None:
        """Hold what this lends for as long as each operation of a kind is done."""
        self._during[kind] = during

    def start(
        self,
        kind: str,
        *,
        scope: KeyScope,
        tenant_id: str,
        operation_id: str,
        request: JsonObject,
        require: Callable[[], JsonObject | None] = lambda: None,
        key_id: str = "",
    ) -> Operation:
        """Start an operation; an empty id is made. The same id and request again change nothing.

        Args:
            kind: what it does.
            scope: what starting it needs. With ADMIN it is the administrator's, else the tenant's.
            tenant_id: the tenant that it works on.
            operation_id: its id, unique among those of its owner.
            request: what its work is given.
            require: raises what is against starting it, and may return facts that its work shall
                have kept; not asked for one that was started before, which may have changed that.
            key_id: the key that starts it, and with which it ends; "": none does.

        Raises:
            AlreadyExists: the id is taken by an operation that does something else.
            ResourceExhausted: too many of the owner's have not ended.
        """
        owner = ADMINISTRATOR if scope is KeyScope.ADMIN else tenant_id
        given = Operation(
            key=OperationKey(owner, operation_id or new_id()),
            kind=kind,
            tenant_id=tenant_id,
            scope=scope,
            key_id=key_id,
            request=request,
            created_us=now_us(),
        )
        kept = self._store.get(given.key)
        if kept is None:
            kept = self._store.add(replace(given, kept=require() or {}), MOST_UNFINISHED)
        if (kept.kind, kept.tenant_id, kept.request) != (kind, tenant_id, request):
            raise AlreadyExists(
                f"operation {kept.key.id} exists and does something else", field="operation_id"
            )
        if not kept.done:
            self._submit(kept)
        return self._live(kept)

    def get(self, caller: Caller, operation_id: str, tenant_id: str = "") -> Operation:
        """Return an operation that the caller may see.

        Raises:
            NotFound: there is none.
            PermissionDenied: it names another tenant and may not.
        """
        return self._live(self._find(caller, operation_id, tenant_id))

    def list(
        self, caller: Caller, filter_: OperationFilter, before: int | None, limit: int
    ) -> Sequence[Operation]:
        """Return up to `limit` operations that the caller may see, the newest first.

        Raises:
            PermissionDenied: it names another tenant and may not.
        """
        _require_may_name(caller, filter_.tenant_id)
        if KeyScope.ADMIN not in caller.scopes:
            filter_ = replace(filter_, owner=caller.tenant_id)
        if KeyScope.READ not in caller.scopes:
            filter_ = replace(filter_, scopes=caller.scopes)
        return [self._live(one) for one in self._store.list(filter_, before, limit)]

    def wait(
        self, caller: Caller, operation_id: str, tenant_id: str = "", *, seconds: float
    ) -> Operation:
        """Return an operation once it has ended, or as it is when the time is up. Earlier when as
        many calls wait as may.

        Raises:
            As `get`.
        """
        self._await_end(self._find(caller, operation_id, tenant_id), seconds)
        return self.get(caller, operation_id, tenant_id)

    def wait_for(self, started: Operation, seconds: float) -> Operation:
        """Wait as `wait` does for an operation that a call has started."""
        if started.done:
            return started
        self._await_end(started, seconds)
        return self._live(self._store.get(started.key) or started)

    def _await_end(self, found: Operation, seconds: float) -> None:
        with self._lock:
            run, _ = self._runs.get(found.key, (None, None))
        elsewhere = run is None and not found.done
        if (run is not None or elsewhere) and self._places.acquire(blocking=False):
            interpreter.leave_turn()
            try:
                with deadline.within(seconds):
                    while not self._has_ended(found.key, run):
                        if not deadline.time_left() or self._jobs.stopping:
                            break
            finally:
                self._places.release()

    def _has_ended(self, key: OperationKey, run: Run | None) -> bool:
        """Wait a little; return whether an operation has ended."""
        pause_s = deadline.pause(deadline.LOOK_EVERY_S)
        if run is not None:
            return run.ended.wait(pause_s)
        threading.Event().wait(pause_s)  # Another server does it.
        found = self._store.get(key)
        return found is None or found.done

    def cancel(self, caller: Caller, operation_id: str, tenant_id: str = "") -> Operation:
        """Have an operation stop; return it as it is now. One that has ended stays as it is.

        Raises:
            PermissionDenied: the caller could not have started it.
            FailedPrecondition: it has begun to change what it was started for.
            As `get`.
        """
        found = self._find(caller, operation_id, tenant_id)
        if found.scope not in caller.scopes:
            raise PermissionDenied(
                f"cancelling this operation requires scope {found.scope.name.lower()}",
                metadata={"required_scope": found.scope.name.lower()},
            )
        asked = self._store.request_cancel(found.key) or found
        if not asked.done and not asked.cancel_requested:
            raise FailedPrecondition(
                f"operation {operation_id} has begun to change what it was started for, and goes on"
                " to its end",
                field="operation_id",
            )
        self._call_off(found.key)
        return self.get(caller, operation_id, tenant_id)

    def keys_in_use(self) -> Collection[str]:
        """Return the ids of the keys that started what waits or runs here."""
        with self._lock:
            return {run.key_id for run, _ in self._runs.values() if run.key_id}

    def judge(self, keys: Mapping[str, Caller | None]) -> None:
        """Call off what keys started that may not start it any more, unless it has begun to change
        what it was started for.

        Args:
            keys: by id, whom they let in now; None: nobody. Of others nothing is known.
        """
        with self._lock:
            judged = [run for run, _ in self._runs.values() if run.key_id in keys and not run.lost]
        for run in judged:
            caller = keys[run.key_id]
            if caller is None or run.scope not in caller.scopes:
                asked = self._store.request_cancel(run.key)
                run.lost = True  # Looked at once: one that goes on does so to its end.
                if asked is not None and asked.cancel_requested:
                    self._call_off(run.key)

    def forget_tenant(self, tenant_id: str) -> None:
        """Call off and forget the operations that are a tenant's, which is being deleted."""
        for job in self.call_off_of(tenant_id):
            job.wait(_FORGET_S)
        self._store.remove_of(tenant_id)

    def call_off_of(self, tenant_id: str) -> Sequence[Job]:
        """Call off the operations that are a tenant's, and not the administrator's; return their
        jobs, which may go on for a moment."""
        with self._lock:
            keys = [key for key in self._runs if key.owner == tenant_id]
            jobs = [self._runs[key][1] for key in keys]
        for key in keys:
            self._store.request_cancel(key)
            self._call_off(key)
        return jobs

    def forget_results(self, tenant_id: str) -> None:
        """Forget the operations of a tenant that have ended: what they came to may quote it."""
        self._store.remove_ended_of(tenant_id)

    def recover(self) -> None:
        """Bring what was interrupted to one state or the other, before anything is served."""
        taken = [self._take_over(operation) for operation in self._store.unfinished()]
        self._recovered = [operation for operation in taken if operation is not None]
        for operation in self._recovered:
            self._recover(operation)

    def resume(self) -> None:
        """Go on with what was interrupted, and what had not begun."""
        for operation in self._recovered:
            self._submit(operation)
        self._recovered = ()

    def look_again(self) -> None:
        """Take over what servers left that are gone, and call off here what was called off by way
        of another."""
        for operation in self._store.unfinished():
            with self._lock:
                here = operation.key in self._runs
            if here and operation.cancel_requested:
                self._call_off(operation.key)
            elif not here:
                taken = self._take_over(operation)
                if taken is not None:
                    self._recover(taken)
                    self._submit(taken)

    def _take_over(self, operation: Operation) -> Operation | None:
        """Return an operation, as it is now, that is to be done here; None where another server
        does it, or has done it."""
        fence = self._leases.take(_lease(operation.key), operation.tenant_id)
        if fence is None:
            return None
        now = self._store.get(operation.key)
        if now is None or now.done:
            self._leases.give_back(fence)
            return None
        self._taken[operation.key] = fence
        return now

    def _recover(self, operation: Operation) -> None:
        work = self._works.get(operation.kind)
        if work is not None and operation.attempts:
            _log.info("operation was interrupted", operation=operation.key.id,
                      kind=operation.kind, tenant=operation.tenant_id)  # fmt: skip
            work.recover(operation.tenant_id, operation.kept)

    def forget_expired(self) -> None:
        """Forget what ended long enough ago."""
        self._store.remove_expired(now_us())

    def _submit(self, operation: Operation) -> None:
        with self._lock:
            if operation.key in self._runs:  # It was started twice.
                return
            work_of_kind = self._works.get(operation.kind, _Unknown())
            run = Run(operation, work_of_kind, self._store, self._jobs, KEPT_US)

            def work(step: Step) -> None:
                try:
                    with self._during.get(operation.kind, nullcontext)():
                        self._do(operation, run, step)
                finally:
                    with self._lock:
                        self._runs.pop(operation.key, None)

            job = self._jobs.submit(operation.tenant_id, work, on_progress=run.note)
            self._runs[operation.key] = run, job

    def _do(self, operation: Operation, run: Run, step: Step) -> None:
        name = _lease(operation.key)
        fence = self._taken.pop(operation.key, None) or self._leases.take(name, operation.tenant_id)
        if fence is None:
            run.ended.set()  # Here, that is.
            return
        try:
            with fencing.under(fence):
                run.run(step)
        finally:
            self._leases.give_back(fence)

    def _call_off(self, key: OperationKey) -> None:
        with self._lock:
            run, job = self._runs.get(key, (None, None))
        if run is not None and job is not None and self._jobs.forget(job):
            try:
                run.never_began()  # First, so that whoever waits finds how it ended.
            finally:
                with self._lock:
                    self._runs.pop(key, None)

    def _find(self, caller: Caller, operation_id: str, tenant_id: str) -> Operation:
        _require_may_name(caller, tenant_id)
        owners = [tenant_id or caller.tenant_id]
        if KeyScope.ADMIN in caller.scopes:
            owners.insert(0, ADMINISTRATOR)
        for owner in owners:
            found = self._store.get(OperationKey(owner, operation_id))
            if found is not None and not caller.scopes.isdisjoint({KeyScope.READ, found.scope}):
                return found
        raise NotFound(f"there is no operation {operation_id}", field="operation_id")

    def _live(self, operation: Operation) -> Operation:
        """Return an operation with how far it is by now, which is not worth a write each time."""
        with self._lock:
            run, _ = self._runs.get(operation.key, (None, None))
        if run is None or operation.done:
            return operation
        return replace(operation, progress=run.progress)


def _lease(key: OperationKey) -> str:
    return f"operation/{key.owner}/{key.id}"


def _require_may_name(caller: Caller, tenant_id: str) -> None:
    if tenant_id not in ("", caller.tenant_id) and KeyScope.ADMIN not in caller.scopes:
        raise PermissionDenied(
            "another tenant's operations require scope admin",
            field="tenant_id",
            metadata={"required_scope": "admin"},
        )


class ServerStatus(Protocol):
    """What knows whether the server stops."""

    @property
    def stopping(self) -> bool:
        """Whether it does."""
        ...


class Run:
    """One operation while it runs: does its work, once, and writes down how it ended.

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
        store: SqlOperations,
        server: ServerStatus,
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

    def run(self, step: Step) -> None:
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
            result = self._work.run(_RunningTask(operation, step, self._store))
        except BaseException as error:
            if not is_failure(error):
                raise
            if self._server.stopping:
                return
            self._failed(operation, error)
        else:
            self._finish(OperationState.SUCCEEDED, result=result)

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
            self._finish(OperationState.FAILED, error=facts_of(gone))
            return None
        return self._store.begin(self._key, now_us())

    def _failed(self, operation: Operation, error: BaseException) -> None:
        if isinstance(error, Cancelled):
            self._called_off()
        elif isinstance(error, MnemeError):
            _log.warning("operation failed", operation=operation.key.id, kind=operation.kind,
                         tenant=operation.tenant_id, error=error.message)  # fmt: skip
            self._finish(OperationState.FAILED, error=facts_of(error))
        else:
            error_id = secrets.token_hex(8)
            _log.error("internal error in an operation", error_id=error_id, kind=operation.kind,
                       operation=operation.key.id, exc_info=error)  # fmt: skip
            self._finish(OperationState.FAILED, error={"error_id": error_id})

    def _called_off(self) -> None:
        if not self.lost:
            self._finish(OperationState.CANCELLED)
            return
        revoked = Unauthenticated(
            "the API key that started it was revoked, or may not start it any more; it was called"
            " off",
            reason=Reason.API_KEY_INVALID,
        )
        self._finish(OperationState.FAILED, error=facts_of(revoked))

    def _finish(
        self,
        state: OperationState,
        *,
        result: JsonObject | None = None,
        error: JsonObject | None = None,
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


class _RunningTask:
    """Implements `features.operations.model.OperationTask`."""

    def __init__(self, operation: Operation, step: Step, store: SqlOperations) -> None:
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
