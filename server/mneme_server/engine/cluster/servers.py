"""This server among those that have the same tenants, for those who need not know whether there are
others; and the server that is the only one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from mneme_server.common.fencing import OWN, Leases


class CountExchange(Protocol):
    """What limits are counted by."""

    def report(self) -> Mapping[str, Any]:
        """Return what this server has counted, as JSON can hold it."""
        ...

    def heard(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of what the other servers that live have reported, by their ids."""
        ...


class OtherServers(Protocol):
    """The other servers that have the tenants, too: their memories, indexes and disks."""

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Have them know that something is going to be erased."""
        ...

    def settle(self, tenant_id: str, erasure_id: str, waiting: Callable[[], object]) -> None:
        """Wait until the calls have ended, of those that live, that may have read it before; call
        `waiting` now and then, which may raise."""
        ...

    def erase(
        self, tenant_id: str, erasure_id: str, number: int, waiting: Callable[[], object]
    ) -> Sequence[str]:
        """Wait until those that live have left nothing of what is erased from the store as of a row
        of the feed; return the names of those that are away, and may have it on their disks."""
        ...

    def absent(self, tenant_id: str, erasure_id: str) -> Sequence[str]:
        """Return the names of those that have yet to leave nothing of it."""
        ...

    def removed(self, tenant_id: str) -> Sequence[str]:
        """Have them leave nothing of a tenant whose rows are gone, and wait for those that live;
        return the names of those that are away.

        Raises:
            Unavailable: one of them takes long.
        """
        ...

    def have_removed(self, tenant_id: str) -> None:
        """Have them leave nothing of a tenant whose rows are gone, soon."""
        ...


class Servers(Protocol):
    """This server among those that have the same tenants."""

    @property
    def shared(self) -> bool:
        """Whether there may be others."""
        ...

    @property
    def leases(self) -> Leases:
        """Whose the work in the background of a tenant is."""
        ...

    @property
    def training(self) -> Leases:
        """Whose the learning sessions of a tenant are."""
        ...

    @property
    def erasures(self) -> OtherServers:
        """What the others leave nothing of."""
        ...

    def start(self) -> None:
        """Catch up with what the others did, and begin to follow it. Before a lease is taken.

        Raises:
            Unavailable: it cannot be told now.
        """
        ...

    def begin_stop(self) -> None:
        """Stop following. Leases are held on to."""
        ...

    def require_alone(self) -> None:
        """Check that no other serves the tenants now.

        Raises:
            FailedPrecondition: one does.
            Unavailable: it cannot be told now.
        """
        ...

    def count_with(self, counts: CountExchange) -> None:
        """Exchange what limits are counted by."""
        ...

    def also_follow(self, watched: Callable[[], Collection[str]]) -> None:
        """Have it told at once, too, what is written elsewhere to the tenants that this returns,
        whether they are open or not. Before it is started."""
        ...

    def on_claim(self, let_go: Callable[[str], object]) -> None:
        """Have this called with a tenant before its learning sessions are handed over."""
        ...

    def also_drop(self, drop: Callable[[str, str], object]) -> None:
        """Have this called with a tenant and an erasure that came by way of another."""
        ...


class NoOtherServers:
    """Implements `OtherServers` where there are none."""

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """Ask nobody."""

    def settle(self, tenant_id: str, erasure_id: str, waiting: Callable[[], object]) -> None:
        """Wait for nobody."""

    def erase(
        self, tenant_id: str, erasure_id: str, number: int, waiting: Callable[[], object]
    ) -> Sequence[str]:
        """Return no names."""
        return ()

    def absent(self, tenant_id: str, erasure_id: str) -> Sequence[str]:
        """Return no names."""
        return ()

    def removed(self, tenant_id: str) -> Sequence[str]:
        """Return no names."""
        return ()

    def have_removed(self, tenant_id: str) -> None:
        """Have nobody remove anything."""


NOBODY = NoOtherServers()


class Alone:
    """Implements `Servers` for the only one: all work is its own, and there is nobody to follow."""

    shared = False

    def __init__(self) -> None:
        self.leases: Leases = OWN
        self.training: Leases = OWN
        self.erasures: OtherServers = NOBODY

    def start(self) -> None:
        """Begin nothing."""

    def begin_stop(self) -> None:
        """Stop nothing."""

    def require_alone(self) -> None:
        """It is."""

    def count_with(self, counts: CountExchange) -> None:
        """Exchange nothing."""

    def also_follow(self, watched: Callable[[], Collection[str]]) -> None:
        """Follow nothing: nobody else writes."""

    def on_claim(self, let_go: Callable[[str], object]) -> None:
        """Nobody claims anything."""

    def also_drop(self, drop: Callable[[str, str], object]) -> None:
        """Nobody else erases anything."""
