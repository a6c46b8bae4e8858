"""Alerts on what no event says: the queue of texts to embed, and a trend that Reflect finds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.request import urlopen

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as pb
from mneme_server.engine import runtime
from support.api import Api
from support.contexts import eventually
from support.making import event, record
from support.operations import finished
from support.server import LocalServer, local_server
from support.stuck import Stuck

pytestmark = pytest.mark.slow

DAY_S = 86_400


@pytest.fixture
def stuck() -> Stuck:
    return Stuck()


@pytest.fixture
def waiting(stuck: Stuck, tmp_path: Path) -> Iterator[LocalServer]:
    """A server whose embedder does not answer."""
    with (
        mock.patch.object(runtime, "_embedder", return_value=stuck),
        local_server(tmp_path / "data", metrics_listen="127.0.0.1:0") as running,
    ):
        yield running
        stuck.answers.set()


def rule(api: Api, condition: str, **fields: Any) -> pb.AlertRule:
    return api.alert.CreateAlertRule(
        pb.CreateAlertRuleRequest(
            name=condition, condition=f"ALERT_CONDITION_{condition}", **fields
        )
    ).rule


def history(api: Api, made: pb.AlertRule) -> Sequence[pb.AlertHistoryEntry]:
    return api.alert.ListAlertHistory(pb.ListAlertHistoryRequest(rule_id=made.id)).entries


def gauges(server: LocalServer) -> dict[str, float]:
    """Return the server's metrics of alerts."""
    with urlopen(f"http://{server.application.metrics_address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = (line.split(" ") for line in lines if line.startswith("mneme_alert"))
    return {name: float(value) for name, value in found}


def test_a_queue_that_is_too_long_triggers_and_resolves_once_it_is_done(
    waiting: LocalServer, stuck: Stuck
) -> None:
    api = waiting.keys.tenant("queue")
    made = rule(api, "QUEUE_DEPTH_EXCEEDS", threshold=2)
    short = rule(api, "QUEUE_DEPTH_EXCEEDS", threshold=20)
    record(api, *(event(f"text {number}", "s") for number in range(5)))
    (entry,) = eventually(lambda: history(api, made), lambda seen: len(seen) > 0)
    assert entry.current_value == 5
    assert entry.message == "Texts that wait to be embedded: 5, more than 2."
    assert gauges(waiting)["mneme_alert_rules"] == 2
    assert gauges(waiting)["mneme_alerts_triggered"] == 1
    stuck.answers.set()
    (entry,) = eventually(lambda: history(api, made), lambda seen: seen[0].HasField("resolved_at"))
    assert entry.resolution == pb.ALERT_RESOLUTION_RECOVERED
    assert entry.resolved_value <= 2
    assert not history(api, short)
    eventually(lambda: gauges(waiting)["mneme_alerts_triggered"], lambda number: number == 0)
    eventually(
        lambda: gauges(waiting)["mneme_alert_deliveries_waiting"], lambda number: number == 0
    )


def record_slower(api: Api) -> None:
    """Record searches of twenty days, every day a tenth of a second slower."""
    began = time.time() - 20 * DAY_S
    for day in range(20):
        at = Timestamp(seconds=round(began + day * DAY_S))
        took = {"seconds": 1 + day // 10, "nanos": day % 10 * 100_000_000}
        record(
            api,
            *(
                event(
                    f"{day} {n}", f"s{day}-{n}", "tool_response", name="search", timestamp=at,
                    duration=took,
                )
                for n in range(5)
            ),
        )  # fmt: skip


def test_a_trend_for_the_worse_triggers_and_one_that_is_none_does_not(server: LocalServer) -> None:
    api = server.keys.tenant("trend")
    record_slower(api)  # What fails does not change.
    fields: dict[str, Any] = {"window_minutes": 30 * 24 * 60, "threshold": 0.5}
    slower = rule(api, "TREND_EXCEEDS", trend=pb.ALERT_TREND_LATENCY, **fields)
    steady = rule(api, "TREND_EXCEEDS", trend=pb.ALERT_TREND_ERROR_RATE, **fields)
    (entry,) = eventually(lambda: history(api, slower), lambda seen: len(seen) > 0)
    # From one second to nearly three: about as much again as the average of two.
    assert 0.7 < entry.current_value < 1.3
    assert entry.message.startswith("The median latency rises: by ")
    assert entry.message.endswith(" % in the last 30 days, more than 50 %.")
    # Rules are evaluated together: whatever comes next has looked at this one as well.
    record(api, event("one more", "later"))
    counted = rule(api, "EVENT_COUNT_EXCEEDS", threshold=0)
    eventually(lambda: history(api, counted), lambda seen: len(seen) > 0)
    assert not history(api, steady)
    assert len(history(api, slower)) == 1


def test_a_trend_of_a_tenant_that_was_deleted_is_none_of_the_next_of_its_name(
    tmp_path: Path,
) -> None:
    fields: dict[str, Any] = {"rule_id": "slower", "trend": pb.ALERT_TREND_LATENCY}
    fields |= {"window_minutes": 30 * 24 * 60, "threshold": 0.5}
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant("trend")
        record_slower(api)
        slower = rule(api, "TREND_EXCEEDS", **fields)
        eventually(lambda: history(api, slower), lambda seen: len(seen) > 0)
        admin = server.keys.admin
        finished(admin, admin_pb.DeleteTenantRequest(tenant_id=api.tenant_id))
        admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=api.tenant_id))
        again = server.keys.key(api.tenant_id)
        slower = rule(again, "TREND_EXCEEDS", **fields)
        record(again, event("one", "s"))
        counted = rule(again, "EVENT_COUNT_EXCEEDS", threshold=0)
        eventually(lambda: history(again, counted), lambda seen: len(seen) > 0)
        assert not history(again, slower)
