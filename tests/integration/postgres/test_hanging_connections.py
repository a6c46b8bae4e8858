"""A connection to PostgreSQL on which nothing is answered any more is given up soon, and calls go
on with new ones: machines are paused, and NATs forget, without a word."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as event_pb
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import Unavailable
from mneme_server.engine.store.postgres import driver
from mneme_server.engine.store.postgres.store import PostgresStores
from mneme_server.features.events.store.sessions import SqlSessions
from store_contract.samples import session
from support.making import event, record
from support.postgres import PostgresServer
from support.relay import Relay, relayed
from support.server import local_server

pytestmark = pytest.mark.slow


@pytest.fixture
def relay(postgres: PostgresServer) -> Iterator[Relay]:
    with relayed(postgres.folder / ".s.PGSQL.5432") as relay:
        yield relay


@pytest.fixture
def url(relay: Relay, database: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{relay.port}/{database}?sslmode=disable"


@pytest.fixture
def stores(url: str) -> Iterator[Any]:
    stores = PostgresStores(url, tenant_schema())
    yield stores
    stores.close()


def test_a_transaction_begins_on_another_connection_when_those_at_rest_hang(
    stores: Any, relay: Relay
) -> None:
    store = stores.open("acme")
    for _ in range(3):
        with store.read(), store.read(), store.write():
            pass
    relay.hang()
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
    with store.read(), store.read() as unit:
        assert unit.get(SqlSessions).get("s") is not None


def test_what_a_connection_that_hangs_had_locked_is_free_and_undone(
    stores: Any, relay: Relay
) -> None:
    store = stores.open("acme")

    def write() -> None:
        with store.write() as unit:
            unit.get(SqlSessions).save([session("lost")])
            relay.hang()
            unit.get(SqlSessions).save([session("lost too")])

    with pytest.raises(Unavailable) as refused:
        write()
    assert refused.value.retry_after_s is not None
    with stores.open("acme").write() as unit:
        assert unit.get(SqlSessions).total() == 0
        unit.get(SqlSessions).save([session("goes on")])


def test_a_statement_that_takes_long_is_waited_for(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SILENT_S", 0.1)
    asked: list[bool] = []
    hangs = driver.hangs

    def noted(*about: Any) -> bool:
        asked.append(hangs(*about))
        return asked[-1]

    monkeypatch.setattr("mneme_server.engine.store.postgres.driver.hangs", noted)
    with stores.open("acme").read() as unit:
        connection = unit._connection.connection.driver_connection
        assert connection.execute("SELECT 1 FROM pg_sleep(1.5)").fetchall() == [(1,)]
    assert asked
    assert not any(asked)


def test_a_server_answers_again_after_all_its_connections_hung(
    tmp_path: Path, url: str, relay: Relay
) -> None:
    with local_server(tmp_path / "data", database_url=url) as server:
        api = server.keys.tenant("acme")
        record(api, event("before", id="e1"), wait=True)
        relay.hang()
        calls = [
            threading.Thread(target=record, args=(api, event(f"after {n}", id=f"after-{n}")))
            for n in range(4)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        listed = api.events.ListEvents(event_pb.ListEventsRequest(page_size=50)).events
        assert {"e1", *(f"after-{n}" for n in range(4))} == {one.id for one in listed}
