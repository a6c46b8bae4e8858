"""Many watches on few workers: they hold no thread, and no tenant, while they wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1.event_service_pb2_grpc import EventServiceStub
from mneme_server.edge.grpc import open_stream
from support.api import Api, grpc, refused
from support.folders import wait_until
from support.making import event, list_events, record
from support.server import LocalServer, local_server, server_process

pytestmark = pytest.mark.slow

A_CONNECTION = 25
"""Streams on each of a test's connections; the server takes 32."""
WORKERS = 6
ADDRESSED = {"timeout": 60}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data", workers=WORKERS, max_uploads=2) as running:
        yield running


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off no watch that a test comes to read only later."""
    monkeypatch.setattr(open_stream, "SEND_S", 60.0)


@contextmanager
def watches(server: LocalServer, api: Api, count: int, **fields: Any) -> Iterator[list[Any]]:
    """Open so many watches, on as many connections as they need, and read where they begin."""
    with ExitStack() as stack:
        opened = []
        while len(opened) < count:
            another = server.keys.api(api.secret)
            for _ in range(min(A_CONNECTION, count - len(opened))):
                watch = another.events.WatchEvents(
                    events_pb.WatchEventsRequest(**fields), **ADDRESSED
                )
                stack.callback(watch.cancel)
                opened.append(watch)
        for watch in opened:
            assert not next(watch).HasField("event")
        yield opened


def open_streams(server: LocalServer) -> int:
    return server.application._server.streams.open_streams


def seen(watch: Any, count: int) -> list[str]:
    return [next(watch).event.id for _ in range(count)]


def test_each_of_200_watches_on_6_workers_sees_every_event_in_order(server: LocalServer) -> None:
    apis = [server.keys.tenant(), server.keys.tenant()]
    with (
        watches(server, apis[0], 100) as first,
        watches(server, apis[1], 100) as second,
    ):
        assert open_streams(server) == 200
        before = threading.active_count()
        for n in range(10):
            for name, api in zip("ab", apis, strict=True):
                record(api, *(event("x", id=f"{name}{n}-{k}") for k in range(3)))
                assert len(list_events(api)) == 3 * (n + 1), "calls are answered beside them"
        for name, followed in (("a", first), ("b", second)):
            expected = [f"{name}{n}-{k}" for n in range(10) for k in range(3)]
            assert all(seen(watch, 30) == expected for watch in followed)
        assert threading.active_count() < before + WORKERS + 64
        with refused() as failure:
            next(apis[0].events.WatchEvents(events_pb.WatchEventsRequest()))
        assert failure.reason == "TOO_MANY_STREAMS"
        assert "a tenant may have 100" in failure.message


def test_a_watch_that_its_caller_leaves_frees_its_place_without_anything_being_recorded(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    with watches(server, api, 100):
        pass
    wait_until(lambda: open_streams(server) == 0, "all places are free")
    with watches(server, api, 100) as followed:
        record(api, event("x", id="e"))
        assert all(seen(watch, 1) == ["e"] for watch in followed)


def test_a_peer_that_stops_reading_is_cut_off_and_the_others_go_on(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = open_stream.SEND_S
    monkeypatch.setattr(open_stream, "SEND_S", 1.0)
    api = server.keys.tenant()
    with (
        stuck_watches(api, 20) as stopped,
        watches(server, api, 20) as reading,
        ThreadPoolExecutor(len(reading)) as pool,
    ):
        batch = [event("x" * 20_000, id=f"{n}") for n in range(30)]
        for start in range(0, 30, 10):
            record(api, *batch[start : start + 10])
            expected = [f"{n}" for n in range(start, start + 10)]
            # All at once: none of them may be long in taking what is sent.
            assert all(found == expected for found in pool.map(partial(seen, count=10), reading))
        wait_until(lambda: open_streams(server) == 20, "those that do not read are cut off")
        # What is resumed below is read at once, but for where other programs are busy.
        monkeypatch.setattr(open_stream, "SEND_S", usual)
        record(api, event("y", id="last"))
        assert all(seen(watch, 1) == ["last"] for watch in reading)
        expected = [*(f"{n}" for n in range(30)), "last"]
        assert all(all_of(server, api, watch, 31) == expected for watch in stopped)


@contextmanager
def stuck_watches(api: Api, count: int) -> Iterator[list[Any]]:
    """Open watches that take no more than their connection's first window, and read nothing."""
    options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536)]
    with grpc.insecure_channel(api.address, options=options) as channel:
        stub = EventServiceStub(channel)
        key = (("authorization", f"Bearer {api.secret}"),)
        request = events_pb.WatchEventsRequest()
        opened = [stub.WatchEvents(request, metadata=key, timeout=60) for _ in range(count)]
        for watch in opened:
            assert not next(watch).HasField("event")
        yield opened


def all_of(server: LocalServer, api: Api, watch: Any, count: int) -> list[str]:
    """Read a watch that was cut off to its end, resume it, and return all that came."""
    found, cursor = [], ""
    with refused() as failure:
        for message in watch:
            found.append(message.event.id)
            cursor = message.cursor
    assert failure.code is grpc.StatusCode.CANCELLED
    assert len(found) < count
    with watches(server, api, 1, after_cursor=cursor or "0") as (again,):
        return found + seen(again, count - len(found))


def test_a_tenant_is_closed_while_it_is_watched_and_its_watches_see_the_next_event(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data", tenant_idle_seconds=0.1) as server:
        api = server.keys.tenant()
        registry = server.application.runtime.tenants
        with watches(server, api, 3) as followed:
            for n in range(3):
                wait_until(lambda: not registry.open_tenants(), "the tenant is closed")
                record(api, event("x", id=f"{n}"))
                assert [seen(watch, 1) for watch in followed] == [[f"{n}"]] * 3


def test_a_watch_sees_what_is_recorded_while_it_catches_up(server: LocalServer) -> None:
    api = server.keys.tenant()
    for start in range(0, 1_000, 500):
        record(api, *(event("x", id=f"{n}") for n in range(start, start + 500)))
    with watches(server, api, 4, after_cursor="0") as followed:
        for n in range(1_000, 1_050):
            record(api, event("x", id=f"{n}"))
        for watch in followed:
            assert seen(watch, 1_050) == [f"{n}" for n in range(1_050)]


def test_a_server_that_is_told_to_stop_ends_its_watches_and_itself(tmp_path: Path) -> None:
    with server_process(tmp_path / "data", workers=WORKERS, max_uploads=2) as server:
        api = server.keys.tenant()
        channel = grpc.insecure_channel(server.address)
        health = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(health).status == health_pb2.HealthCheckResponse.SERVING
        with watches(server, api, 30) as followed:  # type: ignore[arg-type]
            record(api, event("x", id="e"))
            assert all(seen(watch, 1) == ["e"] for watch in followed)
            server.process.send_signal(signal.SIGTERM)
            for watch in followed:
                with refused() as failure:
                    next(watch)
                assert failure.code is grpc.StatusCode.UNAVAILABLE
                assert failure.reason == "INITIALIZATION_FAILED"
                assert failure.retry_after_s is not None
            assert next(health).status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert list(health) == []
        assert server.process.wait(timeout=30) == 0
        channel.close()
