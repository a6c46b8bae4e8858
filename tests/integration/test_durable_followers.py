"""Durable followers see every change once, and keep their place with what they write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mneme_server.engine.corpus.feed import FeedRow, numbers_of
from mneme_server.engine.tenants.feed_followers import FollowerWorker
from support.api import Api
from support.making import event, lesson, record
from support.server import LocalServer, local_server


@dataclass
class Notes:
    """A follower that notes the documents it is told of, in the tenant's settings."""

    name: str = "notes"
    begun: int = 0
    told: list[int] = field(default_factory=list)
    fails: bool = False

    def begin(self, unit: Any) -> None:
        self.begun += 1

    def follow(self, unit: Any, rows: Sequence[FeedRow]) -> None:
        unit.feed.renew_generation()  # Something that is written in the same transaction.
        if self.fails:
            raise RuntimeError("the disk of the follower is full")
        for row in rows:
            for kind in row.kinds:
                self.told += numbers_of(kind.saved)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def follow(server: LocalServer, api: Api, notes: Notes) -> None:
    """Have the follower come to the newest row, as its thread does."""
    worker = FollowerWorker(server.application.runtime.tenants.open, notes)
    while worker.step(api.tenant_id) is not None:
        pass


def generation(server: LocalServer, api: Api) -> int | None:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.read() as unit:
        return unit.feed.generation()


def test_a_follower_begins_with_what_there_is_and_then_sees_every_change_in_order(
    server: LocalServer, api: Api
) -> None:
    notes = Notes()
    follow(server, api, notes)
    assert notes.begun == 0, "there is nothing yet"
    record(api, event("the heron stood", id="a"))
    follow(server, api, notes)
    assert (notes.begun, notes.told) == (1, [])
    for n in range(120):  # More rows than one transaction follows.
        record(api, event(f"heron {n}", id=f"h{n}"))
    lesson(api, "Herons", "stand still")
    follow(server, api, notes)
    assert notes.begun == 1
    assert notes.told == sorted(set(notes.told))
    assert len(notes.told) == 121


def test_what_a_follower_writes_is_undone_with_its_place_when_it_fails(
    server: LocalServer, api: Api
) -> None:
    notes = Notes()
    record(api, event("the heron stood", id="a"))
    follow(server, api, notes)
    record(api, event("and flew away", id="b"))
    before, notes.fails = generation(server, api), True
    with pytest.raises(RuntimeError, match="disk of the follower"):
        follow(server, api, notes)
    assert generation(server, api) == before
    notes.fails = False
    follow(server, api, notes)
    assert len(notes.told) == 1
    assert generation(server, api) != before


def test_a_follower_runs_once_for_a_tenant_wherever_it_is_run(
    server: LocalServer, api: Api
) -> None:
    first, second = Notes(), Notes()
    record(api, event("the heron stood", id="a"))
    follow(server, api, first)
    record(api, event("and flew away", id="b"))
    follow(server, api, second)
    follow(server, api, first)
    assert len(first.told + second.told) == 1


def test_a_follower_begins_anew_when_everything_changed(server: LocalServer, api: Api) -> None:
    notes = Notes()
    record(api, event("the heron stood", id="a"))
    follow(server, api, notes)
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.write() as unit:
        unit.embed_everything_again()
    follow(server, api, notes)
    assert notes.begun == 2


def test_the_server_wakes_a_follower_when_something_is_committed(tmp_path: Path) -> None:
    notes = Notes()
    with local_server(tmp_path / "data") as server:
        runtime = server.application.runtime
        runtime.follow(notes)
        runtime._workers[notes.name].start()
        api = server.keys.tenant()
        record(api, event("the heron stood", id="a"), wait=True)
        _until(lambda: notes.begun == 1)
        record(api, event("and flew away", id="b"), wait=True)
        _until(lambda: len(notes.told) >= 1)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)
