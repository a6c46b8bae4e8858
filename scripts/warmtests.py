"""Runs tests again and again, each time in a fresh process that has the libraries loaded already.

Run by a tree's own interpreter in that tree, with the names of modules. The process loads what they
load, apart from the server and the tests' helpers; each run is a fork of it, so that it meets the
code as it then is. A run is asked for by a line of JSON, and answered by one:

    {"tests": ["tests/unit/…", …], "options": ["-x"], "limit_s": 120}
    {"outcome": "passed", "test": "", "running_s": 0.0, "seconds": 3.2, "said": "…"}

`outcome` is `passed`, `failed` (by `test`, which may be a file that cannot be loaded), `timeout`
(`test` has been running for `running_s`) or `error`, and `said` is the end of what pytest printed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LOOKED_EVERY_S = 0.2
_MOST_BYTES = 6 << 30
_TOLD_CHARACTERS = 2_000
_CHANGING = ("mneme_server", "support", "__main__")
_TESTS_FAILED, _INTERRUPTED, _NOTHING = 1, 2, 5


class _Watch:
    """A plugin that tells what runs, and what failed."""

    def __init__(self, told: int) -> None:
        self._told = told

    def _tell(self, word: str, test: str) -> None:
        os.write(self._told, json.dumps([word, test]).encode() + b"\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell("runs", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)


class _Run:
    """One run of tests, in a fork."""

    def __init__(self, tests: Sequence[str], options: Sequence[str], printed: Path) -> None:
        self._heard, told = os.pipe()
        self._rest = b""
        self.began = self.since = time.monotonic()
        self.running = self.failed = ""
        self._asker = os.getppid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._heard)
            _be_the_run([*options, *tests], told, printed)
        os.close(told)

    def wait(self, limit_s: float) -> int | None:
        """Wait for its end, at most so long; return its status, or None where it has none yet."""
        while time.monotonic() - self.began < limit_s and os.getppid() == self._asker:
            self._listen()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._listen()
                return os.waitstatus_to_exitcode(status)
            if _resident(self.pid) > _MOST_BYTES:
                break
        return None

    def _listen(self) -> None:
        while select.select([self._heard], [], [], _LOOKED_EVERY_S)[0]:
            heard = os.read(self._heard, 65_536)
            if not heard:
                time.sleep(_LOOKED_EVERY_S / 10)  # Closed: the process is about to end.
                return
            *lines, self._rest = (self._rest + heard).split(b"\n")
            for line in lines:
                word, test = json.loads(line)
                if word == "failed":
                    self.failed = self.failed or test
                self.running, self.since = test, time.monotonic()

    def end(self) -> None:
        """End what is left of it: the process, and those that it started."""
        os.close(self._heard)
        while children := _children():
            for pid in children:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _be_the_run(arguments: Sequence[str], told: int, printed: Path) -> None:
    code = 3
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdin, sys.stdout = open(0), open(1, "w", buffering=1)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
        fixed = ["-q", "-p", "no:cacheprovider", "--tb=short"]
        code = int(pytest.main([*fixed, *arguments], plugins=[_Watch(told)]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _children() -> list[int]:
    """Return the processes below this one; whose parent ended are its own."""
    mine = str(os.getpid())
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "stat").read_text().rpartition(")")[2].split()[1] == mine:
                    found.append(int(entry.name))
    return found


def _answer(asked: dict[str, object], folder: Path) -> dict[str, object]:
    """Run the tests that are asked for."""
    tests, options, limit_s = asked["tests"], asked["options"], asked["limit_s"]
    assert isinstance(tests, list)
    assert isinstance(options, list)
    assert isinstance(limit_s, int | float)
    printed = folder / "printed"
    run = _Run(tests, options, printed)
    try:
        status = run.wait(limit_s)
    finally:
        run.end()
    seconds = time.monotonic() - run.began
    test, running_s = run.failed, 0.0
    if status is None:
        outcome, test, running_s = "timeout", run.running, time.monotonic() - run.since
    elif status in (0, _NOTHING):
        outcome = "passed"
    elif status < 0 or (run.failed and status in (_TESTS_FAILED, _INTERRUPTED)):
        outcome, test = "failed", run.failed or run.running
    else:
        outcome = "error"
    said = printed.read_text(errors="replace")[-_TOLD_CHARACTERS:] if printed.exists() else ""
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
    return {
        "outcome": outcome,
        "test": test,
        "running_s": round(running_s, 1),
        "seconds": round(seconds, 1),
        "said": said,
    }


def _load_libraries(root: Path, users: Sequence[str]) -> None:
    """Load what modules load, apart from what changes."""
    heard, told = os.pipe()
    if os.fork() == 0:
        sys.path[:0] = [str(root / "tests"), str(root / "scripts")]
        for name in users:
            importlib.import_module(name)
        # In the order in which they were asked for: some cannot be loaded before others.
        os.write(told, json.dumps(list(sys.modules)).encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(heard, "rb") as pipe:
        names = json.loads(pipe.read() or b"[]")
    os.wait()
    # Else each run would load pytest's plugins, and look for assertions in all that they load.
    names += [plugin.module for plugin in entry_points(group="pytest11")]
    for name in names:
        if name.partition(".")[0] not in _CHANGING:
            # Some are known under names that nobody can ask for.
            with suppress(Exception):
                importlib.import_module(name)


def main() -> None:
    """Answer until nobody asks."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot take over the processes of runs")
    root = Path.cwd()
    sys.path[0] = str(root)  # As `python -m pytest` has it.
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        _load_libraries(root, sys.argv[1:])
        print(json.dumps({"modules": len(sys.modules)}), flush=True)
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line), Path(folder))), flush=True)


if __name__ == "__main__":
    main()
