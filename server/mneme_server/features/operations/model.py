"""An operation, and what work must be to be one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.common.identity import KeyScope
from mneme_server.common.progress import Progress, Step

ADMINISTRATOR = ""
"""Whose the operations are that need scope admin."""


class OperationState(IntEnum):
    """How far an operation has come. The numbers are those of `mneme.v1.OperationState`."""

    QUEUED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5


UNFINISHED = frozenset({OperationState.QUEUED, OperationState.RUNNING})


@dataclass(frozen=True, slots=True)
class OperationKey:
    """What tells operations apart: whose it is (a tenant, or `ADMINISTRATOR`), and its id there."""

    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as it is kept. Times are microseconds since 1970.

    `tenant_id` is the tenant that it works on; `scope` what starting it needed; `key_id` the key
    that started it, "" where none did; `request` what it was started with. `kept` is what the work
    noted for the case that it is interrupted; `result` is what it came to, and `error` why it
    failed, as `common.errors` has it. `number` counts operations in the order in which they
    were started.
    """

    key: OperationKey
    kind: str
    tenant_id: str
    scope: KeyScope
    request: JsonObject
    created_us: int
    key_id: str = ""
    state: OperationState = OperationState.QUEUED
    cancellable: bool = True
    cancel_requested: bool = False
    progress: Progress | None = None
    attempts: int = 0
    started_us: int | None = None
    ended_us: int | None = None
    expires_us: int | None = None
    kept: JsonObject = field(default_factory=dict)
    result: JsonObject | None = None
    error: JsonObject | None = None
    number: int = 0

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.state not in UNFINISHED


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Which operations are listed; empty: whatever they are."""

    owner: str | None = None
    tenant_id: str = ""
    kind: str = ""
    states: frozenset[OperationState] = frozenset()
    scopes: frozenset[KeyScope] = frozenset()


class OperationTask(Step, Protocol):
    """What the work of an operation is given."""

    @property
    def tenant_id(self) -> str:
        """The tenant that it works on."""
        ...

    @property
    def request(self) -> Mapping[str, Any]:
        """What it was started with."""
        ...

    @property
    def kept(self) -> Mapping[str, Any]:
        """What it kept, also before the server was last stopped."""
        ...

    def keep(self, **facts: Any) -> None:
        """Note facts, durably, for the case that the server stops now.

        Raises:
            Cancelled: somebody called the work off.
        """
        ...

    def commit(self, **facts: Any) -> None:
        """Keep facts and go beyond the point where the operation can be cancelled.

        Raises:
            Cancelled: somebody called the work off before.
        """
        ...


class LongWork(Protocol):
    """The work of one kind of operation. It may be interrupted anywhere by the end of the process,
    and is run again then; what it must know by then it keeps."""

    def run(self, task: OperationTask) -> JsonObject:
        """Do the work and return the fields of its result.

        Raises:
            MnemeError: it failed; nothing is half done.
            Cancelled: it was called off; nothing is left of it.
        """
        ...

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """After a start, before anything is served: bring what was interrupted to where calls find
        the state before it or the one after it, and put away what is half made."""
        ...
