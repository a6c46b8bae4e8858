"""Erasures by way of one server, of which the others have yet to leave nothing: the port that a
shared store has.

A server that is off has indexes on its disk, so what counts is not who lives but which data folders
there are: places. Each is known for good, until it is said to be gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

WHOLE = ""
"""The id of the erasure that is a tenant's deletion."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What a place owes.

    Args:
        tenant_id: of which tenant.
        id: the forgetting's; `WHOLE` where the tenant is deleted.
        settled: whether the calls there that may have read it before have ended.
        number: the row of the feed with which it was erased; None while it is not.
    """

    tenant_id: str
    id: str
    settled: bool
    number: int | None


@dataclass(frozen=True, slots=True)
class Awaited:
    """Which places owe an erasure, by what they are called.

    Args:
        unsettled: whose servers live, and calls go on that may have read it before.
        living: whose servers live; those above are among them.
        absent: whose servers do not.
    """

    unsettled: Sequence[str]
    living: Sequence[str]
    absent: Sequence[str]


class Erasures(Protocol):
    """The places of servers that share tenants, and what they owe.

    Each method may be called by any thread, and raises Unavailable where the store cannot be
    reached now. `due` stands with `engine.corpus.nodes.Node`.
    """

    def mark_of(self, place: str) -> tuple[str, bool] | None:
        """Return what a place is marked with, and whether a server lives that has it; None for one
        that is not known."""
        ...

    def is_first(self) -> bool:
        """Tell whether no place is known yet."""
        ...

    def enter(self, place: str, name: str, mark: str) -> None:
        """Take a place for this server, which is made known if it is not."""
        ...

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Have all other places owe an erasure; those that did it already, again."""
        ...

    def erased(self, tenant_id: str, erasure_id: str, number: int) -> None:
        """Note that it is erased from the store, as of a row of the feed."""
        ...

    def awaited(self, tenant_id: str, erasure_id: str) -> Awaited:
        """Return who owes an erasure."""
        ...

    def go_on(self, tenant_id: str, erasure_id: str) -> None:
        """Wait no longer for the calls of those that do not live: should one go on after all, its
        calls write nothing to the tenant until they have ended that may have read it before."""
        ...

    def settle(self, owed: Erasure) -> None:
        """Note that the calls have ended here that may have read it before."""
        ...

    def done(self, owed: Erasure) -> None:
        """Note that nothing is left of it here."""
        ...
