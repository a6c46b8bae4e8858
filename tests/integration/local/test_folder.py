"""`mneme.local`: a memory in a folder, without a server to start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import mneme
import pytest
from mneme.errors import ClosedError, ConfigurationError, FailedPreconditionError
from support.folders import is_free, kill_server, record_of, servers_of, wait_until
from support.server import model_dir, server_process


def _record(memory: mneme.MnemeClient, text: str) -> None:
    memory.record_events([{"session_id": "s1", "event_type": "message", "text": text}])


def _texts(memory: mneme.MnemeClient) -> set[str]:
    return {event.text for event in memory.iter_events()}


def _run(code: str, *arguments: object) -> str:
    """Run Python elsewhere; return what it printed."""
    given = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(given, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose server runs, for tests that leave it running."""
    folder = tmp_path_factory.mktemp("served") / "memory"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEME_MODEL_DIR", str(model_dir()))
        with mneme.local(folder):
            yield folder


def test_two_processes_share_one_memory_and_one_server(served: Path) -> None:
    with mneme.local(served) as memory:
        _record(memory, "the registry moved")
        said = _run(
            "import mneme, sys\n"
            "memory = mneme.local(sys.argv[1])\n"
            "print([e.text for e in memory.iter_events()], memory.address)\n",
            os.path.relpath(served),
        )
        assert said.strip() == f"['the registry moved'] {memory.address}"
        assert servers_of(served) == [record_of(served)["pid"]]


def test_the_server_ends_when_the_last_participant_has_gone_and_the_memory_stays(
    folder: Path,
) -> None:
    with mneme.local(folder) as memory:
        with mneme.local(folder) as other:
            _record(other, "kept")
        first = record_of(folder)
        assert _texts(memory) == {"kept"}
    wait_until(lambda: is_free(folder), "the server ends by itself")
    assert servers_of(folder) == []
    with mneme.local(folder) as memory:
        assert _texts(memory) == {"kept"}
        again = record_of(folder)
    assert again["key"] == first["key"]
    assert again["instance"] != first["instance"]


def test_only_its_user_may_read_what_lies_in_the_folder(served: Path) -> None:
    assert served.stat().st_mode & 0o077 == 0
    for name in ("local.json", "server.log"):
        assert (served / name).stat().st_mode & 0o077 == 0, name


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_died_is_started_again_by_the_next_call(folder: Path, number: int) -> None:
    with mneme.local(folder) as memory:
        _record(memory, "before")
        kill_server(folder, number)
        _record(memory, "after")
        assert _texts(memory) == {"before", "after"}
        assert servers_of(folder) == [record_of(folder)["pid"]]


def test_the_end_of_whoever_started_the_server_does_not_touch_it(folder: Path) -> None:
    code = "import mneme, sys; m = mneme.local(sys.argv[1]); print('up', flush=True); input()"
    starter = subprocess.Popen(
        [sys.executable, "-c", code, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"up\n"
    with mneme.local(folder) as memory:
        os.killpg(starter.pid, signal.SIGKILL)
        starter.communicate(timeout=30)
        _record(memory, "still here")
        server = record_of(folder)["pid"]
        assert os.getsid(server) == server
        assert servers_of(folder) == [server]


def test_a_process_that_does_not_close_its_client_ends_all_the_same(folder: Path) -> None:
    _run("import mneme, sys; memory = mneme.local(sys.argv[1]); list(memory.iter_events())", folder)
    wait_until(lambda: is_free(folder), "the server ends by itself")


def test_a_server_whose_folder_was_moved_ends_and_the_folder_is_served_where_it_is(
    folder: Path, new_folder: Callable[[str], Path]
) -> None:
    moved = new_folder("moved")
    with mneme.local(folder) as memory:
        _record(memory, "taken along")
        folder.rename(moved)
        wait_until(lambda: is_free(moved), "the server ends by itself")
        with mneme.local(moved) as elsewhere:
            assert _texts(elsewhere) == {"taken along"}
        assert _texts(memory) == set()


def test_a_server_of_another_version_is_joined_when_its_api_is_the_same(served: Path) -> None:
    _change(served, '"version": "', '"version": "9.')
    with mneme.local(served) as memory, mneme.local(served) as other:
        _record(memory, "of two versions")
        assert "of two versions" in _texts(other)
        assert other.address == memory.address


@pytest.mark.parametrize(
    ("old", "new"), [('"format": 1', '"format": 2'), ('"mneme.v1"', '"mneme.v2"')]
)
def test_a_server_that_cannot_be_joined_is_refused_with_both_versions(
    folder: Path, old: str, new: str
) -> None:
    folder.mkdir()
    (folder / "local.json").write_text(
        '{"state": "serving", "version": "9.8.7", "key": "k", "address": "127.0.0.1:1",'
        ' "certificate": "", "format": 1, "api": ["mneme.v1"]}'
    )
    _change(folder, old, new)
    with pytest.raises(FailedPreconditionError) as refused:
        mneme.local(folder)
    assert "9.8.7" in refused.value.message
    assert mneme.__version__ in refused.value.message


def test_a_folder_that_another_kind_of_server_has_is_refused_until_it_is_free(
    folder: Path,
) -> None:
    with mneme.local(folder) as memory:
        _record(memory, "shared")
    wait_until(lambda: is_free(folder), "the server ends by itself")
    with server_process(folder), pytest.raises(FailedPreconditionError) as refused:
        mneme.local(folder)
    assert "another process is using" in refused.value.message
    assert str(folder) in refused.value.message
    with mneme.local(folder) as memory:
        assert _texts(memory) == {"shared"}


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FailedPreconditionError, match="file/memory cannot be used: Not a direc"):
        mneme.local(tmp_path / "file" / "memory")


def test_a_server_that_does_not_start_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_EMBEDDER", "nonsense")
    with pytest.raises(FailedPreconditionError, match=r"did not start.*MNEME_EMBEDDER"):
        mneme.local(folder)
    monkeypatch.setenv("MNEME_WORKERS", "no number")
    with pytest.raises(ConfigurationError, match=r"did not start.*MNEME_WORKERS"):
        mneme.local(folder)
    assert is_free(folder)


def test_a_start_whose_server_was_killed_is_tried_again(folder: Path) -> None:
    script = folder.parent / "killed-at-first"
    real = f"exec {sys.executable} -m mneme_server"
    script.write_text(f'#!/bin/sh\nmkdir "{folder}.once" 2>/dev/null && exit 75\n{real} "$@"\n')
    script.chmod(0o700)
    with mneme.local(folder, server=str(script)) as memory:
        _record(memory, "started")
    script.write_text("#!/bin/sh\necho it ended >&2\nexit 75\n")
    with pytest.raises(FailedPreconditionError, match="did not start: it ended"):
        mneme.local(folder.parent / "never", server=str(script))


def test_a_missing_server_is_said_with_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="no/such/server: No such file"):
        mneme.local(folder, server="no/such/server")
    monkeypatch.setattr("mneme._core.local_folder._NEEDED", ("no_such_library",))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError, match=r"MNEME_SERVER.*whl\[server\]"):
        mneme.local(folder)


def test_a_closed_client_and_one_of_the_parent_process_say_so(served: Path) -> None:
    with mneme.local(served) as memory:
        said = _run(
            "import mneme, os, sys\n"
            "memory = mneme.local(sys.argv[1])\n"
            "if os.fork() == 0:\n"
            "    try: list(memory.iter_events())\n"
            "    except mneme.ConfigurationError as error: print(error, flush=True)\n"
            "    os._exit(0)\n"
            "os.wait()\n",
            served,
        )
        assert "before this process was forked" in said
    with pytest.raises(ClosedError, match="closed"):
        list(memory.iter_events())


def _change(folder: Path, old: str, new: str) -> None:
    file = folder / "local.json"
    text = file.read_text()
    assert old in text
    with file.open("r+") as record:  # In place: the server looks whether it is still the same file.
        status = file.stat()
        record.write(text.replace(old, new))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
