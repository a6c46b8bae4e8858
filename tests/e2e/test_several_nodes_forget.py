"""Equal servers on one PostgreSQL: what one forgets or deletes is on no other's disk."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import forgetting_pb2 as pb
from mneme_server.common.errors import Unavailable
from mneme_server.features.events.store.events import SqlEvents
from support.api import Api
from support.forgetting import spellings, traces
from support.making import event, record
from support.nodes import PATIENCE_S, eventually, patiently, texts
from support.operations import finished
from support.postgres import PostgresServer
from support.server import LocalServer, local_server, run_command


def forget(server: LocalServer, agent_id: str, id: str = "f") -> pb.ForgetReceipt:
    request = admin_pb.ForgetRequest(tenant_id="acme-1", agent_id=agent_id, operation_id=id)
    return finished(server.keys.admin, request)


def told_twice(here: Api, there: Api) -> None:
    """Have both servers' indexes hold what two agents said."""
    record(here, event("the heron ate", session="s1", id="e1", agent_id="a"), wait=True)
    record(here, event("the crow ate", session="s2", id="e2", agent_id="b"), wait=True)
    eventually(lambda: len(texts(there, "ate")) == 2, "the other server does not find it")


def left_of_heron(server: LocalServer) -> list[str]:
    return traces(server.data_dir / "tenants" / "acme-1", spellings("heron"), ["heron"])


def test_a_tenant_that_one_deletes_the_other_forgets(
    two: tuple[LocalServer, LocalServer], postgres: PostgresServer, database: str
) -> None:
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    record(there, event("remember this", id="e1"), wait=True)
    record(here, event("and this", id="e2"), wait=True)
    finished(
        one.keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id="acme-1"),
    )

    def refused() -> bool:
        try:
            record(there, event("late", id="late"))
        except grpc.RpcError:
            return True
        return False

    assert refused(), "nothing is written to a tenant that is gone"
    rows = postgres.execute("SELECT count(*) FROM mneme.events", database=database)
    assert rows == [(0,)]
    index = other.data_dir / "tenants" / "acme-1" / "lexical"
    eventually(lambda: not index.exists(), "the other server keeps its index")


def test_what_one_server_forgets_is_in_no_file_of_the_other_when_it_answers(
    tmp_path: Path, url: str
) -> None:
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        here = one.keys.tenant("acme")
        there = other.keys.key("acme-1")
        told_twice(here, there)
        other.close_tenant("acme-1")
        assert left_of_heron(other), "its index is on the disk"
        assert texts(there, "heron") == ["the heron ate"]
        receipt = forget(one, "a")
        assert receipt.statement
        assert not receipt.nodes
        for server, api in ((one, here), (other, there)):
            assert texts(api, "heron") == []
            assert texts(api, "crow") == ["the crow ate"]
            assert left_of_heron(server) == []
        receipt = forget(other, "b", "g")
        assert receipt.statement
        assert not receipt.nodes
        assert texts(here, "crow") == []


def test_a_closed_tenants_index_goes_from_the_other_servers_disk(tmp_path: Path, url: str) -> None:
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        told_twice(one.keys.tenant("acme"), there := other.keys.key("acme-1"))
        other.close_tenant("acme-1")
        assert left_of_heron(other)
        assert not forget(one, "a").nodes
        assert left_of_heron(other) == []
        assert texts(there, "ate") == ["the crow ate"]


def test_a_server_that_was_away_erases_before_it_serves_and_is_named_until_then(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        assert left_of_heron(other)
        receipt = forget(one, "a")
        (name,) = receipt.nodes
        assert name in receipt.statement
        assert forget(one, "a").nodes == [name], "it is still away"
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert left_of_heron(other) == [], "it caught up before it served"
            assert texts(other.keys.key("acme-1"), "ate") == ["the crow ate"]
            renewed = forget(other, "a")
            assert not renewed.nodes
            assert name not in renewed.statement
            assert renewed.kept_until == receipt.kept_until
            assert renewed.erased_at.ToNanoseconds() > receipt.erased_at.ToNanoseconds()
            assert forget(one, "a") == renewed


def test_what_a_call_had_read_before_it_was_forgotten_is_not_written_by_a_server_taken_for_dead(
    tmp_path: Path, url: str, database: str, postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        here = one.keys.tenant("acme")
        there = other.keys.key("acme-1")
        told_twice(here, there)
        cluster = other.application.runtime.servers
        assert cluster is not None
        still, goes_on, tick = threading.Event(), threading.Event(), cluster._tick

        def stand_still() -> None:
            still.set()
            goes_on.wait(PATIENCE_S)
            tick()

        with other.application.runtime.tenants.open("acme-1") as tenant:
            with tenant.read() as unit:
                assert unit.get(SqlEvents).by_ids(["e1"])["e1"].text == "the heron ate"
            monkeypatch.setattr(cluster, "_tick", stand_still)
            assert still.wait(PATIENCE_S)
            postgres.execute(
                f"UPDATE mneme.nodes SET alive_until = now() WHERE id = '{cluster._node.id}'",
                database=database,
            )
            receipt = forget(one, "a")
            assert len(receipt.nodes) == 1, "it is taken for dead"
            goes_on.set()
            monkeypatch.undo()
            with pytest.raises(Unavailable, match="taken for dead"), tenant.write():
                raise AssertionError("it may write what it has read")
        patiently(lambda: record(there, event("the egret ate", session="s3", id="e3")))
        eventually(lambda: not forget(one, "a").nodes, "it still owes what was forgotten")
        assert left_of_heron(other) == []


def test_a_server_whose_disk_is_gone_is_named_no_more_once_that_is_said(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        (name,) = forget(one, "a").nodes
        listed = run_command("nodes", tmp_path / "none", database_url=url).stdout.splitlines()
        (away,) = [line.split() for line in listed if "away" in line]
        assert away[1:4] == [name, "away", "1"]
        (runs,) = [line.split()[0] for line in listed if "runs" in line]
        refused = run_command("nodes", tmp_path / "none", "--gone", runs, database_url=url)
        assert refused.returncode == 1
        said = run_command("nodes", tmp_path / "none", "--gone", away[0], database_url=url)
        assert said.returncode == 0, said.stderr
        assert name not in said.stdout
        assert not forget(one, "a").nodes


def test_a_data_folder_that_was_put_back_from_a_copy_brings_back_nothing(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        shutil.copytree(tmp_path / "other", tmp_path / "copy")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert not forget(one, "a").nodes
        shutil.rmtree(tmp_path / "other")
        shutil.copytree(tmp_path / "copy", tmp_path / "other")
        assert left_of_heron(other)
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert left_of_heron(other) == []


def test_a_tenant_that_is_deleted_is_on_no_servers_disk_when_that_has_ended(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url) as one:
        here = one.keys.tenant("acme")
        delete = admin_pb.DeleteTenantRequest(tenant_id="acme-1")
        with local_server(tmp_path / "other", database_url=url) as other:
            told_twice(here, other.keys.key("acme-1"))
            with local_server(tmp_path / "away", database_url=url) as away:
                assert texts(away.keys.key("acme-1"), "ate")
            answer = finished(one.keys.admin, delete)
            assert len(answer.nodes) == 1
            for server in (one, other):
                assert not (server.data_dir / "tenants" / "acme-1").exists()
        assert left_of_heron(away)
        one.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme-1"))
        with local_server(tmp_path / "away", database_url=url) as away:
            # It may have made a folder for the new tenant by now.
            assert left_of_heron(away) == []
            assert texts(away.keys.key("acme-1"), "ate") == []
