"""Worker processes, from the side of the server: started, watched, ended.

Not `multiprocessing`: it imports the main module again, keeps a process of its own for what may
leak, and knows neither limits nor priorities.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common.errors import MnemeError, Reason, ResourceExhausted, WorkFailed, error_of
from mneme_server.common.process_limits import MIB
from mneme_server.common.progress import Cancelled, Progress
from mneme_server.engine.scheduling.jobs.worker import ONE_THREAD

_LOOK_EVERY_S = 0.05
"""How often a worker's memory is looked at."""
KEPT_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
)
"""What a worker sees of the environment: no key and no secret is among it."""
_LAST_WORDS = 2000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InWorker:
    """Work for a process of its own.

    Args:
        function: "module:function". The function takes a `Step` and `arguments`, and returns what
            JSON can hold; what is large it leaves in a file. It writes nothing but the files it is
            told to, so that it may be ended anywhere. Its module imports no more than it needs.
        arguments: by name, as JSON can hold them.
        memory_bytes: how much may be resident; None for the server's default.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    memory_bytes: int | None = None


class WorkerProcess:
    """One worker process. The thread that calls `run` must live as long as it does: where the
    kernel ends it with its parent, that is the thread.

    Args:
        work: what it does.
        memory_bytes: how much memory it may have resident.
        on_progress: told how far it is, on the thread that calls `run`.
    """

    def __init__(
        self, work: InWorker, memory_bytes: int, on_progress: Callable[[Progress], None]
    ) -> None:
        self._work = work
        self._memory_bytes = work.memory_bytes or memory_bytes
        self._on_progress = on_progress
        self._answer: Mapping[str, Any] = {}
        self._last_words = b""

    def run(self, is_cancelled: Callable[[], bool]) -> Any:
        """Do the work; return its result.

        Raises:
            Cancelled: `is_cancelled` says so; the process is gone.
            ResourceExhausted: it took more memory than it may.
            WorkFailed: it ended without a result.
            MnemeError: the work raised it.
        """
        reading, writing = os.pipe()
        try:
            process = self._start(writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        with process, os.fdopen(reading, "rb", buffering=0) as answers:
            try:
                too_much = self._watch(process, answers.fileno(), is_cancelled)
            finally:
                process.kill()
                code = process.wait()
        if is_cancelled() and "result" not in self._answer:
            raise Cancelled
        if too_much or self._answer.get("error", {}).get("bug") == "MemoryError":
            raise self._out_of_memory()
        if "error" in self._answer:
            raise self._raised(self._answer["error"])
        if "result" not in self._answer:
            raise self._crashed(code)
        return self._answer["result"]

    def _start(self, pipe: int) -> subprocess.Popen[bytes]:
        asked = {
            "function": self._work.function,
            "arguments": dict(self._work.arguments),
            "memory_bytes": self._memory_bytes,
            "path": [str(Path(folder).resolve()) for folder in sys.path],
        }
        line = json.dumps(asked).encode() + b"\n"  # Before there is a process that waits for it.
        environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        me = str(os.getpid())
        process = subprocess.Popen(
            # -P: a folder's server may have been started where an agent works.
            [
                sys.executable,
                "-P",
                "-m",
                "mneme_server.engine.scheduling.jobs.worker",
                me,
                str(pipe),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(pipe,),  # And nothing else: none of the server's sockets.
            env={**environment, **ONE_THREAD},
            # Ctrl-C in a terminal is for the server. Not a session of its own: to Linux that may be
            # a group of its own, whose share of the processor is as large as the server's.
            process_group=0,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()  # And left open: the worker ends when it does.
        except BrokenPipeError:
            pass  # It is gone already; `run` says so.
        return process

    def _watch(
        self, process: subprocess.Popen[bytes], answers: int, is_cancelled: Callable[[], bool]
    ) -> bool:
        """Read what the worker says until it says no more; tell whether it took too much memory."""
        assert process.stderr is not None
        words = process.stderr.fileno()
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            selector.register(words, selectors.EVENT_READ)
            while selector.get_map():
                if is_cancelled():
                    return False
                if resident_bytes(process.pid) > self._memory_bytes:
                    return True
                for key, _ in selector.select(_LOOK_EVERY_S):
                    said = os.read(key.fd, 65_536)
                    if not said:
                        selector.unregister(key.fd)
                    elif key.fd == words:
                        self._last_words = (self._last_words + said)[-_LAST_WORDS:]
                    else:
                        *lines, rest = (rest + said).split(b"\n")
                        for line in lines:
                            self._hear(json.loads(line))
        return False

    def _hear(self, answer: Mapping[str, Any]) -> None:
        if "progress" in answer:
            self._on_progress(Progress(*answer["progress"]))
        else:
            self._answer = answer

    def _out_of_memory(self) -> ResourceExhausted:
        return ResourceExhausted(
            f"the work needs more memory than the {self._memory_bytes // MIB} MiB that a worker"
            " process may have; the server's operator can raise MNEME_JOB_MEMORY_BYTES",
            reason=Reason.QUOTA_EXCEEDED,
        )

    def _raised(self, described: Mapping[str, Any]) -> MnemeError:
        if "bug" not in described:
            return error_of(described)
        _log.error("a worker process met a bug", work=self._work.function, said=self._said())
        return WorkFailed(
            f"the worker process failed ({described['bug']}); the server's log has the details"
        )

    def _crashed(self, code: int) -> WorkFailed:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        _log.error("a worker process crashed", work=self._work.function, said=self._said(), how=how)
        return WorkFailed(f"the worker process {how} before its work was done")

    def _said(self) -> str:
        return self._last_words.decode(errors="replace")


def resident_bytes(pid: int) -> int:
    """What a process has in memory; 0 where nobody says."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split(None, 2)[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
