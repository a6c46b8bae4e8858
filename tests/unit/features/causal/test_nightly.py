"""Discovering every night: when it starts, and that it starts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from mneme_server.capabilities import catalog_migrations
from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import (
    AlreadyExists,
    InvalidArgument,
    MnemeError,
    NotFound,
    ResourceExhausted,
)
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.causal.model import DiscoveryQuestion
from mneme_server.features.causal.nightly import NightlyDiscovery
from mneme_server.features.causal.store.schedules import SqlSchedules, discovery_schedules
from mneme_server.features.skills.model import EpisodeFilter

ASKED = DiscoveryQuestion(
    adjust_for=("difficulty",), filter=EpisodeFilter(project="shop", tags=("a", "b"))
)


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


class Operations:
    """Notes what is started, and refuses what it is told to."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str, JsonObject]] = []
        self.refuses: dict[str, MnemeError] = {}

    def start(
        self,
        kind: str,
        tenant_id: str,
        operation_id: str,
        request: JsonObject,
        require: Callable[[], object] = lambda: None,
    ) -> None:
        assert kind == "discover"
        if tenant_id in self.refuses:
            raise self.refuses[tenant_id]
        require()
        self.started.append((tenant_id, operation_id, request))


class World:
    """Schedules in a real catalog, and a clock that stands still."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.time = us("2026-03-01T12:00")
        self.operations = Operations()
        self.gone: set[str] = set()
        self.nightly = self.again()

    def again(self) -> NightlyDiscovery:
        """As a server that has just started."""
        schedules = SqlSchedules(self.catalog.database)
        return NightlyDiscovery(schedules, self.operations, self._require, lambda: self.time)

    def _require(self, tenant_id: str) -> None:
        if tenant_id in self.gone:
            raise NotFound("it is being deleted")

    def on(
        self, tenant_id: str = "shop", minute: int = 150, question: DiscoveryQuestion = ASKED
    ) -> None:
        self.nightly.set(tenant_id, enabled=True, minute=minute, question=question)

    def at(self, text: str) -> list[str]:
        """Look at this time; return what is started of which tenant."""
        self.time = us(text)
        before = len(self.operations.started)
        self.nightly.look()
        return [f"{tenant}: {one}" for tenant, one, _ in self.operations.started[before:]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    catalog = Catalog(tmp_path / "catalog.db", *catalog_migrations())
    try:
        yield World(catalog)
    finally:
        catalog.close()


def test_it_is_off_until_it_is_set(world: World) -> None:
    schedule = world.nightly.get("shop")
    assert (schedule.enabled, schedule.minute, schedule.question) == (
        False,
        180,
        DiscoveryQuestion(),
    )
    assert world.at("2026-03-02T03:00") == []


def test_it_starts_once_a_night_at_its_time(world: World) -> None:
    world.on()
    assert world.at("2026-03-02T02:29") == []
    assert world.at("2026-03-02T02:30") == ["shop: nightly-discovery-2026-03-02"]
    assert world.operations.started[0][2] == {"question": ASKED.as_json()}
    assert world.at("2026-03-02T02:31") == []
    assert world.at("2026-03-03T02:29") == []
    assert world.at("2026-03-03T02:30") == ["shop: nightly-discovery-2026-03-03"]
    kept = world.nightly.get("shop")
    assert kept.last_operation == "nightly-discovery-2026-03-03"
    assert (kept.last_us, kept.next_us) == (us("2026-03-03T02:30"), us("2026-03-04T02:30"))


def test_one_that_is_set_after_its_time_begins_with_the_next_night(world: World) -> None:
    world.time = us("2026-03-01T02:30")
    world.on()
    assert world.at("2026-03-01T23:59") == []
    assert world.at("2026-03-02T02:30") == ["shop: nightly-discovery-2026-03-02"]


def test_nights_that_the_server_slept_through_are_made_up_for_once(world: World) -> None:
    world.on()
    assert world.at("2026-03-05T09:00") == ["shop: nightly-discovery-2026-03-02"]
    assert world.at("2026-03-05T23:00") == []
    assert world.at("2026-03-06T02:30") == ["shop: nightly-discovery-2026-03-06"]


def test_a_server_that_died_before_it_noted_the_start_starts_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.on()
    with monkeypatch.context() as dying:
        dying.setattr(SqlSchedules, "started", _die)
        with pytest.raises(KeyboardInterrupt):
            world.at("2026-03-02T02:30")
    world.nightly = world.again()
    assert world.at("2026-03-02T02:45") == ["shop: nightly-discovery-2026-03-02"]
    assert len({one for _, one, _ in world.operations.started}) == 1
    world.nightly = world.again()
    assert world.at("2026-03-02T03:00") == []


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_started_is_tried_again_and_holds_up_nobody(world: World) -> None:
    world.on("busy", minute=149)
    world.on("shop")
    world.operations.refuses["busy"] = ResourceExhausted("too many operations")
    assert world.at("2026-03-02T02:30") == ["shop: nightly-discovery-2026-03-02"]
    world.operations.refuses.clear()
    assert world.at("2026-03-02T02:31") == ["busy: nightly-discovery-2026-03-02"]


def test_a_damaged_schedule_holds_up_nobody(world: World) -> None:
    world.on("broken", minute=149)
    world.on("shop")
    with world.catalog.database.write() as connection:
        connection.execute(
            discovery_schedules.update()
            .where(discovery_schedules.c.tenant_id == "broken")
            .values(question="{")
        )
    assert world.at("2026-03-02T02:30") == ["shop: nightly-discovery-2026-03-02"]


def test_a_night_that_began_with_another_question_counts_as_begun(world: World) -> None:
    world.on()
    world.operations.refuses["shop"] = AlreadyExists("it does something else")
    world.at("2026-03-02T02:30")
    world.operations.refuses.clear()
    assert world.at("2026-03-02T02:31") == []


def test_a_new_question_puts_nothing_off_and_a_new_time_does(world: World) -> None:
    world.on()
    world.time = us("2026-03-02T02:30")
    world.on(question=DiscoveryQuestion())
    assert world.nightly.get("shop").next_us == us("2026-03-02T02:30")
    world.on(minute=60)
    assert world.nightly.get("shop").next_us == us("2026-03-03T01:00")


def test_a_night_that_was_discovered_in_is_not_again_at_a_later_time_of_it(world: World) -> None:
    world.on()
    assert world.at("2026-03-02T02:30") == ["shop: nightly-discovery-2026-03-02"]
    world.on(minute=240)
    assert world.nightly.get("shop").next_us == us("2026-03-03T04:00")
    assert world.at("2026-03-02T04:00") == []
    assert world.nightly.get("shop").last_us == us("2026-03-02T02:30")
    assert world.at("2026-03-03T04:00") == ["shop: nightly-discovery-2026-03-03"]


def test_once_it_is_off_nothing_starts_and_what_was_last_is_still_known(world: World) -> None:
    world.on()
    world.at("2026-03-02T02:30")
    world.nightly.set("shop", enabled=False, minute=180, question=DiscoveryQuestion())
    assert world.at("2026-03-03T04:00") == []
    assert world.nightly.get("shop").last_operation == "nightly-discovery-2026-03-02"


def test_a_tenant_that_is_being_deleted_is_left_alone_and_takes_its_schedule_with_it(
    world: World,
) -> None:
    world.on()
    world.gone.add("shop")
    assert world.at("2026-03-02T02:30") == []
    world.nightly.schedules.drop("shop")
    assert not world.nightly.get("shop").enabled


def test_what_came_after_an_attempt_is_refused(world: World) -> None:
    with pytest.raises(InvalidArgument) as refused:
        world.on(question=DiscoveryQuestion(adjust_for=("reward",)))
    assert refused.value.field == "question.adjust_for[0]"
    assert not world.nightly.get("shop").enabled
