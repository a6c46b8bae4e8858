"""Operations: work that outlasts a call, started, followed, cancelled, forgotten."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import operation_pb2 as pb
from mneme.v1 import operation_service_pb2 as service_pb
from mneme_server.common.identity import Caller, KeyScope
from mneme_server.features.operations import messages
from mneme_server.features.operations.model import OperationFilter, OperationTask
from mneme_server.features.operations.operations import MOST_UNFINISHED, Operations
from structlog.testing import capture_logs
from support.api import Api, refused
from support.making import event, ids_of, list_events, recall, record
from support.operations import PATIENCE_S, ended, finished, get, in_the_end, response
from support.server import LocalServer, local_server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LocalServer]:
    """A server of the test's own."""
    with local_server(tmp_path / "data") as running:
        yield running


class Waits:
    """Work that says what it does and waits for the test."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.runs = 0

    def run(self, task: OperationTask) -> Mapping[str, Any]:
        self.runs += 1
        task.keep(run=self.runs)
        self.began.set()
        while not self.go.wait(0.01):
            task.report("waiting", 1, 2)
        return {"path": "where", "size_bytes": 3}

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        pass


@pytest.fixture
def waits(own: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waits]:
    """Backups are this work, for whose end no call waits that starts one."""
    monkeypatch.setattr(messages, "QUICK_S", 0.0)
    work = Waits()
    _operations(own)._works["backup"] = work
    yield work
    work.go.set()


def _operations(server: LocalServer) -> Operations:
    return server.application._operations


def start_backup(api: Api, **fields: str) -> pb.Operation:
    return api.admin.Backup(admin_pb.BackupRequest(**fields)).operation


def cancel(api: Api, operation_id: str) -> pb.Operation:
    request = service_pb.CancelOperationRequest(operation_id=operation_id)
    return api.operation.CancelOperation(request).operation


def listed(api: Api, **fields: Any) -> list[str]:
    answer = api.operation.ListOperations(service_pb.ListOperationsRequest(**fields))
    return [operation.id for operation in answer.operations]


@pytest.mark.on_sqlite("it makes a backup")
def test_a_backup_is_started_waited_for_and_restored(admin: Api, api: Api) -> None:
    record(api, event("The violin is in the harbour", id="first"))
    started = start_backup(admin, tenant_id=api.tenant_id)
    assert (started.kind, started.tenant_id) == ("backup", api.tenant_id)
    assert started.created_at.seconds > 1_700_000_000
    done = ended(admin, started.id)
    made = response(done)
    assert Path(made.path).stat().st_size == made.size_bytes
    assert done.attempts == 1
    assert done.done
    assert not done.cancellable
    assert done.started_at.ToMicroseconds() <= done.ended_at.ToMicroseconds()
    week = done.expires_at.ToSeconds() - done.ended_at.ToSeconds()
    assert week == 7 * 24 * 3600

    record(api, event("A glacier of pepper", id="second"))
    request = admin_pb.RestoreRequest(
        tenant_id=api.tenant_id, backup=Path(made.path).name, operation_id="restore-of-the-test"
    )
    restored = response(ended(admin, admin.admin.Restore(request).operation.id))
    assert [event.id for event in list_events(api)] == ["first"]
    assert ids_of(recall(api, "violin")) == ["first"]
    assert Path(restored.replaced_path).exists()
    assert restored.replaced_size_bytes > 0
    assert len(restored.replaced_sha256) == 64


def test_a_deleted_tenants_operation_outlives_it(admin: Api, new_tenant: Callable[[], Api]) -> None:
    gone = new_tenant()
    record(gone, event("words"))
    request = admin_pb.DeleteTenantRequest(tenant_id=gone.tenant_id)
    done = ended(admin, admin.admin.DeleteTenant(request).operation.id)
    assert isinstance(response(done), admin_pb.DeleteTenantResult)
    with refused() as failure:
        record(gone, event("words"))
    assert failure.code is grpc.StatusCode.UNAUTHENTICATED
    assert listed(admin, tenant_id=gone.tenant_id) == [done.id]
    with refused() as failure:
        admin.admin.DeleteTenant(request)
    assert failure.code is grpc.StatusCode.NOT_FOUND
    request.operation_id = done.id
    assert admin.admin.DeleteTenant(request).operation == done


def test_deletions_that_waited_end_well_and_spare_who_got_the_id_meanwhile(
    own: LocalServer, waits: Waits
) -> None:
    admin = own.keys.admin
    made = admin_pb.CreateTenantRequest(tenant_id="acme")
    admin.admin.CreateTenant(made)
    start_backup(admin, tenant_id="acme")
    assert waits.began.wait(PATIENCE_S)
    request = admin_pb.DeleteTenantRequest(tenant_id="acme")
    queued = [admin.admin.DeleteTenant(request).operation.id for _ in range(2)]
    tenants = own.application._tenants
    tenants.delete("default", "acme", tenants.require_deletable("default", "acme"))  # Another did.
    admin.admin.CreateTenant(made)
    waits.go.set()
    for operation_id in queued:
        assert response(ended(admin, operation_id)) == admin_pb.DeleteTenantResult()
    found = admin.admin.ListTenants(admin_pb.ListTenantsRequest())
    assert "acme" in [tenant.id for tenant in found.tenants]


def test_a_tenant_is_embedded_again_while_it_is_in_use(
    admin: Api, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "QUICK_S", 0.0)
    record(api, *(event(f"memory number {n} of the violin") for n in range(50)))
    request = admin_pb.ReindexRequest(tenant_id=api.tenant_id)
    started = admin.admin.Reindex(request).operation
    in_the_end(lambda: record(api, event("the glacier is cold", id="new")))
    assert "new" in ids_of(in_the_end(lambda: recall(api, "glacier")))
    done = response(ended(admin, started.id))
    assert done.memory_count >= 50
    assert "MiniLM" in done.embedding_model
    stats = admin.admin.GetStats(admin_pb.GetStatsRequest(tenant_id=api.tenant_id)).tenant
    assert stats.vector_count == stats.memory_count


def test_a_request_that_is_sent_again_starts_nothing_more(own: LocalServer, waits: Waits) -> None:
    admin = own.keys.admin
    first = start_backup(admin, operation_id="nightly")
    assert waits.began.wait(PATIENCE_S)
    again = start_backup(admin, operation_id="nightly")
    assert (again.id, again.created_at) == (first.id, first.created_at)
    waits.go.set()
    ended(admin, "nightly")
    assert start_backup(admin, operation_id="nightly").state == pb.OPERATION_STATE_SUCCEEDED
    assert waits.runs == 1
    other = own.keys.tenant().tenant_id
    with refused() as failure:
        start_backup(admin, operation_id="nightly", tenant_id=other)
    assert failure.code is grpc.StatusCode.ALREADY_EXISTS
    assert failure.field == "operation_id"


def test_how_far_it_is_can_be_seen_while_it_runs(own: LocalServer, waits: Waits) -> None:
    admin = own.keys.admin
    started = start_backup(admin)
    assert waits.began.wait(PATIENCE_S)
    until = time.monotonic() + PATIENCE_S
    while not get(admin, started.id).progress.stage and time.monotonic() < until:
        pass
    seen = get(admin, started.id)
    assert seen.state == pb.OPERATION_STATE_RUNNING
    assert (seen.progress.stage, seen.progress.done, seen.progress.total) == ("waiting", 1, 2)
    assert seen.cancellable
    assert not seen.HasField("ended_at")
    assert seen.WhichOneof("outcome") is None


def test_one_that_runs_is_cancelled(own: LocalServer, waits: Waits) -> None:
    admin = own.keys.admin
    started = start_backup(admin)
    assert waits.began.wait(PATIENCE_S)
    cancel(admin, started.id)
    done = ended(admin, started.id)
    assert done.state == pb.OPERATION_STATE_CANCELLED
    assert done.error.code == grpc.StatusCode.CANCELLED.value[0]
    assert cancel(admin, started.id) == done


def test_one_that_waits_is_cancelled_at_once(own: LocalServer, waits: Waits) -> None:
    admin = own.keys.admin
    start_backup(admin, operation_id="first")
    assert waits.began.wait(PATIENCE_S)
    assert start_backup(admin, operation_id="second").state == pb.OPERATION_STATE_QUEUED
    assert cancel(admin, "second").state == pb.OPERATION_STATE_CANCELLED
    assert get(admin, "first").state == pb.OPERATION_STATE_RUNNING
    waits.go.set()
    ended(admin, "first")
    assert waits.runs == 1


def test_one_that_has_begun_to_change_things_goes_on(own: LocalServer) -> None:
    class Commits(Waits):
        def run(self, task: OperationTask) -> Mapping[str, Any]:
            task.commit()
            return super().run(task)

    work, admin = Commits(), own.keys.admin
    _operations(own)._works["backup"] = work
    started = start_backup(admin)
    assert work.began.wait(PATIENCE_S)
    assert not get(admin, started.id).cancellable
    with refused() as failure:
        cancel(admin, started.id)
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    work.go.set()
    assert ended(admin, started.id).state == pb.OPERATION_STATE_SUCCEEDED


def test_operations_of_a_tenant_run_one_after_another_and_others_beside_them(
    own: LocalServer, waits: Waits
) -> None:
    admin, other = own.keys.admin, own.keys.tenant().tenant_id
    start_backup(admin, operation_id="first")
    start_backup(admin, operation_id="second")
    start_backup(admin, operation_id="other", tenant_id=other)
    until = time.monotonic() + PATIENCE_S
    while waits.runs < 2 and time.monotonic() < until:
        pass
    states = {name: get(admin, name).state for name in ("first", "second", "other")}
    assert states == {
        "first": pb.OPERATION_STATE_RUNNING,
        "second": pb.OPERATION_STATE_QUEUED,
        "other": pb.OPERATION_STATE_RUNNING,
    }
    waits.go.set()
    assert all(ended(admin, name).done for name in states)


def test_waiting_ends_with_the_time_given_and_with_the_deadline(
    own: LocalServer, waits: Waits
) -> None:
    admin = own.keys.admin
    started = start_backup(admin)
    request = service_pb.WaitOperationRequest(operation_id=started.id)
    request.max_wait.FromMilliseconds(50)
    assert not admin.operation.WaitOperation(request).operation.done
    request = service_pb.WaitOperationRequest(operation_id=started.id)
    assert not admin.operation.WaitOperation(request, timeout=8).operation.done


def test_calls_that_wait_leave_room_for_others(own: LocalServer, waits: Waits) -> None:
    """As many wait as there are threads; other calls are answered meanwhile."""
    admin = own.keys.admin
    started = start_backup(admin)
    workers = own.application._settings.workers
    request = service_pb.WaitOperationRequest(operation_id=started.id)
    request.max_wait.FromSeconds(60)
    with ThreadPoolExecutor(workers) as pool:
        answers = [pool.submit(admin.operation.WaitOperation, request) for _ in range(workers)]
        assert listed(admin) == [started.id]
        waits.go.set()
        for answer in answers:
            answer.result()


@pytest.mark.on_sqlite("it makes a backup")
def test_they_are_listed_by_pages_newest_first(own: LocalServer) -> None:
    admin = own.keys.admin
    names = [f"number-{n}" for n in range(5)]
    for name in names:
        start_backup(admin, operation_id=name)
        ended(admin, name)
    found: list[str] = []
    token = ""
    while True:
        request = service_pb.ListOperationsRequest(page_size=2, page_token=token)
        page = admin.operation.ListOperations(request)
        found += [operation.id for operation in page.operations]
        token = page.next_page_token
        if not token:
            break
    assert found == names[::-1]
    assert listed(admin, kind="restore") == []
    assert listed(admin, kind="backup", states=[pb.OPERATION_STATE_SUCCEEDED]) == found
    assert listed(admin, states=[pb.OPERATION_STATE_FAILED, pb.OPERATION_STATE_RUNNING]) == []


@pytest.mark.on_sqlite("it makes a backup")
def test_a_failure_says_what_a_call_says(admin: Api, api: Api, server: Any) -> None:
    folder = server.data_dir / "backups" / api.tenant_id
    folder.mkdir(parents=True)
    (folder / "broken.db").write_bytes(b"no database" * 1000)
    request = admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup="broken.db")
    done = ended(admin, admin.admin.Restore(request).operation.id)
    assert done.state == pb.OPERATION_STATE_FAILED
    assert done.error.code == grpc.StatusCode.DATA_LOSS.value[0]
    assert "broken.db" in done.error.message
    assert [file.name for file in folder.iterdir()] == ["broken.db"]


def test_a_bug_is_told_by_an_id_and_nothing_else(own: LocalServer) -> None:
    class Stumbles(Waits):
        def run(self, task: OperationTask) -> Mapping[str, Any]:
            raise ZeroDivisionError("a secret")

    _operations(own)._works["backup"] = Stumbles()
    with capture_logs() as logs:
        done = ended(own.keys.admin, start_backup(own.keys.admin).id)
    (logged,) = [line for line in logs if "error_id" in line]
    assert logged["error_id"] in done.error.message
    assert done.error.code == grpc.StatusCode.INTERNAL.value[0]
    assert "secret" not in str(done)


def test_too_many_are_refused(own: LocalServer, waits: Waits) -> None:
    admin = own.keys.admin
    for _ in range(MOST_UNFINISHED):
        start_backup(admin)
    with refused() as failure:
        start_backup(admin)
    assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert failure.reason == "QUOTA_EXCEEDED"


def test_what_ended_a_week_ago_is_forgotten(own: LocalServer) -> None:
    admin = own.keys.admin
    start_backup(admin, operation_id="old")
    ended(admin, "old")
    _operations(own).forget_expired()
    assert listed(admin) == ["old"]
    with own.application._opened.catalog.database.write() as connection:
        connection.exec_driver_sql("UPDATE operations SET expires_at = 1")
    _operations(own).forget_expired()
    assert listed(admin) == []
    with refused() as failure:
        get(admin, "old")
    assert failure.code is grpc.StatusCode.NOT_FOUND


def test_a_tenants_own_operations_are_its_own_and_go_with_it(own: LocalServer) -> None:
    """A kind that needs no scope admin, as training will be."""
    operations, work = _operations(own), Waits()
    operations.bring("train", work)
    mine = own.keys.tenant()
    theirs = own.keys.tenant()
    request = {
        "scope": KeyScope.LEARN, "tenant_id": mine.tenant_id, "operation_id": "run", "request": {},
    }  # fmt: skip
    operations.start("train", **request)
    assert work.began.wait(PATIENCE_S)
    assert listed(mine) == ["run"]
    assert get(mine, "run").tenant_id == mine.tenant_id
    assert listed(theirs) == []
    for api in (theirs, own.keys.admin):
        with refused() as failure:
            get(api, "run")
        assert failure.code is grpc.StatusCode.NOT_FOUND
    seen = own.keys.admin.operation.GetOperation(
        service_pb.GetOperationRequest(operation_id="run", tenant_id=mine.tenant_id)
    )
    assert seen.operation.id == "run"
    with refused() as failure:  # A key that may read does not stop what it could not start.
        cancel(mine, "run")
    assert (failure.code, failure.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
    finished(
        own.keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id=mine.tenant_id),
    )
    caller = Caller("default", "", frozenset(KeyScope), 0)
    assert not operations.list(caller, OperationFilter(kind="train"), None, 10)


@pytest.mark.on_sqlite("it makes a backup")
def test_a_backup_whose_process_is_killed_fails_and_leaves_nothing(
    own: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme_server.features.admin.store.tenant_files._COPIES", "support.hanging")
    admin = own.keys.admin
    started = start_backup(admin)
    until = time.monotonic() + PATIENCE_S
    while get(admin, started.id).progress.stage != "hanging" and time.monotonic() < until:
        time.sleep(0.02)  # The process has the lowest priority.
    pid = get(admin, started.id).progress.done
    os.kill(pid, signal.SIGKILL)
    done = ended(admin, started.id)
    assert done.error.code == grpc.StatusCode.INTERNAL.value[0]
    assert "signal 9" in done.error.message
    assert not list((own.data_dir / "backups" / "default").iterdir())


@pytest.mark.on_sqlite("it makes a backup")
def test_a_backup_is_cancelled_while_its_process_works(
    own: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme_server.features.admin.store.tenant_files._COPIES", "support.hanging")
    admin = own.keys.admin
    started = start_backup(admin)
    until = time.monotonic() + PATIENCE_S
    while get(admin, started.id).progress.stage != "hanging" and time.monotonic() < until:
        time.sleep(0.02)
    cancel(admin, started.id)
    assert ended(admin, started.id).state == pb.OPERATION_STATE_CANCELLED
    assert not list((own.data_dir / "backups" / "default").iterdir())


@pytest.mark.on_sqlite("it examines a file")
def test_the_examination_apart_knows_every_table(own: LocalServer) -> None:
    """The process that examines a backup imports the modules that declare the tables."""
    import subprocess
    import sys

    from mneme_server.engine.store.schema import metadata
    from mneme_server.features.admin.store.tenant_files import modules_of_tables

    modules = modules_of_tables()
    program = (
        "import json, sys\n"
        "from importlib import import_module\n"
        "from mneme_server.engine.store import examination\n"
        "[import_module(name) for name in json.loads(sys.argv[1])]\n"
        "print(json.dumps([sorted(examination.metadata.tables), sorted(sys.modules)]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, json.dumps(modules)], capture_output=True, check=True
    )
    tables, loaded = json.loads(told.stdout)
    assert tables == sorted(metadata.tables)
    assert not {"faiss", "onnxruntime", "grpc", "tantivy", "google.protobuf"} & set(loaded)
