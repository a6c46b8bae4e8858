"""Servers of the same tenants, as they know each other, and erasures by way of one of them of which
the others have yet to leave nothing: the port that a shared store has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mneme_server.common.fencing import Fence
from mneme_server.engine.corpus.feed import Position

TRAINING = "learning/"
"""What the names of leases begin with that say who trains a tenant's sessions."""

WHOLE = ""
"""The id of the erasure that is a tenant's deletion."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a tenant's feed is: its newest row, and the generation of its store; None where nothing
    is kept of it any more."""

    tenant_id: str
    newest: Position
    generation: int | None


class Node(Protocol):
    """This server among those that serve the same tenants.

    Each method raises Unavailable where the store cannot be reached now. `take`, `release`
    and `others` are for any thread, `tell` for one of its own, the rest for one together.
    """

    @property
    def id(self) -> str:
        """What names it, as long as its process lives."""
        ...

    @property
    def lives_s(self) -> float:
        """How long it counts as alive after a `beat`, in seconds."""
        ...

    @property
    def erasures(self) -> Erasures:
        """What was erased by way of one server, and the others have yet to leave nothing of."""
        ...

    def hear(self, told: bool) -> None:
        """Be told of others' commits from now on, or not."""
        ...

    def listen(self, seconds: float) -> bool:
        """Wait until another server tells of a commit, or of work that it wants done, or the time
        is up; return whether one told."""
        ...

    def tell(self) -> None:
        """Tell the others that something was committed. It may get lost."""
        ...

    def heads(self, tenants: Collection[str]) -> Sequence[Head]:
        """Return where the tenants' feeds are."""
        ...

    def beat(
        self, counts: Mapping[str, Any]
    ) -> tuple[int, Sequence[str], Mapping[str, Mapping[str, Any]]]:
        """Say that this server lives, and what it has counted, as JSON can hold it; return how many
        others do, those that do not any more, and what those have counted that do."""
        ...

    def others(self) -> int:
        """Return how many other servers live."""
        ...

    def due(self) -> Sequence[Erasure]:
        """Return what this server's place owes."""
        ...

    def orphans(self) -> Sequence[str]:
        """Return the tenants that have work which nobody who lives holds the lease of, or whose
        learning sessions a server had that is gone."""
        ...

    def want(self, tenants: Collection[str]) -> Collection[str]:
        """Have who holds the leases of these tenants look what there is to do, and tell the others
        of it; return the tenants of which somebody does who lives."""
        ...

    def wanted(self) -> Sequence[str]:
        """Return the tenants whose leases are held here that others found work for, once."""
        ...

    def take(self, name: str, tenant_id: str) -> Fence | None:
        """Take the lease of a tenant's work of that name, unless another server holds it that
        lives."""
        ...

    def release(self, fence: Fence) -> None:
        """Let another server take the lease."""
        ...

    def close(self) -> None:
        """Leave: others take over what is leased to this server at once."""
        ...


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
class OwingPlaces:
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

    A server that is off has indexes on its disk, so what counts is not who lives but which data
    folders there are: places. Each is known for good, until it is said to be gone.

    Each method may be called by any thread, and raises Unavailable where the store cannot be
    reached now. `due` stands with `Node`.
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

    def awaited(self, tenant_id: str, erasure_id: str) -> OwingPlaces:
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
