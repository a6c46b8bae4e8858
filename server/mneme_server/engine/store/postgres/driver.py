"""The connection of psycopg that statements go straight to, and what its errors mean here."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, count
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

T = TypeVar("T")
R = TypeVar("R")

APPLICATION = "mneme"
"""What the database knows its connections by."""
_SOON_S = 0.5
_DISK_FULL_RETRY_S = 30.0
_LOST_RETRY_S = 1.0
_NUL = "cannot contain NUL"
LEASE_LOST, GENERATION_GONE, UNSETTLED = "MN002", "MN003", "MN004"
"""The SQLSTATEs of transactions that begin on behalf of work that another server has taken over, of
a tenant whose rows are not those any more that were known, see `node_schema`; or of a server where
calls go on that may have read what was erased without it, see `Places` there."""
_AT_ONCE = (64, 16, 4)
"""Rows of a statement: of a few sizes, for statements to be those that are prepared already."""
_ONE_ROW = re.compile(r"(INSERT INTO [^()]+ \([^()]+\) VALUES )\((%s(?:::[A-Z ]+)?(?:, )?)+\)")
"""What inserts a row and does nothing else. What is to be done where there is one may not meet the
same row twice in a statement."""
KEPT_ALIVE: dict[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}
"""How libpq has TCP find out that nobody is there any more, unless a URL says otherwise: within 11
seconds of silence, and within 6 of something that was sent. It also keeps a NAT from forgetting."""
KEPT_ALIVE_THERE = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
    " SET tcp_user_timeout = 6000; SET client_connection_check_interval = '5s'"
)
"""The same for the database's end: what a machine that is gone had locked is free as soon."""
SILENT_S = 2.0
"""How long an answer is waited for before one asks, in seconds; each time twice as long."""
_LATEST_S = 30.0
_CONNECT_S = 3
_IDLE_S = 1.0
"""How long the database must have been waiting for us by its own clock, in seconds: an answer may
be on its way."""
_SAME_AGE_S = 5.0
"""By how much a session's age may differ, there and here: another machine, which took over, has
sessions of the same numbers."""
_asking = threading.BoundedSemaphore(4)
"""Connections at once that ask, of this process: a slow database is asked by few."""
_SESSION = (
    "SELECT state LIKE 'idle%%' AND state_change < clock_timestamp() - %s * interval '1 s'"
    " FROM pg_stat_activity WHERE pid = %s AND application_name = %s"
    " AND abs(extract(epoch FROM clock_timestamp() - backend_start) - %s) < %s"
)


class PsycopgConnection(psycopg.Connection[Any]):  # type: ignore[misc]  # Any to the checker
    """Implements `engine.store.connections.DriverConnection`."""

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


def postgres_of(connection: Connection) -> PsycopgConnection:
    """Return the driver's connection, of a database that is PostgreSQL."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, PsycopgConnection)
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


def statements(
    one_row: str, rows: Sequence[Sequence[object]]
) -> Iterator[tuple[str, list[object]]]:
    """Yield statements that insert these rows in their order, with numbered parameters, and their
    values; nothing where `one_row` is none that could take several. PostgreSQL takes a third less
    time for rows of one statement than for as many statements."""
    if _of_rows(one_row, 1) is None:
        return
    done = 0
    while done < len(rows):
        left = len(rows) - done
        size = next((size for size in _AT_ONCE if size <= left), 1)
        statement = _of_rows(one_row, size)
        assert statement is not None
        yield statement, list(chain.from_iterable(rows[done : done + size]))
        done += size


@lru_cache(maxsize=512)
def _of_rows(one_row: str, rows: int) -> str | None:
    found = _ONE_ROW.fullmatch(one_row)
    if found is None:
        return None
    start = found.end(1)
    numbers = count(1)
    each = (_numbered(one_row[start:], numbers) for _ in range(rows))
    return one_row[:start] + ", ".join(each)


def _numbered(values: str, numbers: Iterator[int]) -> str:
    return re.sub("%s", lambda _: f"${next(numbers)}", values)


def watched(
    waiting: Generator[Any, Any, R], is_asking: Callable[[], bool], look: Callable[[], None]
) -> Generator[Any, Any, R]:
    """Do what a generator of psycopg's does; look after the connection while it waits in silence.

    That tells a connection that hangs from a database that is busy. A machine that was paused, a
    NAT that forgot: what is sent on such a connection is never answered, and nothing says so. TCP
    notices where nothing acknowledges what was sent; where a proxy does, nobody would. So whoever
    waits in silence asks by a new connection what the database knows of theirs (`hangs`): one that
    is at work there is waited for, one that waits there for us, too, or is not there, hangs.

    Args:
        waiting: yields what it waits for, and is sent 0 where that has not come for a moment.
        is_asking: whether something was asked that has to be answered.
        look: is called after `SILENT_S` without a byte, then each time after twice as long; raises
            to have nobody wait any more.
    """
    patience, until = SILENT_S, 0.0
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if ready:
                until = 0.0
            elif not until:
                until = time.monotonic() + patience
            elif time.monotonic() >= until and is_asking():
                look()
                patience = min(_LATEST_S, 2 * patience)
                until = time.monotonic() + patience
            wanted = waiting.send(ready)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]


def hangs(url: str, pid: int, name: str, age_s: float) -> bool:
    """Return whether a connection hangs, and end it at the other end: what it locked there is free.

    Args:
        url: where the database is.
        pid: the process that served it, as the database numbers them.
        name: its application's.
        age_s: for how long it has been open, in seconds.
    """
    with _asking:
        try:
            asking = psycopg.connect(
                url, autocommit=True, connect_timeout=_CONNECT_S, application_name="mneme-asks"
            )
        except errors.ConnectionTimeout:
            return True  # Nobody answers a new one either.
        except psycopg.OperationalError:
            return False  # It is there, and takes no more: it says nothing of this one.
        with asking:
            row = asking.execute(_SESSION, (_IDLE_S, pid, name, age_s, _SAME_AGE_S)).fetchone()
            if row is None:
                return True
            if row[0]:
                asking.execute("SELECT pg_terminate_backend(%s)", (pid,))
            return bool(row[0])
