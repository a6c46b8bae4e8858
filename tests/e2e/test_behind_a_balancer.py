"""Two servers behind the balancers of `deploy/`: a tenant's calls meet the same one, streams pass,
and one that stops is not missed.

The two share nothing here, so that an answer tells who gave it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.balancers import KINDS, Balancer, balancing
from support.making import event, record
from support.programs import Node
from support.server import ServerProcess

ROUTES = [f"tenant-{n}" for n in range(24)]
_WITHIN_S = 60


class Pair:
    """Two servers, each of which recorded its name, and a balancer before them."""

    def __init__(self, folder: Path, kind: str, opened: ExitStack) -> None:
        self.servers: dict[str, ServerProcess] = {}
        self.refusals = 0
        for name in ("one", "two"):
            server = ServerProcess(
                folder / name, auth="disabled", http_listen="127.0.0.1:0", drain_seconds=_WITHIN_S
            )
            self.servers[name] = server
            opened.callback(self._stop, name)
            record(server.keys.api(None), event(name, id="who"), wait=True)
        (folder / "balancer").mkdir()
        nodes = [Node(server.address, server.http_address) for server in self.servers.values()]
        balancer = opened.enter_context(balancing(kind, folder / "balancer", nodes))
        self.balancer: Balancer = balancer
        self.api = Api(self.balancer.grpc, None)
        opened.callback(self.api.close)

    def _stop(self, name: str) -> None:
        if name in self.servers:
            self.servers.pop(name).stop()

    def stop(self, name: str) -> None:
        """Stop one of them as it is told to stop."""
        self._stop(name)

    def who(self, route: str) -> str:
        """Return who answers a call with this routing header; one that is refused as
        UNAVAILABLE is repeated, as clients do."""
        until = time.monotonic() + _WITHIN_S
        while True:
            try:
                listed = self.api.events.ListEvents(
                    events_pb.ListEventsRequest(), metadata=[("x-mneme-tenant", route)]
                )
                return str(next(one.text for one in listed.events if one.id == "who"))
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                    raise
                self.refusals += 1
                time.sleep(0.05)

    def who_over_http(self, route: str) -> str:
        """Return who answers a request with this routing header."""
        asked = Request(
            f"{self.balancer.http}/mneme.v1.EventService/ListEvents",
            data=b"{}",
            headers={"content-type": "application/json", "x-mneme-tenant": route},
        )
        with urlopen(asked, timeout=_WITHIN_S) as answer:
            events = json.load(answer)["events"]
        return str(next(one["text"] for one in events if one["id"] == "who"))


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as opened:
        yield Pair(tmp_path, request.param, opened)


def test_calls_of_a_tenant_meet_the_same_server_over_grpc_and_http(pair: Pair) -> None:
    first = {route: pair.who(route) for route in ROUTES}
    assert set(first.values()) == {"one", "two"}
    assert {route: pair.who(route) for route in ROUTES} == first
    over_http = {route: pair.who_over_http(route) for route in ROUTES}
    assert set(over_http.values()) == {"one", "two"}
    assert {route: pair.who_over_http(route) for route in ROUTES} == over_http


def test_a_server_that_stops_is_not_missed_and_the_others_tenants_stay(pair: Pair) -> None:
    before = {route: pair.who(route) for route in ROUTES}
    stopping = threading.Thread(target=pair.stop, args=("two",))
    stopping.start()
    while stopping.is_alive():
        for route, name in before.items():
            found = pair.who(route)
            assert found == name or name == "two"
    stopping.join()
    assert {pair.who(route) for route in ROUTES} == {"one"}


def test_once_a_server_has_gone_calls_are_given_to_the_other_one_and_not_refused(
    pair: Pair,
) -> None:
    assert "two" in {pair.who(route) for route in ROUTES}
    pair.servers.pop("two").kill()
    assert {pair.who(route) for route in ROUTES} == {"one"}
    assert pair.refusals <= 1  # One that was on its way may be.


def test_streams_pass_both_ways_as_they_are_made(pair: Pair) -> None:
    metadata = [("x-mneme-tenant", "tenant-1")]
    watch = pair.api.events.WatchEvents(
        events_pb.WatchEventsRequest(), metadata=metadata, timeout=_WITHIN_S
    )
    next(watch)  # It has begun.
    large = event("the last but one", id="large", payload={"data": "y" * 200_000})
    sent = [large, event("the last", id="last")]
    requests = (events_pb.StreamEventsRequest(event=one) for one in sent)
    answers = list(pair.api.events.StreamEvents(requests, metadata=metadata, timeout=_WITHIN_S))
    assert answers[-1].recorded_count == len(sent)
    assert [next(watch).event.id for _ in sent] == ["large", "last"]
    watch.cancel()


def test_health_is_told_over_both(pair: Pair) -> None:
    channel = grpc.insecure_channel(pair.balancer.grpc)
    with channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=_WITHIN_S)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with urlopen(f"{pair.balancer.http}/api/health", timeout=_WITHIN_S) as answered:
        assert answered.status == 200


def test_when_no_server_is_left_calls_are_refused_as_retryable(pair: Pair) -> None:
    for name in ("one", "two"):
        pair.stop(name)
    with pytest.raises(grpc.RpcError) as refused:
        pair.api.events.ListEvents(events_pb.ListEventsRequest(), timeout=_WITHIN_S)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
