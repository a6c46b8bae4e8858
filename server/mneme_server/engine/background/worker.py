"""A worker process: does one piece of heavy work, and ends.

It begins with nothing but the standard library and imports what the work names. It runs on one
thread, when nobody else wants the processor; it has no socket and no more memory than it was given;
it ends with the process that started it, however that one ends. What it finds out it tells through
a pipe, a line of JSON each time: progress, then a result or an error.

The process that starts it is `jobs.py`'s side.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

ONE_THREAD: Mapping[str, str] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "1",
}
"""What keeps the libraries that compute to one thread; read when they are loaded."""

_HEADROOM_BYTES = 256 * 1024 * 1024
"""What may be mapped beside what may be resident: stacks, and what is reserved and never used."""
_PR_SET_PDEATHSIG = 1
_FIRST_TO_GO = "1000"


class _WorkerStep:
    """Implements `common.progress.Step`: whoever calls the work off ends the process."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._tell = tell

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say how far the work is."""
        self._tell({"progress": [stage, done, total]})

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do it here: this is apart already."""
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(self, **arguments)


def main() -> int:
    """Do the work that comes in on standard input; `argv` is the parent's pid and the pipe."""
    parent, pipe = map(int, sys.argv[1:3])
    end_with(parent)
    step_back()
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, name="parent", daemon=True).start()
    sys.path += [folder for folder in asked["path"] if folder not in sys.path]
    with os.fdopen(pipe, "w", encoding="utf-8") as answers:

        def tell(answer: Mapping[str, Any]) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        try:
            limit_memory(asked["memory_bytes"])
            tell({"result": _WorkerStep(tell).apart(asked["function"], **asked["arguments"])})
        except BrokenPipeError:  # Nobody listens any more.
            return 1
        except BaseException as error:
            tell({"error": described(error)})
            raise
    return 0


def end_with(parent: int) -> None:
    """Have the kernel end this process when the one that started it is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # The server blocks those that it waits for.
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It went before it could be asked for.
        _leave()


def _end_with_input() -> None:
    """End this process when the pipe from the parent does, also where the kernel does not."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _leave()


def _leave() -> NoReturn:
    os._exit(1)


def step_back() -> None:
    """Leave the processor and the disk to others, and be the first to go without memory.

    Not SCHED_IDLE: beside two busy threads that leaves it three thousandths of a processor, and
    work that somebody waits for must come to an end on a busy machine, too.
    """
    os.nice(19)
    with suppress(OSError, AttributeError):  # Where there is no such class, nice is all there is.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    go_first()


def go_first() -> None:
    """Be the first to go when there is no memory left."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(_FIRST_TO_GO)


def limit_memory(resident_bytes: int) -> None:
    """Have allocations fail that the parent, which looks every moment, would notice too late."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = resident_bytes + _HEADROOM_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def described(error: BaseException) -> Mapping[str, Any]:
    """An error as the parent makes it again: one of the domain's as it is, others by name."""
    errors = sys.modules.get("mneme_server.common.errors")
    if errors is not None and isinstance(error, errors.MnemeError):
        from mneme_server.common.errors import facts_of

        return facts_of(error)
    return {"bug": type(error).__name__}


if __name__ == "__main__":
    sys.exit(main())
