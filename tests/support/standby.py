"""A PostgreSQL and a standby of it, which has every commit before that is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.postgres import PostgresServer, empty_folder, programs

_WITHIN_S = 120.0


class Pair:
    """Two of them. Whichever is the primary, clients find it by the same URL.

    Attributes:
        primary: what takes writes.
        standby: what follows it.
    """

    def __init__(self, primary: PostgresServer, standby: PostgresServer) -> None:
        self.primary, self.standby = primary, standby
        self._hosts = f"{primary.folder},{standby.folder}"
        self._wait_for_standby()

    def url(self, database: str) -> str:
        """Return where a database is, as libpq reads it: on the one of them that takes writes."""
        return (
            f"postgresql://postgres@/{database}?host={self._hosts}&target_session_attrs=read-write"
        )

    def fail_over(self) -> None:
        """Kill the primary, have the standby take its place, and make a new standby of what was
        the primary. For a while commits wait for none."""
        self.primary.crash()
        old, self.primary = self.primary, self.standby
        self.primary.execute("SELECT pg_promote(true, 60)")
        self.primary.execute(
            "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"
        )
        old.follow(self.primary)
        self.standby = old
        self._wait_for_standby()

    def stop(self) -> None:
        """Stop both, the standby last: a primary that stops waits for what it sends."""
        self.primary.stop()
        self.standby.stop()

    def _wait_for_standby(self) -> None:
        """Have commits wait for the standby, and return once it has all that was committed."""
        self.primary.execute(
            "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"
        )
        until = time.monotonic() + _WITHIN_S
        asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while self.primary.execute(asked) != [(1,)]:
            assert time.monotonic() < until, "the standby does not follow"
            time.sleep(0.1)
        # A commit like others, which waits until the standby has it and all before it.
        self.primary.execute("SELECT pg_logical_emit_message(true, 'mneme', 'followed')")


@contextmanager
def pair() -> Iterator[Pair]:
    """Run two for the block, or skip the test where there is no PostgreSQL."""
    with ExitStack() as opened:
        folders = [opened.enter_context(empty_folder()) for _ in range(2)]
        primary = PostgresServer(programs(), folders[0])
        opened.callback(primary.stop)
        standby = PostgresServer(programs(), folders[1], of=primary)
        opened.callback(standby.stop)
        yield Pair(primary, standby)
