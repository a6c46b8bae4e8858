"""A database, as far as stores know it: where their transactions come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import ClassVar

from sqlalchemy import Connection


class Database(ABC):
    """Where transactions come from; thread-safe. What kind of database it is, its users do not see:
    what their statements say, each kind understands (see `engine.store.portable`)."""

    shared: ClassVar[bool] = False
    """Whether several servers may use it."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Open a read transaction: one consistent snapshot. Writing in it fails."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Open a write transaction; it is durable when the block ends, undone when it raises.

        Writers of one tenant come one after the other. Not reentrant: a second `write` inside the
        block would wait for the first.
        """

    @abstractmethod
    def scrub(self) -> None:
        """Leave nothing where it is kept of what was deleted.

        Raises:
            Unavailable: others used it for too long; it can be tried again.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
