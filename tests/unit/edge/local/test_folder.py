"""Who has a folder, and what its files may become."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mneme._core.local_folder import LocalFolder
from mneme_server.common.errors import FailedPrecondition
from mneme_server.edge.local import detaching, record
from mneme_server.edge.local import folder as folders
from mneme_server.edge.local.folder import only_process_in, take
from mneme_server.edge.local.record import Record, State


def _record(state: State) -> Record:
    return Record(state, "1.0", key="mn_secret", pid=os.getpid())


def test_a_folder_is_taken_once_and_given_back(tmp_path: Path) -> None:
    taken = take(tmp_path, "1.0")
    assert taken is not None
    assert taken.record.state is State.STARTING, "whoever comes now knows that it is to be served"
    assert record.read(tmp_path) is not None
    taken.write(_record(State.SERVING))
    assert taken.is_ours
    assert take(tmp_path, "1.0") is None
    taken.close()
    again = take(tmp_path, "1.0")
    assert again is not None
    again.close()


def test_a_server_that_is_starting_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take(tmp_path, "1.0")
    assert taken is not None
    taken.write(_record(State.STARTING))
    looks = iter([None, lambda: taken.write(_record(State.SERVING))])
    monkeypatch.setattr("time.sleep", lambda _s: (next(looks) or (lambda: None))())
    assert take(tmp_path, "1.0") is None
    taken.close()


def test_a_folder_of_another_kind_of_server_is_refused_though_a_local_one_died_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_UNNAMED_S", 0.0)
    record.write(tmp_path, _record(State.SERVING))
    with only_process_in(tmp_path), pytest.raises(FailedPrecondition, match="no local server"):
        take(tmp_path, "1.0")
    left = record.read(tmp_path)
    assert left is not None
    assert (left.state, left.key) == (State.ELSEWHERE, "mn_secret")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["", "local.json", "server.lock", "catalog.db"])
def test_a_folder_that_another_user_has_a_hand_in_is_refused(name: str, tmp_path: Path) -> None:
    record.write(tmp_path, _record(State.SERVING))
    for file in ("server.lock", "catalog.db"):
        (tmp_path / file).touch(mode=0o600)
    os.chown(tmp_path / name, 12345, -1)
    with pytest.raises(FailedPrecondition, match=r"belongs to another user \(12345\)"):
        take(tmp_path, "1.0")
    assert LocalFolder(tmp_path).record() is None or name not in ("", "local.json")


def test_a_file_that_others_may_write_to_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    record.write(tmp_path, _record(State.SERVING))
    assert LocalFolder(tmp_path).record() is not None
    (tmp_path / record.NAME).chmod(0o666)
    assert LocalFolder(tmp_path).record() is None
    with pytest.raises(FailedPrecondition, match=r"local\.json can be written to by other users"):
        take(tmp_path, "1.0")
    (tmp_path / record.NAME).rename(tmp_path / "elsewhere")
    (tmp_path / record.NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FailedPrecondition, match=r"local\.json is a link"):
        take(tmp_path, "1.0")


def test_a_folder_of_ones_own_that_others_could_write_to_is_made_ones_own_alone(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o777)
    taken = take(tmp_path, "1.0")
    assert taken is not None
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    taken.close()


def test_a_folder_on_another_machines_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/export {tmp_path}/far nfs4 rw 0 0\n")
    monkeypatch.setattr(folders, "_MOUNTS", mounts)
    with pytest.raises(FailedPrecondition, match="network file system"):
        take(tmp_path / "far" / "memory", "1.0")
    taken = take(tmp_path / "farther", "1.0")
    assert taken is not None
    taken.close()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"state": "odd"}', '{"state": "serving"}', "\xff"]
)
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / record.NAME).write_text(text, encoding="latin-1")
    assert record.read(tmp_path) is None


def test_a_record_comes_back_as_it_was_and_is_its_owners(tmp_path: Path) -> None:
    record.write(tmp_path, _record(State.SERVING))
    read = record.read(tmp_path)
    assert read is not None
    assert (read.state, read.key, tuple(read.api)) == (State.SERVING, "mn_secret", ("mneme.v1",))
    assert (tmp_path / record.NAME).stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [record.NAME]


def test_a_long_log_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed_to: list[Path] = []
    monkeypatch.setattr(detaching, "_print_to", printed_to.append)
    monkeypatch.setattr(detaching, "_LOG_BYTES", 10)
    log = tmp_path / "server.log"
    log.write_text("short")
    detaching.bound(log)
    log.write_text("longer than that")
    detaching.bound(log)
    assert printed_to == [log]
    assert log.with_suffix(".log.1").read_text() == "longer than that"
