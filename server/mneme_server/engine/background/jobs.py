"""Jobs: work beside the calls, so many at once, tenants by turns; heavy work in worker processes.

Processes are not those of `multiprocessing`: it imports the main module again, keeps a process of
its own for what may leak, and knows neither limits nor priorities.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common import fairness, turns
from mneme_server.common.errors import (
    MnemeError,
    Reason,
    ResourceExhausted,
    WorkFailed,
    error_of,
    is_failure,
)
from mneme_server.common.fairness import FairQueue
from mneme_server.common.process_limits import MIB
from mneme_server.common.progress import Cancelled, Progress, Step
from mneme_server.common.turns import Turn
from mneme_server.engine.background.worker import ONE_THREAD
from mneme_server.engine.scheduling.foreground import Shift

_STOP_S = 2.0
"""How long closing waits for jobs to notice. One that does not is left behind."""
_RELAY_S = 0.1
"""How often who waits for a worker process passes its progress on."""
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


Work = Callable[[Step], Any] | InWorker
"""What a job does: a function, on a thread of the server; or in a process of its own."""


class Job:
    """One piece of work, from the time it waits for its turn. Thread-safe.

    Attributes:
        tenant_id: whose turn it takes.
        progress: how far it said it is; None before it said anything.
    """

    def __init__(
        self,
        tenant_id: str,
        work: Work,
        on_progress: Callable[[Progress], None],
        on_end: Callable[[Job], None],
    ) -> None:
        self.tenant_id = tenant_id
        self.work = work
        self.progress: Progress | None = None
        self._on_progress = on_progress
        self._on_end = on_end
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def cancel(self) -> None:
        """Call it off. A process is ended at once, a function when it next says how far it is."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody called it off; it may not have ended yet."""
        return self._cancelled.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; tell whether it came."""
        return self._ended.wait(timeout_s)

    def result(self) -> Any:
        """Wait for its end and return what it returned, or raise what it raised.

        Raises:
            Cancelled: it was called off.
            ResourceExhausted: its process took more memory than it may.
            WorkFailed: its process was killed from outside, or met a bug.
        """
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def note(self, progress: Progress) -> None:
        """Keep how far it is and pass it on."""
        self.progress = progress
        self._on_progress(progress)

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        """Keep its outcome, and tell whoever waits."""
        self._result, self._error = result, error
        self._ended.set()
        self._on_end(self)


class Jobs:
    """Runs jobs: functions on threads, `InWorker` in processes. Calls go before either.

    So many of each kind are at work at once, and of one tenant so many; the others wait, tenants
    by turns.

    Args:
        give_way: waits a moment while calls are at work, which go first; functions call it. The
            kernel sees to it for processes.
        threads: functions at work at once.
        processes: worker processes at once.
        per_tenant: jobs of one kind at work at once for one tenant.
        memory_bytes: what a worker process may have resident unless its work says otherwise.
        turn: makes the turn that a function computes in.
    """

    def __init__(
        self,
        give_way: Callable[[], None],
        *,
        threads: int,
        processes: int,
        per_tenant: int = 1,
        memory_bytes: int,
        turn: Callable[[], Turn] = lambda: turns.FREE,
    ) -> None:
        self._give_way = give_way
        self._turn = turn
        self._memory_bytes = memory_bytes
        self._per_tenant = per_tenant
        self._lock = threading.Lock()  # Guards what follows.
        self._crews = {False: _Crew(threads), True: _Crew(processes)}
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether the server is: jobs are called off by it and by nobody else."""
        return self._stopping

    def submit(
        self,
        tenant_id: str,
        work: Work,
        *,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
        on_end: Callable[[Job], None] = lambda _job: None,
    ) -> Job:
        """Have work done when its turn comes.

        Args:
            tenant_id: whose turn it takes.
            work: what is done.
            on_progress: told how far it is, on the job's thread.
            on_end: told that it ended, on the job's thread.
        """
        job = Job(tenant_id, work, on_progress, on_end)
        crew = self._crew_of(job)
        with self._lock:
            crew.waiting.push(tenant_id, job)
        self._start_next(crew)
        return job

    def forget(self, job: Job) -> bool:
        """Call off a job that has not begun; tell whether that was so. It ends as `Cancelled`."""
        job.cancel()
        with self._lock:
            waited = self._crew_of(job).waiting.remove(job.tenant_id, job)
        if waited:
            job.end(error=Cancelled())
        return waited

    def close(self) -> None:
        """Call everything off and wait a moment for it. Processes are ended."""
        with self._lock:
            self._stopping = True
            waiting = [job for crew in self._crews.values() for job in crew.empty()]
            running = [job for crew in self._crews.values() for job in crew.running]
        for job in running:
            job.cancel()
        for job in waiting:
            job.cancel()
            job.end(error=Cancelled())
        until = time.monotonic() + _STOP_S
        for job in running:
            if not job.wait(max(0.0, until - time.monotonic())):
                _log.warning("a job does not end; it is left behind", tenant=job.tenant_id)

    def _call(self, tenant_id: str, work: InWorker, step: Step) -> Any:
        """Do work in a process, on behalf of a function that waits for it."""
        job = self.submit(tenant_id, work)
        try:
            while not job.wait(_RELAY_S):
                said = job.progress or Progress("waiting for a process")
                step.report(said.stage, said.done, said.total)
        except BaseException:
            if not self.forget(job):
                job.wait(_STOP_S)  # The process is gone before its files are put away.
            raise
        if job.progress is not None:
            step.report(job.progress.stage, job.progress.done, job.progress.total)
        return job.result()

    def _crew_of(self, job: Job) -> _Crew:
        return self._crews[isinstance(job.work, InWorker)]

    def _start_next(self, crew: _Crew) -> None:
        while True:
            with self._lock:
                job = None if self._stopping else crew.next(self._per_tenant)
            if job is None:
                return
            # A thread for each: where the kernel ends a process with its parent, the parent is the
            # thread that started it.
            threading.Thread(target=self._run, args=(job, crew), name="job", daemon=True).start()

    def _run(self, job: Job, crew: _Crew) -> None:
        fairness.enter(job.tenant_id)
        turns.enter(self._turn())
        result: Any = None
        error: BaseException | None = None
        try:
            if job.is_cancelled:
                raise Cancelled
            result = self._do(job)
        except BaseException as raised:
            if not is_failure(raised):
                raise
            error = raised
            if not isinstance(raised, Cancelled | MnemeError):
                _log.exception("a job met a bug", tenant=job.tenant_id)
        finally:
            with self._lock:
                crew.left(job)
            job.end(result, error)
            self._start_next(crew)

    def _do(self, job: Job) -> Any:
        work = job.work
        if not isinstance(work, InWorker):
            return work(_ThreadStep(job, self._give_way, self._call))
        return WorkerProcess(work, self._memory_bytes, job.note).run(lambda: job.is_cancelled)


class _Crew:
    """The jobs of one kind: those that wait, those at work, and how many may be."""

    def __init__(self, places: int) -> None:
        self._places = places
        self.waiting: FairQueue[Job] = FairQueue()
        self.running: set[Job] = set()
        self._of_tenant: Counter[str] = Counter()

    def next(self, per_tenant: int) -> Job | None:
        """Return the job whose turn it is, as at work from now on; None when there is none."""
        if len(self.running) >= self._places:
            return None
        job = self.waiting.pop(lambda job: self._of_tenant[job.tenant_id] < per_tenant)
        if job is not None:
            self.running.add(job)
            self._of_tenant[job.tenant_id] += 1
        return job

    def left(self, job: Job) -> None:
        """Free the place of a job."""
        self.running.remove(job)
        self._of_tenant[job.tenant_id] -= 1
        self._of_tenant += Counter()  # Forget the tenants that have none.

    def empty(self) -> list[Job]:
        """Remove and return those that wait."""
        waiting = []
        while (job := self.waiting.pop()) is not None:
            waiting.append(job)
        return waiting


class _ThreadStep:
    """Implements `common.progress.Step` for a function on a thread."""

    def __init__(
        self,
        job: Job,
        give_way: Callable[[], None],
        call: Callable[[str, InWorker, Step], Any],
    ) -> None:
        self._job = job
        self._shift = Shift(give_way)
        self._call = call

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say how far the work is, and give way to calls."""
        if self._job.is_cancelled:
            raise Cancelled
        self._job.note(Progress(stage, done, total))
        self._shift.step()

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do it in a process, when its turn has come."""
        return self._call(self._job.tenant_id, InWorker(function, arguments), self)


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
                "mneme_server.engine.background.worker",
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
