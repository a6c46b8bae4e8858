"""Who wants to know that a session changed: told in the transaction that changes it.

What follows from a change is written with it, or not at all, at the cost of no transaction of its
own. The feed would not do: most of what changes a session changes nothing that is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeAlias

from mneme_server.features.events.model import Session

Committed: TypeAlias = Callable[[str], object]
"""Called with the tenant once the transaction is committed."""


class SessionListener(Protocol):
    """Wants to know what happens to sessions."""

    def changed(
        self, unit: Any, sessions: Sequence[Session], ended_before: Collection[str], now_us: int
    ) -> Committed:
        """Write what follows from it, in this transaction; return what is to be called after it.

        `ended_before` names those that had ended before something was recorded in them.
        """
        ...


class SessionListeners:
    """Tells all who listen. They are added while the server is put together."""

    def __init__(self) -> None:
        self._listeners: list[SessionListener] = []

    def add(self, listener: SessionListener) -> None:
        """Tell one more."""
        self._listeners.append(listener)

    def changed(
        self,
        unit: Any,
        sessions: Sequence[Session],
        now_us: int,
        ended_before: Collection[str] = frozenset(),
    ) -> Committed:
        """Tell all of them, as `SessionListener`."""
        after = [one.changed(unit, sessions, ended_before, now_us) for one in self._listeners]

        def committed(tenant_id: str) -> None:
            for call in after:
                call(tenant_id)

        return committed
