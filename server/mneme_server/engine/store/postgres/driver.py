"""What goes straight to psycopg, and what its errors mean to the domain."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper
from sqlalchemy import Connection

from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import (
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    MnemeError,
    Reason,
    ResourceExhausted,
    Unavailable,
)
from mneme_server.common.fencing import LeaseLost
from mneme_server.engine.store.postgres.hanging import hangs, watched
from mneme_server.engine.store.postgres.inserting import statements

APPLICATION = "mneme"
"""What the database knows its connections by."""

T = TypeVar("T")

_SOON_S = 0.5
_DISK_FULL_RETRY_S = 30.0
_LOST_RETRY_S = 1.0
_NUL = "cannot contain NUL"
LEASE_LOST, GENERATION_GONE, UNSETTLED = "MN002", "MN003", "MN004"
"""The SQLSTATEs of transactions that begin on behalf of work that another server has taken over, of
a tenant whose rows are not those any more that were known, see `node_schema`; or of a server where
calls go on that may have read what was erased without it, see `places`."""


class DriverConnection(psycopg.Connection[Any]):  # type: ignore[misc]  # Any to the checker
    """Implements `engine.store.driver.DriverConnection`."""

    failures = (psycopg.Error,)

    tenant_id = ""
    """Whose the transaction is."""

    warned = ""
    """What it warned of since it was last committed."""

    url = ""
    """Where the database is; empty while it is being opened."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._opened = time.monotonic()

    def wait(self, gen: Generator[Any, Any, T], *given: Any, **named: Any) -> T:
        """Wait for what a generator of psycopg's waits for.

        Raises:
            psycopg.OperationalError: the connection hangs, or was lost.
        """
        answer: T = super().wait(watched(gen, self._is_asking, self._look), *given, **named)
        return answer

    def _is_asking(self) -> bool:
        return bool(self.url) and self.info.transaction_status == pq.TransactionStatus.ACTIVE

    def _look(self) -> None:
        age_s = time.monotonic() - self._opened
        if hangs(self.url, self.info.backend_pid, APPLICATION, age_s):
            self.pgconn.finish()  # Whoever has it finds it broken.
            raise psycopg.OperationalError("the connection to the database hangs")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun, one that failed included."""
        return bool(self.info.transaction_status != pq.TransactionStatus.IDLE)

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            psycopg.OperationalError: it may be committed or not, or not for good: somebody had the
                server wait no longer for its standby, and it only warns of that.
        """
        self.warned = ""
        super().commit()
        if self.warned:
            raise psycopg.OperationalError(self.warned)

    def note(self, said: psycopg.errors.Diagnostic) -> None:
        """Take note of what the server says beside its answers."""
        if said.severity_nonlocalized == "WARNING":
            self.warned = said.message_primary or "a warning"

    def executemany(self, sql: str, values: Sequence[Sequence[Any]], /) -> psycopg.Cursor[Any]:
        """Run a statement for each of these and return the cursor."""
        if len(values) == 1:
            return self.execute(sql, values[0])
        cursor = self.cursor()
        inserting = list(statements(sql, values))
        if not inserting:
            cursor.executemany(sql, values)
            return cursor
        with self.pipeline():
            for statement, given in inserting:
                self._inserting.execute(statement, given)
        return cursor

    @cached_property
    def _inserting(self) -> psycopg.RawCursor[Any]:
        """What runs statements of many values. All whole numbers are said to be alike: else what
        was prepared would be of use only where each is as large as the one before in its place."""
        cursor = psycopg.RawCursor(self)
        cursor.adapters.register_dumper(int, Int8Dumper)
        return cursor


def postgres_of(connection: Connection) -> DriverConnection:
    """Return the driver's connection, of a database that is PostgreSQL."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, DriverConnection)
    return driver


class NumberLoader(Loader):  # type: ignore[misc]  # Any to the checker
    """Reads what PostgreSQL gives for sums and averages of whole numbers as SQLite gives it: a
    whole number, or a float."""

    def load(self, data: Any) -> int | float:
        """Return the number that the digits say."""
        digits = bytes(data)
        return int(digits) if digits.lstrip(b"-").isdigit() else float(digits)


def meaning(error: BaseException) -> MnemeError | None:
    """Return what an error of the driver means to a caller; None when it is a bug or a constraint.

    Constraint violations stay SQLAlchemy's `IntegrityError`: only the repository knows what such a
    violation means.
    """
    if isinstance(error, psycopg.DataError) and _NUL in str(error):
        return _nul(error)
    if isinstance(error, psycopg.Error) and error.sqlstate == LEASE_LOST:
        return LeaseLost()
    if isinstance(error, psycopg.Error) and error.sqlstate == GENERATION_GONE:
        return Unavailable(
            "the tenant was deleted, or put back, by way of another server; nothing was written",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_LOST_RETRY_S,
        )
    if isinstance(error, psycopg.Error) and error.sqlstate == UNSETTLED:
        return Unavailable(
            "something was erased while this server was taken for dead, and calls go on that may"
            " have read it; nothing was written",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_LOST_RETRY_S,
        )
    return next((make(error) for kind, make in _MEANINGS if isinstance(error, kind)), None)


def _nul(_error: BaseException) -> MnemeError:
    return InvalidArgument(
        "a text holds the character U+0000, which the server's database cannot store"
    )


def _came_between(_error: BaseException) -> MnemeError:
    return Unavailable(
        "another write to the database took too long or came between; nothing was written",
        reason=Reason.TRANSACTION_FAILED,
        retry_after_s=_SOON_S,
    )


def _full(_error: BaseException) -> MnemeError:
    return ResourceExhausted(
        "the database's disk is full; nothing was written",
        reason=Reason.QUOTA_EXCEEDED,
        retry_after_s=_DISK_FULL_RETRY_S,
    )


def _damaged(error: BaseException) -> MnemeError:
    return DataLoss(f"the database is damaged ({error}); restore it from a backup")


def _refused(error: BaseException) -> MnemeError:
    return FailedPrecondition(
        f"the database refuses its role what Mneme needs ({error})", reason=Reason.DATABASE_ERROR
    )


def _lost(_error: BaseException) -> MnemeError:
    return Unavailable(
        "the database cannot be reached; it is safe to send a write with an id again",
        reason=Reason.DATABASE_ERROR,
        retry_after_s=_LOST_RETRY_S,
    )


_MEANINGS: Sequence[tuple[Any, Callable[[BaseException], MnemeError]]] = (
    (errors.UntranslatableCharacter, _nul),
    (errors.QueryCanceled, lambda _error: Abandoned()),
    (errors.SerializationFailure, _came_between),
    (errors.DeadlockDetected, _came_between),
    (errors.LockNotAvailable, _came_between),
    (errors.DiskFull, _full),
    (errors.DataCorrupted, _damaged),
    (errors.IndexCorrupted, _damaged),
    (errors.InsufficientPrivilege, _refused),
    # The server is gone, is being stopped or started, has no room, or was failed over to a standby.
    (psycopg.OperationalError, _lost),
    (errors.IdleInTransactionSessionTimeout, _lost),
)
"""The first that fits says what is meant."""
