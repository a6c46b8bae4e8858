"""Limits of this process: of its memory, of the stacks of its threads, of the files it has open.

Some are asked for, set by the system or by whoever started it; others it sets itself, so that
freed memory is found again.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
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

_M_TRIM_THRESHOLD = -1  # As in glibc's malloc.h.
_M_ARENA_MAX = -8

_STACK_BYTES = 2 * MIB
"""Of each thread. The system's default, often 8 MiB, takes address space that may be limited."""

_ARENAS = 2
_TRIM_BYTES = MIB

_COLLECT_AFTER = (2_000, 10, 20)
"""Objects made, and collections of the generation before, until the next of each generation."""

_MANY_FILES = 65_536
"""Open at once, enough for any server: each connection is one, and each open tenant several."""


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


def spare_the_collector() -> None:
    """Have the garbage collector pass over what there is now, and look less often at the rest.

    Call it when everything is loaded. A full collection looks at every object and lets no other
    thread run meanwhile. A server is made of 150,000 objects that stay as long as it does; while a
    tenant recorded thousands of events a second, they were looked at nearly once a second, for 110
    milliseconds each time, and all tenants' calls stood still.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()  # A server is loaded without.


def give_back() -> None:
    """Collect garbage and have malloc give freed memory back to the system, where it can."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):
        return


def limit_arenas(arenas: int = _ARENAS) -> bool:
    """Have malloc use few arenas and give freed memory back; return whether it does.

    glibc gives threads arenas of their own, up to eight per processor, and what one of them frees
    another cannot use. Tenants are opened, searched and closed on whichever of the workers is free,
    so that all arenas grow to the size of the largest. A server on two processors held 628 MB after
    61 tenants of five events had been opened and searched, and kept them; with two arenas that are
    trimmed beyond 1 MiB it held 449 MB, and 305 MB twenty seconds later.

    Where the address space is limited, one arena is right: each of the others takes it by 64 MiB at
    a time, used or not, and gives little of it back.

    Call it before threads are started. Other C libraries do without, and nothing is done there.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  # musl has a mallopt that knows nothing.
        mallopt = libc.mallopt
    except (OSError, TypeError, AttributeError):
        return False
    mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    mallopt.restype = ctypes.c_int
    return all(
        mallopt(option, value) == 1
        for option, value in ((_M_ARENA_MAX, arenas), (_M_TRIM_THRESHOLD, _TRIM_BYTES))
    )


def limit_stacks() -> None:
    """Have threads that start from now on take less address space for their stacks."""
    threading.stack_size(_STACK_BYTES)


def limit_native_stacks() -> bool:
    """Have threads that libraries start take less, too; return whether they do.

    gRPC starts a dozen more under load, with the 8 MiB each that the system gives. Only glibc can
    be told.
    """
    try:
        libc = ctypes.CDLL(None)
        attributes = ctypes.create_string_buffer(256)  # A pthread_attr_t has 56 to 64 bytes.
        return not (
            libc.pthread_attr_init(attributes)
            or libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
            or libc.pthread_setattr_default_np(attributes)
        )
    except (OSError, TypeError, AttributeError):
        return False


def most_files() -> int:
    """Return how many files the process may have open at once."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return _MANY_FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY_FILES if soft == resource.RLIM_INFINITY else soft


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one, or to what is enough.

    The soft limit is low for programs that use `select`; this one does not.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # Not allowed: the limit stays as it is.
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def spare_memory(threads: int) -> None:
    """Limit what malloc and threads take. Call it before threads are started.

    Args:
        threads: that will serve calls.

    Raises:
        FailedPrecondition: the address space is too small for a server with so many threads.
    """
    if address_space_is_limited():
        limit_arenas(1)
        limit_native_stacks()
    else:
        limit_arenas()
    limit_stacks()
    check_address_space(threads)
