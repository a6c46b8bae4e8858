"""Files that are damaged or newer, queues and disks that are full: a clear error, nothing lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from structlog.testing import capture_logs
from support.api import Api, Failure, grpc, refused
from support.making import (
    event,
    ids_of,
    lesson,
    list_events,
    recall,
    record,
    search_lessons,
    session_of,
    stream,
    verify,
)
from support.server import LocalServer, local_server, run_command, server_process

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE
TEXTS = {
    "whale": "a whale surfaced beside the boat",
    "volcano": "the volcano was quiet for a century",
    "clock": "her grandfather repaired clocks",
}
BY_MEANING = {"whale": "sea animal", "volcano": "eruption of a mountain", "clock": "watchmaker"}


def fill(api: Api) -> None:
    record(api, *[event(text, "s", id=name) for name, text in TEXTS.items()], wait=True)
    lesson(api, "Cooking", "rice needs twice its volume of water", lesson_id="rice")


def assert_everything_is_found(api: Api) -> None:
    for name, text in TEXTS.items():
        assert ids_of(recall(api, text, mode=LEXICAL))[0] == name
        assert ids_of(recall(api, BY_MEANING[name], mode=DENSE))[0] == name
    assert search_lessons(api, "preparing grains", limit=1) == ["rice"]
    stats = api.admin.GetStats(admin_pb.GetStatsRequest()).tenant
    assert (stats.memory_count, stats.vector_count, stats.pending_count) == (4, 4, 0)


def folder_of(server: LocalServer, api: Api) -> Path:
    return Path(server.data_dir) / "tenants" / api.tenant_id


def _truncate(file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2])


def _flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    if raw:
        raw[len(raw) // 2] ^= 0xFF
    file.write_bytes(raw)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": _truncate,
    "emptied": lambda file: file.write_bytes(b""),
    "overwritten": lambda file: file.write_bytes(b"\x00garbage\xff" * 200),
    "changed in one byte": _flip,
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_any_index_file_may_be_damaged_and_everything_is_found_again(
    damage: str, server: LocalServer
) -> None:
    api = server.keys.tenant("damaged")
    fill(api)
    server.close_tenant(api.tenant_id)
    folder = folder_of(server, api)
    kinds = {
        file.suffix or file.name: file.relative_to(folder)
        for file in sorted((folder / "index").rglob("*"))
        if file.is_file() and "lock" not in file.name
    }
    assert len(kinds) >= 8, "there are several kinds of files to damage"
    silent = []
    for kind, relative in kinds.items():
        with server.closed(api.tenant_id):
            file = next(iter((folder / relative.parent).glob(f"*{kind}")), folder / relative)
            if not file.exists():
                continue
            DAMAGES[damage](file)
        with capture_logs() as logs:
            try:
                assert_everything_is_found(api)
            except grpc.RpcError as error:
                raise AssertionError(f"{file.name} {damage}: {logs}") from error
        if not any(line["log_level"] in ("warning", "error") for line in logs):
            silent.append(kind)
    assert verify(api).valid
    if damage in ("cut in half", "overwritten"):
        assert not silent, f"damage that the log does not mention: {silent}"


def test_a_tenant_without_its_indexes_has_them_made_again(server: LocalServer) -> None:
    api = server.keys.tenant("indexless")
    fill(api)
    with server.closed(api.tenant_id):
        shutil.rmtree(folder_of(server, api) / "index")
    assert_everything_is_found(api)


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)


def _every_call_is_refused(api: Api) -> list[Failure]:
    failures = []
    for call in (
        lambda: record(api, event("words")),
        lambda: list_events(api),
        lambda: recall(api, "words"),
        lambda: lesson(api, "title"),
        lambda: api.admin.GetStats(admin_pb.GetStatsRequest()),
    ):
        with refused() as failure:
            call()
        failures.append(failure)
    return failures


def _put(database: Path, content: bytes) -> None:
    """Put a database in place at once: workers of the server try it again and again."""
    part = database.with_suffix(".part")
    part.write_bytes(content)
    part.replace(database)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_damaged_database_is_a_clear_error_for_its_tenant_only(server: LocalServer) -> None:
    api, other = server.keys.tenant("broken"), server.keys.tenant("whole")
    fill(api)
    database = folder_of(server, api) / "mneme.db"
    with server.closed(api.tenant_id):
        kept = database.read_bytes()
        _put(database, b"this is no database" * 1_000)
    for failure in _every_call_is_refused(api):
        assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
        assert "damaged" in failure.message
        assert "backup" in failure.message
        assert str(server.data_dir) not in failure.message
    fill(other)
    assert_everything_is_found(other)
    _put(database, kept)
    assert_everything_is_found(api)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_schema_of_which_sqlite_quotes_no_utf8_is_a_clear_error_too(server: LocalServer) -> None:
    victim = server.keys.tenant()
    fill(victim)
    file = folder_of(server, victim) / "mneme.db"
    with server.closed(victim.tenant_id), closing(sqlite3.connect(file)) as database:
        kept = file.read_bytes()
        database.execute("PRAGMA writable_schema = ON")
        database.execute(
            "UPDATE sqlite_master SET name = CAST(x'6167658974' AS TEXT), sql = 'CREATE TABLE ('"
            " WHERE name = 'agents'"
        )
        database.commit()
    for ask in (list_events, lambda api: recall(api, "a whale")):
        with refused() as failure:
            ask(victim)
        assert failure.code is grpc.StatusCode.DATA_LOSS
        assert "restore it from a backup" in failure.message
    _put(file, kept)
    assert_everything_is_found(victim)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_tenants_database_from_a_newer_version_is_refused_and_left_alone(
    server: LocalServer,
) -> None:
    api, other = server.keys.tenant("newer"), server.keys.tenant("current")
    fill(api)
    database = folder_of(server, api) / "mneme.db"
    # The trunk's version has no row while a branch's needs it.
    with server.closed(api.tenant_id):
        execute(database, "INSERT INTO alembic_version VALUES ('9999')")
    for failure in _every_call_is_refused(api):
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION, "SCHEMA_ERROR",
        )  # fmt: skip
        assert "newer version" in failure.message
        assert failure.metadata["schema"] == "9999"
    fill(other)
    execute(database, "DELETE FROM alembic_version WHERE version_num = '9999'")
    assert_everything_is_found(api)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_catalog_from_a_newer_version_keeps_the_server_from_starting(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with local_server(data) as server:
        secret = server.keys.tenant().secret
    execute(data / "catalog.db", _trunk_is("9999", was="0100"))
    ended = run_command("serve", data)
    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith("mneme-server: ")
    assert "newer version" in line
    assert "9999" in line
    execute(data / "catalog.db", _trunk_is("0100", was="9999"))
    with local_server(data) as server:
        assert list_events(server.keys.api(secret)) == []


def _trunk_is(version: str, *, was: str) -> str:
    """SQL that gives the schema's trunk, and none of its branches, another version."""
    return f"UPDATE alembic_version SET version_num = '{version}' WHERE version_num = '{was}'"


def test_a_second_server_on_the_data_folder_ends_with_a_clear_line(tmp_path: Path) -> None:
    with local_server(tmp_path / "data"):
        ended = run_command("serve", tmp_path / "data")
    assert ended.returncode == 1
    assert "another process is using MNEME_DATA_DIR" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_full_queue_refuses_with_a_delay_and_works_again_when_it_has_drained(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data", embed_queue_limit=20) as server:
        server.application.runtime.pipeline.stop()  # Nothing leaves the queue.
        api = server.keys.tenant("queue")
        secret = api.secret
        record(api, *[event(f"words {n}", id=f"a{n}") for n in range(15)])
        before = (session_of(api, "s"), list_events(api))
        with refused() as failure:
            record(api, *[event(f"words {n}", "other", id=f"b{n}") for n in range(6)])
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL",
        )  # fmt: skip
        assert failure.retry_after_s is not None
        assert failure.retry_after_s >= 1
        assert (session_of(api, "s"), list_events(api)) == before, "nothing is half-written"
        record(api, *[event(f"words {n}", id=f"c{n}") for n in range(5)])  # There was room for 5.
        again = record(api, *[event(f"words {n}", id=f"c{n}") for n in range(5)])
        assert all(receipt.duplicate for receipt in again), "what is recorded needs no room"
        with refused() as failure:
            stream(api, [event("words", id="d")])
        assert (failure.reason, failure.metadata["recorded"]) == ("QUEUE_FULL", "0")
        # What needs no embedding, or has it already, is taken.
        record(api, event("", kind="llm_call", id="e"), event("quiet", id="f", searchable=False))
        saved = lesson(api, "Rule", "about queues")
        assert search_lessons(api, "queues") == [saved.id]
        assert recall(api, "words").pending_count == 20
    with local_server(tmp_path / "data", embed_queue_limit=20) as server:
        api = server.keys.api(secret)
        _when(lambda: recall(api, "words").pending_count == 0)
        record(api, *[event(f"words {n}", "other", id=f"b{n}") for n in range(6)], wait=True)
        assert len(list_events(api)) == 28
        assert recall(api, "words", mode=DENSE).searched_count == 27
        assert verify(api).valid


def test_a_batch_that_no_queue_would_hold_is_not_told_to_try_again(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", embed_queue_limit=5) as server:
        api = server.keys.tenant()
        with refused() as failure:
            record(api, *[event(f"words {n}", id=f"e{n}") for n in range(6)])
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION, "QUEUE_FULL",
        )  # fmt: skip
        assert failure.retry_after_s is None
        assert "send fewer at a time" in failure.message
        record(api, *[event(f"words {n}", id=f"e{n}") for n in range(5)])


def _when(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within 30 seconds")


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_tenants_with_a_queue_are_embedded_after_a_restart_without_being_asked(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data") as server:
        server.application.runtime.pipeline.stop()
        apis = [server.keys.tenant("waiting") for _ in range(3)]
        for api in apis:
            record(api, *[event(f"words {n}") for n in range(10)])
    with local_server(tmp_path / "data") as server:
        files = [tmp_path / "data" / "tenants" / api.tenant_id / "mneme.db" for api in apis]
        for file in files:
            _when(lambda file=file: _queued(file) == 0)
        server.keys.close()


def _queued(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM embedding_queue").fetchone()[0])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None:
        pytest.skip("needs mount")
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    mounted = subprocess.run(options, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("may not mount a small tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_refuses_writes_loses_nothing_and_passes(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (6 * 2**20))
    with server_process(small_disk / "data") as server:
        api = server.keys.tenant("disk")
        secret, tenant_id = api.secret, api.tenant_id
        fill(api)
        acknowledged = list(_until_full(api))
        assert acknowledged
        for call in _writes(api):
            with refused() as failure:
                call()
            assert (failure.code, failure.reason) == (
                grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
            ), failure  # fmt: skip
            assert failure.retry_after_s is not None
            assert "disk is full" in failure.message or "disk has" in failure.message
        # Reading goes on.
        assert {found.id for found in list_events(api)} == {*TEXTS, *acknowledged}
        assert ids_of(recall(api, "sea animal"))[0] == "whale"
        ballast.unlink()
        record(api, event("there is room again", id="again"), wait=True)
        assert ids_of(recall(api, "there is room again"))[0] == "again"
        saved = lesson(api, "Rule", "about disks")
        server.kill()
    with server_process(small_disk / "data") as server:
        api = server.keys.api(secret, tenant_id)
        stored = {found.id for found in list_events(api)}
        assert stored == {*TEXTS, *acknowledged, "again"}
        assert verify(api).valid
        assert search_lessons(api, "disks", limit=1) == [saved.id]
        for name, query in BY_MEANING.items():
            assert ids_of(recall(api, query, mode=DENSE))[0] == name
        assert "internal error" not in server.log


def _until_full(api: Api) -> Iterator[str]:
    """Record until the disk is full, in ever smaller steps; yield what was acknowledged."""
    for size in (200_000, 20_000, 1_000):
        for number in range(2_000):
            event_id = f"{size}-{number}"
            try:
                record(api, event("", kind="custom", id=event_id, payload={"x": "y" * size}))
            except grpc.RpcError:
                break
            yield event_id
        else:
            raise AssertionError("the disk never filled up")


def _writes(api: Api) -> list[Callable[[], Any]]:
    large = "y" * 60_000
    return [
        lambda: record(api, event("", kind="custom", payload={"x": large})),
        lambda: stream(api, [event("", kind="custom", payload={"x": large})]),
        lambda: lesson(api, "title", large),
    ]


def test_a_session_is_found_whole_after_every_kind_of_refusal(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("one", id="1", at=1))
    for bad in (event("two", id="1", at=2), event("", "")):
        with refused():
            record(api, event("new"), bad)
    with refused():
        api.events.EndSession(events_pb.EndSessionRequest(session_id="unknown"))
    assert session_of(api, "s").event_count == 1
    assert verify(api).events_checked == 1
