"""Tenants, keys and the server itself, as an operator uses them."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme_server.app import Application
from support.api import Api, grpc, refused
from support.making import (
    event,
    ids_of,
    lesson,
    list_events,
    recall,
    record,
    search_lessons,
    verify,
)
from support.operations import finished
from support.server import ADMIN_KEY, LocalServer, local_server, server_process, settings_of

READ, WRITE, ADMIN = auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_ADMIN


def stats(api: Api, tenant_id: str = "") -> admin_pb.TenantStats:
    return api.admin.GetStats(admin_pb.GetStatsRequest(tenant_id=tenant_id)).tenant


def delete(api: Api, tenant_id: str) -> None:
    finished(api, admin_pb.DeleteTenantRequest(tenant_id=tenant_id))


def tenant_ids(api: Api) -> list[str]:
    answer = api.admin.ListTenants(admin_pb.ListTenantsRequest(page_size=1000))
    return [tenant.id for tenant in answer.tenants]


def folder_of(server: LocalServer, api: Api) -> Path:
    return Path(server.data_dir) / "tenants" / api.tenant_id


def test_a_key_opens_the_tenant_that_it_was_made_for(server: LocalServer) -> None:
    acme, other = server.keys.tenant("acme"), server.keys.tenant("other")
    record(acme, event("words"))
    assert stats(acme).tenant_id == acme.tenant_id
    assert (stats(acme).event_count, stats(other).event_count) == (1, 0)
    second_key = server.keys.key(acme.tenant_id)
    assert list_events(second_key) == list_events(acme)


@pytest.mark.parametrize(
    ("secret", "reason"),
    [(None, "API_KEY_MISSING"), ("mn_nobody-has-this-key-at-all", "API_KEY_INVALID")],
)
def test_a_call_without_a_valid_key_is_refused(
    secret: str | None, reason: str, server: LocalServer
) -> None:
    api = server.keys.api(secret)
    with refused() as failure:
        list_events(api)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)
    assert secret is None or secret not in failure.message


@pytest.mark.parametrize("other", [None, "mn_nobody-has-this-key-at-all"])
def test_two_keys_are_refused_also_where_they_agree(server: LocalServer, other: str | None) -> None:
    """What stands between may have looked at another of them than the server would."""
    api = server.keys.tenant()
    second = ("authorization", f"Bearer {other or api.secret}")
    request = events_pb.ListEventsRequest()
    for before in (True, False):
        caller = server.keys.api(other or api.secret) if before else api
        more = ("authorization", f"Bearer {api.secret}") if before else second
        with refused() as failure:
            caller.events.ListEvents(request, metadata=(more,))
        assert failure.code is grpc.StatusCode.UNAUTHENTICATED
        assert (failure.reason, "more than one" in failure.message) == ("API_KEY_INVALID", True)
    assert list_events(api) == []


def test_a_revoked_key_is_refused_from_then_on_and_others_are_not(server: LocalServer) -> None:
    api = server.keys.tenant()
    created = server.keys.admin.admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(tenant_id=api.tenant_id, name="leaked")
    )
    leaked = server.keys.api(created.secret)
    list_events(leaked)
    request = admin_pb.RevokeApiKeyRequest(api_key_id=created.api_key.id)
    revoked = server.keys.admin.admin.RevokeApiKey(request).api_key
    assert revoked.HasField("revoked_at")
    assert server.keys.admin.admin.RevokeApiKey(request).api_key == revoked
    with refused() as failure:
        list_events(leaked)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID")
    list_events(api)


def test_keys_are_listed_without_their_secrets(server: LocalServer) -> None:
    api = server.keys.tenant()
    admin = server.keys.admin.admin
    request = admin_pb.CreateApiKeyRequest(
        tenant_id=api.tenant_id, name="ci", scopes=[READ], rate_limit=50
    )
    created = admin.CreateApiKey(request)
    answer = admin.ListApiKeys(admin_pb.ListApiKeysRequest(tenant_id=api.tenant_id))
    assert [key.name for key in answer.api_keys] == ["test", "ci"]
    listed = answer.api_keys[1]
    assert (list(listed.scopes), listed.rate_limit) == ([READ], 50)
    assert created.secret.startswith(listed.prefix)
    assert created.secret not in str(answer)
    admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=listed.id))
    request = admin_pb.ListApiKeysRequest(tenant_id=api.tenant_id)
    assert len(admin.ListApiKeys(request).api_keys) == 1
    request.include_revoked = True
    assert len(admin.ListApiKeys(request).api_keys) == 2


@pytest.mark.on_sqlite("it reads the catalog's file")
def test_no_secret_is_kept_in_the_catalog(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        secret = server.keys.tenant().secret
    raw = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("catalog.db*"))
    assert secret is not None
    assert secret.encode() not in raw
    assert ADMIN_KEY.encode() not in raw
    assert hashlib.sha256(secret.encode()).digest() in raw


def test_a_key_beyond_its_calls_a_minute_is_told_when_to_come_back(server: LocalServer) -> None:
    api = server.keys.tenant()
    limited = server.keys.key(api.tenant_id, rate_limit=3)
    for _ in range(3):
        list_events(limited)
    with refused() as failure:
        list_events(limited)
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED",
    )  # fmt: skip
    assert failure.retry_after_s is not None
    assert 0 < failure.retry_after_s <= 20
    list_events(api)  # Another key of the same tenant is not held back.


def test_deleting_a_tenant_removes_its_folder_and_its_keys_at_once(server: LocalServer) -> None:
    api, admin = server.keys.tenant("doomed"), server.keys.admin
    record(api, event("words"), wait=True)
    lesson(api, "title")
    assert folder_of(server, api).is_dir()
    delete(admin, api.tenant_id)
    assert not folder_of(server, api).exists()
    assert api.tenant_id not in tenant_ids(admin)
    with refused() as failure:
        list_events(api)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID")
    with refused() as failure:
        delete(admin, api.tenant_id)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    # The name is free again, and nothing of the former tenant comes back.
    admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=api.tenant_id))
    fresh = server.keys.key(api.tenant_id)
    assert (stats(fresh).event_count, stats(fresh).lesson_count) == (0, 0)


def test_a_tenant_can_be_deleted_while_it_is_written_to(server: LocalServer) -> None:
    api = server.keys.tenant("busy")
    outcomes: list[grpc.StatusCode] = []

    def write() -> None:
        while True:
            try:
                record(api, event("words"))
            except grpc.RpcError as error:
                outcomes.append(error.code())
                return

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    delete(server.keys.admin, api.tenant_id)
    for thread in threads:
        thread.join(timeout=30)
    assert set(outcomes) <= {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.NOT_FOUND}
    assert len(outcomes) == 4
    assert not folder_of(server, api).exists()


def test_the_default_tenant_and_the_callers_own_cannot_be_deleted(server: LocalServer) -> None:
    own = server.keys.key(server.keys.tenant().tenant_id, ADMIN)
    for api, tenant_id in ((server.keys.admin, "default"), (own, own.tenant_id)):
        with refused() as failure:
            delete(api, tenant_id)
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION, "CONSTRAINT_VIOLATION",
        )  # fmt: skip
        assert failure.field == "tenant_id"


def test_a_tenants_name_is_taken_once(server: LocalServer) -> None:
    api = server.keys.tenant()
    with refused() as failure:
        server.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=api.tenant_id))
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "tenant_id")


@pytest.mark.parametrize(
    "tenant_id", ["..", "a/b", "../x", ".hidden", "A", "é", "a" * 64, "-a", "_a", "a b", "CON."]
)
def test_a_name_that_could_leave_the_data_folder_is_refused(
    tenant_id: str, server: LocalServer
) -> None:
    with refused() as failure:
        server.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=tenant_id))
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "tenant_id")


def test_statistics_count_what_the_tenant_holds(server: LocalServer) -> None:
    api = server.keys.tenant()
    empty = stats(api)
    assert (empty.event_count, empty.memory_count, empty.vector_count) == (0, 0, 0)
    record(api, event("one", "s1", agent_id="a"), event("two", "s1", agent_id="b"), wait=True)
    record(api, event("", "s2", kind="llm_call"), event("one", "s2"), wait=True)
    lesson(api, "kept")
    gone = lesson(api, "archived")
    from mneme.v1 import learn_service_pb2 as learn_pb

    api.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id=gone.id))
    full = stats(api)
    assert (full.event_count, full.session_count, full.agent_count) == (4, 2, 2)
    assert (full.lesson_count, full.memory_count, full.vector_count) == (1, 5, 5)
    assert (full.pending_count, full.failed_count, full.dense_index) == (0, 0, "exact")
    assert full.disk_bytes > 10_000
    seen = stats(server.keys.admin, api.tenant_id)
    seen.disk_bytes = full.disk_bytes  # The index may write what it still held.
    assert seen == full
    info = api.admin.GetStats(admin_pb.GetStatsRequest()).server
    assert (info.embedding_dimensions, bool(info.version)) == (384, True)
    assert "MiniLM" in info.embedding_model


def test_idle_tenants_are_closed_and_opened_again_with_all_they_hold(tmp_path: Path) -> None:
    with local_server(
        tmp_path / "data", tenant_memory_bytes=2_000_000, tenant_idle_seconds=0.2
    ) as server:
        registry = server.application.runtime.tenants
        apis = [server.keys.tenant() for _ in range(6)]
        for n, api in enumerate(apis):
            record(api, event(f"the parrot number{n} speaks", id="e"), wait=True)
        _wait_for(lambda: registry.held_bytes <= 2_000_000)
        _wait_for(lambda: not registry.open_tenants())
        for n, api in enumerate(apis):
            answer = recall(api, f"a talking bird number{n}")
            assert (ids_of(answer), answer.searched_count) == (["e"], 1)
            assert record(api, event(f"the parrot number{n} speaks", id="e"))[0].duplicate
            assert verify(api).valid


def _wait_for(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within 30 seconds")


def test_many_tenants_are_used_at_once_with_few_open(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", tenant_memory_bytes=2_000_000) as server:
        apis = [server.keys.tenant() for _ in range(6)]
        failures: list[BaseException] = []

        def use(number: int) -> None:
            try:
                for turn in range(8):
                    api = apis[(number + turn) % len(apis)]
                    record(api, event(f"thread {number} turn {turn}", f"s{number}"))
                    recall(api, f"thread {number}")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use, args=(n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert sum(stats(api).event_count for api in apis) == 40
        assert all(verify(api).valid for api in apis)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_backup_put_into_the_folder_brings_back_what_was_there(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant("saved")
        record(api, event("the lighthouse keeper retired", id="before"), wait=True)
        saved = lesson(api, "Rule", "about lamps")
        request = admin_pb.BackupRequest(tenant_id=api.tenant_id)
        backup = finished(server.keys.admin, request)
        path = Path(backup.path)
        assert path.stat().st_size == backup.size_bytes
        assert hashlib.sha256(path.read_bytes()).hexdigest() == backup.sha256
        record(api, event("recorded after the backup", id="after"))
        secret = api.secret
    folder = tmp_path / "data" / "tenants" / "saved-1"
    assert path.is_relative_to(tmp_path / "data" / "backups")
    shutil.rmtree(folder)
    folder.mkdir()
    shutil.copy(path, folder / "mneme.db")
    with local_server(tmp_path / "data") as server:
        api = server.keys.api(secret)
        assert [found.id for found in list_events(api)] == ["before"]
        assert verify(api).valid
        assert ids_of(recall(api, "an old man stopped working at the coast"))[0] == "before"
        assert search_lessons(api, "light bulbs") == [saved.id]
        record(api, event("life goes on", id="new"), wait=True)
        assert "new" in ids_of(recall(api, "life goes on"))


def backup_of(server: LocalServer, api: Api) -> admin_pb.BackupResult:
    return finished(
        server.keys.admin,
        admin_pb.BackupRequest(tenant_id=api.tenant_id),
    )


def restore(server: LocalServer, api: Api, name: str) -> admin_pb.RestoreResult:
    request = admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup=name)
    return finished(server.keys.admin, request)


def texts(api: Api, query: str) -> list[str]:
    return [result.text for result in recall(api, query).results]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restore_brings_back_what_was_there_while_the_server_runs(server: LocalServer) -> None:
    api, other = server.keys.tenant(), server.keys.tenant()
    record(api, event("recorded before the backup", id="before"), wait=True)
    record(other, event("of another tenant", id="other"), wait=True)
    backup = backup_of(server, api)
    record(api, event("recorded after the backup", id="after"), wait=True)
    restored = restore(server, api, Path(backup.path).name)
    assert texts(api, "recorded the backup") == ["recorded before the backup"]
    assert texts(other, "of another tenant") == ["of another tenant"]
    record(api, event("recorded once more", id="after"), wait=True)
    # What was replaced is a backup itself.
    restore(server, api, Path(restored.replaced_path).name)
    assert sorted(texts(api, "recorded the backup")) == [
        "recorded after the backup",
        "recorded before the backup",
    ]
    assert verify(api).valid


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_tenant_that_was_deleted_comes_back_with_its_backup(server: LocalServer) -> None:
    api, admin = server.keys.tenant(), server.keys.admin
    record(api, event("the heron stood", id="e"))
    made = backup_of(server, api)
    delete(admin, api.tenant_id)
    admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=api.tenant_id))
    restore(server, api, Path(made.path).name)
    again = server.keys.key(api.tenant_id)
    assert ids_of(recall(again, "heron")) == ["e"]


@pytest.mark.on_sqlite("it makes or restores a backup")
@pytest.mark.parametrize(
    "name", ["01K9ZJ6V1W3Q8Y5T2R7N4M6B0C.db", "../default/x.db", "..", "/etc/passwd", ""]
)
def test_a_backup_that_is_not_in_the_tenant_s_folder_cannot_be_restored(
    name: str, server: LocalServer
) -> None:
    api = server.keys.tenant()
    record(api, event("stays", id="stays"), wait=True)
    with refused() as failure:
        restore(server, api, name)
    expected = grpc.StatusCode.NOT_FOUND if name[:2] == "01" else grpc.StatusCode.INVALID_ARGUMENT
    assert failure.code == expected
    assert texts(api, "stays") == ["stays"]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_damaged_backup_is_refused_and_changes_nothing(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("stays", id="stays"), wait=True)
    backup = backup_of(server, api)
    path = Path(backup.path)
    damaged = bytearray(path.read_bytes())
    damaged[4096 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4096)
    path.write_bytes(damaged)
    with refused() as failure:
        restore(server, api, path.name)
    assert failure.code == grpc.StatusCode.DATA_LOSS
    assert texts(api, "stays") == ["stays"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restore_mends_a_tenant_whose_database_is_damaged(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("what was saved", id="saved"), wait=True)
    backup = backup_of(server, api)
    database = folder_of(server, api) / "mneme.db"
    damaged = bytearray(database.read_bytes())
    damaged[8192:] = b"\xff" * (len(damaged) - 8192)
    database.write_bytes(damaged)
    restored = restore(server, api, Path(backup.path).name)
    assert Path(restored.replaced_path).exists()
    assert texts(api, "saved") == ["what was saved"]
    assert verify(api).valid


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_watch_is_told_to_come_back_after_a_restore(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("before", id="before"), wait=True)
    backup = backup_of(server, api)
    watch = api.events.WatchEvents(events_pb.WatchEventsRequest())
    next(watch)  # It is open now.
    restore(server, api, Path(backup.path).name)
    with refused() as failure:
        list(watch)
    assert failure.code == grpc.StatusCode.UNAVAILABLE
    assert texts(api, "before") == ["before"]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_backup_is_whole_while_the_tenant_is_written_to(server: LocalServer) -> None:
    api = server.keys.tenant()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            record(api, *[event("words") for _ in range(20)])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        request = admin_pb.BackupRequest(tenant_id=api.tenant_id)
        backups = [finished(server.keys.admin, request).path for _ in range(3)]
    finally:
        stop.set()
        thread.join()
    for path in backups:
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            (events,) = connection.execute("SELECT count(*) FROM events").fetchone()
            counted = connection.execute("SELECT coalesce(sum(event_count), 0) FROM sessions")
            assert counted.fetchone() == (events,)
        connection.close()


def test_without_a_chosen_key_one_is_made_at_the_first_start_and_printed_once(
    tmp_path: Path,
) -> None:
    with server_process(tmp_path / "data", admin_key="") as first:
        (line,) = [line for line in first.printed if "admin key" in line]
        secret = line.rpartition(" ")[2]
        assert "default" in tenant_ids(first.keys.api(secret))
    with server_process(tmp_path / "data", admin_key="") as second:
        assert not [line for line in second.printed if "key" in line]
        assert secret not in second.log
        assert "default" in tenant_ids(second.keys.api(secret))


def test_where_keys_are_not_asked_everyone_is_the_default_tenant(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", auth="disabled", admin_key=None) as server:
        nobody = server.keys.api(None)
        record(nobody, event("words", id="e"))
        assert stats(nobody).tenant_id == "default"
        assert tenant_ids(nobody) == ["default"]
        # A key that is sent counts all the same.
        nobody.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="other"))
        key = nobody.admin.CreateApiKey(
            admin_pb.CreateApiKeyRequest(tenant_id="other", name="x")
        ).secret
        assert list_events(server.keys.api(key)) == []
        with refused() as failure:
            list_events(server.keys.api("mn_not-a-key-that-is-known"))
        assert failure.code == grpc.StatusCode.UNAUTHENTICATED


def test_two_servers_on_one_data_folder_are_refused(tmp_path: Path) -> None:
    from mneme_server.common.errors import FailedPrecondition

    with (
        local_server(tmp_path / "data"),
        pytest.raises(FailedPrecondition, match="another process is using"),
    ):
        Application(settings_of(tmp_path / "data"))


def test_a_shutdown_acknowledges_what_a_stream_brought_and_ends_it(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", drain_seconds=20.0) as server:
        api = server.keys.tenant()
        record(api, event("warm"))
        ended = threading.Event()

        def open_ended() -> Any:
            for n in range(5):
                yield events_pb.StreamEventsRequest(event=event(f"n{n}", id=f"{n}"))
            ended.wait(20)

        answers = api.events.StreamEvents(open_ended())
        acknowledged = next(answers).acknowledged_count
        assert acknowledged >= 1
        stopping = threading.Thread(target=server.application.stop)
        stopping.start()
        with refused() as failure:
            for answer in answers:
                acknowledged = answer.acknowledged_count
        ended.set()
        stopping.join()
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.UNAVAILABLE, "INITIALIZATION_FAILED",
        )  # fmt: skip
        assert acknowledged == 5
        server.application.stop = lambda: None  # type: ignore[method-assign]  # Done already.
