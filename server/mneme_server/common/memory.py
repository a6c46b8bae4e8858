"""How much memory this process may use, where something limits it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mneme_server.common.errors import FailedPrecondition, Reason

MIB = 1024 * 1024

RESERVE_BYTES = 160 * MIB
"""Kept free for the libraries: tantivy's writers take 15 MB each and more while they commit, the
model's runtime and FAISS some, and what gRPC reads and sends lies in its memory first. Of 64 MiB,
50 were used up by what committed and embedded the events that had been let in."""
LEAST_FOR_REQUESTS_BYTES = 64 * MIB
"""With less, a server would refuse what is usual."""
_LOADED_BYTES = 704 * MIB
"""Address space that the libraries and the model take; 690 MiB were measured on two processors."""
_DEFAULT_STACK = 8 * MIB

# What libraries and model take more at one start than at another: a few MiB were seen.
_VARYING_BYTES = 16 * MIB

_V1_FILE, _V2_FILE = "memory.limit_in_bytes", "memory.max"


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit in `bytes`, and its `name` as people know it.

    `address_space` tells what counts: what is mapped, stacks and libraries included, or else what
    is resident.
    """

    bytes: int
    name: str
    address_space: bool

    def free(self) -> int:
        """Return the bytes that are left. It takes some microseconds."""
        mapped, resident = Path("/proc/self/statm").read_bytes().split(None, 2)[:2]
        pages = int(mapped if self.address_space else resident)
        return self.bytes - pages * os.sysconf("SC_PAGE_SIZE")


def usable_bytes() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its limit."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = find_limit()
    return physical if limit is None else min(physical, limit.bytes)


def stacks(threads: int) -> int:
    """Return the address space that the stacks of so many new threads take."""
    return threads * (threading.stack_size() or _DEFAULT_STACK)


def address_space_is_limited() -> bool:
    """Whether RLIMIT_AS limits this process."""
    return next(_address_space(), None) is not None


def check_address_space(threads: int) -> None:
    """Look whether libraries and model can be loaded at all: a library may crash when they cannot.

    Raises:
        FailedPrecondition: the address space is too small for a server with so many threads.
    """
    for limit in _address_space():
        if limit.bytes < _LOADED_BYTES:
            least = _LOADED_BYTES + RESERVE_BYTES + LEAST_FOR_REQUESTS_BYTES + stacks(threads)
            raise too_small(limit, least, threads)


def too_small(limit: MemoryLimit, least: int, threads: int) -> FailedPrecondition:
    """Return what says that a server needs `least` bytes."""
    needed = -(-least // MIB) + _VARYING_BYTES // MIB
    return FailedPrecondition(
        f"{limit.name} is limited to {limit.bytes // MIB} MiB; with {threads} threads"
        f" (MNEME_WORKERS) the server needs {needed} MiB at least",
        reason=Reason.INITIALIZATION_FAILED,
    )


def find_limit(root: Path = Path("/")) -> MemoryLimit | None:
    """Return the limit that leaves this process least; None without one, and not on Linux.

    Args:
        root: where `proc` and `sys` lie.
    """
    if not Path("/proc/self/statm").exists():
        return None
    found = [*_address_space(), *_cgroups(root)]
    return min(found, key=MemoryLimit.free, default=None)


def _address_space() -> Iterator[MemoryLimit]:
    try:
        import resource
    except ImportError:  # Windows has none.
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield MemoryLimit(soft, "address space (RLIMIT_AS, `ulimit -v`)", address_space=True)


def _cgroups(root: Path) -> Iterator[MemoryLimit]:
    """Yield the limits of the process's control group and of those around it."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in _cgroup_files(root):
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # Not there, or "max".
            continue
        if limit < physical:
            name = f"memory of the control group ({file.name})"
            yield MemoryLimit(limit, name, address_space=False)


def _cgroup_files(root: Path) -> Iterator[Path]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    base = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            top, name = base, _V2_FILE
        elif "memory" in controllers.split(","):
            top, name = base / "memory", _V1_FILE
        else:
            continue
        # A container sees its own group as the top, and may be told its path outside.
        inner = top / group.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(top):
                yield folder / name
