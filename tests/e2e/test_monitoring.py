"""What Prometheus is told of servers that share a database, and what is made of it in `deploy/`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from support.balancers import DEPLOY
from support.making import event, recall, record
from support.nodes import eventually
from support.postgres import running
from support.server import LocalServer, local_server

RULES, DASHBOARD = DEPLOY / "prometheus" / "rules.yaml", DEPLOY / "grafana" / "mneme.json"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers on one PostgreSQL that tell metrics, of which the first was written to."""
    folder: Path = tmp_path_factory.mktemp("servers")
    with running() as postgres:
        told = {"database_url": postgres.url(), "metrics_listen": "127.0.0.1:0"}
        with (
            local_server(folder / "one", **told) as one,
            local_server(folder / "other", **told) as other,
        ):
            here = one.keys.tenant("acme")
            there = other.keys.key("acme-1")
            record(here, event("the heron ate", id="e1"), wait=True)
            recall(there, "heron")
            yield one, other


def metrics(server: LocalServer) -> dict[str, float]:
    """Return what the server tells, without labels: of several series the last."""
    with urlopen(f"http://{server.application.metrics_address}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    said = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name.partition("{")[0]: float(value) for name, _, value in said}


def test_each_server_says_how_many_there_are_and_that_it_follows_the_feed(
    two: tuple[LocalServer, LocalServer],
) -> None:
    for server in two:
        eventually(lambda s=server: metrics(s)["mneme_servers_alive"] == 2, "it sees no other")  # type: ignore[misc]
        eventually(lambda s=server: metrics(s)["mneme_feed_lag_rows"] == 0, "it stays behind")  # type: ignore[misc]
        eventually(lambda s=server: metrics(s)["mneme_index_age_seconds"] < 5, "its index is old")  # type: ignore[misc]
        eventually(lambda s=server: metrics(s)["mneme_heartbeat_age_seconds"] < 8, "it is silent")  # type: ignore[misc]


def test_the_leases_of_work_are_counted_where_they_are_held(
    two: tuple[LocalServer, LocalServer],
) -> None:
    def held() -> float:
        return sum(metrics(server)["mneme_leases_held"] for server in two)

    eventually(lambda: held() == 1, "one server does the tenant's work")
    assert sum(metrics(server)["mneme_leases_taken"] for server in two) >= 1


def test_an_index_that_does_not_follow_any_more_shows_its_age(
    two: tuple[LocalServer, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mneme_server.engine.corpus.tenant import OpenTenant

    _, other = two
    with monkeypatch.context() as deaf:
        deaf.setattr(OpenTenant, "_learn", lambda *_: None)
        eventually(lambda: age_asked(other) > 1, "it grows no older")
    eventually(lambda: age_asked(other) < 1, "it is not followed again")


def age_asked(server: LocalServer) -> float:
    """Return how old the index is of a tenant that is searched often."""
    there = server.keys.key("acme-1")
    for _ in range(3):
        with suppress(grpc.RpcError):  # Nobody can tell whether the answer would be new enough.
            there.recall.Recall(recall_pb.RecallRequest(query="heron"), timeout=0.2)
    return metrics(server)["mneme_index_age_seconds"]


def test_all_that_alert_rules_and_the_dashboard_name_is_told(
    two: tuple[LocalServer, LocalServer],
) -> None:
    told = metrics(two[0]).keys()
    for file in (RULES, DASHBOARD):
        named = set(re.findall(r"\b(?:mneme|process)_[a-z_]+", file.read_text()))
        assert named, f"{file.name} names nothing"
        assert not named - told, f"{file.name} names what no server tells"


def test_the_dashboards_panels_have_what_they_show() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert len({panel["title"] for panel in panels}) == len(panels)


def test_prometheus_takes_the_rules() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing (apt install prometheus)")
    checked = subprocess.run(
        [program, "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
