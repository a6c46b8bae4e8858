"""Discovering every night, on a server: set, kept over a restart, and started by itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from google.protobuf import json_format
from mneme.v1 import discovery_pb2 as pb
from mneme.v1 import episode_pb2, operation_service_pb2, skill_service_pb2
from support.api import Api, grpc, refused
from support.operations import ended, response
from support.server import local_server

ASKED = pb.DiscoveryQuestion(
    adjust_for=["difficulty"],
    filter=episode_pb2.EpisodeFilter(project="shop", tags=["ci"], only_successes=True),
    min_success_rate=0,
)


def schedule(api: Api) -> pb.DiscoverySchedule:
    return api.causal.GetDiscoverySchedule(pb.GetDiscoveryScheduleRequest()).schedule


def set_schedule(api: Api, question: pb.DiscoveryQuestion) -> pb.DiscoverySchedule:
    request = pb.UpdateDiscoveryScheduleRequest(enabled=True, time="02:30", question=question)
    return api.causal.UpdateDiscoverySchedule(request).schedule


def operations(api: Api) -> list[str]:
    listed = api.operation.ListOperations(operation_service_pb2.ListOperationsRequest())
    return [one.id for one in listed.operations if one.kind == "discover"]


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_the_server_discovers_by_itself_once_a_night_also_after_a_restart(tmp_path: Path) -> None:
    told = [
        episode_pb2.Episode(
            id=f"e-{number}", task="Fix a typo", success=number % 2 == 0,
            tags=["careful"] * (number % 2 == 0), reward=float(number % 2 == 0) + number % 5 / 10,
        )
        for number in range(120)
    ]  # fmt: skip
    with local_server(tmp_path) as server:
        admin = server.keys.admin
        admin.skill.ImportEpisodes(skill_service_pb2.ImportEpisodesRequest(episodes=told))
        made = set_schedule(admin, pb.DiscoveryQuestion(min_success_rate=0))
        assert made.next_run_at.ToDatetime().strftime("%H:%M") == "02:30"
        assert not made.HasField("last_run_at")
        assert operations(admin) == []
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog, catalog:
        night = made.next_run_at.ToMicroseconds() - 86_400_000_000
        catalog.execute("UPDATE discovery_schedules SET next_at = ?", [night])
    with local_server(tmp_path) as server:
        admin = server.keys.admin
        found = schedule(admin)
        assert found.next_run_at == made.next_run_at
        assert operations(admin) == [found.last_operation_id]
        answer = response(ended(admin, found.last_operation_id))
        assert {one.cause for one in answer.findings if one.edge_id} == {"tag:careful"}
    with local_server(tmp_path) as server:
        assert operations(server.keys.admin) == [found.last_operation_id]
        assert schedule(server.keys.admin) == found


def test_what_is_asked_comes_back_and_names_nobody(api: Api) -> None:
    off = schedule(api)
    assert (off.enabled, off.time, off.question.min_sample_size) == (False, "03:00", 30)
    kept = set_schedule(api, ASKED)
    assert kept == schedule(api)
    assert kept.question.filter == ASKED.filter
    assert (kept.question.adjust_for, kept.question.fdr) == (["difficulty"], 0.05)
    for field, question in {
        "filter.user_id": {"filter": {"user_id": "ann"}},
        "filter.agent_id": {"filter": {"agent_id": "ann"}},
        "filter.session_id": {"filter": {"session_id": "s"}},
        "dry_run": {"dry_run": True},
        "adjust_for[0]": {"adjust_for": ["output"]},
    }.items():
        with refused() as failure:
            set_schedule(api, json_format.ParseDict(question, pb.DiscoveryQuestion()))
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
        assert failure.field == f"question.{field}"
    assert schedule(api) == kept
    for time in ("24:00", "3:00", "02:60", "02:30\n"):
        with refused() as failure:
            request = pb.UpdateDiscoveryScheduleRequest(enabled=True, time=time)
            api.causal.UpdateDiscoverySchedule(request)
        assert failure.field == "time"
