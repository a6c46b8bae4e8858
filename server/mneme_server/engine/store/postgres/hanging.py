"""Tells a connection that hangs from a database that is busy.

A machine that was paused, a NAT that forgot: what is sent on such a connection is never answered,
and nothing says so. TCP notices where nothing acknowledges what was sent; where a proxy does,
nobody would. So whoever waits in silence asks by a new connection what the database knows of
theirs: one that is at work there is waited for, one that waits there for us, too, or is not there,
hangs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import psycopg
from psycopg import errors

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
T = TypeVar("T")


def watched(
    waiting: Generator[Any, Any, T], is_asking: Callable[[], bool], look: Callable[[], None]
) -> Generator[Any, Any, T]:
    """Do what a generator of psycopg's does; look after the connection while it waits in silence.

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
