"""Who erases something waits until the tenant is given back, and has what is in memory dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from mneme_server.features.events.model import Event, EventFilter
from mneme_server.features.events.watches import Watches


class Tenants:
    """Lends a tenant with one event, and says when it was given back."""

    def __init__(self) -> None:
        self.given_back: Callable[[], object] = lambda: None
        self.events = [SimpleNamespace(cursor=1, session_id="s", text="heron", payload_json="",
                                       metadata_json="", error="")]  # fmt: skip

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[Any]:
        yield self
        self.given_back()

    @contextmanager
    def read(self) -> Iterator[Any]:
        yield SimpleNamespace(get=lambda _repository: self)

    def get_many(self, session_ids: Iterable[str]) -> Any:
        return {session_id: SimpleNamespace(project="") for session_id in session_ids}

    def last_cursor(self) -> int:
        return 0

    def recorded_after(self, _cursor: int, _filter: EventFilter, _limit: int) -> Sequence[Any]:
        return self.events


def test_nothing_stays_in_memory_that_was_read_for_watches_as_it_was_erased() -> None:
    def made(event: Event) -> str:
        return event.text

    lent: Any = Tenants()
    watches: Watches[str] = Watches(
        lent, lambda _tenant, do: do(), begun=lambda cursor: f"from {cursor}", made=made
    )
    watch = watches.follow("acme", EventFilter(), None)
    assert watch.take() == ["from 0"]

    def erase() -> None:
        lent.events = []
        watches.purge("acme", {})

    lent.given_back = erase
    watches.committed("acme")
    assert not watch.take()
