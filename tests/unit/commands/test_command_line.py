"""The server's command line: help, settings, exit codes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from mneme_server import app
from mneme_server.commands import command_line
from mneme_server.commands.command_line import main
from mneme_server.settings import Settings, flag_of, load_settings, variable_of


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MNEME_") or name == "OPENAI_API_KEY":
            monkeypatch.delenv(name)


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["reindex", "--help"]])
def test_help_lists_every_setting_with_flag_variable_and_default(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    text = " ".join(capsys.readouterr().out.split())
    assert done.value.code == 0
    for name, field in Settings.model_fields.items():
        assert flag_of(name) in text
        assert variable_of(name) in text
        if isinstance(field.default, int | float):
            assert f"{variable_of(name)}, default: {field.default})" in text


def test_config_prints_the_effective_settings_as_a_file_that_can_be_read_back(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--workers", "40", "--data-dir", 'odd "name"\\here', "--admin-key", "k" * 20]
    assert main(["config", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "k" * 20 not in printed
    values = tomllib.loads(printed)
    assert values["workers"] == 40
    file = tmp_path / "printed.toml"
    file.write_text(printed)
    again = load_settings({}, file)
    assert again.data_dir == Path('odd "name"\\here')
    assert again.admin_key is None


def test_the_file_may_be_named_by_flag_or_variable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_flag, by_variable = tmp_path / "flag.toml", tmp_path / "variable.toml"
    by_flag.write_text("workers = 41\n")
    by_variable.write_text("workers = 42\n")
    monkeypatch.setenv("MNEME_CONFIG", str(by_variable))
    main(["config"])
    assert "workers = 42" in capsys.readouterr().out
    main(["config", "--config", str(by_flag)])
    assert "workers = 41" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--workers", "many"], "--workers is 'many'"),
        (["serve", "--auth", "disabled", "--listen", "0.0.0.0:1"], "MNEME_AUTH=disabled"),
        (["config", "--config", "/no/such/file.toml"], "/no/such/file.toml"),
    ],
)
def test_wrong_settings_end_with_code_2_and_say_which(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["serve", "--no-such-flag"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2


def test_the_process_ends_although_a_thread_of_a_call_runs_on() -> None:
    script = (
        "import threading, mneme_server.common.shutdown as stopping\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "print('written')\n"
        "stopping.leave(3)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, "written\n")


def test_serving_begins_with_the_limits_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(command_line, "spare_memory", lambda _threads: done.append("limited"))
    monkeypatch.setattr(command_line, "leave", lambda code: done.append(f"left with {code}"))
    monkeypatch.setattr(app, "serve", lambda settings: done.append("served") or 0)
    main(["serve"])
    assert done == ["limited", "served", "left with 0"]


_SERVED = """
import gc
from unittest import mock
from mneme_server import app
from mneme_server.settings import Settings
class Loaded:
    http_address = None
    def __init__(self, *_, **__):
        self.parts = [[number] for number in range(1_000)]
    def start(self):
        looked_at = {id(one) for one in gc.get_objects()}
        print(any(id(part) in looked_at for part in self.parts), gc.get_freeze_count() > 1_000)
        print(gc.isenabled())
        return "nowhere", None
    def load(self):
        pass
    def drain(self):
        pass
gc.disable()
with mock.patch.object(app, "Application", Loaded), mock.patch.object(app, "Stopping"):
    app.serve(Settings())
"""


def test_what_a_server_is_made_of_is_not_looked_at_for_garbage() -> None:
    found = subprocess.run(
        [sys.executable, "-c", _SERVED], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "False True\nTrue\nserving on nowhere\n"


_ARENAS_OF_MANY_THREADS = """
import ctypes, os, tempfile, threading
from mneme_server.common.process_limits import limit_arenas
assert limit_arenas()
together = threading.Barrier(16)
def allocate():
    together.wait()
    kept = [bytes(1000 + n) for n in range(2000)]
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
file, path = tempfile.mkstemp()
stream = ctypes.c_void_p(libc.fdopen(file, b"w"))
assert libc.malloc_info(0, stream) == 0
libc.fclose(stream)
print(open(path).read().count("<heap nr="))
os.unlink(path)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these arenas")
def test_many_threads_share_two_arenas_of_memory() -> None:
    found = subprocess.run(
        [sys.executable, "-c", _ARENAS_OF_MANY_THREADS],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert 1 <= int(found.stdout) <= 2
