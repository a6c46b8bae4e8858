"""SQLite databases: durability settings, concurrency, and how failures look to the domain."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import (
    DataLoss,
    Reason,
    ResourceExhausted,
    Unavailable,
)
from mneme_server.engine.store import engine
from mneme_server.engine.store.engine import SqliteDatabase
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError, OperationalError


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "some.db", busy_timeout_s=0.2)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT UNIQUE)"))
        connection.execute(
            text(
                "CREATE TABLE marks (note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE)"
            )
        )
    yield database
    database.close()


def _add(database: SqliteDatabase, body: str) -> None:
    with database.write() as connection:
        connection.execute(text("INSERT INTO notes (body) VALUES (:body)"), {"body": body})


def _count(database: SqliteDatabase) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM notes")).scalar_one())


def _sum(database: SqliteDatabase) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT sum(length(body)) FROM notes")).scalar_one())


@pytest.mark.parametrize(
    ("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)]
)
def test_every_connection_is_set_to_be_durable_and_consistent(
    database: SqliteDatabase, pragma: str, value: object
) -> None:
    for each in (database.writer, database.reader):
        with each.connect() as connection:
            assert connection.execute(text(f"PRAGMA {pragma}")).scalar_one() == value


def test_a_block_that_raises_leaves_nothing_behind(database: SqliteDatabase) -> None:
    def fail_half_way() -> None:
        with database.write() as connection:
            connection.execute(text("INSERT INTO notes (body) VALUES ('lost')"))
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert _count(database) == 0


def test_a_reader_keeps_its_snapshot_while_a_writer_commits(database: SqliteDatabase) -> None:
    with database.read() as connection:
        before = connection.execute(text("SELECT count(*) FROM notes")).scalar_one()
        _add(database, "written meanwhile")
        after = connection.execute(text("SELECT count(*) FROM notes")).scalar_one()
    assert (before, after, _count(database)) == (0, 0, 1)


def test_who_stops_in_the_middle_of_rows_leaves_nobody_what_was_read_then(
    database: SqliteDatabase,
) -> None:
    """An error holds the statement, and that the snapshot, for as long as it lives."""

    def read(connection: Connection) -> None:
        rows = connection.execute(text("SELECT body FROM notes"))
        for _ in rows:
            raise DataLoss("the first is damaged")

    for body in ("first", "second"):
        _add(database, body)
    with pytest.raises(DataLoss) as held, database.read() as connection:
        read(connection)
    _add(database, "third")
    assert _count(database) == 3
    assert held.value


def test_a_reader_never_waits_for_a_writer(database: SqliteDatabase) -> None:
    with database.write() as connection:
        connection.execute(text("INSERT INTO notes (body) VALUES ('not yet committed')"))
        assert _count(database) == 0


def test_writing_through_a_reading_connection_is_a_bug_and_stays_one(
    database: SqliteDatabase,
) -> None:
    with pytest.raises(OperationalError, match="readonly"), database.read() as connection:
        connection.execute(text("INSERT INTO notes (body) VALUES ('x')"))


def test_concurrent_writers_all_get_their_turn(tmp_path: Path, database: SqliteDatabase) -> None:
    patient = SqliteDatabase(database.path)

    def add_ten(writer: int) -> None:
        for i in range(10):
            _add(patient, f"{writer}-{i}")

    threads = [threading.Thread(target=add_ten, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _count(patient) == 80
    patient.close()


def test_a_second_writer_of_the_process_gives_up_after_its_timeout(
    database: SqliteDatabase,
) -> None:
    with database.write(), pytest.raises(Unavailable) as refused:
        _add(database, "second")
    assert refused.value.reason is Reason.TRANSACTION_FAILED
    assert refused.value.retry_after_s is not None
    _add(database, "afterwards")


def test_a_writer_waits_for_the_one_before_it_no_longer_than_its_caller_does(
    database: SqliteDatabase,
) -> None:
    with (
        database.write(),
        pytest.raises(deadline.Abandoned),
        deadline.within(0.1),
        database.write(),
    ):
        pass


def test_a_lock_held_by_another_process_is_unavailable_and_passes(database: SqliteDatabase) -> None:
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable) as refused:
        _add(database, "while locked")
    assert refused.value.reason is Reason.TRANSACTION_FAILED
    other.execute("ROLLBACK")
    other.close()
    _add(database, "afterwards")
    assert _count(database) == 1


def test_a_constraint_violation_is_left_to_the_repository(database: SqliteDatabase) -> None:
    _add(database, "same")
    with pytest.raises(IntegrityError):
        _add(database, "same")
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(text("INSERT INTO marks VALUES (99)"))


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    path.write_bytes(b"this is no database, but long enough to be looked at" * 100)
    with pytest.raises(DataLoss, match=r"broken\.db is damaged") as refused:
        SqliteDatabase(path)
    assert refused.value.reason is Reason.DATA_DAMAGED


@pytest.mark.parametrize(("name", "damaged_name"), [(b"notes", b"nobes"), (b"body", b"bony")])
def test_a_damaged_name_in_the_schema_is_reported_when_it_is_used(
    database: SqliteDatabase, name: bytes, damaged_name: bytes
) -> None:
    _add(database, "one")
    database.close()
    raw = database.path.read_bytes()
    assert name in raw[:4096]
    database.path.write_bytes(raw[:4096].replace(name, damaged_name) + raw[4096:])
    damaged = SqliteDatabase(database.path)
    for use in (_sum, lambda it: _add(it, "two")):
        with pytest.raises(DataLoss, match="damaged") as refused:
            use(damaged)
        assert refused.value.reason is Reason.DATA_DAMAGED


def test_a_damaged_page_is_reported_when_it_is_read(database: SqliteDatabase) -> None:
    for n in range(200):
        _add(database, f"{n}" * 100)
    database.close()
    raw = bytearray(database.path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    database.path.write_bytes(raw)
    damaged = SqliteDatabase(database.path)
    with pytest.raises(DataLoss, match="damaged") as refused:
        _count(damaged)
    assert refused.value.reason is Reason.DATA_DAMAGED
    damaged.close()


def test_a_closed_database_says_so(database: SqliteDatabase) -> None:
    database.close()
    with pytest.raises(Unavailable, match="closed"):
        _count(database)
    with pytest.raises(Unavailable, match="closed"):
        _add(database, "late")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None:
        pytest.skip("needs mount")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a small tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_refuses_writes_and_loses_nothing(small_disk: Path) -> None:
    database = SqliteDatabase(small_disk / "full.db")
    with database.write() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT UNIQUE)"))
    acknowledged = 0

    def fill() -> None:
        nonlocal acknowledged
        for n in range(10_000):
            _add(database, f"{n}:" + "x" * 2000)
            acknowledged += 1

    with pytest.raises(ResourceExhausted) as refused:
        fill()
    assert refused.value.reason is Reason.QUOTA_EXCEEDED
    assert refused.value.retry_after_s is not None
    assert acknowledged > 0
    assert _count(database) == acknowledged
    database.close()
    reopened = SqliteDatabase(small_disk / "full.db")
    assert _count(reopened) == acknowledged
    reopened.close()


def test_a_commit_that_finds_the_disk_full_leaves_a_connection_that_writes_again(
    small_disk: Path,
) -> None:
    database = SqliteDatabase(small_disk / "full.db")
    with database.write() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT UNIQUE)"))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 800 * 1024)
    for _ in range(2):
        with pytest.raises(ResourceExhausted):
            _add(database, "x" * 300_000)
    ballast.unlink()
    _add(database, "there is room again")
    assert _count(database) == 1
    database.close()


def _filled_and_emptied(database: SqliteDatabase) -> int:
    """Leave ten large notes of two thousand; return the bytes that the file takes."""
    with database.write() as connection:
        connection.execute(text("DELETE FROM notes"))
        for number in range(2_000):
            body = f"{number:05}" + "x" * 8_000
            connection.execute(text("INSERT INTO notes (body) VALUES (:body)"), {"body": body})
    with database.write() as connection:
        connection.execute(text("DELETE FROM notes WHERE id > 10"))
    return database.path.stat().st_size


def test_free_pages_are_given_back_while_others_write(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_PAGES_AT_ONCE", 50)
    before = _filled_and_emptied(database)
    done = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not done.wait(0.001):
            _add(database, f"meanwhile {len(written)}")
            written.append("")

    other = threading.Thread(target=write)
    other.start()
    try:
        assert database.compact(worth_rewriting=1.0)
    finally:
        done.set()
        other.join()
    assert written
    assert _count(database) == 10 + len(written)
    assert database.path.stat().st_size < before / 4
    with database.read() as connection:
        assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"


def test_a_database_without_free_pages_gives_nothing_back(database: SqliteDatabase) -> None:
    _add(database, "kept")
    assert not database.compact(worth_rewriting=0.0)


def test_a_file_of_before_is_rewritten_once_where_that_is_worth_it(tmp_path: Path) -> None:
    path = tmp_path / "before.db"
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT UNIQUE)")
    database = SqliteDatabase(path)
    before = _filled_and_emptied(database)
    assert not database.compact(worth_rewriting=1.0)
    assert path.stat().st_size == before
    assert database.compact(worth_rewriting=0.5)
    assert path.stat().st_size < before / 4
    assert _count(database) == 10
    grown = _filled_and_emptied(database)
    assert database.compact(worth_rewriting=1.0)
    assert path.stat().st_size < grown / 4
    database.close()
