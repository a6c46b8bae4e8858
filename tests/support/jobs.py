"""Work for worker processes, as tests have it done. Imported by them: by name and little else."""

from __future__ import annotations

import ctypes
import os
import stat
import sys
import threading
import time
from typing import Any

from mneme_server.common.progress import Step

MIB = 1024 * 1024


def add(step: Step, *, a: int, b: int) -> int:
    """Add two numbers, in two steps."""
    step.report("adding", 1, 2)
    step.report("adding", 2, 2)
    return a + b


def describe(step: Step) -> dict[str, Any]:
    """Say what this process is like."""
    return {
        "sockets": [fd for fd in _open_files() if stat.S_ISSOCK(os.fstat(fd).st_mode)],
        "files": len(_open_files()),
        "nice": os.nice(0),
        "batch": os.sched_getscheduler(0) == os.SCHED_BATCH,
        "modules": sorted(sys.modules),
        "environment": sorted(os.environ),
        "threads": [thread.name for thread in threading.enumerate()],
        "omp": os.environ["OMP_NUM_THREADS"],
    }


def refuse(step: Step) -> None:
    """Fail as the domain does."""
    from mneme_server.common.errors import DataLoss

    raise DataLoss("it is damaged", metadata={"kind": "event"})


def stumble(step: Step) -> None:
    """Meet a bug."""
    raise ZeroDivisionError("what only the log may say")


def hang(step: Step) -> None:
    """Say the process' id, and never end."""
    step.report("hanging", os.getpid())
    threading.Event().wait()


def hang_alone(step: Step) -> None:
    """Hang where the kernel does not end it with its parent: the pipe alone is left."""
    ctypes.CDLL(None).prctl(1, 0)
    hang(step)


def hang_busy(step: Step) -> None:
    """Hang where no other thread gets to see that the pipe has ended."""
    sys.setswitchinterval(1000.0)
    step.report("hanging", os.getpid())
    while True:
        pass


def take_memory(step: Step, *, mib: int) -> int:
    """Take memory and use it, a little at a time."""
    taken = []
    for number in range(mib):
        taken.append(bytearray(os.urandom(1024)) * 1024)
        step.report("taking", number, mib)
        time.sleep(0.001)  # So that whoever watches has a chance to see it; it need not.
    return len(taken)


def take_memory_at_once(step: Step, *, mib: int) -> int:
    """Take memory in one piece."""
    return len(bytearray(mib * MIB))


def _open_files() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # The listing's own.
        found.append(int(name))
    return found
